"""How RAFT is exported: the sizes that a file takes."""

from __future__ import annotations

from torch import Tensor

from lcv.cost_volume.allpairs.portable import LOOKUPS
from lcv.layers.padding import MODES, padding_for
from lcv.models.types import ExportRule, Fitted

STRIDE = 8


def pad_both(image1: Tensor, image2: Tensor, mode: str | None) -> Fitted:
    """Both images padded as `encode` pads them."""
    padding = padding_for(image1.shape[2], image1.shape[3], STRIDE, mode or MODES[0])
    return Fitted(padding.apply(image1), padding.apply(image2), padding.undo)


EXPORT_RULE = ExportRule(
    stride=STRIDE,
    least=64,
    # Below, the coarsest costs are one pixel wide, a size that tracers treat apart.
    least_open=128,
    lookups=LOOKUPS,
    fit=pad_both,
    modes=MODES,
    rule="Pad both images to multiples of 8 by repeating their borders, and cut the same pixels off "
    "the flow. sintel: half left and half right, half above and half below, an odd pixel right and "
    "below. kitti: half left and half right, all below.",
)
