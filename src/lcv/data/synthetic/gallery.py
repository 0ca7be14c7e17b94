"""Example pairs as arrays, for pictures in the docs; colouring the flow is somebody else's job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from lcv.data.synthetic.recipe import TRAINING
from lcv.data.synthetic.sequence import generate
from lcv.data.synthetic.settings import Mixture, Recipe

if TYPE_CHECKING:
    import numpy as np


def samples(
    recipe: Recipe | Mixture = TRAINING,
    seed: int = 0,
    count: int = 6,
    size: tuple[int, int] = (256, 384),
    *,
    textures: Tensor | None = None,
) -> dict[str, np.ndarray]:
    """`count` pairs: image1, image2 (k, H, W, 3) uint8, flow, backward (k, H, W, 2) float32,
    occluded, occluded_backward (k, H, W) bool."""
    batch = generate(recipe, seed, range(count), size, textures=textures)
    return {
        "image1": _last(batch.image1.round().byte()),
        "image2": _last(batch.image2.round().byte()),
        "flow": _last(batch.flow),
        "backward": _last(batch.backward),
        "occluded": batch.occluded[:, 0].numpy(),
        "occluded_backward": batch.occluded_backward[:, 0].numpy(),
    }


def _last(tensor: Tensor) -> np.ndarray:
    """Channels last: (k, c, h, w) → (k, h, w, c)."""
    return tensor.permute(0, 2, 3, 1).contiguous().numpy()
