"""`lcv.warp`: a picture as the flow makes it look from the other frame."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from lcv.cost_volume.warp import warp as warp_tensor
from lcv.errors import ShapeError


def warp(image: Any, flow: Any) -> Any:
    """The image seen through the flow: the result at (x, y) is the image at (x, y) + flow(x, y).

    With frame 2 and the flow from frame 1 to 2 it looks like frame 1, wherever both show the same.
    What the flow takes from outside the image is 0.

    image: (H, W) or (H, W, C), uint8 or float; flow: (H, W, 2). Or tensors, (b, c, h, w) and
           (b, 2, h, w). The result has the image's type and shape.
    """
    if isinstance(image, Tensor) or isinstance(flow, Tensor):
        return warp_tensor(image, flow)
    image, flow = np.asarray(image), np.asarray(flow)
    if image.ndim not in (2, 3) or flow.shape != (*image.shape[:2], 2):
        raise ShapeError(
            f"warp: image has shape {image.shape} and flow {flow.shape}, wanted (H, W) or (H, W, C), "
            f"and (H, W, 2)"
        )
    deep = image[..., None] if image.ndim == 2 else image
    x, moves = (
        torch.from_numpy(np.ascontiguousarray(a.transpose(2, 0, 1), np.float32))[None]
        for a in (deep, flow)
    )
    seen = warp_tensor(x, moves)[0].permute(1, 2, 0).numpy().reshape(image.shape)
    if np.issubdtype(image.dtype, np.integer):
        seen = seen.round().clip(0, np.iinfo(image.dtype).max)
    return seen.astype(image.dtype)
