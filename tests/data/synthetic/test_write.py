"""Written datasets: Sintel's layout, the same numbers, nothing overwritten."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from lcv.data.formats.flow import read_flow
from lcv.data.formats.image import read_image
from lcv.data.formats.mask import read_mask
from lcv.data.sintel import sintel
from lcv.data.synthetic.recipe import QUICK
from lcv.data.synthetic.sequence import generate_sequence
from lcv.data.synthetic.write import write_dataset
from lcv.errors import ArgumentError, FileError

SIZE = (40, 56)


def test_what_is_written_is_what_is_generated(tmp_path, bank):
    write_dataset(tmp_path, QUICK, 5, 3, SIZE, frames=3, first=7, batch=2, textures=bank)
    made = generate_sequence(QUICK, 5, range(7, 10), SIZE, frames=3, textures=bank)
    clean = generate_sequence(
        QUICK.without_effects(), 5, range(7, 10), SIZE, frames=3, textures=bank
    )
    for k in range(3):
        for kind, images in (("clean", clean.images), ("final", made.images)):
            folder = tmp_path / "training" / kind / f"scene_{7 + k:06d}"
            assert [p.name for p in sorted(folder.iterdir())] == [
                f"frame_{number:04d}.png" for number in (1, 2, 3)
            ]
            found = read_image(folder / "frame_0003.png")
            assert np.array_equal(found, images[k, 2].round().byte().permute(1, 2, 0).numpy())
        scene = f"scene_{7 + k:06d}"
        flow, valid = read_flow(tmp_path / "training" / "flow" / scene / "frame_0002.flo")
        assert valid.all()
        assert np.array_equal(flow, made.flow[k, 1].permute(1, 2, 0).numpy())
        mask = read_mask(tmp_path / "training" / "occlusions" / scene / "frame_0001.png")
        assert np.array_equal(mask == 255, made.occluded[k, 0, 0].numpy())
    about = json.loads((tmp_path / "recipe.json").read_text())
    assert about["seed"] == 5
    assert about["recipe"]["layers"] == QUICK.layers


def test_the_reader_of_sintel_reads_it(tmp_path, bank):
    plain = replace(QUICK.without_effects(), layers=3)
    write_dataset(tmp_path, plain, 5, 2, SIZE, textures=bank)
    assert not (tmp_path / "training" / "final").exists()
    dataset = sintel(tmp_path)
    assert len(dataset) == 2
    sample = dataset[0].read()
    assert sample.image1.shape == (*SIZE, 3)
    assert sample.occluded.shape == SIZE


def test_refusals(tmp_path, bank):
    write_dataset(tmp_path, QUICK, 5, 1, SIZE, textures=bank)
    before = (tmp_path / "recipe.json").read_bytes()
    with pytest.raises(FileError, match="exists already"):
        write_dataset(tmp_path, QUICK, 6, 1, SIZE, textures=bank)
    assert (tmp_path / "recipe.json").read_bytes() == before
    write_dataset(tmp_path, QUICK, 6, 1, SIZE, textures=bank, overwrite=True)
    with pytest.raises(ArgumentError, match="count is 0"):
        write_dataset(tmp_path, QUICK, 5, 0, SIZE, textures=bank)
