"""RAFT prepared for inference: the same function as `RAFT.forward`, laid out for a GPU.

One dtype and one layout (channels together) throughout, both frames encoded in one pass, W folded
into the encoders' last convolution, batch norms into theirs, z and r in one convolution, and every
result written where the next convolution reads it. Flow, coordinates, sums and upsampling are
float32. `kernels` says whether the steps are GPU kernels or torch; the network is the same.
"""

from __future__ import annotations

from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lcv.cost_volume.backend import choose_backend
from lcv.cost_volume.conventions import check_radius, pixel_grid
from lcv.cost_volume.expect import expect
from lcv.cost_volume.ondemand import OnDemand
from lcv.errors import ArgumentError
from lcv.layers.images import as_input
from lcv.layers.padding import MODES, padding_for
from lcv.models.raft.fast_encoder import FastEncoder
from lcv.models.raft.fused import Layer, blend, convolve, gates, make_layer, padded, step
from lcv.models.raft.update import RecurrentUnit
from lcv.models.raft.upsample import bilinear_upsample, convex_upsample
from lcv.models.types import FlowOutput


class FastRAFT:
    """A RAFT's weights, prepared once in `dtype`; later changes of the network do not reach it."""

    def __init__(self, model: Any, dtype: torch.dtype) -> None:
        like = model.fnet.conv1.weight
        half = dtype in (torch.float16, torch.bfloat16)
        probe = like.new_empty(0, dtype=dtype)
        # In float32 torch's own convolutions are as exact as is wanted.
        self.kernels = half and choose_backend("RAFT, prepared", "auto", probe) == "triton"
        self.dtype, self.volume = dtype, model.cost_volume
        self.stride, self.iters, self.check_size = (
            model.stride,
            model.defaults.iters,
            model.check_size,
        )
        self.fnet = FastEncoder(model.fnet, dtype, self.kernels)
        self.cnet = FastEncoder(model.cnet, dtype, self.kernels)
        self.last = self._matching_layers(model)
        block = model.update_block
        gru = block.gru
        self.hidden = gru.hidden
        self.context_layer = _cast(model.cnet.conv2.weight, model.cnet.conv2.bias, dtype)
        self.context_bias = model.cnet.conv2.bias.detach().float()
        self.passes = [self._pass(gru, suffix) for suffix in gru.suffixes]
        encoder, head = block.encoder, block.flow_head
        self.convc1, self.convc2 = self._layer(encoder.convc1), None
        if encoder.convc2 is not None:
            self.convc2 = self._layer(encoder.convc2)
        self.convf1 = self._layer(encoder.convf1, planes=True)
        self.convf2, self.conv = self._layer(encoder.convf2), self._layer(encoder.conv)
        self.head1, self.head2 = self._layer(head.conv1), self._layer(head.conv2)
        self.mask = None
        if block.mask is not None:
            self.mask = (self._layer(block.mask[0]), self._layer(block.mask[2]))

    def __call__(
        self,
        image1: Tensor,
        image2: Tensor,
        *,
        iters: int | None = None,
        flow_init: Tensor | None = None,
        pad: str | None = None,
    ) -> FlowOutput:
        """As `RAFT.forward`."""
        image1, image2 = as_input("RAFT", self.context_bias, image1=image1, image2=image2)
        height, width = image1.shape[-2:]
        self.check_size(height, width)
        iters = self.iters if iters is None else iters
        if not isinstance(iters, int) or iters < 1:
            raise ArgumentError(f"RAFT: iters must be a whole number of at least 1, got {iters!r}")
        padding = padding_for(height, width, self.stride, MODES[0] if pad is None else pad)
        both = padding.apply(torch.cat((image1, image2))) * (2 / 255) - 1
        both = both.to(self.dtype).contiguous(memory_format=torch.channels_last)
        n = image1.shape[0]
        seen = self.fnet(both)
        f1, f2 = (
            F.conv2d(seen[part], weight, bias)
            for part, (weight, bias) in zip((slice(n), slice(n, None)), self.last, strict=True)
        )
        context = F.conv2d(self.cnet(both[:n]), *self.context_layer)
        start = None if flow_init is None else flow_init.float()
        flow, mask = self._iterate(f1, f2, context, iters, start)
        if mask is None:
            fine = bilinear_upsample(flow)
        else:
            fine = convex_upsample(flow, mask.permute(0, 3, 1, 2), 0.25)
        return FlowOutput(flow=padding.undo(fine), low=flow)

    def _iterate(
        self, f1: Tensor, f2: Tensor, context: Tensor, iters: int, start: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Low flow and the logits of the upsampling mask."""
        b, _, h, w = f1.shape
        kernels, hidden = self.kernels, self.hidden
        lookup = _Lookup(self.volume, f1, f2, self.kernels)
        own = torch.tanh(context[:, :hidden]).permute(0, 2, 3, 1)
        given = torch.relu(context[:, hidden:])
        shares = [
            F.conv2d(given, weight, bias, padding=padding).permute(0, 2, 3, 1).contiguous()
            for (weight, bias, padding), _, _ in self.passes
        ]

        def buffer(channels: int) -> Tensor:
            return f1.new_zeros(b, h, w, padded(channels))

        # Two inputs of the unit, [h, motion] and [r·h, motion]; the motion ends in the flow itself.
        motion = self.conv.outputs + 2
        joint, reset = buffer(hidden + motion), buffer(hidden + motion)
        state, z = joint[..., :hidden], buffer(hidden)[..., :hidden]
        state.copy_(own)
        flow = f1.new_zeros(b, 2, h, w, dtype=torch.float32)
        if start is not None:
            expect("RAFT", f1, "features: b c h w", start, "flow_init: b 2 h w")
            flow += start
        coords = flow + pixel_grid(h, w, device=f1.device)
        ends = slice(hidden + motion - 2, hidden + motion)
        joint[..., ends] = reset[..., ends] = flow.permute(0, 2, 3, 1).to(self.dtype)

        costs, early = buffer(lookup.channels), buffer(self.convc1.outputs)
        of_flow, inner = buffer(self.convf1.outputs), buffer(self.head1.outputs)
        seen = self.convc1.outputs if self.convc2 is None else self.convc2.outputs
        mixed = buffer(seen + self.convf2.outputs)
        middle = slice(hidden, hidden + motion - 2)
        for _ in range(iters):
            lookup(coords, costs)
            if self.convc2 is None:
                convolve(costs, self.convc1, mixed[..., :seen], relu=True, kernels=kernels)
            else:
                out = early[..., : self.convc1.outputs]
                convolve(costs, self.convc1, out, relu=True, kernels=kernels)
                convolve(early, self.convc2, mixed[..., :seen], relu=True, kernels=kernels)
            out = of_flow[..., : self.convf1.outputs]
            convolve(flow, self.convf1, out, relu=True, kernels=kernels)
            out = mixed[..., seen : seen + self.convf2.outputs]
            convolve(of_flow, self.convf2, out, relu=True, kernels=kernels)
            out, also = joint[..., middle], reset[..., middle]
            convolve(mixed, self.conv, out, relu=True, also=also, kernels=kernels)
            for share, (_, zr, q) in zip(shares, self.passes, strict=True):
                gated, rest = share[..., : 2 * hidden], share[..., 2 * hidden :]
                gates(joint, zr, gated, state, z, reset[..., :hidden], kernels=kernels)
                blend(reset, q, rest, z, state, kernels=kernels)
            out = inner[..., : self.head1.outputs]
            convolve(joint[..., :hidden], self.head1, out, relu=True, kernels=kernels)
            step(
                *(inner, self.head2, flow, coords, joint[..., ends], reset[..., ends]),
                kernels=kernels,
            )
        if self.mask is None:
            return flow, None
        first, second = self.mask
        early = buffer(first.outputs)
        convolve(state, first, early[..., : first.outputs], relu=True, kernels=kernels)
        logits = f1.new_empty(b, h, w, second.outputs)
        convolve(early, second, logits, relu=False, kernels=kernels)
        return flow, logits

    def _layer(self, conv: nn.Conv2d, *, planes: bool = False) -> Layer:
        bias = cast(Tensor, conv.bias)
        return make_layer(conv.weight.detach(), bias.detach(), self.dtype, planes=planes)

    def _pass(self, gru: RecurrentUnit, suffix: str) -> tuple[Any, Layer, Layer]:
        """One pass of the unit: the context's share, computed once a pair; z and r; and q."""
        convs = [cast(nn.Conv2d, gru.get_submodule(f"conv{gate}{suffix}")) for gate in "zrq"]
        weight = torch.cat([conv.weight.detach() for conv in convs])
        bias = torch.cat([cast(Tensor, conv.bias).detach() for conv in convs])
        hidden, context = gru.hidden, gru.context
        of_context = weight[:, hidden : hidden + context]
        rest = torch.cat((weight[:, :hidden], weight[:, hidden + context :]), dim=1)
        nothing = torch.zeros_like(bias)
        return (
            (*_cast(of_context, bias, self.dtype), convs[0].padding),
            make_layer(rest[: 2 * hidden], nothing[: 2 * hidden], self.dtype),
            make_layer(rest[2 * hidden :], nothing[2 * hidden :], self.dtype),
        )

    def _matching_layers(self, model: Any) -> list[tuple[Tensor, Tensor]]:
        """The encoder's last convolution for the first and for the second frame, W folded in.

        An inner product is linear, so what it makes of the unit vectors is all that it does.
        """
        conv, c = model.fnet.conv2, model.fnet.conv2.out_channels
        with torch.no_grad():
            ones = torch.eye(c, device=conv.weight.device).view(1, c, c, 1)
            maps = model.inner_product(ones, ones)
            weight, bias = conv.weight.float().flatten(1), conv.bias.float()
            folded = [(M.view(c, c) @ weight, M.view(c, c) @ bias) for M in maps]
        return [_cast(w[:, :, None, None], b, self.dtype) for w, b in folded]


class _Lookup:
    """The cost volume of a pair, read into channels that lie together."""

    def __init__(self, volume: Any, f1: Tensor, f2: Tensor, kernels: bool) -> None:
        self.volume, self.kernels = volume, kernels
        rx, ry = check_radius("RAFT", volume.radius)
        self.levels, self.window = volume.levels, {"levels": volume.levels, "rx": rx, "ry": ry}
        self.channels = volume.levels * (2 * rx + 1) * (2 * ry + 1)
        self.on_demand = isinstance(volume, OnDemand)
        self.state: Any
        if not kernels:
            self.state = volume.build(f1.float(), f2.float())
            return
        from lcv.cost_volume.allpairs import triton_impl as allpairs
        from lcv.cost_volume.ondemand import triton_impl as ondemand

        given = {"levels": volume.levels, "scale": volume.scale}
        if self.on_demand:
            self.state = ondemand.build(f1, f2, **given)
        else:
            self.state = allpairs.build(f1, f2, **given).costs

    def __call__(self, coords: Tensor, out: Tensor) -> None:
        """coords: (b, 2, h, w) → out (b, h, w, channels or more)."""
        if not self.kernels:
            costs = self.volume.lookup(self.state, coords)
            out[..., : self.channels] = costs.permute(0, 2, 3, 1)
            return
        from lcv.cost_volume.allpairs.triton_windows import read_windows
        from lcv.cost_volume.ondemand.triton_impl import window_costs

        source = self.state
        if self.on_demand:
            points, packed = self.state
            source = window_costs(points, packed, coords, **self.window)
        planes = out.permute(0, 3, 1, 2)
        read_windows(source, coords, planes, every=not self.on_demand, **self.window)


def _cast(weight: Tensor, bias: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    weight = weight.detach().to(dtype).contiguous(memory_format=torch.channels_last)
    return weight, bias.detach().to(dtype)
