"""Scene cuts: whether two frames that follow each other show different scenes."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

BINS = 8  # of each colour
CELLS = 16
SAMPLES = 256  # a side at most, of the pixels whose colours are counted
# In real videos, neighbouring frames differed by up to 0.11 and frames of two videos by 0.53 or more.
MOST_DIFFERENCE = 0.35
# And their cells correlated by 0.41 or more (in fast motion), or by 0.04 on average.
LEAST_LIKENESS = 0.25
FLAT = 1.0  # grey levels of spread, below which there is nothing to correlate


class Glance(NamedTuple):
    """What is remembered of a frame: the shares of its 8×8×8 colours, (512,), and the mean
    colours of its 16×16 cells, (3, 16, 16)."""

    colours: Tensor
    cells: Tensor


def glance(image: Tensor) -> Glance:
    """A look at a frame, (1, 3, h, w) in 0 … 255."""
    cells = F.adaptive_avg_pool2d(image.contiguous().float(), CELLS)[0]
    step = max(1, min(image.shape[2:]) // SAMPLES)
    r, g, b = (image[0, :, ::step, ::step].float().clamp(0, 255) / (256 / BINS)).long()
    count = torch.bincount((r * BINS**2 + g * BINS + b).flatten(), minlength=BINS**3)
    return Glance(count / r.numel(), cells)


def is_cut(before: Glance, after: Glance) -> bool:
    """Whether the scene changed: more than 35 % of the pixels took on another colour, or the
    cells correlate by less than 0.25.

    The first sees most cuts, whatever moves; the second those between two views of one place. A
    sudden change of light may count as a cut too, which costs a warm start and nothing else.
    """
    if float((before.colours - after.colours).abs().sum()) / 2 > MOST_DIFFERENCE:
        return True
    a, b = (x.cells - x.cells.mean((1, 2), keepdim=True) for x in (before, after))
    spread_a, spread_b = (float(x.square().mean().sqrt()) for x in (a, b))
    if min(spread_a, spread_b) < FLAT:
        return False
    return float((a * b).mean()) < LEAST_LIKENESS * spread_a * spread_b
