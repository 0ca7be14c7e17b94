"""A JPEG that is cut anywhere is refused, with its end marker put back or without."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
from PIL import Image

from data.formats.samples import some_rgb
from lcv.data.formats.image import read_image
from lcv.data.formats.jpeg import MOST_SCANS, _blocks, _completed, _matters, _wanted, walk_jpeg
from lcv.errors import FileError


def smooth():
    y, x = np.mgrid[0:45, 0:61]
    return np.stack([4 * x, 5 * y, 2 * (x + y)], axis=2).astype(np.uint8)


def encoded(mode="RGB", **options):
    memory = io.BytesIO()
    Image.fromarray(smooth()).convert(mode).save(memory, "JPEG", **options)
    return memory.getvalue()


KINDS = {
    "plain": {},
    "progressive": {"progressive": True},
    "full colour": {"subsampling": 0, "quality": 95},
    "quarter colour": {"subsampling": 2, "quality": 20},
    "restarts": {"restart_marker_blocks": 3},
    "fitted code": {"optimize": True},
}


@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
def test_whole_ones_are_read_as_pillow_reads_them(tmp_path, options, mode):
    content = encoded(mode, **options)
    (tmp_path / "a.jpg").write_bytes(content)
    truth = np.array(Image.open(io.BytesIO(content)).convert("RGB"))
    assert np.array_equal(read_image(tmp_path / "a.jpg"), truth)


@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("end", [b"", b"\xff\xd9"], ids=["without end", "with end"])
def test_cut_ones_are_refused_wherever_they_are_cut(tmp_path, options, end):
    content = encoded(**options)
    path = tmp_path / "a.jpg"
    first = content.index(b"\xff\xda") + 14
    # With its end put back, a gap inside the last block of 16×16 goes unseen.
    last = len(content) - (30 if end else 1)
    for length in np.linspace(first, last, 40).astype(int):
        path.write_bytes(content[:length] + end)
        with pytest.raises(FileError, match="cut JPEG|damaged") as caught:
            read_image(path)
        assert str(caught.value).startswith(str(path))


def test_an_end_inside_a_thumbnail_is_not_the_end(tmp_path):
    thumbnail = b"\xff\xe1" + struct.pack(">H", 2 + len(encoded())) + encoded()
    content = encoded()
    content = content[:2] + thumbnail + content[2:]
    path = tmp_path / "a.jpg"
    path.write_bytes(content + b"a film after the picture")
    assert read_image(path).shape == (45, 61, 3)
    assert walk_jpeg(path, 2**28).stripped == encoded()
    path.write_bytes(content[:-2])
    with pytest.raises(FileError, match="without the end marker"):
        read_image(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xd8\xff", "cut JPEG: it ends inside a marker"),
        (b"\xff\xd8\xff\xd9", "it ends before any coded data"),
        (b"\xff\xd8\xff\xe0\x00", "cut JPEG: it ends inside a segment"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF", "cut JPEG: it ends inside a segment of 16 bytes"),
        (b"\xff\xd8\xff\xfe\x00\x02oops", "byte 6 is no marker"),
        (b"\xff\xd8\xff\xda\x00\x02\0\0\xff\xd9", "a scan before the frame header"),
        (b"\xff\xd8\xff\xc0\x00\x05\x08\0\0\xff\xd9", "its frame header makes no sense"),
    ],
)
def test_damaged_markers_are_said(tmp_path, content, message):
    (tmp_path / "a.jpg").write_bytes(content)
    with pytest.raises(FileError, match=message):
        read_image(tmp_path / "a.jpg")


def test_a_size_the_data_cannot_hold_is_refused(tmp_path):
    content = encoded()
    at = content.index(b"\xff\xc0") + 5
    path = tmp_path / "a.jpg"
    for size, message in [
        ((30000, 30000), "declares 30000×30000 pixels, more than"),
        ((16000, 16000), "bytes of coded data cannot hold 16000×16000 pixels"),
        ((0, 61), "declares 61×0 pixels"),
        ((90, 61), "damaged: its coded data break off"),
    ]:
        path.write_bytes(content[:at] + struct.pack(">HH", *size) + content[at + 4 :])
        with pytest.raises(FileError, match=message):
            read_image(path)


def test_noise_in_the_remarks_is_not_looked_at(tmp_path):
    noise = some_rgb(10, 10).tobytes()
    remark = b"\xff\xe1" + struct.pack(">H", 8 + len(noise)) + b"Exif\0\0" + noise
    (tmp_path / "a.jpg").write_bytes(encoded()[:2] + remark + encoded()[2:])
    assert read_image(tmp_path / "a.jpg").shape == (45, 61, 3)


@pytest.mark.parametrize(
    ("marker", "segment", "kept"),
    [
        (0xE0, b"JFIF\0" + bytes(9), True),
        (0xE0, b"JFIF\0" + bytes(8), False),
        (0xE0, b"JFXX\0" + bytes(9), False),
        (0xEE, b"Adobe" + bytes(7), True),
        (0xEE, b"Adobe" + bytes(6), False),
        (0xEE, b"Other" + bytes(9), False),
        (0xE1, b"Exif\0\0", False),
        (0xEF, b"", False),
        (0xFE, b"a comment", False),
        (0xDB, b"", True),
        (0xFD, b"", True),
    ],
)
def test_which_segments_the_pixels_need(marker, segment, kept):
    assert _matters(marker, segment) == kept


def test_which_coefficients_a_progressive_scan_completes():
    """Channels with their tables, first and last coefficient, and the bits before and left."""
    scan = bytes([2, 1, 0x00, 3, 0x11, 0, 5, 0x10])
    assert _completed(scan) == {(c, k) for c in (1, 3) for k in range(6)}
    assert _completed(scan[:-1] + b"\x11") == set()  # a bit is left
    assert _completed(scan[:-1]) == set()
    assert _completed(b"") == set()
    assert _completed(bytes([1, 2, 0, 60, 99, 0])) == {(2, k) for k in range(60, 64)}
    assert _wanted(bytes([2])) == {(2, k) for k in range(64)}


def test_blocks_of_the_fullest_channel(tmp_path):
    def frame(*factors):
        return bytes(6) + b"".join(bytes([k, f, 0]) for k, f in enumerate(factors))

    assert _blocks(tmp_path, 16, 8, frame(0x11)) == 2
    assert _blocks(tmp_path, 17, 9, frame(0x11)) == 3 * 2
    assert _blocks(tmp_path, 32, 16, frame(0x22, 0x11, 0x11)) == 4 * 2
    assert _blocks(tmp_path, 33, 16, frame(0x21, 0x12)) == 3 * 2
    for factors in ((), (0x01,), (0x10,)):
        with pytest.raises(FileError, match="its frame header makes no sense"):
            _blocks(tmp_path, 8, 8, frame(*factors))


def test_more_scans_than_encoders_write_are_refused(tmp_path):
    """Of a black picture, whose last scan may come again and again and changes nothing."""
    black = Image.new("RGB", (61, 45))
    black.save(memory := io.BytesIO(), "JPEG", progressive=True)
    content = memory.getvalue()
    more = MOST_SCANS - content.count(b"\xff\xda")
    last = content[content.rindex(b"\xff\xda") : -2]
    path = tmp_path / "a.jpg"
    path.write_bytes(content[:-2] + more * last + b"\xff\xd9")
    assert not read_image(path).any()
    path.write_bytes(content[:-2] + (more + 1) * last + b"\xff\xd9")
    with pytest.raises(FileError, match=r"a\.jpg: holds more than 100 scans, wanted"):
        read_image(path)
