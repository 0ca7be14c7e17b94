"""RAFT, large and small: all-pairs costs, looked up and refined by a recurrent unit.

features → inner product → cost volume → recurrent head. The forward pass reads top to bottom in
`RAFT.match`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple, Protocol, Self

import torch
from torch import Tensor, nn

from lcv.cost_volume.allpairs import AllPairs
from lcv.cost_volume.allpairs.portable import lookup_like
from lcv.cost_volume.conventions import float32_products, pixel_grid
from lcv.cost_volume.expect import expect
from lcv.cost_volume.ondemand import OnDemand
from lcv.errors import ArgumentError, ShapeError
from lcv.inner_product import Elliptical, InnerProduct, make_inner_product
from lcv.inner_product.convert import to_authors
from lcv.inner_product.precision import at_least_float32
from lcv.layers.images import as_input
from lcv.layers.padding import MODES, Padding, padding_for
from lcv.models.raft.authors import RebuiltVolume
from lcv.models.raft.encoder import (
    BottleneckBlock,
    Encoder,
    InstanceNorm,
    ResidualBlock,
    no_norm,
)
from lcv.models.raft.export import EXPORT_RULE
from lcv.models.raft.fast import FastRAFT
from lcv.models.raft.names import FAMILIES
from lcv.models.raft.update import FlowHead, MotionEncoder, RecurrentUnit, UpdateBlock
from lcv.models.raft.upsample import bilinear_upsample, convex_upsample
from lcv.models.types import Defaults, FlowOutput, Role, check_volume

LEVELS = 4


class Features(NamedTuple):
    """What RAFT knows of one frame. `context` is needed of the first frame of a pair."""

    matching: Tensor  # (b, c, h/8, w/8)
    context: Tensor | None  # (b, hidden + context, h/8, w/8)
    padding: Padding = Padding(0, 0, 0, 0)


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

    forms = ("left", "factor", "zca")
    stride = 8
    least_side = stride * (2 ** (LEVELS - 1) - 1) + 1  # so that features can be halved thrice
    volumes = ("all-pairs", "on-demand")
    takes_flow_init = True
    defaults = Defaults(
        iters=20,
        training_iters=12,
        pads=MODES,
        # Batch norms keep their statistics in all of RAFT's stages but the first.
        finetuning={"model.freeze_batch_norm": True},
    )
    names = FAMILIES
    export_rule = EXPORT_RULE

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
        image1, image2 = as_input("RAFT", self.fnet.conv1.weight, image1=image1, image2=image2)
        return self.match(
            self.encode(image1, "first", pad),
            self.encode(image2, "second", pad),
            iters=iters,
            flow_init=flow_init,
            all_flows=all_flows,
        )

    def encode(self, image: Tensor, role: Role = "first", pad: str | None = None) -> Features:
        """Features of a frame (b, 3, h, w), 0 … 255, padded to multiples of 8.

        The context is left out of a second frame. Features of a first frame serve as a second's.
        """
        (image,) = as_input("RAFT", self.fnet.conv1.weight, image=image)
        height, width = image.shape[-2:]
        padding = padding_for(height, width, self.stride, MODES[0] if pad is None else pad)
        self.check_size(height, width)
        image = padding.apply(image) * (2 / 255) - 1
        if image.is_cpu and not torch.is_grad_enabled():
            # Convolutions there reorder what is channels first. A clone, since `contiguous` may keep
            # strides of a single image that they take for channels first.
            image = image.clone(memory_format=torch.channels_last)
        matching = self.fnet(image)
        return Features(matching, self.cnet(image) if role == "first" else None, padding)

    def check_size(self, height: int, width: int) -> None:
        """Refuse an image too small for the pyramid."""
        if min(height, width) < self.least_side:
            raise ShapeError(
                f"RAFT: the image is {height}×{width} pixels, wanted at least {self.least_side} "
                f"both ways, so that its features can be halved {LEVELS - 1} times. Enlarge it "
                f"first."
            )

    def match(
        self,
        features1: Features,
        features2: Features,
        *,
        size: tuple[int, int] | None = None,
        iters: int | None = None,
        flow_init: Tensor | None = None,
        all_flows: bool | None = None,
    ) -> FlowOutput:
        """Flow between two encoded frames, at the frames' own size, which their padding tells."""
        if not isinstance(features1, Features) or not isinstance(features2, Features):
            raise ArgumentError(
                "RAFT.match: wanted the Features of two frames, as `encode` gives them"
            )
        if features1.context is None:
            raise ArgumentError(
                "RAFT.match: features1 lack the context; encode that frame as the first of a pair"
            )
        if iters is None:
            iters = self.defaults.training_iters if self.training else self.defaults.iters
        if not isinstance(iters, int) or iters < 1:
            raise ArgumentError(f"RAFT: iters must be a whole number of at least 1, got {iters!r}")
        if flow_init is not None and not isinstance(flow_init, Tensor):
            raise ArgumentError(f"RAFT: flow_init is a {type(flow_init).__name__}, wanted a tensor")
        all_flows = self.training if all_flows is None else all_flows

        # The volume is built in float32 whatever the encoders ran in, as the authors do. Features
        # computed in half precision have eight bits or eleven; TF32's eleven do for their product.
        f1, f2 = at_least_float32(features1.matching), at_least_float32(features2.matching)
        exact = features1.matching.dtype == f1.dtype or torch.compiler.is_compiling()
        device = f1.device.type
        with torch.autocast(device, enabled=False):
            f1, f2 = self.inner_product(f1, f2)
            with nullcontext() if exact else float32_products("tf32"):
                state = self.cost_volume.build(f1, f2)

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
        kept = []
        for iteration in range(iters):
            # Gradients reach earlier iterations through the hidden state alone, as in the paper.
            flow = flow.detach()
            with torch.autocast(device, enabled=False):
                costs = self.cost_volume.lookup(state, start + flow)
            h, change = self.update_block(h, gates, costs.to(own), flow.to(own))
            flow = flow + change.to(flow.dtype)
            if all_flows or iteration == iters - 1:
                kept.append((flow, h))
        # In training one large call is faster than many, and takes little more memory.
        if h.requires_grad:
            fine = self.upsample(*map(torch.cat, zip(*kept, strict=True))).chunk(len(kept))
        else:
            fine = tuple(self.upsample(*each) for each in kept)
        flows = [features1.padding.undo(each) for each in fine]
        return FlowOutput(flow=flows[-1], flows=tuple(flows) if all_flows else (), low=flow)

    def upsample(self, flow: Tensor, h: Tensor) -> Tensor:
        """An eighth's flow (b, 2, h, w) at full size, with weights from the hidden state if any."""
        if self.update_block.mask is None:
            return bilinear_upsample(flow)
        # A quarter balances gradients, as the authors have it.
        return convex_upsample(flow, self.update_block.mask(h), 0.25)

    def encodes_by_role(self) -> bool:
        """No: features of a first frame serve as a second's."""
        return False

    def with_volume(self, name: str) -> Self:
        """The same network with its costs held at once ("all-pairs") or not ("on-demand")."""
        check_volume(self, name)
        had: Any = self.cost_volume
        kind = OnDemand if name == "on-demand" else AllPairs
        if isinstance(had, kind):
            return self
        twin = copy.copy(self)  # shallow: the weights are shared, the volume is not
        twin.cost_volume = kind(had.levels, had.radius, had.scale)
        return twin

    def layer_before_w(self) -> nn.Conv2d:
        """The encoder's last convolution, which nothing follows."""
        return self.fnet.conv2

    def parts_to_compile(self) -> list[tuple[nn.Module, str]]:
        """Encoders, update block and upsampling."""
        blocks = (self.fnet, self.cnet, self.update_block)
        return [*((block, "forward") for block in blocks), (self, "upsample")]

    def for_inference(self, dtype: torch.dtype) -> FastRAFT:
        """The same function, prepared for prediction; see `lcv.models.fast.Prepared`."""
        return FastRAFT(self, dtype)

    def authors_way(self) -> Self:
        """The same function with W and the volume rebuilt at every update, as the authors do."""
        product: Any = self.inner_product
        had: Any = self.cost_volume
        if not isinstance(product, Elliptical):
            raise ArgumentError(
                f"RAFT: the authors' block is for an elliptical W, this one is "
                f"{type(product).__name__}"
            )
        twin = copy.copy(self)  # shallow, but for its own list of modules
        twin._modules = dict(self._modules)
        twin.inner_product = make_inner_product("euclidean", product.channels)
        raw = to_authors(product.S_upper, product.t)
        twin.cost_volume = RebuiltVolume(*raw, had.levels, had.radius)
        return twin

    def core_for_export(self, lookup: str) -> nn.Module:
        """A copy whose costs are read by one of torch's own operators."""
        twin = copy.deepcopy(self)
        had: Any = self.cost_volume
        twin.cost_volume = lookup_like(AllPairs(had.levels, had.radius, had.scale), lookup)
        return twin


def raft_large(inner_product: str = "euclidean", form: str = "left") -> RAFT:
    """The published RAFT: 256 matching channels, windows of 9×9, convex upsampling."""
    hidden, context, channels, radius = 128, 128, 256, 4
    widths = (64, 96, 128)
    return RAFT(
        fnet=Encoder(ResidualBlock, widths, channels, InstanceNorm),
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
        fnet=Encoder(BottleneckBlock, widths, channels, InstanceNorm),
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
