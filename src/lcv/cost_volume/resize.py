"""Bilinear resizing of maps, and of flows, whose values are lengths and change with the size."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from lcv.cost_volume.expect import expect
from lcv.errors import ArgumentError


def resize(x: Tensor, size: tuple[int, int], *, align_corners: bool) -> Tensor:
    """x at another size (h', w'), bilinearly; (b, c, h, w) → (b, c, h', w').

    align_corners has no default: RAFT resizes with True, VCN with False.
    """
    expect("resize", x, "x: b c h w")
    _check_size("resize", size)
    return F.interpolate(x, size=tuple(size), mode="bilinear", align_corners=align_corners)


def resize_flow(flow: Tensor, size: tuple[int, int], *, align_corners: bool) -> Tensor:
    """A flow at another size, in pixels of that size; (b, 2, h, w) → (b, 2, h', w').

        flow'_x = (w'/w) · resize(flow_x),   flow'_y = (h'/h) · resize(flow_y)

    Facts: the same size is the identity; a constant flow stays constant, scaled by component.
    """
    _, h, w = expect("resize_flow", flow, "flow: b 2 h w")
    _check_size("resize_flow", size)
    resized = resize(flow, size, align_corners=align_corners)
    return torch.stack((resized[:, 0] * (size[1] / w), resized[:, 1] * (size[0] / h)), dim=1)


def _check_size(function: str, size: tuple[int, int]) -> None:
    if len(size) != 2 or size[0] < 1 or size[1] < 1:
        raise ArgumentError(f"{function}: size is {size!r}, wanted (h, w), both at least 1")
