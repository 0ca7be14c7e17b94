"""The slow truth against other people's code and against arithmetic by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image, ImageEnhance
from torch import Tensor

from lcv.data.augment import reference
from lcv.data.augment.photometric import BRIGHTNESS, CONTRAST, HUE, SATURATION


@pytest.mark.parametrize(("new_h", "new_w"), [(14, 33), (5, 11), (7, 11), (21, 8)])
def test_resizing_is_torch_s(new_h: int, new_w: int) -> None:
    x = torch.rand(2, 7, 11, dtype=torch.float64)
    truth = F.interpolate(x[None], (new_h, new_w), mode="bilinear", align_corners=False)[0]
    torch.testing.assert_close(reference.resize(x, new_h / 7, new_w / 11), truth)


@pytest.mark.parametrize(("fy", "fx"), [(1.37, 0.8), (0.61, 1.33)])
def test_a_scale_that_does_not_divide_counts_itself_not_the_rounded_size(
    fy: float, fx: float
) -> None:
    x = torch.rand(2, 7, 11, dtype=torch.float64)
    size = [round(7 * fy), round(11 * fx)]
    truth = torch.ops.aten.upsample_bilinear2d(x[None], size, False, fy, fx)[0]
    torch.testing.assert_close(reference.resize(x, fy, fx), truth)


def test_resizing_by_hand() -> None:
    row = torch.tensor([[[0.0, 8.0]]], dtype=torch.float64)
    assert reference.resize(row, 1.0, 2.0).tolist() == [[[0.0, 2.0, 6.0, 8.0]]]


def test_scattering_by_hand() -> None:
    """Columns 0 1 2 3 of a 2×4 map go to 0 0 1 2 at scale ½ + 0.1, rows 0 1 to 0 1."""
    flow = torch.arange(16.0).view(2, 2, 4)
    valid = torch.ones(1, 2, 4, dtype=torch.bool)
    placed, known = reference.scatter(flow, valid, 1.0, 0.6)
    # round(0.6·[0, 1, 2, 3]) = 0, 1, 1, 2; the new width is 2, so 2 is out; 1 is met twice.
    assert known.tolist() == [[[False, False], [False, True]]]
    assert placed[:, 1, 1].tolist() == [6.0, 14.0]


def _picture() -> tuple[Image.Image, Tensor]:
    values = np.random.default_rng(3).integers(0, 256, (9, 13, 3), dtype=np.uint8)
    return Image.fromarray(values), torch.from_numpy(values).double().permute(2, 0, 1)


@pytest.mark.parametrize("factor", [0.62, 1.0, 1.37])
@pytest.mark.parametrize(
    ("change", "enhance"),
    [
        (BRIGHTNESS, ImageEnhance.Brightness),
        (CONTRAST, ImageEnhance.Contrast),
        (SATURATION, ImageEnhance.Color),
    ],
)
def test_colours_are_pil_s_but_for_its_rounding(change: int, enhance: type, factor: float) -> None:
    picture, image = _picture()
    theirs = torch.from_numpy(np.array(enhance(picture).enhance(factor))).double().permute(2, 0, 1)
    ours = reference.change_colours(image, [change], [factor] * 4)
    # PIL cuts the result to whole levels, and rounds the grey, or its mean, to one half before;
    # its mean is of greys that were rounded already.
    budget = 1.0 + abs(1 - factor) * (1.0 if change == CONTRAST else 0.5)
    assert (ours - theirs).abs().max() <= budget


def test_a_third_of_a_turn_moves_the_channels_on() -> None:
    _, image = _picture()
    turned = reference.change_colours(image, [HUE], [0, 0, 0, 1 / 3])
    torch.testing.assert_close(turned, image[[2, 0, 1]])


@pytest.mark.parametrize("is_joint", [False, True])
def test_the_frames_of_a_pair_change_colour_each_by_its_own_draws_or_both_by_the_first(
    is_joint: bool,
) -> None:
    _, image = _picture()
    other = image.flip(2)
    orders = torch.tensor([[BRIGHTNESS, CONTRAST], [SATURATION, BRIGHTNESS]])
    factors = torch.tensor([[0.5, 1.5, 0.7, 0.1], [1.2, 0.6, 1.9, 0.3]])
    colours = SimpleNamespace(
        order=orders[None], factor=factors[None], is_joint=torch.tensor([is_joint])
    )
    still = SimpleNamespace(scale=[1.0], flip=[False], offset=[0])
    placement = SimpleNamespace(y=still, x=still, is_resized=[False])
    plan = SimpleNamespace(colours=colours, rectangles=None, swap=None, placement=placement)
    batch = SimpleNamespace(
        sizes=[(9, 13)], image1=image[None], image2=other[None], flow=None, valid=None
    )
    recipe = SimpleNamespace(geometry=SimpleNamespace(crop=(9, 13)))
    image1, image2, flow, valid = reference.augment_one(batch, recipe, plan, 0)
    (first, second), (factor1, factor2) = orders.tolist(), factors.tolist()
    if is_joint:
        both = reference.change_colours(torch.cat((image, other), 1), first, factor1)
        assert torch.equal(torch.cat((image1, image2), 1), both)
    else:
        assert torch.equal(image1, reference.change_colours(image, first, factor1))
        assert torch.equal(image2, reference.change_colours(other, second, factor2))
    assert (flow, valid) == (None, None)


def test_erasing_by_hand() -> None:
    image = torch.arange(6.0).view(1, 2, 3).expand(3, 2, 3)
    erased = reference.erase(image, [(1, 2, 50, 60), (0, 0, 1, 1)])
    assert erased[0].tolist() == [[2.5, 1.0, 2.0], [3.0, 4.0, 2.5]]
