"""`.flo` by hand: header, order of values, the mark for unknown, and every way to be wrong."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from lcv.data.formats.flo import read_flo
from lcv.data.formats.flow import write_flow
from lcv.errors import FileError

# Two columns, one row: (1, 2), (3, 4).
BY_HAND = b"PIEH" + struct.pack("<ii", 2, 1) + struct.pack("<4f", 1, 2, 3, 4)


def test_a_file_made_by_hand(tmp_path):
    (tmp_path / "a.flo").write_bytes(BY_HAND)
    flow, valid = read_flo(tmp_path / "a.flo")
    assert flow.tolist() == [[[1, 2], [3, 4]]]
    assert valid.tolist() == [[True, True]]
    write_flow(tmp_path / "b.flo", flow)
    assert (tmp_path / "b.flo").read_bytes() == BY_HAND
    assert struct.unpack("<f", b"PIEH") == (202021.25,)


def test_unknown_is_written_as_1e10(tmp_path):
    flow = np.array([[[1, 2], [3, 4]]], dtype=np.float32)
    write_flow(tmp_path / "a.flo", flow, np.array([[True, False]]))
    values = struct.unpack("<4f", (tmp_path / "a.flo").read_bytes()[12:])
    assert values == (1, 2, 1e10, 1e10)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1.0001e9, -1.0001e9, 1.666e9, 1e10])
@pytest.mark.parametrize("component", [0, 1])
def test_one_unknown_component_makes_the_pixel_unknown(tmp_path, value, component):
    pair = [5.0, 5.0]
    pair[component] = value
    (tmp_path / "a.flo").write_bytes(BY_HAND[:12] + struct.pack("<4f", *pair, 1e9, -1e9))
    flow, valid = read_flo(tmp_path / "a.flo")
    assert valid.tolist() == [[False, True]]
    assert flow.tolist() == [[[0, 0], [1e9, -1e9]]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"begins with b'', wanted b'PIEH'"),
        (b"PIEX" + BY_HAND[4:], r"begins with b'PIEX', wanted b'PIEH'; this is not a .flo"),
        (BY_HAND[:7], "ends inside its header, after 7 of 12 bytes"),
        (BY_HAND[:-1], "27 bytes are too few, wanted 28 for 2×1 pixels"),
        (BY_HAND + b"\0", "29 bytes are too many, wanted 28 for 2×1 pixels"),
        (b"PIEH" + struct.pack("<ii", -2, -1) + BY_HAND[12:], "declares -2×-1 pixels"),
        (b"PIEH" + struct.pack("<ii", 0, 1), "declares 0×1 pixels, wanted at least 1×1"),
        (b"PIEH" + struct.pack("<ii", 2**31 - 1, 2**31 - 1), "more than the 268435456"),
        (b"PIEH" + struct.pack(">ii", 2, 1) + BY_HAND[12:], "declares 33554432×16777216 pixels"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, content, message):
    (tmp_path / "a.flo").write_bytes(content)
    with pytest.raises(FileError, match=message) as caught:
        read_flo(tmp_path / "a.flo")
    assert str(caught.value).startswith(str(tmp_path / "a.flo"))
