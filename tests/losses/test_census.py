"""The census loss: against the original's, what it ignores, and where its minimum lies."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from lcv.errors import ShapeError
from lcv.losses.census import census_distance, census_loss, inside_border, soft_ternary
from lcv.losses.occlusion import occluded_by_consistency
from testing.shared import shared

MINIMUM = 0.01**0.4  # two directions, each half of it


def random_images(h: int = 12, w: int = 15, dtype: torch.dtype = torch.float64) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return 200 * torch.rand(2, 1, 3, h, w, generator=generator, dtype=dtype)


def test_equals_the_original() -> None:
    arrays = np.load(shared("golden", "ddflow__losses.npz"))
    images = [
        torch.from_numpy(arrays[name]).permute(2, 0, 1)[None].float()
        for name in ("image1", "image2")
    ]
    flows = [torch.from_numpy(arrays[name]).permute(0, 3, 1, 2) for name in ("flow_fw", "flow_bw")]
    visible = [~occluded for occluded in occluded_by_consistency(*flows)]
    everywhere = census_loss(*images, *flows)
    assert everywhere.item() == pytest.approx(float(arrays["census_no_occlusion"]), rel=1e-4)
    masked = census_loss(*images, *flows, *visible)
    assert masked.item() == pytest.approx(float(arrays["census_occlusion"]), rel=1e-4)


def test_comparisons_by_hand() -> None:
    """One red pixel of grey 10 in a black image, seen from 1 to the right of it and 2 above."""
    image = torch.zeros(1, 3, 9, 11, dtype=torch.float64)
    image[0, 0, 4, 5] = 10 / 0.2989
    bright = 10 / (0.81 + 100) ** 0.5
    seen = soft_ternary(image)[0, :, 2, 6].view(7, 7)
    assert seen[3 + 2, 3 - 1].item() == pytest.approx(bright, rel=1e-12)
    assert seen.count_nonzero() == 1
    itself = soft_ternary(image)[0, :, 4, 5].view(7, 7)
    assert itself[3, 3] == 0
    assert itself.sum().item() == pytest.approx(-48 * bright, rel=1e-12)


def test_distance_by_hand() -> None:
    image = torch.zeros(1, 3, 9, 11, dtype=torch.float64)
    image[0, 1, 4, 5] = 3 / 0.587
    squared = 9 / 9.81
    one = squared / (0.1 + squared)
    distance = census_distance(image, torch.zeros_like(image))[0, 0]
    assert distance[4, 5].item() == pytest.approx(48 * one, rel=1e-12)
    assert distance[2, 6].item() == pytest.approx(one, rel=1e-12)
    assert distance[0, 5] == 0  # four rows away


def test_a_constant_added_to_either_image_changes_nothing_inside() -> None:
    image1, image2 = random_images() / 100  # low contrast, where comparisons are not yet saturated
    inside = (slice(None), slice(None), slice(3, -3), slice(3, -3))
    distance = census_distance(image1, image2)
    shifted = census_distance(image1 + 20, image2 + 35)
    torch.testing.assert_close(shifted[inside], distance[inside], rtol=1e-9, atol=1e-9)
    assert (shifted - distance).abs().max() > 0.1  # at the border the zeros outside do not shift


def test_the_loss_ignores_brightness_where_flows_stay_in_view() -> None:
    image1, image2 = random_images()
    generator = torch.Generator().manual_seed(1)
    flows = torch.rand(2, 1, 2, 12, 15, generator=generator, dtype=torch.float64) - 0.5
    seen = torch.zeros(1, 1, 12, 15)
    seen[:, :, 4:-5, 4:-5] = 1  # patches of these never meet a target beyond the edge
    loss = census_loss(image1, image2, *flows, seen, seen)
    brighter = census_loss(image1 + 40, image2 + 15, *flows, seen, seen)
    torch.testing.assert_close(brighter, loss, rtol=1e-9, atol=0)
    softer = census_loss(1.1 * image1, 1.1 * image2, *flows, seen, seen)
    assert (softer / loss - 1).abs() < 0.01  # the pattern saturates: contrast matters little
    other = census_loss(image1, image1.flip(3), *flows, seen, seen)
    assert (other / loss - 1).abs() > 0.01


def test_distance_is_symmetric_and_bounded() -> None:
    image1, image2 = random_images()
    distance = census_distance(image1, image2)
    torch.testing.assert_close(census_distance(image2, image1), distance)
    assert not census_distance(image1, image1).any()
    assert distance.min() > 0
    assert distance.max() < 48


def test_equal_images_at_rest_reach_the_minimum_but_for_one_row_and_column() -> None:
    image, _ = random_images()
    still = torch.zeros(1, 2, 12, 15, dtype=torch.float64)
    seen = torch.zeros(1, 1, 12, 15)
    seen[:, :, 3:-4, 3:-4] = 1  # the frame of 3, and the fourth row and column from the far sides
    loss = census_loss(image, image, still, still, seen, seen)
    assert loss.item() == pytest.approx(MINIMUM, rel=1e-6)
    assert census_loss(image, image, still, still) > 2 * MINIMUM
    for row, column in ((-4, slice(3, -3)), (slice(3, -3), -4)):
        only = torch.zeros(1, 1, 12, 15)
        only[:, :, row, column] = 1
        assert census_loss(image, image, still, still, only, only) > 2 * MINIMUM


def test_the_frame_of_three_pixels_is_cleared() -> None:
    kept = inside_border(torch.ones(2, 1, 9, 8, dtype=torch.bool))
    assert kept.sum() == 2 * 3 * 2
    assert kept[:, :, 3:6, 3:5].all()
    assert not inside_border(torch.ones(1, 1, 6, 9)).any()
    assert not inside_border(torch.ones(1, 1, 4, 20)).any()


def test_small_images_and_empty_masks_give_zero() -> None:
    images, flow = random_images(5, 6), torch.zeros(1, 2, 5, 6, dtype=torch.float64)
    assert census_loss(*images, flow, flow) == 0
    images, flow = random_images(9, 8), torch.zeros(1, 2, 9, 8, dtype=torch.float64)
    nowhere = torch.zeros(1, 1, 9, 8, dtype=torch.bool)
    assert census_loss(*images, flow, flow, nowhere, nowhere) == 0


def test_gradients() -> None:
    generator = torch.Generator().manual_seed(0)
    images = 4 * torch.rand(2, 1, 3, 7, 8, generator=generator, dtype=torch.float64)
    flows = torch.rand(2, 1, 2, 7, 8, generator=generator, dtype=torch.float64) - 0.5
    inputs = [*images.unbind(), *flows.unbind()]
    for tensor in inputs:
        tensor.requires_grad_()
    assert torch.autograd.gradcheck(census_loss, inputs)


def test_flows_have_the_size_of_the_images() -> None:
    images, flow = random_images(8, 9), torch.zeros(1, 2, 8, 4)
    with pytest.raises(ShapeError, match="census_loss: flow_fw has w=4 but image1 has w=9"):
        census_loss(*images, flow, flow)
