"""`max_side`: large frames are made smaller before they are matched, and their flow larger again.

Everything is computed on the smaller frames. Flow is enlarged bilinearly, and its vectors with it;
maps (occlusion, warp error) take the nearest value.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from lcv.cost_volume.resize import resize_flow
from lcv.errors import ArgumentError
from lcv.predict.matching import Flows


def check_max_side(max_side: int | None) -> None:
    """Refuse what is not a number of pixels."""
    if max_side is not None and (
        isinstance(max_side, bool) or not isinstance(max_side, int) or max_side < 1
    ):
        raise ArgumentError(f"max_side is {max_side!r}, wanted a whole number of at least 1 pixel")


def reduced_size(height: int, width: int, max_side: int | None) -> tuple[int, int]:
    """(h, w) with the longer side at most `max_side`, in the same proportion."""
    longer = max(height, width)
    if max_side is None or longer <= max_side:
        return height, width
    return max(1, round(height * max_side / longer)), max(1, round(width * max_side / longer))


def reduced(image: Tensor, size: tuple[int, int]) -> Tensor:
    """A frame (1, 3, h, w) at a smaller size; each pixel averages those that it stands for."""
    if image.shape[2:] == size:
        return image
    # On the CPU, which can do this in eight bits: so all devices see the same frame.
    return F.interpolate(image.cpu(), size, mode="bilinear", antialias=True)


def enlarged(flows: Flows, size: tuple[int, int] | None) -> Flows:
    """The same at the size of the frames that were given; `low` stays as it is."""
    if size is None or flows.flow.shape[2:] == size:
        return flows

    def flow(x: Tensor | None) -> Tensor | None:
        return None if x is None else resize_flow(x, size, align_corners=False)

    def nearest(x: Tensor | None) -> Tensor | None:
        return None if x is None else F.interpolate(x.float(), size, mode="nearest").to(x.dtype)

    forward = flow(flows.flow)
    assert forward is not None
    maps = nearest(flows.occluded), nearest(flows.warp_error)
    return Flows(forward, flows.low, flow(flows.backward), *maps)
