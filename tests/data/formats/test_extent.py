"""How far a film's outermost parts reach, by hand for each container."""

from __future__ import annotations

import struct

import pytest

from lcv.data.formats.extent import _number, check_extent
from lcv.errors import FileError


def box(name, content, wide=False):
    if wide:
        return struct.pack(">I4sQ", 1, name, 16 + len(content)) + content
    return struct.pack(">I4s", 8 + len(content), name) + content


FTYP = box(b"ftyp", b"isom\0\0\0\0")
EBML = b"\x1a\x45\xdf\xa3\x83abc"
SEGMENT = b"\x18\x53\x80\x67"
WHOLE = {
    "mp4": FTYP + box(b"moov", bytes(9)) + box(b"mdat", bytes(30)),
    "mp4 with a long box": FTYP + box(b"mdat", bytes(30), wide=True),
    "mkv": EBML + SEGMENT + b"\x9e" + bytes(30),
    "mkv with a long number": EBML + SEGMENT + b"\x01\0\0\0\0\0\0\x1e" + bytes(30),
    "avi": b"RIFF" + struct.pack("<I", 34) + b"AVI " + bytes(30),
}
OPEN = {
    "mp4 to the end": FTYP + b"\0\0\0\0mdat" + bytes(30),
    "live mkv": EBML + SEGMENT + b"\x01\xff\xff\xff\xff\xff\xff\xff" + bytes(30),
    "something else": bytes(60),
}


def check(tmp_path, content):
    (tmp_path / "a").write_bytes(content)
    check_extent(tmp_path / "a", len(content))


@pytest.mark.parametrize("content", WHOLE.values(), ids=WHOLE)
def test_whole_files_pass_and_cut_ones_do_not(tmp_path, content):
    check(tmp_path, content)
    check(tmp_path, content + b"tail")
    for length in range(len(content) - 29, len(content)):
        message = f"a: cut video: its parts reach to byte {len(content)}, but it has {length}"
        with pytest.raises(FileError, match=message):
            check(tmp_path, content[:length])


@pytest.mark.parametrize("content", OPEN.values(), ids=OPEN)
def test_what_does_not_say_its_length_passes(tmp_path, content):
    for length in range(len(content) - 29, len(content)):
        check(tmp_path, content[:length])


def test_a_length_beyond_all_files_is_a_cut(tmp_path):
    with pytest.raises(FileError, match=f"reach to byte {16 + 2**64 - 1}, but it has"):
        check(tmp_path, FTYP + struct.pack(">I4sQ", 1, b"mdat", 2**64 - 1) + bytes(30))


def test_boxes_that_are_none_end_the_walk(tmp_path):
    check(tmp_path, FTYP + struct.pack(">I4s", 7, b"odd ") + bytes(30))
    check(tmp_path, FTYP + struct.pack(">I4s", 8, b"free"))
    check(tmp_path, FTYP + b"1234567")
    # A box of the least length is one, and the next is looked at.
    cut = FTYP + box(b"free", b"") + struct.pack(">I4s", 100, b"mdat")
    with pytest.raises(FileError, match="reach to byte 124, but it has 54"):
        check(tmp_path, cut + bytes(54 - len(cut)))


@pytest.mark.parametrize(
    ("head", "keep", "wanted"),
    [
        (b"", True, (0, 0)),
        (b"\0\1", True, (0, 0)),
        (b"\x81", True, (0x81, 1)),
        (b"\x81", False, (1, 1)),
        (b"\x40\x02", False, (2, 2)),
        (b"\x40", False, (0, 0)),
        (b"\x01\0\0\0\0\0\0\x07more", False, (7, 8)),
        (SEGMENT, True, (0x18538067, 4)),
    ],
)
def test_numbers_of_matroska(head, keep, wanted):
    assert _number(head, keep) == wanted


def test_many_parts_before_a_segment(tmp_path):
    void = b"\xec\x80"
    cut = SEGMENT + b"\x9e" + bytes(29)
    with pytest.raises(FileError, match="cut video"):
        check(tmp_path, EBML + 14 * void + cut)
    check(tmp_path, EBML + 16 * void + cut)  # who hides it so deep is left to the demuxer
