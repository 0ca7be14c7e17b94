"""Stresses of frames: laws of each function, and what each leaves alone."""

from __future__ import annotations

import math

import pytest
import torch

from lcv.data.random import Draws
from lcv.errors import ArgumentError, ShapeError
from lcv.studies.robustness import stress
from testing.painted import texture

EPS = torch.finfo(torch.float32).eps


@pytest.fixture
def images():
    return torch.cat([texture(46, 62, seed) for seed in (0, 1)])


def test_gamma_darkens_below_one_keeps_the_ends_and_composes(images):
    assert stress.gamma(images, 1.0) is images
    assert (stress.gamma(images, 0.3) <= images + 255 * EPS).all()
    assert (stress.gamma(images, 3.0) >= images - 255 * EPS).all()
    ends = torch.tensor([0.0, 255.0]).view(1, 1, 1, 2).expand(1, 3, 1, 2)
    assert torch.equal(stress.gamma(ends, 0.2), ends)
    # Each of two powers errs by a few units in the last place; the second multiplies by 1/0.7.
    twice = stress.gamma(stress.gamma(images, 0.5), 0.7)
    assert torch.allclose(twice, stress.gamma(images, 0.35), rtol=64 * EPS, atol=255 * EPS)
    assert stress.gamma(torch.full((1, 3, 1, 1), 63.75), 0.5).unique().item() == pytest.approx(
        255 / 16
    )


def test_noise_has_the_variance_of_images_in_0_1():
    grey = torch.full((2, 3, 64, 96), 127.5)
    added = (stress.noise(grey, 0.001, 5) - grey) / 255
    count = added.numel()
    # Five standard errors of a variance and of a mean; clipping is 16 deviations away.
    assert added.var().item() == pytest.approx(0.001, rel=5 * math.sqrt(2 / count))
    assert abs(added.mean().item()) < 5 * math.sqrt(0.001 / count)


def test_noise_belongs_to_the_pair_and_the_frame_not_to_the_batch(images):
    both = stress.noise(images, 0.01, 5, indices=[3, 8])
    alone = stress.noise(images[1:], 0.01, 5, indices=[8])
    assert torch.equal(both[1:], alone)
    assert not torch.equal(stress.noise(images, 0.01, 5, indices=[3, 8], frame=1), both)
    assert not torch.equal(stress.noise(images, 0.01, 6, indices=[3, 8]), both)
    assert stress.noise(images, 0, 5) is images
    assert both.min() >= 0
    assert both.max() <= 255


def test_a_patch_changes_its_disc_and_nothing_else(images):
    patch = torch.rand(3, 30, 30) * 255
    pasted = stress.apply_patch(images, patch, (20, 15), 21)
    covered = stress.disc(images, (20, 15), 21)
    y, x = torch.meshgrid(torch.arange(46), torch.arange(62), indexing="ij")
    assert torch.equal(covered[0, 0], (x - 20) ** 2 + (y - 15) ** 2 <= 10.5**2)
    outside = ~covered.expand_as(images)
    assert torch.equal(pasted[outside], images[outside])
    assert torch.equal(stress.apply_patch(pasted, patch, (20, 15), 21), pasted)
    # One patch at one place: whatever was under it is gone.
    inside = covered[0].expand(3, -1, -1)
    assert torch.equal(pasted[0][inside], pasted[1][inside])


def test_the_rim_belongs_to_the_patch(images):
    covered = stress.disc(images, (20, 15), 10)[0, 0]
    assert covered[15, [15, 25]].all()  # exactly five pixels from the centre
    assert covered[[10, 20], 20].all()
    assert not covered[15, [14, 26]].any()
    assert not covered[[9, 21], 20].any()


def test_a_patch_at_its_own_size_on_the_pixel_grid_is_copied(images):
    patch = torch.rand(3, 15, 15) * 255
    pasted = stress.apply_patch(images, patch, (30, 20), 15)[0]
    square = pasted[:, 13:28, 23:38]
    shown = stress.disc(images, (30, 20), 15)[0, :, 13:28, 23:38].expand(3, -1, -1)
    # Bilinear weights at pixel centres are 0 and 1 up to rounding of coordinates near 15.
    assert torch.allclose(square[shown], patch[shown], atol=255 * 15 * 4 * EPS)


def test_a_quarter_turn_turns_from_x_towards_y(images):
    patch = torch.zeros(3, 15, 15)
    patch[:, :, 10:] = 255  # bright on the right
    turned = stress.apply_patch(images, patch, (30, 20), 15, angle=math.pi / 2)[0, 0]
    assert turned[25, 30] > 250  # below the centre
    assert turned[20, 35] < 5


def test_each_image_may_have_its_own_place_size_angle_and_patch(images):
    patches = torch.rand(2, 3, 20, 20) * 255
    centre = torch.tensor([[10.0, 12.0], [40.0, 30.0]])
    size, angle = torch.tensor([9.0, 17.0]), torch.tensor([0.1, -0.4])
    # The reduction of a large patch looks at the largest disc, so none is reduced here.
    small = torch.nn.functional.interpolate(patches, (9, 9))
    both = stress.apply_patch(images, small, centre, size, angle=angle)
    for k in range(2):
        alone = stress.apply_patch(
            images[k : k + 1], small[k], centre[k], size[k].item(), angle=angle[k].item()
        )
        # One sum of products in another order of vector lanes.
        assert torch.allclose(both[k : k + 1], alone, atol=255 * 64 * EPS)


def test_gradients_reach_the_disc_of_the_patch(images):
    patch = torch.full((3, 40, 40), 100.0, requires_grad=True)
    stress.apply_patch(images, patch, (20, 20), 30).sum().backward()
    assert patch.grad is not None
    assert (patch.grad[:, 15:25, 15:25] > 0).all()
    assert (patch.grad[:, :3, :3] == 0).all()


def test_places_keep_a_disc_inside_where_it_fits(images):
    draws = Draws(0, range(2000))
    many = images[:1].expand(2000, -1, -1, -1)
    for size in (1.0, 20.0, 45.0):
        centre = stress.places_at(draws.uniform("place", (2,)), many, size)
        assert (centre >= size / 2 - 1e-4).all()
        assert (centre[:, 0] <= 61 - size / 2 + 1e-4).all()
        assert (centre[:, 1] <= 45 - size / 2 + 1e-4).all()
    assert torch.equal(
        stress.places_at(draws.uniform("place", (2,)), many, 500.0).unique(dim=0),
        torch.tensor([[30.5, 22.5]]),
    )


def test_blur_jpeg_fog_and_light_grow_with_their_level(images):
    def change(made):
        return (made - images).abs().mean().item()

    blurs = [change(stress.blur(images, sigma)) for sigma in (0.0, 0.5, 1.0, 2.0)]
    losses = [change(stress.jpeg(images, quality)) for quality in (90, 40, 10)]
    fogs = [change(stress.fog(images, images, t, Draws(1, [0, 1]))[0]) for t in (0, 0.4, 1)]
    lights = [change(stress.exposure(images, stops)) for stops in (0.0, -0.5, -2.0)]
    for growing in (blurs, losses, fogs, lights):
        assert growing == sorted(growing)
        assert growing[-1] > 1.5 * growing[1]
    assert blurs[0] == fogs[0] == lights[0] == 0


def test_blur_and_light_have_their_closed_forms():
    spot = torch.zeros(1, 3, 41, 41)
    spot[:, :, 20, 20] = 255
    spread = stress.blur(spot, 2.0)[0, 0]
    assert spread.sum().item() == pytest.approx(255, rel=1e-5)
    # A Gaussian cut at three deviations.
    assert (spread[20, 21] / spread[20, 20]).item() == pytest.approx(math.exp(-1 / 8), rel=1e-5)
    assert stress.exposure(torch.full((1, 3, 1, 1), 50.0), 2).unique().item() == 200
    assert stress.exposure(torch.full((1, 3, 1, 1), 90.0), 2).unique().item() == 255


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: stress.gamma(x, 0), "gamma: g is 0, wanted a positive number"),
        (lambda x: stress.noise(x, -1, 0), "noise: variance is -1, wanted a number that is not"),
        (lambda x: stress.noise(x, 0.1, 0, indices=[1]), "noise: 1 indices for 2 images"),
        (lambda x: stress.blur(x, 40), "blur: sigma is 40, wanted 0 to 15 for 46×62 pixels"),
        (lambda x: stress.jpeg(x, 0), "jpeg: quality is 0, wanted a quality from 1 to 100"),
        (lambda x: stress.fog(x, x, 2, Draws(0, [0, 1])), "fog: thickness is 2"),
        (lambda x: stress.exposure(x, 99), "exposure: stops is 99"),
        (lambda x: stress.disc(x, (1, 2), torch.ones(3)), r"disc: size has shape \(3,\), wanted"),
        (lambda x: stress.apply_patch(x, x[0, :, :9, :9], (1, 2, 3), 5), "centre has shape"),
        (lambda x: stress.apply_patch(x, x[0, :, :9, :9], (1, 2), 0), "size is 0, wanted a pos"),
        (
            lambda x: stress.apply_patch(x, x[:1, :, :9, :9].expand(3, -1, -1, -1), (1, 2), 5),
            "3 pat",
        ),
    ],
)
def test_refusals(images, call, message):
    with pytest.raises(ArgumentError, match=message):
        call(images)


def test_the_ends_of_every_range_are_taken(images):
    stress.jpeg(images, 100)
    stress.jpeg(images, 0.5)
    stress.blur(images, 15)
    stress.fog(images, images, 1, Draws(0, [0, 1]))
    for stops in (-16, 16):
        stress.exposure(images, stops)
    stress.gamma(images, 0.01)
    for call in (
        lambda: stress.jpeg(images, 100.5),
        lambda: stress.blur(images, 15.5),
        lambda: stress.blur(images, -0.5),
        lambda: stress.fog(images, images, 1.5, Draws(0, [0, 1])),
        lambda: stress.fog(images, images, -0.5, Draws(0, [0, 1])),
        lambda: stress.exposure(images, -16.5),
    ):
        with pytest.raises(ArgumentError):
            call()


def test_nothing_leaves_the_range_of_grey_levels():
    squares = 255.0 * ((torch.arange(48) // 5)[:, None] + torch.arange(48) // 5 & 1)
    hard = squares.expand(1, 3, 48, 48)
    for made in (
        stress.jpeg(hard, 5),
        stress.noise(hard, 0.1, 0),
        *stress.fog(hard, hard, 1, Draws(0, [0])),
        stress.gamma(hard * 1.2 - 20, 2.0),
    ):
        assert made.min() >= 0
        assert made.max() <= 255
    assert (stress.noise(hard, 0.1, 0) == 255).any()
    assert stress.gamma(torch.full((1, 3, 1, 1), 300.0), 2.0).unique().item() == 255


def test_a_large_patch_is_reduced_smoothly_and_a_small_one_is_not_enlarged_first(images):
    stripes = (255.0 * (torch.arange(40) % 2)).expand(3, 40, 40)
    pasted = stress.apply_patch(images, stripes, (30, 20), 10)[0]
    shown = pasted[:, stress.disc(images, (30, 20), 10)[0, 0]]
    assert (shown - 127.5).abs().max() < 40  # grey, where single stripes would be black or white
    two = torch.tensor([0.0, 255.0]).expand(3, 2, 2)
    ramp = stress.apply_patch(images, two, (30, 20), 12)[0, 0, 20, 26:35]
    # Bilinear between the two pixels' centres, 3 px left and right of the middle.
    assert ramp.tolist() == pytest.approx(
        [0, 0, 42.5, 85, 127.5, 170, 212.5, 255, 255], abs=255 * 64 * EPS
    )


def test_shares_of_the_free_room_are_places(images):
    shares = torch.tensor([[0.0, 0.0], [1.0, 0.5]])
    found = stress.places_at(shares, images, torch.tensor([10.0, 20.0]))
    assert found.tolist() == [[5.0, 5.0], [51.0, 22.5]]


def test_images_must_be_batched_rgb(images):
    for does in (stress.gamma, stress.blur, stress.jpeg, stress.exposure):
        with pytest.raises(ShapeError, match=f"{does.__name__}: images has 3 dimensions"):
            does(images[0], 1.5)
    with pytest.raises(ShapeError, match="fog: image2 has h=9 but image1 has h=46"):
        stress.fog(images, images[:, :, :9], 0.5, Draws(0, [0, 1]))
