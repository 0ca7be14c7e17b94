"""Random pairs and small recipes for the tests of augmentation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from lcv.data.augment import DDFLOW, Augmentation, Batch, Eraser, raft_dense, raft_sparse

SIZES = ((37, 52), (40, 45), (33, 58), (40, 58))
CROP = (24, 35)


def _small(recipe: Augmentation) -> Augmentation:
    return replace(recipe, eraser=Eraser(side=(4, 15))) if recipe.eraser else recipe


RECIPES = {
    "raft-dense": _small(raft_dense(CROP, (-0.4, 0.8))),
    "raft-sparse": _small(raft_sparse(CROP, (-0.5, 0.3), flip=True)),
    "ddflow": DDFLOW.with_crop(CROP),
}


@pytest.fixture(params=RECIPES)
def recipe(request: pytest.FixtureRequest) -> Augmentation:
    """Each of the authors' recipes, with crops and rectangles that fit small images."""
    return RECIPES[request.param]


@pytest.fixture
def make_batch() -> Callable[..., Batch]:
    """Random pairs of the given sizes, indices 10, 11, …, some of their truth unknown."""

    def make(
        sizes: tuple[tuple[int, int], ...] = SIZES,
        dtype: torch.dtype = torch.float64,
        truth: bool = True,
        seed: int = 0,
    ) -> Batch:
        b, h, w = len(sizes), max(s[0] for s in sizes), max(s[1] for s in sizes)
        g = torch.Generator().manual_seed(seed)
        images = 255 * torch.rand(2, b, 3, h, w, generator=g, dtype=torch.float64)
        flow = 6 * torch.randn(b, 2, h, w, generator=g, dtype=torch.float64)
        valid = torch.rand(b, 1, h, w, generator=g) > 0.1
        for k, (height, width) in enumerate(sizes):
            valid[k, :, height:] = False
            valid[k, :, :, width:] = False
        image1, image2 = images.to(dtype)
        flow_dtype = dtype if dtype.is_floating_point else torch.float32
        return Batch(
            image1,
            image2,
            torch.arange(10, 10 + b),
            sizes,
            flow.to(flow_dtype) if truth else None,
            valid if truth else None,
        )

    return make


@pytest.fixture
def take() -> Callable[[Batch, list[int]], Batch]:
    """Some pairs of a batch, in planes cut to the largest of them."""

    def taken(batch: Batch, which: list[int]) -> Batch:
        sizes = tuple(batch.sizes[k] for k in which)
        h, w = max(s[0] for s in sizes), max(s[1] for s in sizes)
        planes = {
            name: getattr(batch, name)[which, :, :h, :w].contiguous()
            for name in ("image1", "image2", "flow", "valid")
        }
        return Batch(indices=batch.indices[which], sizes=sizes, **planes)

    return taken
