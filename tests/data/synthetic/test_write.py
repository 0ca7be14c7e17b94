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
from lcv.data.synthetic.recipe import MIXED, QUICK
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


def test_a_mixture_is_written_too(tmp_path, bank):
    write_dataset(tmp_path, MIXED, 5, 3, SIZE, textures=bank)
    made = generate_sequence(MIXED, 5, [2], SIZE, frames=2, textures=bank)
    flow, _ = read_flow(tmp_path / "training" / "flow" / "scene_000002" / "frame_0001.flo")
    assert np.array_equal(flow, made.flow[0, 0].permute(1, 2, 0).numpy())
    about = json.loads((tmp_path / "recipe.json").read_text())
    assert [weight for weight, _ in about["recipe"]["parts"]] == [0.35, 0.45, 0.2]
    with pytest.raises(FileError, match="made with another recipe"):
        write_dataset(tmp_path, QUICK, 5, 3, SIZE, textures=bank)


def test_refusals(tmp_path, bank):
    write_dataset(tmp_path, QUICK, 5, 1, SIZE, textures=bank)
    before = (tmp_path / "recipe.json").read_bytes()
    with pytest.raises(FileError, match="exists already"):
        write_dataset(tmp_path, QUICK, 5, 1, SIZE, textures=bank)
    assert (tmp_path / "recipe.json").read_bytes() == before
    write_dataset(tmp_path, QUICK, 5, 1, SIZE, textures=bank, overwrite=True)
    with pytest.raises(ArgumentError, match="count is 0"):
        write_dataset(tmp_path, QUICK, 5, 0, SIZE, textures=bank)
    with pytest.raises(ArgumentError, match="the folder has no name; say where to write"):
        write_dataset("", QUICK, 5, 1, SIZE, textures=bank)


def test_parts_fit_together_and_scenes_of_another_kind_are_not_mixed_in(tmp_path, bank):
    write_dataset(tmp_path, QUICK, 0, 1, (48, 64), frames=3, textures=bank)
    write_dataset(tmp_path, QUICK, 0, 1, (48, 64), frames=3, first=1, textures=bank)
    assert len(list((tmp_path / "training" / "clean").iterdir())) == 2
    for seed, frames, word in ((5, 3, "seed"), (0, 2, "frames")):
        with pytest.raises(FileError, match=f"made with another {word}; .* Choose another folder"):
            write_dataset(
                tmp_path, QUICK, seed, 1, (48, 64), frames=frames, textures=bank, overwrite=True
            )


def test_what_cannot_be_written_to_is_said_before_anything_is_made(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FileError, match="is a file, wanted a folder to write into"):
        write_dataset(tmp_path / "file", QUICK, 0, 1, (48, 64))
    with pytest.raises(ArgumentError, match="device 'nowhere' cannot be used here"):
        write_dataset(tmp_path / "new", QUICK, 0, 1, (48, 64), device="nowhere")
    with pytest.raises(ArgumentError, match="first of 0 or more"):
        write_dataset(tmp_path / "new", QUICK, 0, 1, (48, 64), first=-3)
    assert not (tmp_path / "new").exists()
