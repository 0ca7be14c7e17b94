"""`max_side`: large frames are made smaller before they are matched, and their flow larger again.

Everything is computed on the smaller frames. Flow is enlarged bilinearly, and its vectors with it;
maps (occlusion, warp error) take the nearest value.
"""

from __future__ import annotations

from fractions import Fraction

import torch.nn.functional as F
from torch import Tensor

from lcv.cost_volume.resize import resize_flow
from lcv.predict.matching import Flows


def reduced_size(height: int, width: int, max_side: int) -> tuple[int, int]:
    """(h, w) with the longer side at most `max_side`, in the same proportion."""
    share = Fraction(min(max_side, max(height, width)), max(height, width))
    return max(1, round(height * share)), max(1, round(width * share))


def reduced(image: Tensor, size: tuple[int, int]) -> Tensor:
    """A frame (1, 3, h, w) at a smaller size; each pixel averages those that it stands for."""
    # On the CPU, which can do this in eight bits: so all devices see the same frame.
    return F.interpolate(image.cpu(), size, mode="bilinear", antialias=True)


def enlarged(flows: Flows, size: tuple[int, int]) -> Flows:
    """The same at the size of the frames that were given; `low` stays as it is."""

    def larger(x: Tensor) -> Tensor:
        if x.shape[1] == 2:
            return resize_flow(x, size, align_corners=False)
        return F.interpolate(x.float(), size, mode="nearest").to(x.dtype)

    low, *rest = flows.low, flows.backward, flows.occluded, flows.warp_error
    return Flows(larger(flows.flow), low, *(x if x is None else larger(x) for x in rest))
