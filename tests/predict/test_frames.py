"""What may be called a frame, and what is said of the rest."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import torch

from lcv.data.formats.image import write_image
from lcv.errors import ArgumentError, FileError, LcvError, ShapeError
from lcv.predict.frames import as_frame, check_same_size


@pytest.fixture
def rgb():
    return np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)


def test_every_kind_of_frame_is_the_same_picture(rgb, tmp_path):
    write_image(tmp_path / "frame.png", rgb)
    planes = torch.from_numpy(rgb).movedim(2, 0)
    wanted = as_frame(rgb, "frame1").image
    assert wanted.shape == (1, 3, 5, 7)
    assert torch.equal(wanted[0], planes)
    for given in (
        tmp_path / "frame.png",
        str(tmp_path / "frame.png"),
        planes,
        planes[None],
        planes.float(),
        rgb.astype(np.float64),
        rgb.astype(np.uint16) * 257,
        rgb[:, ::-1][:, ::-1],
        as_frame(rgb, "frame1"),
    ):
        assert torch.equal(as_frame(given, "frame1").image.float(), wanted.float())


def test_grey_is_three_equal_colours(rgb):
    grey = rgb[:, :, 0]
    for given in (grey, grey[:, :, None], torch.from_numpy(grey.copy())[None]):
        image = as_frame(given, "frame1").image
        assert image.shape == (1, 3, 5, 7)
        assert all(torch.equal(image[0, c], torch.from_numpy(grey.copy())) for c in range(3))


def test_sixteen_bits_are_scaled_not_clipped():
    deep = np.array([[0, 257, 300, 65535]], dtype=np.uint16)
    image = as_frame(deep, "frame1").image[0, 0, 0]
    assert torch.allclose(image, torch.tensor([0, 1, 300 / 257, 255]))


def test_a_frame_owns_its_pixels(rgb):
    for given in (rgb, rgb[:, :, 0].copy(), torch.from_numpy(rgb).movedim(2, 0)):
        frame = as_frame(given, "frame1")
        before = frame.image.clone()
        given[:] = 0
        assert torch.equal(frame.image, before)


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        (None, ArgumentError, r"frame1 is a NoneType, wanted a path"),
        (np.zeros((5, 7, 4), np.uint8), ShapeError, r"\(5, 7, 4\).*drop the fourth channel"),
        (np.zeros((5, 7, 2), np.uint8), ShapeError, r"frame1 is an array of shape \(5, 7, 2\)"),
        (np.zeros((5, 7, 3), np.int64), ArgumentError, r"frame1 is an array of int64"),
        (np.zeros((0, 7, 3), np.uint8), ShapeError, r"frame1 is empty: 7×0 pixels"),
        (torch.zeros(2, 3, 5, 7), ShapeError, r"frame1 is a tensor of shape \(2, 3, 5, 7\)"),
        (torch.zeros(5, 7, 3), ShapeError, r"frame1 is a tensor of shape \(1, 5, 7, 3\)"),
        (torch.zeros(3, 5, 7, dtype=torch.int32), ArgumentError, r"a tensor of torch.int32"),
        (torch.full((3, 5, 7), torch.nan), ArgumentError, r"frame1 holds NaN or infinity"),
        (torch.full((3, 5, 7), 65535.0), ArgumentError, r"from 65535 to 65535, wanted 0 … 255"),
        ("nowhere.png", FileError, r"nowhere.png: there is no such file"),
    ],
)
def test_refusals(given, kind, message):
    with pytest.raises(kind, match=message) as caught:
        as_frame(given, "frame1")
    assert isinstance(caught.value, LcvError)


def test_a_picture_from_0_to_1_is_pointed_out(caplog):
    with caplog.at_level(logging.WARNING, logger="lcv"):
        as_frame(torch.rand(3, 5, 7), "frame1")
    assert "frame1 holds numbers up to" in caplog.text
    assert "multiplied by 255" in caplog.text


def test_both_sizes_are_said(rgb):
    one, other = as_frame(rgb, "left.png"), as_frame(rgb[:4], "right.png")
    check_same_size(one, one)
    with pytest.raises(ShapeError, match=r"left.png is 7×5 pixels and right.png is 7×4"):
        check_same_size(one, other)
