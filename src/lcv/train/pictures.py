"""What a network made of a pair, beside the truth: a picture for whoever watches a run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from lcv.train.validate import Judged
from lcv.visual.colours import flow_to_colour, picture_scale
from lcv.visual.error_maps import SINTEL_LIMIT, sintel_error_map
from lcv.visual.layout import side_by_side


def judged_picture(pair: Judged) -> np.ndarray:
    """Frame, flow, truth and error side by side, (H, W, 3) uint8.

    Both flows in the colours of the truth's scale, so that they compare; black where nothing is
    known. Error: black is exact, white 10 px or more.
    """
    frame = _rows(pair.image).clip(0, 255).round().astype(np.uint8)
    flow, truth = _rows(pair.flow), _rows(pair.truth)
    valid = pair.valid[0].cpu().numpy()
    scale = picture_scale(truth, valid)
    pictures = {
        "frame": frame,
        "flow": flow_to_colour(flow, scale),
        f"truth, {scale:.1f} px in full colour": flow_to_colour(truth, scale, valid),
        f"error, white {SINTEL_LIMIT:.0f} px": sintel_error_map(flow, truth, valid),
    }
    return side_by_side(list(pictures.values()), list(pictures))


def before_after_picture(before: Sequence[Judged], after: Sequence[Judged]) -> np.ndarray:
    """A row for each pair: frame, truth, flow before and after training, (H, W, 3) uint8.

    The three flows of a pair share the truth's scale; below each is its mean error.
    """
    pictures, labels = [], []
    for old, new in zip(before, after, strict=True):
        truth, valid = _rows(old.truth), old.valid[0].cpu().numpy()
        scale = picture_scale(truth, valid)
        pictures.append(_rows(old.image).clip(0, 255).round().astype(np.uint8))
        pictures.append(flow_to_colour(truth, scale, valid))
        labels += ["frame", f"truth, {scale:.1f} px in full colour"]
        for when, pair in (("before", old), ("after", new)):
            error = (pair.flow - pair.truth).norm(dim=0)[pair.valid[0]].mean()
            pictures.append(flow_to_colour(_rows(pair.flow), scale))
            labels.append(f"{when}, EPE {error:.2f} px")
    return side_by_side(pictures, labels, columns=4)


def _rows(x: Tensor) -> np.ndarray:
    """(c, h, w) as (h, w, c) float32 on the host."""
    return x.detach().float().movedim(0, 2).cpu().numpy()
