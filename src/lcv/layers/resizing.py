"""Images resized to multiples of a stride, and flow resized back."""

from __future__ import annotations

from torch import Tensor

from lcv.cost_volume.resize import resize, resize_flow


def next_multiples(size: tuple[int, int], stride: int) -> tuple[int, int]:
    """The least multiples of `stride` that are at least (h, w)."""
    h, w = size
    return -(-h // stride) * stride, -(-w // stride) * stride


def fit(image: Tensor, size: tuple[int, int]) -> Tensor:
    """The image at `size`, bilinearly, corners not aligned; untouched if it has the size."""
    return image if image.shape[-2:] == size else resize(image, size, align_corners=False)


def fit_flow(flow: Tensor, size: tuple[int, int]) -> Tensor:
    """The flow at `size`, its vectors rescaled; untouched if it has the size."""
    return flow if flow.shape[-2:] == size else resize_flow(flow, size, align_corners=False)
