"""`.pfm` by hand: both byte orders, rows from below, the third channel, what is no flow."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from lcv.data.formats.flow import write_flow
from lcv.data.formats.pfm import read_pfm
from lcv.errors import FileError

# Two rows of one pixel, the lower first.
VALUES = (3, 4, 99, 1, 2, 99)
UPRIGHT = [[[1, 2]], [[3, 4]]]


@pytest.mark.parametrize(("order", "scale"), [("<", b"-1.0"), (">", b"1.0"), ("<", b"-0.003922")])
@pytest.mark.parametrize("layout", [b"PF\n1 2\n%s\n", b"PF\r\n1 2\r\n%s\r\n", b"PF 1 2 %s\n"])
def test_both_byte_orders_from_bottom_to_top(tmp_path, order, scale, layout):
    (tmp_path / "a.pfm").write_bytes(layout % scale + struct.pack(f"{order}6f", *VALUES))
    flow, valid = read_pfm(tmp_path / "a.pfm")
    assert flow.tolist() == UPRIGHT
    assert valid.all()


def test_what_is_written_by_hand(tmp_path):
    write_flow(tmp_path / "a.pfm", np.array(UPRIGHT, np.float32), np.array([[True], [False]]))
    content = (tmp_path / "a.pfm").read_bytes()
    assert content.startswith(b"PF\n1 2\n-1.0\n")
    values = struct.unpack("<6f", content[12:])
    assert values[3:] == (1, 2, 0)
    assert np.isnan(values[:2]).all()


BODY = struct.pack("<6f", *VALUES)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"Pf\n1 2\n-1.0\n" + BODY[:8], r"one channel \(Pf\) is a disparity or depth, not a flow"),
        (b"P6\n1 2\n-1.0\n" + BODY, "wanted the PFM header"),
        (b"PF\n1 2\n", "wanted the PFM header"),
        (b"PF\n1 x\n-1.0\n" + BODY, "wanted the PFM header"),
        (b"PF\n-1 -2\n-1.0\n" + BODY, "declares -1×-2 pixels, wanted at least 1×1"),
        (b"PF\n1 0\n-1.0\n", "declares 1×0 pixels"),
        (b"PF\n1 2\n0.0\n" + BODY, "the scale in the PFM header is '0.0'"),
        (b"PF\n1 2\n--1\n" + BODY, "the scale in the PFM header is '--1'"),
        (b"PF\n1 2\n-1.0\n" + BODY[:-1], "35 bytes are too few, wanted 36"),
        (b"PF\n1 2\n-1.0\n" + BODY + b"\n", "37 bytes are too many, wanted 36"),
        (b"PF\n999999999 999999999\n-1.0\n", "more than the 268435456"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, content, message):
    (tmp_path / "a.pfm").write_bytes(content)
    with pytest.raises(FileError, match=message) as caught:
        read_pfm(tmp_path / "a.pfm")
    assert str(caught.value).startswith(str(tmp_path / "a.pfm"))
