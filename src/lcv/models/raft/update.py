"""RAFT's update: motion encoder, gated recurrent unit, flow head and upsampling mask.

What the loop does not change is computed before it. The unit's input is (h, context, motion); its
convolutions are linear in each part, so the context's share of every gate is one convolution per
pair instead of one per iteration. Modules bear the authors' names.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def convolve(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, padding: int | tuple[int, int] = 0
) -> Tensor:
    """F.conv2d; in compiled steps on a GPU as `convolve_in_eights`."""
    if torch.compiler.is_compiling() and x.is_cuda:
        return convolve_in_eights(x, weight, bias, padding)
    return F.conv2d(x, weight, bias, padding=padding)


def convolve_in_eights(
    x: Tensor, weight: Tensor, bias: Tensor | None, padding: int | tuple[int, int]
) -> Tensor:
    """The same with channels filled up to multiples of eight by zeros, as tensor cores want them.

    Two outputs, the flow's, are the worst case: their gradient took as long as all other flow-head
    gradients together. Compiled, filling up is part of the casts around it.
    """
    outputs, inputs = weight.shape[:2]
    more_in, more_out = -inputs % 8, -outputs % 8
    if more_in:
        x = F.pad(x, (0, 0, 0, 0, 0, more_in))
    if more_in or more_out:
        weight = F.pad(weight, (0, 0, 0, 0, 0, more_in, 0, more_out))
    if bias is not None and more_out:
        bias = F.pad(bias, (0, more_out))
    return F.conv2d(x, weight, bias, padding=padding)[:, :outputs]


class MotionEncoder(nn.Module):
    """Costs and flow to motion features; the flow itself is appended to them.

    costs: (b, k, h, w), flow: (b, 2, h, w) → (b, outputs, h, w)
    convc2 exists in the large network only.
    """

    def __init__(
        self,
        costs: int,
        cost_widths: tuple[int, ...],
        flow_widths: tuple[int, int],
        outputs: int,
    ) -> None:
        super().__init__()
        self.convc1 = nn.Conv2d(costs, cost_widths[0], 1)
        self.convc2 = (
            nn.Conv2d(cost_widths[0], cost_widths[1], 3, padding=1)
            if len(cost_widths) == 2
            else None
        )
        self.convf1 = nn.Conv2d(2, flow_widths[0], 7, padding=3)
        self.convf2 = nn.Conv2d(flow_widths[0], flow_widths[1], 3, padding=1)
        self.conv = nn.Conv2d(cost_widths[-1] + flow_widths[1], outputs - 2, 3, padding=1)

    def forward(self, costs: Tensor, flow: Tensor) -> Tensor:
        flow = flow.contiguous(memory_format=torch.channels_last)  # so that what it joins stays so
        c = F.relu_(convolve(costs, self.convc1.weight, self.convc1.bias))
        if self.convc2 is not None:
            c = F.relu_(self.convc2(c))
        f = F.relu_(self.convf2(F.relu_(self.convf1(flow))))
        motion = F.relu_(convolve(torch.cat([c, f], dim=1), self.conv.weight, self.conv.bias, 1))
        return torch.cat([motion, flow.to(motion.dtype)], dim=1)


class Gates(NamedTuple):
    """One pass of the unit, prepared for a pair: weights without the context's share, and it."""

    zr_weight: Tensor  # (2·hidden, hidden + motion, kh, kw)
    q_weight: Tensor  # (hidden, hidden + motion, kh, kw)
    zr_context: Tensor  # (b, 2·hidden, h, w), bias included
    q_context: Tensor  # (b, hidden, h, w), bias included
    padding: tuple[int, int]


class RecurrentUnit(nn.Module):
    """A convolutional GRU in one pass (3×3) or two (1×5, then 5×1).

        z = σ(conv_z [h, x]),  r = σ(conv_r [h, x]),  q = tanh(conv_q [r·h, x])
        h ← (1 − z) h + z q,      x = [context, motion]

    passes: kernel by name suffix; the authors' large network has "1" and "2", the small one "".
    """

    def __init__(
        self, hidden: int, context: int, motion: int, passes: dict[str, tuple[int, int]]
    ) -> None:
        super().__init__()
        self.hidden, self.context = hidden, context
        self.suffixes = tuple(passes)
        for suffix, kernel in passes.items():
            for gate in "zrq":
                padding = (kernel[0] // 2, kernel[1] // 2)
                conv = nn.Conv2d(hidden + context + motion, hidden, kernel, padding=padding)
                self.add_module(f"conv{gate}{suffix}", conv)

    def prepare(self, context: Tensor) -> tuple[Gates, ...]:
        """Everything the loop will not change. context: (b, context, h, w)"""
        return tuple(self._prepare(context, suffix) for suffix in self.suffixes)

    def _prepare(self, context: Tensor, suffix: str) -> Gates:
        convs = [cast(nn.Conv2d, self.get_submodule(f"conv{gate}{suffix}")) for gate in "zrq"]
        padding = cast(tuple[int, int], convs[0].padding)
        weight = torch.cat([conv.weight for conv in convs])
        bias = torch.cat([cast(Tensor, conv.bias) for conv in convs])
        of_hidden, of_context, of_motion = weight.split(
            [self.hidden, self.context, weight.shape[1] - self.hidden - self.context], dim=1
        )
        share = F.conv2d(context, of_context, bias, padding=padding)
        rest = torch.cat([of_hidden, of_motion], dim=1)
        zr = 2 * self.hidden
        return Gates(rest[:zr], rest[zr:], share[:, :zr], share[:, zr:], padding)

    def forward(self, h: Tensor, motion: Tensor, gates: tuple[Gates, ...]) -> Tensor:
        motion = motion.to(h.dtype)
        for gate in gates:
            joint = torch.cat([h, motion], dim=1)
            zr = convolve(joint, gate.zr_weight, padding=gate.padding).add_(gate.zr_context)
            z, r = zr.sigmoid_().chunk(2, dim=1)
            if torch.is_grad_enabled():
                joint = torch.cat([r * h, motion], dim=1)
            else:
                joint[:, : self.hidden].mul_(r)
            q = convolve(joint, gate.q_weight, padding=gate.padding).add_(gate.q_context).tanh_()
            h = torch.lerp(h, q.to(h.dtype), z.to(h.dtype))  # (1 − z) h + z q
        return h


class FlowHead(nn.Module):
    """Hidden state to a change of flow. (b, hidden, h, w) → (b, 2, h, w)"""

    def __init__(self, hidden: int, inner: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(hidden, inner, 3, padding=1)
        self.conv2 = nn.Conv2d(inner, 2, 3, padding=1)

    def forward(self, h: Tensor) -> Tensor:
        return convolve(F.relu_(self.conv1(h)), self.conv2.weight, self.conv2.bias, 1)


class UpdateBlock(nn.Module):
    """One iteration: costs and flow in, hidden state and change of flow out."""

    def __init__(
        self, encoder: MotionEncoder, gru: RecurrentUnit, flow_head: FlowHead, has_mask: bool
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.gru = gru
        self.flow_head = flow_head
        self.mask = (
            nn.Sequential(
                nn.Conv2d(gru.hidden, 256, 3, padding=1), nn.ReLU(), nn.Conv2d(256, 64 * 9, 1)
            )
            if has_mask
            else None
        )

    def forward(
        self, h: Tensor, gates: tuple[Gates, ...], costs: Tensor, flow: Tensor
    ) -> tuple[Tensor, Tensor]:
        h = self.gru(h, self.encoder(costs, flow), gates)
        return h, self.flow_head(h)
