"""One level of VCN: volume, soft winner-take-all, fusion of the hypotheses into a flow."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, cat, nn

from lcv.cost_volume.projected import projected_cost_volume
from lcv.cost_volume.resize import resize
from lcv.inner_product.precision import at_least_float32
from lcv.models.vcn.conv4d import SeparableConv4d, VolumeFilter
from lcv.models.vcn.features import SLOPE, conv_unit

REACH = 3  # the soft winner-take-all keeps 7×7 displacements around the best
TINY = 1e-9


def unit_length(f: Tensor) -> Tensor:
    """f / (|f|₂ + 1e-9), feature by feature. (b, c, h, w) → (b, c, h, w)"""
    f = at_least_float32(f)
    return f / (torch.linalg.vector_norm(f, dim=1, keepdim=True) + TINY)


def entropy(p: Tensor) -> Tensor:
    """−Σ p log p over the window, p clamped to [1e-9, 1 − 1e-9] inside the log.

    p: (n, u, v, h, w) → (n, h, w)
    """
    return -(p * p.clamp(TINY, 1 - TINY).log()).sum((1, 2))


def soft_winner_take_all(scores: Tensor) -> tuple[Tensor, Tensor]:
    """The expected displacement near the best one, and how sure it is.

        (i, j) = argmax of the scores;  p = softmax of the scores within 3 of (i, j) in u and in v
        flow   = (Σ p·dx, Σ p·dy);  entropies = (H(p) / log 49, H(softmax of all) / log(u·v))

    scores: (n, u, v, h, w), dx = i − (u−1)/2 along u, dy along v → flow (n, 2, h, w), and
    entropies (n, 2, h, w): local, global.
    Facts: of equal scores the first wins; the 7×7 neighbourhood is clipped at the window's edge,
    yet log 49 stays; the entropies carry no gradient, since nothing learns from them.
    """
    scores = at_least_float32(scores)
    u, v = scores.shape[1:3]
    best = scores.flatten(1, 2).argmax(1)[:, None, None]  # (n, 1, 1, h, w)
    i = torch.arange(u, device=scores.device).view(u, 1, 1, 1)
    j = torch.arange(v, device=scores.device).view(1, v, 1, 1)
    near = ((i - best // v).abs() <= REACH) & ((j - best % v).abs() <= REACH)  # (n, u, v, h, w)
    p = softmax_over_window(scores.masked_fill(~near, -math.inf))
    dx = (p.sum(2) * (i[:, 0] - u // 2)).sum(1)
    dy = (p.sum(1) * (j[0] - v // 2)).sum(1)
    with torch.no_grad():
        local = entropy(p) / math.log((2 * REACH + 1) ** 2)
        everywhere = entropy(softmax_over_window(scores)) / math.log(u * v)
    return torch.stack([dx, dy], dim=1), torch.stack([local, everywhere], dim=1)


def softmax_over_window(scores: Tensor) -> Tensor:
    """Probabilities that sum to 1 over (u, v). (n, u, v, h, w) → (n, u, v, h, w)"""
    return F.softmax(scores.flatten(1, 2), dim=1).unflatten(1, scores.shape[1:3])


def fusion_stack(inputs: int, outputs: int) -> nn.Sequential:
    """Six dilated units and a plain 3×3 convolution; receptive field 67 pixels of the level."""
    widths, dilations = (128, 128, 128, 96, 64, 32), (1, 2, 4, 8, 16, 1)
    layers: list[nn.Module] = []
    for width, dilation in zip(widths, dilations, strict=True):
        layers.append(conv_unit(inputs, width, dilation=dilation, bias=True))
        inputs = width
    return nn.Sequential(*layers, nn.Conv2d(inputs, outputs, 3, padding=1))


class Hypotheses(NamedTuple):
    """Candidate flows of a level and the entropies of each.

    flows: (b, n, 2, h, w) in pixels of the level, (x, y); entropies: (b, n, 2, h, w), (local,
    global). A level's own come first, then those of the next coarser level.
    """

    flows: Tensor
    entropies: Tensor

    def resized(self, size: tuple[int, int]) -> Hypotheses:
        """The same on the next finer level: bilinear, flows doubled and detached."""
        n = self.flows.shape[1]
        flows = resize(self.flows.detach().flatten(1, 2), size, align_corners=False) * 2
        entropies = resize(self.entropies.flatten(1, 2), size, align_corners=False)
        return Hypotheses(flows.unflatten(1, (n, 2)), entropies.unflatten(1, (n, 2)))


class LevelResult(NamedTuple):
    """flow (b, 2, h, w) in the level's pixels; its hypotheses; out-of-range logits (b, 1, h, w)."""

    flow: Tensor
    hypotheses: Hypotheses
    out_of_range: Tensor | None


class MatchingLevel(nn.Module):
    """Volume → filtered scores → B hypotheses → one flow.

    channels: of the features. count: B, the number of hypotheses of this level. inherited: the
    number handed down by coarser levels. radius: (rx, ry), the window is (2rx+1, 2ry+1). full: the
    volume filter strides among the pixels too. head: add the out-of-range classifier, which is
    asked in training alone.
    """

    def __init__(
        self,
        channels: int,
        count: int,
        inherited: int,
        radius: tuple[int, int],
        *,
        full: bool,
        head: bool,
    ) -> None:
        super().__init__()
        self.window = (2 * radius[0] + 1, 2 * radius[1] + 1)
        self.filter = VolumeFilter(channels, count, full=full)
        self.score = SeparableConv4d(count, count, norm=False)
        total = count + inherited
        self.fuse = fusion_stack(4 * total + channels, 2 * total)
        self.out_of_range = fusion_stack(4 * total + channels, 1) if head else None

    def forward(
        self,
        g1: Tensor,
        g2: Tensor,
        context: Tensor,
        start: Tensor | None = None,
        inherited: Hypotheses | None = None,
    ) -> LevelResult:
        """g1, g2: (b, c, h, w), what the inner product made of the features, g2 warped by `start`.
        context: (b, c, h, w), frame 1's feature before normalisation. start: (b, 2, h, w), the
        coarser flow on this level; inherited: the coarser hypotheses on this level.
        """
        mix = self.filter.project.conv.weight.flatten(1)  # (B, c)
        volume = projected_cost_volume(g1, g2, mix, self.window, slope=SLOPE)
        scores = self.score(self.filter.filter(volume))  # (b, B, u, v, h, w)
        shape = scores.shape[:2]
        flows, entropies = soft_winner_take_all(scores.flatten(0, 1))
        flows, entropies = flows.unflatten(0, shape), entropies.unflatten(0, shape)
        if start is not None:
            flows = flows + start[:, None]
        if inherited is not None:
            flows = cat([flows, inherited.flows], dim=1)
            entropies = cat([entropies, inherited.entropies], dim=1)

        seen = cat([entropies.flatten(1, 2), flows.detach().flatten(1, 2), context], dim=1)
        weights = at_least_float32(self.fuse(seen)).unflatten(1, flows.shape[1:3])
        flow = (F.softmax(weights, dim=1) * flows).sum(1)  # x and y are weighed separately
        logits = None
        if self.training and self.out_of_range is not None:
            logits = self.out_of_range(seen)
        return LevelResult(flow, Hypotheses(flows, entropies), logits)
