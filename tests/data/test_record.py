"""A record is read into arrays of the right types, and refused where its files disagree."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from data.formats.samples import save_clip, some_rgb
from lcv.data.formats.flow import write_flow
from lcv.data.formats.image import write_image
from lcv.data.formats.mask import write_mask
from lcv.data.kitti import kitti
from lcv.data.record import FrameRef, Record, read_frame
from lcv.data.sintel import sintel
from lcv.errors import FileError
from testing import datasets as fake


def test_a_dense_pair_with_all_its_maps(tmp_path):
    fake.sintel(tmp_path, {"alley_1": 3})
    sample = sintel(tmp_path)[1].read()
    film = fake.Film(0, frames=3)
    assert np.array_equal(sample.image1, film.frame(1))
    assert np.array_equal(sample.image2, film.frame(2))
    assert np.array_equal(sample.flow, film.flow(1, 2))
    assert sample.image1.dtype == np.uint8
    assert sample.flow.dtype == np.float32
    assert sample.valid.dtype == sample.occluded.dtype == sample.invalid.dtype == bool
    assert sample.valid.shape == sample.occluded.shape == fake.SIZE
    assert sample.occluded[-2:].all()
    assert not sample.occluded[:-2].any()
    # Sintel's invalid map stands beside the truth and takes nothing away from it.
    assert sample.invalid[:2].all()
    assert sample.valid.all()
    assert sample.objects is None


def test_a_sparse_pair_knows_occluded_pixels_by_its_second_truth(tmp_path):
    fake.kitti(tmp_path, [7])
    record = kitti(tmp_path)[0]
    sample = record.read()
    assert record.sparse
    assert not sample.valid[:, :5].any()
    assert (sample.flow[:, :5] == 0).all()
    half = fake.SIZE[0] // 2
    assert np.array_equal(sample.occluded[:half], sample.valid[:half])
    assert not sample.occluded[half:].any()
    assert sample.objects.dtype == np.uint8
    assert set(np.unique(sample.objects)) == {0, 3}


def test_maps_can_be_left_unread(tmp_path):
    fake.sintel(tmp_path, {"alley_1": 2})
    record = sintel(tmp_path)[0]
    record.occlusions.unlink()
    sample = record.read(maps=False)
    assert sample.occluded is None
    assert sample.invalid is None
    with pytest.raises(FileError, match=r"occlusions/alley_1/frame_0001\.png: there is no such"):
        record.read()


def test_a_finer_truth_is_read_at_every_second_pixel(tmp_path):
    image = np.zeros((4, 6, 3), np.uint8)
    write_image(tmp_path / "a.png", image)
    flow = np.arange(8 * 12 * 2, dtype=np.float32).reshape(8, 12, 2)
    write_flow(tmp_path / "f.flo", flow)
    record = Record("x", tmp_path / "a.png", tmp_path / "a.png", tmp_path / "f.flo", step=2)
    assert np.array_equal(record.read().flow, flow[::2, ::2])
    with pytest.raises(FileError, match=r"f\.flo: is 12×8 pixels, but .*a\.png is 6×4"):
        dataclasses.replace(record, step=1).read()


def test_a_disparity_is_motion_to_the_left(tmp_path):
    write_image(tmp_path / "a.png", np.zeros((2, 3, 3), np.uint8))
    write_mask(tmp_path / "d.png", np.array([[0, 4, 8], [2, 1, 200]], np.uint8))
    record = Record("x", tmp_path / "a.png", tmp_path / "a.png", tmp_path / "d.png", disparity=4.0)
    sample = record.read()
    assert sample.flow[..., 0].tolist() == [[0, -1, -2], [-0.5, -0.25, -50]]
    assert not sample.flow[..., 1].any()
    assert sample.valid.tolist() == [[False, True, True], [True, True, True]]


def test_frames_of_two_sizes_are_refused_by_name(tmp_path):
    write_image(tmp_path / "a.png", np.zeros((4, 6, 3), np.uint8))
    write_image(tmp_path / "b.png", np.zeros((6, 4, 3), np.uint8))
    with pytest.raises(FileError, match=r"b\.png: is 4×6 pixels, but .*a\.png is 6×4"):
        Record("x", tmp_path / "a.png", tmp_path / "b.png").read()


def test_without_truth_there_is_none(tmp_path):
    write_image(tmp_path / "a.png", np.zeros((4, 6, 3), np.uint8))
    record = Record("x", tmp_path / "a.png", tmp_path / "a.png", dataset="mine")
    sample = record.read()
    assert sample.flow is None
    assert sample.valid is None
    with pytest.raises(FileError, match="x: this pair of mine has no backward flow"):
        record.read_backward()


def test_a_frame_of_a_video_is_the_one_of_its_number(tmp_path):
    film = tmp_path / "v.mkv"
    shots = [some_rgb(16, 16, seed) for seed in range(3)]
    save_clip(film, shots)
    assert np.array_equal(read_frame(FrameRef(film, 2)), shots[2])
    for other in (2, 0):  # beside each other, and not
        sample = Record("x", FrameRef(film, 1), FrameRef(film, other)).read()
        assert np.array_equal(sample.image1, shots[1])
        assert np.array_equal(sample.image2, shots[other])
    with pytest.raises(FileError, match=r"v\.mkv: has no frame 3; it ends earlier"):
        read_frame(FrameRef(film, 3))
    assert str(FrameRef(Path("v.mp4"), 2)) == "v.mp4#2"


def test_a_record_cannot_be_changed():
    record = Record("x", Path("a"), Path("b"))
    with pytest.raises(dataclasses.FrozenInstanceError):
        record.name = "y"
    assert record.files() == (Path("a"), Path("b"))
