"""Patches as files and their random controls: what is kept, what is refused, what is equal."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
import torch

from lcv.data.formats.image import read_image, write_image
from lcv.data.random import Draws
from lcv.errors import FileError
from lcv.studies.patch_file import (
    GREY,
    Patch,
    card_path,
    check_patch_output,
    inscribed,
    load_patch,
    matched_patches,
    random_patches,
    save_patch,
)
from testing.painted import texture


@pytest.fixture
def pixels():
    return texture(32, 32)[0].clamp(0, 255)


def test_a_patch_comes_back_as_it_was_saved(tmp_path, pixels):
    saved = save_patch(tmp_path / "p.png", pixels, {"data": "procedural"})
    back = load_patch(tmp_path / "p.png")
    assert torch.equal(back.pixels, saved.pixels)
    assert back.card == saved.card
    assert back.card["data"] == "procedural"
    assert back.name == "p"
    inside = inscribed(32)
    assert torch.equal(back.pixels[:, inside], pixels[:, inside].round())
    assert (back.pixels[:, ~inside] == GREY).all()
    assert back.sha256 == saved.sha256


def test_nothing_is_overwritten_unasked_and_only_png_is_written(tmp_path, pixels):
    save_patch(tmp_path / "p.png", pixels, {})
    before = (tmp_path / "p.png").read_bytes()
    with pytest.raises(FileError, match="p.png: exists already"):
        save_patch(tmp_path / "p.png", pixels / 2, {})
    assert (tmp_path / "p.png").read_bytes() == before
    (tmp_path / "q.json").write_text("{}")
    with pytest.raises(FileError, match="q.json: exists already"):
        save_patch(tmp_path / "q.png", pixels, {})
    assert not (tmp_path / "q.png").exists()
    with pytest.raises(FileError, match="wanted a name ending in .png"):
        save_patch(tmp_path / "p.jpg", pixels, {})
    save_patch(tmp_path / "p.png", pixels / 2, {}, overwrite=True)
    assert (tmp_path / "p.png").read_bytes() != before


@pytest.mark.parametrize("card", ["{", "[]", '{"pixels_sha256": "other", "data": "x"}'])
def test_a_card_that_is_not_this_patchs_is_left_alone(tmp_path, pixels, card):
    save_patch(tmp_path / "p.png", pixels, {"data": "procedural"})
    card_path(tmp_path / "p.png").write_text(card)
    assert load_patch(tmp_path / "p.png").card == {}


def test_the_middle_square_of_any_picture(tmp_path):
    picture = np.arange(20 * 30 * 3, dtype=np.uint32).astype(np.uint8).reshape(20, 30, 3)
    write_image(tmp_path / "wide.png", picture)
    patch = load_patch(tmp_path / "wide.png")
    assert np.array_equal(patch.pixels.permute(1, 2, 0).numpy(), picture[:, 5:25])
    assert patch.card == {}
    with pytest.raises(FileError, match="none.png"):
        load_patch(tmp_path / "none.png")


def test_the_file_is_plain(tmp_path, pixels):
    save_patch(tmp_path / "p.png", pixels, {"seed": 3})
    assert read_image(tmp_path / "p.png").shape == (32, 32, 3)
    assert json.loads((tmp_path / "p.json").read_text())["seed"] == 3


def test_matched_ones_have_the_levels_of_the_patch_and_a_place_for_each_index(pixels):
    patch = Patch("p", pixels.round())
    made = matched_patches(patch, 0, [5, 6, 7])
    inside = inscribed(32)
    wanted = patch.pixels[:, inside].sort(dim=1).values
    for control in made:
        assert torch.equal(control[:, inside].sort(dim=1).values, wanted)
        assert not torch.equal(control, patch.pixels)
    assert torch.equal(matched_patches(patch, 0, [7])[0], made[2])
    assert not torch.equal(made[0], made[1])
    assert not torch.equal(matched_patches(patch, 1, [7])[0], made[2])


def test_matched_ones_are_as_smooth_as_the_patch(pixels):
    """Shuffled pixels would have the levels but not the spectrum: neighbours would be unrelated."""
    patch = Patch("p", pixels.round())
    inside = inscribed(32)
    both = inside[:, 1:] & inside[:, :-1]

    def roughness(picture):
        step = (picture[:, :, 1:] - picture[:, :, :-1])[:, both].square().mean()
        return (step / picture[:, inside].var(dim=1).mean()).item()

    controls = [roughness(control) for control in matched_patches(patch, 0, range(24))]
    smooth, mean = roughness(patch.pixels), sum(controls) / len(controls)
    # Unrelated neighbours have 2. The disc's edge and the ranks blur the spectrum somewhat.
    assert smooth < 0.8
    assert mean == pytest.approx(smooth, rel=0.5)


def test_random_ones_are_uniform_and_one_for_each_index():
    made = random_patches(32, 0, [5, 6, 7])
    assert made.shape == (3, 3, 32, 32)
    assert torch.equal(random_patches(32, 0, [7])[0], made[2])
    assert not torch.equal(made[0], made[1])
    assert not torch.equal(random_patches(32, 1, [7])[0], made[2])
    count = made.numel()
    # Five standard errors of the mean and of the share below a level, of uniform draws.
    assert abs(made.mean() - 127.5) < 5 * 255 / (12 * count) ** 0.5
    assert abs((made < 51).float().mean() - 0.2) < 5 * (0.16 / count) ** 0.5
    assert 0 <= made.min() < 0.5
    assert 254.5 < made.max() <= 255


def test_the_disc_touches_the_sides_and_leaves_the_corners():
    assert inscribed(4).int().tolist() == [[0, 1, 1, 0], [1, 1, 1, 1], [1, 1, 1, 1], [0, 1, 1, 0]]
    assert inscribed(5).int().sum(1).tolist() == [3, 5, 5, 5, 3]
    assert inscribed(1).tolist() == [[True]]


def test_a_file_and_its_card_are_exactly_these(tmp_path):
    pixels = torch.full((3, 4, 4), 99.6)
    pixels[0], pixels[1] = -7.0, 300.0
    patch = save_patch(tmp_path / "p.png", pixels, {"words": "größer"})
    levels = read_image(tmp_path / "p.png")
    assert levels[1, 1].tolist() == [0, 255, 100]
    assert levels[0, 0].tolist() == [127, 127, 127]  # grey outside the disc
    assert (
        patch.sha256
        == hashlib.sha256(
            b"(3, 4, 4)" + np.ascontiguousarray(levels.transpose(2, 0, 1)).tobytes()
        ).hexdigest()
    )
    assert (tmp_path / "p.json").read_text(encoding="utf-8") == (
        '{\n  "format": "lcv patch 1",\n  "file": "p.png",\n'
        f'  "pixels_sha256": "{patch.sha256}",\n  "words": "größer"\n}}\n'
    )
    with pytest.raises(ValueError, match="JSON compliant"):
        save_patch(tmp_path / "q.png", pixels, {"value": float("nan")})


def test_a_place_is_checked_before_a_patch_is_learned(tmp_path):
    check_patch_output(tmp_path / "new.PNG")
    (tmp_path / "old.png").touch()
    with pytest.raises(FileError, match="old.png: exists already"):
        check_patch_output(tmp_path / "old.png")
    check_patch_output(tmp_path / "old.png", overwrite=True)


def test_the_middle_square_of_a_tall_picture(tmp_path):
    picture = np.arange(37 * 20 * 3, dtype=np.uint32).astype(np.uint8).reshape(37, 20, 3)
    write_image(tmp_path / "tall.png", picture)
    patch = load_patch(tmp_path / "tall.png")
    assert np.array_equal(patch.pixels.permute(1, 2, 0).numpy(), picture[8:28])


def test_matched_ones_are_the_patch_with_random_phases_by_rank(pixels):
    """The same by numpy: the spectrum of the disc less its mean, phases of noise, then ranks."""
    patch = Patch("p", pixels.round())
    inside = inscribed(32).numpy()
    levels = patch.pixels.double().numpy()
    noise = Draws(3, [7]).normal("control patch", (32, 32))[0].double().numpy()
    turned = np.fft.rfft2(noise)
    expected = np.full((3, 32, 32), 127.0)
    for channel, values in zip(expected, levels, strict=True):
        centred = np.where(inside, values - values[inside].mean(), 0.0)
        field = np.fft.irfft2(np.fft.rfft2(centred) * turned / np.abs(turned), (32, 32))[inside]
        ranked = np.empty_like(field)
        ranked[field.argsort()] = np.sort(values[inside])
        channel[inside] = ranked
    made = matched_patches(patch, 3, [7])[0].numpy()
    # Two transforms round differently, and neighbours in rank may change places.
    assert (made == expected).mean() > 0.99
