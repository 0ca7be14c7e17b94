"""KITTI's PNG: the grid of 1/64, rounding and clipping, and values against other decoders."""

from __future__ import annotations

import zlib

import av
import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from data.formats.samples import some_flow, some_rgb, unfiltered
from lcv.data.formats.flow import write_flow
from lcv.data.formats.kitti import read_kitti
from lcv.data.formats.png import encode_png
from lcv.errors import FileError
from testing.shared import shared

LOWEST, HIGHEST = -512.0, 511.984375


def by_av(path):
    """The sixteen bits as FFmpeg's own reader of image files sees them."""
    with av.open(str(path), format="png_pipe") as container:
        (frame,) = container.decode(video=0)
    assert frame.format.name == "rgb48be"
    return frame.to_ndarray().astype(np.int64)


def by_hand(path):
    """The sixteen bits with nothing but zlib and PNG's standard."""
    content = path.read_bytes()
    width, height = (int.from_bytes(content[i : i + 4], "big") for i in (16, 20))
    position, packed = 8, b""
    while position < len(content):
        length = int.from_bytes(content[position : position + 4], "big")
        if content[position + 4 : position + 8] == b"IDAT":
            packed += content[position + 8 : position + 8 + length]
        position += 12 + length
    raw = unfiltered(width, height, 6, zlib.decompress(packed))
    return raw.view(">u2").reshape(-1, width, 3).astype(np.int64)


def assert_decodes_to(flow, valid, samples):
    assert np.array_equal(valid, samples[:, :, 2] > 0)
    truth = (samples[:, :, :2] - 32768) / 64
    assert np.array_equal(flow, np.where(valid[:, :, None], truth, 0))


@pytest.mark.parametrize("kind", ["flow_occ", "flow_noc"])
def test_real_files_agree_with_two_other_decoders(kind):
    path = shared("data", "kitti2015", "training", kind, "000010_10.png")
    flow, valid = read_kitti(path)
    assert flow.shape == (375, 1242, 2)
    assert 0.2 < valid.mean() < 0.3
    assert_decodes_to(flow, valid, by_av(path))
    assert_decodes_to(flow, valid, by_hand(path))


@settings(max_examples=60, deadline=None, database=None, derandomize=True)
@given(
    flow=arrays.arrays(
        np.float32,
        st.tuples(st.integers(1, 5), st.integers(1, 5), st.just(2)),
        elements=st.floats(-600, 600, width=32),
    )
)
def test_values_go_to_the_nearest_step_and_stop_at_the_ends(tmp_path_factory, flow):
    path = tmp_path_factory.getbasetemp() / "kitti.png"
    write_flow(path, flow, overwrite=True)
    read, valid = read_kitti(path)
    assert valid.all()
    assert_decodes_to(read, valid, by_av(path))
    inside = np.clip(flow.astype(np.float64), LOWEST, HIGHEST)
    assert np.abs(read - inside).max() <= 1 / 128
    write_flow(path, read, overwrite=True)
    assert np.array_equal(read_kitti(path)[0], read), "on the grid nothing changes"


def test_the_ends_by_hand(tmp_path):
    given_u = [-1e9, -512.1, -512, 0, 1 / 64, 511.984375, 511.99, 512, 1e9]
    wanted = [-512, -512, -512, 0, 1 / 64, 511.984375, 511.984375, 511.984375, 511.984375]
    flow = np.zeros((1, 9, 2), dtype=np.float32)
    flow[0, :, 0] = given_u
    write_flow(tmp_path / "a.png", flow)
    read, _ = read_kitti(tmp_path / "a.png")
    assert read[0, :, 0].tolist() == wanted
    assert by_av(tmp_path / "a.png")[0, [0, 3, 8]].tolist() == [
        [0, 32768, 1],
        [32768, 32768, 1],
        [65535, 32768, 1],
    ]


def test_all_steps_survive(tmp_path):
    steps = (np.arange(65536, dtype=np.float32) - 32768) / 64
    flow = np.stack([steps, steps[::-1]], axis=1).reshape(128, 512, 2)
    write_flow(tmp_path / "a.png", flow)
    assert np.array_equal(read_kitti(tmp_path / "a.png")[0], flow)


def test_invalid_pixels_are_written_as_kitti_writes_them(tmp_path):
    flow, valid = some_flow()
    write_flow(tmp_path / "a.png", flow, valid)
    assert np.unique(by_av(tmp_path / "a.png")[~valid], axis=0).tolist() == [[32768, 32768, 0]]


@pytest.mark.parametrize("kind", ["RGB", "L", "RGBA", "P", "I;16"])
def test_a_picture_is_not_a_flow(tmp_path, kind):
    picture = Image.fromarray(some_rgb())
    if kind == "I;16":
        picture = Image.fromarray(some_rgb()[:, :, 0].astype(np.uint16))
    else:
        picture = picture.convert(kind)
    picture.save(tmp_path / "a.png")
    with pytest.raises(FileError, match=r"a\.png: is an? \d+-bit .* PNG, wanted 16-bit RGB"):
        read_kitti(tmp_path / "a.png")


def test_every_marker_above_zero_means_known(tmp_path):
    """KITTI's own reader asks whether B is above 0; some tools write 255 or 65535."""
    samples = np.full((1, 4, 3), 2**15, np.uint16)
    samples[0, :, 2] = (0, 1, 2, 65535)
    samples[0, :, 0] += 64
    path = tmp_path / "flow.png"
    path.write_bytes(encode_png(samples))
    flow, valid = read_kitti(path)
    assert valid.tolist() == [[False, True, True, True]]
    assert flow[0].tolist() == [[0, 0], [1, 0], [1, 0], [1, 0]]
