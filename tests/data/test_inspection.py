"""What is said of one file."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from lcv.data.formats.flow import write_flow
from lcv.data.formats.image import write_image
from lcv.data.inspection import (
    bit_depth,
    inspect,
    inspect_frame,
    inspect_map,
    inspect_truth,
    inspect_video,
)


@pytest.fixture
def rgb():
    return np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)


def test_a_copy_in_another_format_has_the_same_digest(tmp_path, rgb):
    write_image(tmp_path / "a.png", rgb)
    write_image(tmp_path / "a.ppm", rgb)
    a, b = inspect_frame(tmp_path / "a.png"), inspect_frame(tmp_path / "a.ppm")
    assert a.digest == b.digest
    assert (a.size, a.depth, a.error, a.flat) == ((7, 5), "8 bit", None, False)
    write_image(tmp_path / "c.png", rgb.reshape(7, 5, 3))
    assert inspect_frame(tmp_path / "c.png").digest != a.digest
    write_image(tmp_path / "flat.png", np.full_like(rgb, 9))
    assert inspect_frame(tmp_path / "flat.png").flat


def test_a_truth_in_numbers(tmp_path):
    flow = np.zeros((2, 3, 2), np.float32)
    flow[0, 0], flow[1, 2], flow[0, 1] = (3, -4), (-1, 0.5), (100, 100)
    valid = np.ones((2, 3), bool)
    valid[0, 1] = False
    write_flow(tmp_path / "f.png", flow, valid)
    fact = inspect_truth(tmp_path / "f.png")
    assert (fact.size, fact.depth, fact.pixels, fact.known) == ((3, 2), "16 bit", 6, 5)
    assert (fact.low, fact.high, fact.largest) == ((-1.0, -4.0), (3.0, 0.5), 5.0)
    write_flow(tmp_path / "none.flo", flow, np.zeros((2, 3), bool))
    assert inspect_truth(tmp_path / "none.flo").known == 0


def test_bit_depths(tmp_path, rgb):
    Image.fromarray(rgb[..., 0].astype(np.uint16) * 257).save(tmp_path / "deep.png")
    (tmp_path / "deep.ppm").write_bytes(b"P6\n# a comment\n1 1\n65535\n" + bytes(6))
    write_image(tmp_path / "plain.ppm", rgb)
    write_flow(tmp_path / "f.flo", np.zeros((2, 2, 2), np.float32))
    found = {p.name: bit_depth(p) for p in tmp_path.iterdir()}
    assert found == {
        "deep.png": "16 bit",
        "deep.ppm": "16 bit",
        "plain.ppm": "8 bit",
        "f.flo": "float32",
    }


def test_a_damaged_file_is_an_error_without_its_path(tmp_path):
    for kind in (inspect_frame, inspect_truth, inspect_map):
        path = tmp_path / "x.png"
        path.write_bytes(b"\x89PNG\r\n\x1a\n")
        fact = inspect(path, kind)
        assert fact.size is None
        assert fact.error
        assert not fact.error.startswith(str(path))


def test_a_film_needs_two_frames_of_one_size(monkeypatch, tmp_path):
    frames = [np.zeros((5, 7, 3), np.uint8)] * 3
    monkeypatch.setattr("lcv.data.formats.video.read_video", lambda path: iter(frames))
    fact = inspect_video(tmp_path / "a.mp4")
    assert (fact.size, fact.depth, fact.frames, fact.digest) == ((7, 5), "video", 3, b"")
    frames[1:] = []
    assert inspect(tmp_path, inspect_video).error == "has 1 frames, wanted at least two"
    frames.append(np.zeros((5, 8, 3), np.uint8))
    assert inspect(tmp_path, inspect_video).error == "frame 1 is (8, 5), not (7, 5)"


def test_depths_of_headers(tmp_path):
    cases = {
        "a.ppm": (b"P6\n1 1\n256\n", "16 bit"),
        "b.ppm": (b"P6\n1 1\n255\n", "8 bit"),
        "c.pgm": (b"P5 1 1 65535\n", "16 bit"),
        "d.pgm": (b"P5 1 1 many\n", "8 bit"),
        "e.pgm": (b"P5 1 1", "8 bit"),
        "f.jpg": (b"", "8 bit"),
        "g.PFM": (b"", "float32"),
    }
    for name, (content, depth) in cases.items():
        (tmp_path / name).write_bytes(content)
        assert bit_depth(tmp_path / name) == depth, name
