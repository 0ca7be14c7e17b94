"""A result as a picture and as files: the ending of the name says which."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

import lcv
from lcv.errors import ArgumentError, FileError
from lcv.predict.result import FlowResult
from lcv.visual.colours import flow_to_colour, picture_scale
from testing.extras import needs


@pytest.fixture
def result():
    rng = np.random.default_rng(0)
    return FlowResult(rng.normal(0, 9, (13, 17, 2)).astype(np.float32))


@pytest.mark.parametrize("suffix", [".flo", ".pfm", ".flo5", ".npy", ".npz", ".FLO"])
def test_flow_files_keep_every_bit(result, tmp_path, suffix):
    if suffix == ".flo5":
        needs("h5py")
    path = tmp_path / f"flow{suffix}"
    result.save(path)
    flow, valid = lcv.read_flow(path)
    assert valid.all()
    assert np.array_equal(flow, result.flow)


def test_png_is_the_picture_and_kitti_must_be_asked_for(result, tmp_path):
    result.save(tmp_path / "picture.png", max_flow=12)
    assert np.array_equal(lcv.read_image(tmp_path / "picture.png"), result.picture(12))
    with pytest.raises(FileError, match="this is a picture, not a KITTI flow"):
        lcv.read_flow(tmp_path / "picture.png")
    result.save(tmp_path / "kitti.png", format="kitti")
    flow, _ = lcv.read_flow(tmp_path / "kitti.png")
    assert np.abs(flow - result.flow).max() <= 1 / 128


def test_the_picture_is_the_wheels(result, tmp_path):
    assert np.array_equal(result.picture(), flow_to_colour(result.flow, picture_scale(result.flow)))
    result.save(tmp_path / "auto.ppm")
    assert np.array_equal(lcv.read_image(tmp_path / "auto.ppm"), result.picture())


def test_nothing_is_overwritten_unasked(result, tmp_path):
    for name, options in (("a.flo", {}), ("a.png", {}), ("b.png", {"format": "kitti"})):
        path = tmp_path / name
        path.write_bytes(b"mine")
        with pytest.raises(FileError, match="exists already"):
            result.save(path, **options)
        assert path.read_bytes() == b"mine"
        result.save(path, overwrite=True, **options)
        assert path.read_bytes() != b"mine"


@pytest.mark.parametrize(
    ("name", "options", "kind", "message"),
    [
        ("flow.txt", {}, FileError, "nothing can be written with the ending '.txt', wanted one of"),
        ("flow", {}, FileError, "with the ending ''"),
        ("flow.flo", {"format": "kitti"}, FileError, "KITTI's flow is a .png, got the ending"),
        ("flow.flo", {"format": "npy"}, ArgumentError, "format is 'npy', wanted 'kitti' or none"),
        ("nowhere/flow.flo", {}, FileError, "the folder .* does not exist"),
    ],
)
def test_refusals(result, tmp_path, name, options, kind, message):
    with pytest.raises(kind, match=message):
        result.save(tmp_path / name, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_result_is_one_line_and_a_picture():
    flow = np.zeros((5, 7, 2), np.float32)
    flow[0, 0] = (3, 4)
    result = FlowResult(flow)
    assert repr(result) == "FlowResult(7×5, mean 0.14 px, longest 5.0)"
    png = np.asarray(Image.open(BytesIO(result._repr_png_())))
    assert np.array_equal(png, result.picture())
