"""`lcv.warp` on arrays is the warp of tensors."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import lcv
from lcv.cost_volume.warp import warp as warp_tensor
from lcv.errors import ShapeError


def test_whole_pixels_move_and_outside_is_zero():
    image = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    flow = np.zeros((4, 5, 2), np.float32)
    assert np.array_equal(lcv.warp(image, flow), image)
    flow[..., 0] = 1
    seen = lcv.warp(image, flow)
    assert seen.dtype == np.uint8
    assert np.array_equal(seen[:, :-1], image[:, 1:])
    assert not seen[:, -1].any()
    assert np.array_equal(lcv.warp(image[..., 0], flow), seen[..., 0])


def test_arrays_and_tensors_agree():
    image, flow = torch.rand(1, 3, 6, 7), 2 * torch.rand(1, 2, 6, 7) - 1
    wanted = warp_tensor(image, flow)
    assert torch.equal(lcv.warp(image, flow), wanted)
    arrays = (x[0].permute(1, 2, 0).numpy() for x in (image, flow))
    assert np.array_equal(lcv.warp(*arrays), wanted[0].permute(1, 2, 0).numpy())


def test_other_sizes_are_refused():
    with pytest.raises(ShapeError, match=r"image has shape \(4, 5, 3\) and flow \(4, 6, 2\)"):
        lcv.warp(np.zeros((4, 5, 3)), np.zeros((4, 6, 2)))
