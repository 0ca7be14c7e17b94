"""Banks, what is held out, and the tiles of a scene."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lcv.data.formats.image import write_image
from lcv.data.synthetic.textures import (
    HELD_OUT,
    add_detail,
    is_held_out,
    load_bank,
    procedural_bank,
    soften,
)
from lcv.errors import ArgumentError, FileError
from testing.shared import shared


def test_what_is_held_out_stays_so():
    """Weights that were trained without these textures are judged on them."""
    assert {*HELD_OUT} == {0, 9, 10, 20, 30, 40, 50, 60, 70, 80, 90}


def test_procedural_banks_are_fixed_and_their_parts_differ(bank):
    assert bank.dtype == torch.uint8
    assert bank.shape == (8, 3, 192, 192)
    longer = procedural_bank(count=12, size=192)
    assert torch.equal(longer[:8], bank)
    held_out = procedural_bank("held-out", count=8, size=192)
    for texture in held_out:
        assert (texture.int() - bank.int()).abs().float().mean((1, 2, 3)).min() > 5
    # Every texture shows something.
    assert bank.float().flatten(1).std(1).min() > 2


def test_soften_is_a_gaussian():
    spot = torch.zeros(1, 1, 21, 21)
    spot[0, 0, 10, 10] = 1
    blurred = soften(spot, 1.5)[0, 0]
    assert torch.allclose(blurred.sum(), torch.tensor(1.0), atol=1e-5)
    assert torch.allclose(blurred, blurred.T, atol=1e-7)
    assert blurred[10, 12] / blurred[10, 10] == pytest.approx(np.exp(-2 / 1.5**2), rel=1e-4)


def test_a_folder_gives_the_same_parts_whatever_its_names(tmp_path):
    rng = np.random.default_rng(0)
    for k in range(30):
        image = rng.integers(0, 256, (20, 24, 3), dtype=np.uint8)
        write_image(tmp_path / f"{k:02d}.png", image)
    (tmp_path / "notes.txt").write_text("not an image")
    train, held_out, everything = (
        load_bank(tmp_path, part, size=32, halved=False) for part in ("train", "held-out", "all")
    )
    assert len(train) + len(held_out) == len(everything) == 30
    assert held_out.shape[1:] == (3, 32, 32)
    before = {path.read_bytes(): is_held_out(path) for path in tmp_path.glob("*.png")}
    for k, path in enumerate(sorted(tmp_path.glob("*.png"))):
        path.rename(tmp_path / f"other{30 - k}.png")
    after = {path.read_bytes(): is_held_out(path) for path in tmp_path.glob("*.png")}
    assert before == after
    assert sum(before.values()) == len(held_out)


def test_mosaics_of_halves_come_after_the_whole_images(tmp_path):
    for level in (10, 90, 170):
        write_image(tmp_path / f"{level:03d}.png", np.full((48, 48, 3), level, np.uint8))
    bank = load_bank(tmp_path, "all", size=64)
    assert bank[:3, 0, 32, 32].tolist() == [10, 90, 170]
    corners = bank[3:, 0, 8::48, 8::48].flatten(1).tolist()
    assert corners == [[10, 90, 170, 10], [90, 170, 10, 90], [170, 10, 90, 170]]


def test_refusals(tmp_path):
    with pytest.raises(FileError, match="not a folder"):
        load_bank(tmp_path / "missing")
    with pytest.raises(FileError, match="no images in this folder; wanted some"):
        load_bank(tmp_path)
    with pytest.raises(ArgumentError, match="size is 30, wanted a multiple of 4"):
        procedural_bank(size=30)
    write_image(tmp_path / "a.png", np.zeros((40, 40, 3), np.uint8))
    other = "train" if is_held_out(tmp_path / "a.png") else "held-out"
    with pytest.raises(FileError, match=f"no image of the part '{other}' among 1 images"):
        load_bank(tmp_path, other)
    with pytest.raises(ArgumentError, match="part is 'test', wanted one of train, held-out"):
        procedural_bank("test")


def test_photographs_make_a_bank():
    folder = shared("textures")
    held_out = load_bank(folder, "held-out", size=64, halved=False)
    assert 20 < len(held_out) < 70
    assert held_out.float().flatten(1).std(1).median() > 20


def test_detail_fills_smooth_spots_and_leaves_a_third_of_the_tiles_with_grain_alone():
    flat = torch.full((48, 3, 64, 64), 128, dtype=torch.uint8)
    detailed = add_detail(flat)
    assert torch.equal(detailed, add_detail(flat))
    assert torch.equal(detailed[:5], add_detail(flat[:5]))  # a tile's detail is its number's
    assert (detailed.float().std((1, 2, 3)) > 0).float().mean() > 0.9
    # Grain is the same in all channels; structure has colour.
    coloured = (detailed[:, 0] != detailed[:, 1]).flatten(1).any(1).float().mean()
    assert 0.5 < coloured < 0.85
    assert not torch.equal(detailed, add_detail(flat, "held-out"))


def test_the_bank_is_what_it_always_was():
    """Recipes and seeds mean pairs with these textures: mean, and roughness, of the first 24."""
    bank = procedural_bank(count=24, size=64).float()
    assert bank.mean((1, 2, 3)).tolist() == pytest.approx(
        [
            *(109.60, 78.21, 159.21, 161.40, 175.01, 103.31, 104.60, 157.56),
            *(93.43, 142.79, 143.20, 105.43, 161.25, 156.94, 149.32, 159.62),
            *(10.25, 154.25, 111.58, 108.69, 177.28, 141.99, 116.73, 99.06),
        ],
        abs=0.02,
    )
    assert bank.diff(dim=-1).abs().mean((1, 2, 3)).tolist() == pytest.approx(
        [
            *(19.28, 5.51, 14.66, 10.39, 16.49, 4.84, 4.65, 8.34),
            *(8.24, 21.22, 10.26, 19.31, 15.42, 3.51, 6.11, 7.03),
            *(0.76, 4.04, 2.48, 18.05, 13.20, 16.95, 6.74, 3.81),
        ],
        abs=0.02,
    )


def test_detail_is_what_it_always_was():
    detailed = add_detail(torch.full((6, 3, 64, 64), 128, dtype=torch.uint8)).float()
    means = [115.47, 120.21, 127.79, 128.53, 133.39, 127.60]
    spreads = [14.06, 24.94, 9.63, 9.53, 18.86, 8.50]
    assert detailed.mean((1, 2, 3)).tolist() == pytest.approx(means, abs=0.02)
    assert detailed.std((1, 2, 3)).tolist() == pytest.approx(spreads, abs=0.02)


def test_the_usual_sizes(tmp_path):
    usual = procedural_bank.__wrapped__.__kwdefaults__
    assert usual == {"count": 40, "size": 512, "device": "cpu"}
    for level in (10, 90):
        write_image(tmp_path / f"{level}.png", np.full((8, 8, 3), level, np.uint8))
    assert load_bank(tmp_path, "all").shape == (4, 3, 512, 512)
    wide = np.zeros((64, 100, 3), np.uint8)
    wide[:, 18:82] = 200  # the middle square, as it is
    write_image(tmp_path / "90.png", wide, overwrite=True)
    bank = load_bank(tmp_path, "all", size=64, halved=False)
    assert bank.shape == (2, 3, 64, 64)
    assert (bank[1] == 200).all()
    for size in (28, 34):
        with pytest.raises(ArgumentError, match=f"load_bank: size is {size}, wanted a multiple of"):
            load_bank(tmp_path, "all", size=size)
    assert load_bank(tmp_path, "all", size=32).shape == (4, 3, 32, 32)
    with pytest.raises(ArgumentError, match="load_bank: part is 'some', wanted one of train, held"):
        load_bank(tmp_path, "some")
