"""What every reader and writer asks first."""

from __future__ import annotations

import numpy as np
import pytest

from lcv.data.formats import checks
from lcv.data.formats.checks import (
    check_length,
    check_pixels,
    check_unpacked,
    file_size,
    flow_to_write,
    known_flow,
    read_start,
)
from lcv.errors import FileError


def test_the_size_of_a_file_or_why_it_has_none(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"12345")
    assert file_size(path, "a film") == 5
    assert read_start(path, 3) == b"123"
    assert read_start(path, 9) == b"12345"
    with pytest.raises(FileError, match="b: there is no such file$"):
        file_size(tmp_path / "b", "a film")
    with pytest.raises(FileError, match="this is a folder, wanted a film$"):
        file_size(tmp_path, "a film")
    with pytest.raises(FileError, match=r"cannot be opened: .*null"):
        file_size(tmp_path / "a\0b", "a film")
    with pytest.raises(FileError, match=r"cannot be read: Is a directory"):
        read_start(tmp_path, 3)
    monkeypatch.setattr(checks.os, "access", lambda path, mode: mode != checks.os.R_OK)
    with pytest.raises(FileError, match="a: may not be read by you; change its permissions"):
        file_size(path, "a film")


def test_sizes_that_may_be_declared(tmp_path):
    check_pixels(tmp_path, 1, 1, 6)
    check_pixels(tmp_path, 2, 3, 6)
    for width, height in ((0, 1), (1, 0), (-2, -3)):
        with pytest.raises(FileError, match=f"declares {width}×{height} pixels, wanted at least"):
            check_pixels(tmp_path, width, height, 6)
    with pytest.raises(FileError, match="more than the 6 that are allowed; .* max_pixels=7$"):
        check_pixels(tmp_path, 7, 1, 6)
    assert checks.LIMIT_PIXELS == 2**28  # documented


def test_how_much_may_be_packed(tmp_path):
    """32 MiB, or a hundred times the file."""
    check_unpacked(tmp_path, 1, 2**25)
    check_unpacked(tmp_path, 10**6, 10**8)
    for packed, unpacked in ((1, 2**25 + 1), (10**6, 10**8 + 1)):
        with pytest.raises(FileError, match=f"{packed} bytes claim to unpack to {unpacked}, want"):
            check_unpacked(tmp_path, packed, unpacked)


def test_lengths_that_follow_from_a_header(tmp_path):
    check_length(tmp_path, 5, 5, "this")
    for found, word in ((4, "few"), (6, "many")):
        with pytest.raises(FileError, match=f"{found} bytes are too {word}, wanted 5 for this;"):
            check_length(tmp_path, found, 5, "this")


def test_which_flow_is_known():
    bad = (np.nan, np.inf, -np.inf, 1.1e9, -1.1e9)
    flow = np.array([[[1, value] for value in bad] + [[1e9, -1e9], [3, 4], [5, 6]]])
    valid = np.ones((1, 8), bool)
    valid[0, 7] = False
    known, where = known_flow(flow.copy(), valid)
    assert where.tolist() == [[False] * 5 + [True, True, False]]
    assert known.dtype == np.float32
    assert known[0, 5:].tolist() == [[1e9, -1e9], [3, 4], [0, 0]]
    assert not known[0, :5].any()
    assert known_flow(flow.copy())[1][0, 7]


def test_which_flow_is_written(tmp_path):
    flow = np.arange(8.0).reshape(2, 2, 2)
    valid = np.array([[True, False], [True, True]])
    copy, where = flow_to_write("a.flo", flow, valid)
    assert copy.dtype == np.float32
    assert copy.tolist() == [[[0, 1], [0, 0]], [[4, 5], [6, 7]]]
    assert where is valid
    assert flow[0, 1].tolist() == [2, 3]
    assert flow_to_write("a.flo", flow, None)[1].all()
    flow[1, 0] = 1e9, -1e9
    flow_to_write("a.flo", flow, None)
    for bad in (1.1e9, -1.1e9, np.nan, 1e300):
        flow[1, 1, 0] = bad
        with pytest.raises(FileError, match=r"the flow at x=1, y=1 is .* \(1 of them\)"):
            flow_to_write("a.flo", flow, None)
    for unfit, words in (
        ([[0.0, 0.0]], "of type list, wanted a numpy array"),
        (np.zeros((2, 2, 3)), "of shape .2, 2, 3., wanted"),
        (np.zeros((2, 2)), "of shape .2, 2., wanted"),
        (np.zeros((0, 2, 2)), "of shape .0, 2, 2., wanted"),
        (np.zeros((2, 2, 2), int), "of type int64, wanted float32"),
    ):
        with pytest.raises(FileError, match=words):
            flow_to_write("a.flo", unfit, None)
    flow[1, 1] = 0
    for mask, words in (
        (valid.tolist(), "valid of list, wanted bool"),
        (valid.astype(int), "valid of int64 .2, 2., wanted"),
        (valid[:1], "valid of bool .1, 2., wanted"),
    ):
        with pytest.raises(FileError, match=words):
            flow_to_write("a.flo", flow, mask)


def test_what_is_written_is_never_changed_and_copied_only_where_it_must_be():
    flow = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    before, everywhere = flow.copy(), np.ones((2, 3), bool)
    assert flow_to_write("a.flo", flow, None)[0] is flow
    assert flow_to_write("a.flo", flow, everywhere)[0] is flow
    part = everywhere.copy()
    part[1, 2] = False
    copies = [(flow, part), (flow[::-1], None), (flow[:, ::-1], None), (flow.astype(">f4"), None)]
    copies += [(np.ma.masked_less(flow, 3), None), (np.asfortranarray(flow), None)]
    for given, valid in copies:
        found, _ = flow_to_write("a.flo", given, valid)
        wanted = np.array(given)
        wanted[1, 2] *= valid is None
        assert type(found) is np.ndarray
        assert (found.dtype, found.flags.c_contiguous) == (np.dtype(np.float32), True)
        assert np.array_equal(found, wanted)
    assert np.array_equal(flow, before)
