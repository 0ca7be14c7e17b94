"""Truth with holes: each known vector moves to the nearest pixel of the resized image.

A vector at column x of a resized pair goes to column X = round(x·s), halves to even, and likewise
for rows; then flip and crop as for images. As in RAFT's code:

- X must satisfy 0 < X < n'; the strict test empties row and column 0 of a resized pair. A pair that
  is not resized keeps them.
- X is not where `spatial` puts the middle of pixel x, (x + ½)·s − ½: truth lies up to |s − 1|/2
  pixels beside the image it belongs to. Weights published for KITTI were trained so.
- Where several vectors meet, the last in reading order of the source wins, whatever the flip: the
  greatest row, in it the greatest column. (The authors leave this to numpy's assignment, which does
  so.) A maximum of integers does not depend on the order of its taking, so devices agree.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lcv.data.augment.spatial import Axis, Placement, turn_flow


def place_sparse(
    flow: Tensor, valid: Tensor, placement: Placement, crop: tuple[int, int]
) -> tuple[Tensor, Tensor]:
    """Known vectors moved one by one: flow (b, 2, *crop), valid (b, 1, *crop); 0 where not valid.

    flow: (b, 2, h, w); valid: (b, 1, h, w) bool.
    """
    b, _, h, w = flow.shape
    crop_h, crop_w = crop
    cells = crop_h * crop_w
    row, row_stays = _targets(placement.y, placement.is_resized, h, crop_h)
    column, column_stays = _targets(placement.x, placement.is_resized, w, crop_w)
    stays = valid[:, 0] & row_stays[:, :, None] & column_stays[:, None, :]  # (b, h, w)
    target = row[:, :, None] * crop_w + column[:, None, :]
    # What does not stay goes to cells beyond the crop: many, since one would be a bottleneck.
    beyond = cells + torch.arange(w, device=flow.device)
    target = torch.where(stays, target, beyond).view(b, h * w)
    source = torch.arange(h * w, device=flow.device).expand(b, h * w)
    winner = torch.full((b, cells + w), -1, device=flow.device, dtype=torch.int64)
    winner = winner.scatter_reduce(1, target, source, "amax")[:, :cells]
    placed_valid = (winner >= 0).view(b, 1, crop_h, crop_w)
    taken = flow.reshape(b, 2, h * w).gather(2, winner.clamp(min=0)[:, None].expand(b, 2, cells))
    placed = turn_flow(taken.view(b, 2, crop_h, crop_w), placement)
    nothing = torch.zeros((), dtype=flow.dtype, device=flow.device)
    return torch.where(placed_valid, placed, nothing), placed_valid


def _targets(axis: Axis, is_resized: Tensor, plane: int, crop: int) -> tuple[Tensor, Tensor]:
    """For each source pixel of an axis its pixel in the crop, and whether it has one: (b, plane)."""
    pixel = torch.arange(plane, device=is_resized.device)
    moved = (pixel.double() * axis.scale[:, None]).round().long()  # (b, plane)
    resized = axis.resized[:, None]
    # The crop lies inside the resized image, so X < n' and x < n need no test of their own.
    stays = (moved > 0) | ~is_resized[:, None]
    place = torch.where(axis.flip[:, None], resized - 1 - moved, moved) - axis.offset[:, None]
    return place, stays & (place >= 0) & (place < crop)
