"""What the decoder of FFmpeg gives is held against what the file declares."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import av
import numpy as np
import pytest

from lcv.data.formats import decode as module
from lcv.data.formats.decode import check_jpeg_body, decode_deep_png
from lcv.data.formats.png import Png
from lcv.errors import FileError

PATH = Path("a.png")
PNG = Png(
    width=2, height=3, depth=16, colour=2, interlaced=False, palette=0, stripped=b"", exif=b""
)


def picture(name="rgb48be", height=3, line=16):
    """A decoded frame; the lines of its memory are padded."""
    plane = np.arange(height * line // 2).astype(">u2")

    class Plane(bytes):
        line_size = line

    return SimpleNamespace(
        format=SimpleNamespace(name=name), planes=[Plane(plane.tobytes())], height=height
    )


@pytest.fixture
def frames(monkeypatch):
    given = []
    monkeypatch.setattr(module, "_decode", lambda *_: given)
    return given


def test_the_padding_of_lines_is_cut_off(frames):
    frames.append(picture())
    samples = decode_deep_png(PATH, PNG)
    assert samples.dtype == np.uint16
    assert samples.tolist() == [
        [[0, 1, 2], [3, 4, 5]],
        [[8, 9, 10], [11, 12, 13]],
        [[16, 17, 18], [19, 20, 21]],
    ]


@pytest.mark.parametrize(
    ("colour", "name"), [(0, "gray16be"), (2, "rgb48be"), (4, "ya16be"), (6, "rgba64be")]
)
def test_each_kind_of_deep_png_has_one_layout(frames, colour, name):
    frames.append(picture(name))
    channels = {0: 1, 2: 3, 4: 2, 6: 4}[colour]
    assert decode_deep_png(PATH, replace(PNG, colour=colour)).shape == (3, 2, channels)


def test_another_picture_than_declared_is_refused(frames):
    with pytest.raises(
        FileError, match=r"a.png: decodes as \[\], wanted one picture of 16-bit RGB"
    ):
        decode_deep_png(PATH, PNG)
    frames.append(picture("gray16be"))
    with pytest.raises(FileError, match=r"decodes as \['gray16be'\], wanted one picture"):
        decode_deep_png(PATH, PNG)
    frames[:] = [picture(), picture()]
    with pytest.raises(FileError, match=r"decodes as \['rgb48be', 'rgb48be'\], wanted one"):
        decode_deep_png(PATH, PNG)
    for small in (picture(height=2), picture(line=10)):
        frames[:] = [small]
        with pytest.raises(FileError, match=r"decodes to .*, not to the size its header declares"):
            decode_deep_png(PATH, PNG)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (av.error.InvalidDataError, "damaged: its coded data break off or make no sense"),
        (av.error.PatchWelcomeError, None),
        (av.error.EOFError, None),
        (av.error.ArgumentError, "cannot be decoded: no"),
    ],
)
def test_what_the_decoder_says(monkeypatch, error, words):
    asked = []

    class Decoder:
        def decode(self, packet):
            asked.append((self.thread_count, self.options))
            raise error(1, "no")

    made = SimpleNamespace(create=lambda *given: asked.append(given) or Decoder())
    monkeypatch.setattr(av, "CodecContext", made)
    if words is None:
        check_jpeg_body(PATH, b"12")  # another kind of JPEG, which is for Pillow to read
    else:
        with pytest.raises(FileError, match=f"a.png: {words}"):
            check_jpeg_body(PATH, b"12")
    assert asked == [("mjpeg", "r"), (1, {"err_detect": "explode"})]
