"""RAFT, large and small: all-pairs costs, looked up and refined by a recurrent unit.

features → inner product → cost volume → recurrent head. The forward pass reads top to bottom in
`RAFT.match`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from lcv.cost_volume.allpairs import AllPairs
from lcv.cost_volume.conventions import pixel_grid
from lcv.cost_volume.expect import expect
from lcv.errors import ArgumentError, ShapeError
from lcv.inner_product import InnerProduct, make_inner_product
from lcv.inner_product.precision import at_least_float32
from lcv.layers.images import as_input
from lcv.models.raft.encoder import BottleneckBlock, Encoder, ResidualBlock, no_norm
from lcv.models.raft.padding import padding_for
from lcv.models.raft.update import FlowHead, MotionEncoder, RecurrentUnit, UpdateBlock
from lcv.models.raft.upsample import bilinear_upsample, convex_upsample
from lcv.models.types import FlowOutput

LEVELS = 4


class Features(NamedTuple):
    """What RAFT knows of one frame. `context` is needed of the frame whose flow is sought."""

    matching: Tensor  # (b, c, h/8, w/8)
    context: Tensor | None  # (b, hidden + context, h/8, w/8)


class CostVolume(Protocol):
    """`AllPairs` or `OnDemand`: the same costs, in more memory or in less."""

    def build(self, f1: Tensor, f2: Tensor) -> Any: ...

    def lookup(self, state: Any, coords: Tensor) -> Tensor: ...


class RAFT(nn.Module):
    """RAFT from its parts; `raft_large` and `raft_small` build the published two.

    fnet, cnet:    encoders of matching features and of context
    update_block:  one iteration of the recurrent head
    inner_product: applied to the matching features before the volume
    cost_volume:   built once a pair, looked up once an iteration
    """

    stride = 8
    default_iters = 12
    default_iters_evaluation = 20

    def __init__(
        self,
        fnet: Encoder,
        cnet: Encoder,
        update_block: UpdateBlock,
        inner_product: InnerProduct,
        cost_volume: CostVolume,
    ) -> None:
        super().__init__()
        self.fnet = fnet
        self.cnet = cnet
        self.update_block = update_block
        self.inner_product = inner_product
        self.cost_volume = cost_volume

    @property
    def inner_products(self) -> Mapping[str, InnerProduct]:
        """The one W of RAFT, which serves all levels of its pyramid."""
        return {"": self.inner_product}

    def forward(
        self,
        image1: Tensor,
        image2: Tensor,
        iters: int | None = None,
        flow_init: Tensor | None = None,
        pad: str | None = None,
        all_flows: bool | None = None,
    ) -> FlowOutput:
        """Flow from image1 to image2.

        image1, image2: (b, 3, h, w) RGB, 0 … 255, of any size
        iters:     12 in training and 20 in evaluation unless given
        flow_init: (b, 2, h', w') in pixels of the padded image's eighth: where to start, for
                   instance `forward_interpolate(previous.low)`
        pad:       "sintel" (default) or "kitti", see `padding`
        all_flows: the prediction of every iteration; by default only in training
        """
        parameter = self.fnet.conv1.weight
        image1, image2 = as_input("RAFT", parameter, image1=image1, image2=image2)
        height, width = image1.shape[-2:]
        padding = padding_for(height, width, self.stride, "sintel" if pad is None else pad)
        self.check_size(height, width)
        image1, image2 = padding.apply(image1), padding.apply(image2)
        output = self.match(
            self.encode(image1),
            self.encode(image2, context=False),
            iters=iters,
            flow_init=flow_init,
            all_flows=all_flows,
        )
        flows = tuple(map(padding.undo, output.flows))
        return replace(output, flow=padding.undo(output.flow), flows=flows)

    def check_size(self, height: int, width: int) -> None:
        """Refuse what is empty at the coarsest of the pyramid's levels."""
        least = self.stride * 2 ** (LEVELS - 1)
        if min(height, width) <= least - self.stride:
            raise ShapeError(
                f"RAFT: the image is {height}×{width} pixels, wanted more than "
                f"{least - self.stride} both ways, so that its features can be halved "
                f"{LEVELS - 1} times. Enlarge it first."
            )

    def encode(self, image: Tensor, context: bool = True) -> Features:
        """Features of a frame whose sides are multiples of 8. image: (b, 3, h, w), 0 … 255"""
        (image,) = as_input("RAFT.encode", self.fnet.conv1.weight, image=image)
        height, width = image.shape[-2:]
        if height % self.stride or width % self.stride:
            raise ShapeError(
                f"RAFT.encode: the image is {height}×{width}, wanted multiples of {self.stride}. "
                f"Pad it, or call the network, which does so itself."
            )
        image = image * (2 / 255) - 1
        return Features(self.fnet(image), self.cnet(image) if context else None)

    def match(
        self,
        features1: Features,
        features2: Features,
        iters: int | None = None,
        flow_init: Tensor | None = None,
        all_flows: bool | None = None,
    ) -> FlowOutput:
        """Flow between two encoded frames, at the frames' own size."""
        if not isinstance(features1, Features) or not isinstance(features2, Features):
            raise ArgumentError(
                "RAFT.match: wanted the Features of two frames, as `encode` gives them"
            )
        if features1.context is None:
            raise ArgumentError("RAFT.match: features1 lack context; encode it with context=True")
        if iters is None:
            iters = self.default_iters if self.training else self.default_iters_evaluation
        if not isinstance(iters, int) or iters < 1:
            raise ArgumentError(f"RAFT: iters must be a whole number of at least 1, got {iters!r}")
        if flow_init is not None and not isinstance(flow_init, Tensor):
            raise ArgumentError(f"RAFT: flow_init is a {type(flow_init).__name__}, wanted a tensor")
        all_flows = self.training if all_flows is None else all_flows

        # The volume is built in float32 whatever the encoders ran in, as the authors do.
        f1, f2 = at_least_float32(features1.matching), at_least_float32(features2.matching)
        device = f1.device.type
        with torch.autocast(device, enabled=False):
            state = self.cost_volume.build(*self.inner_product(f1, f2))

        hidden = self.update_block.gru.hidden
        h = torch.tanh(features1.context[:, :hidden])
        gates = self.update_block.gru.prepare(torch.relu(features1.context[:, hidden:]))

        b, _, height, width = f1.shape
        start = pixel_grid(height, width, dtype=f1.dtype, device=f1.device)  # (2, h, w)
        flow = f1.new_zeros(b, 2, height, width) if flow_init is None else flow_init.to(f1)
        expect("RAFT", f1, "features: b c h w", flow, "flow_init: b 2 h w")

        own = (
            self.update_block.flow_head.conv1.weight.dtype
        )  # half in a halved model, not the costs
        flows = []
        for iteration in range(iters):
            # Gradients reach earlier iterations through the hidden state alone, as in the paper.
            flow = flow.detach()
            with torch.autocast(device, enabled=False):
                costs = self.cost_volume.lookup(state, start + flow)
            h, change = self.update_block(h, gates, costs.to(own), flow.to(own))
            flow = flow + change.to(flow.dtype)
            if all_flows or iteration == iters - 1:
                flows.append(self.upsample(flow, h))
        return FlowOutput(flow=flows[-1], flows=tuple(flows) if all_flows else (), low=flow)

    def upsample(self, flow: Tensor, h: Tensor) -> Tensor:
        """An eighth's flow (b, 2, h, w) at full size, with weights from the hidden state if any."""
        if self.update_block.mask is None:
            return bilinear_upsample(flow)
        # A quarter balances gradients, as the authors have it.
        return convex_upsample(flow, 0.25 * self.update_block.mask(h))


def raft_large(inner_product: str = "euclidean", form: str = "left") -> RAFT:
    """The published RAFT: 256 matching channels, windows of 9×9, convex upsampling."""
    hidden, context, channels, radius = 128, 128, 256, 4
    widths = (64, 96, 128)
    return RAFT(
        fnet=Encoder(ResidualBlock, widths, channels, nn.InstanceNorm2d),
        cnet=Encoder(ResidualBlock, widths, hidden + context, nn.BatchNorm2d),
        update_block=UpdateBlock(
            MotionEncoder(LEVELS * (2 * radius + 1) ** 2, (256, 192), (128, 64), 128),
            RecurrentUnit(hidden, context, 128, {"1": (1, 5), "2": (5, 1)}),
            FlowHead(hidden, 256),
            has_mask=True,
        ),
        inner_product=make_inner_product(inner_product, channels, form),
        cost_volume=AllPairs(levels=LEVELS, radius=radius, scale=channels**-0.5),
    )


def raft_small(inner_product: str = "euclidean", form: str = "left") -> RAFT:
    """The published small RAFT: 128 matching channels, windows of 7×7, bilinear upsampling."""
    hidden, context, channels, radius = 96, 64, 128, 3
    widths = (32, 64, 96)
    return RAFT(
        fnet=Encoder(BottleneckBlock, widths, channels, nn.InstanceNorm2d),
        cnet=Encoder(BottleneckBlock, widths, hidden + context, no_norm),
        update_block=UpdateBlock(
            MotionEncoder(LEVELS * (2 * radius + 1) ** 2, (96,), (64, 32), 82),
            RecurrentUnit(hidden, context, 82, {"": (3, 3)}),
            FlowHead(hidden, 128),
            has_mask=False,
        ),
        inner_product=make_inner_product(inner_product, channels, form),
        cost_volume=AllPairs(levels=LEVELS, radius=radius, scale=channels**-0.5),
    )
