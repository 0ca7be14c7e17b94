"""Every format gives back what was put in, and the name of the file says which it is."""

from __future__ import annotations

import itertools
import os

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lcv
from data.formats.samples import FLOW_SUFFIXES, assert_is_flow, some_flow
from lcv.errors import FileError

EXACT = [suffix for suffix in FLOW_SUFFIXES if suffix != ".png"]
NUMBERS = itertools.count()


@st.composite
def flows(draw, elements):
    height, width = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    flow = draw(arrays.arrays(np.float32, (height, width, 2), elements=elements))
    valid = draw(arrays.arrays(bool, (height, width)))
    return flow, valid


@pytest.mark.parametrize("suffix", EXACT)
@settings(max_examples=40, deadline=None, database=None, derandomize=True)
@given(pair=flows(st.floats(-1e9, 1e9, width=32)))
def test_what_is_written_is_read_bit_by_bit(tmp_path_factory, suffix, pair):
    flow, valid = pair
    path = tmp_path_factory.getbasetemp() / f"exact{next(NUMBERS)}{suffix}"
    lcv.write_flow(path, flow, valid)
    read, known = lcv.read_flow(path)
    assert_is_flow(read, known)
    assert np.array_equal(known, valid)
    # As bits, so that −0 and the smallest numbers count.
    assert np.array_equal(read.view(np.uint32)[valid], flow.view(np.uint32)[valid])


@pytest.mark.parametrize("suffix", FLOW_SUFFIXES)
def test_without_a_mask_all_is_valid_and_what_the_mask_hides_may_be_anything(tmp_path, suffix):
    flow, valid = some_flow()
    lcv.write_flow(tmp_path / f"all{suffix}", flow)
    read, known = lcv.read_flow(str(tmp_path / f"all{suffix}"))
    assert known.all()
    assert np.array_equal(read, flow)
    dirty = flow.copy()
    dirty[~valid] = np.nan
    lcv.write_flow(tmp_path / f"some{suffix}", dirty, valid)
    read, known = lcv.read_flow(tmp_path / f"some{suffix}")
    assert np.array_equal(known, valid)
    assert np.array_equal(read, flow)
    assert np.isnan(dirty[~valid]).all(), "the caller's array is left alone"


@pytest.mark.parametrize("suffix", FLOW_SUFFIXES)
@pytest.mark.parametrize("view", ["transposed", "strided", "float64", "float16", "big endian"])
def test_any_layout_of_memory_and_any_float_is_written(tmp_path, suffix, view):
    flow, valid = some_flow(6, 8)
    flow = np.trunc(flow)  # numbers that float16 holds too
    given_flow = {
        "transposed": np.asfortranarray(flow),
        "strided": np.repeat(flow, 2, axis=1)[:, ::2],
        "float64": flow.astype(np.float64),
        "float16": flow.astype(np.float16),
        "big endian": flow.astype(">f4"),
    }[view]
    path = tmp_path / f"a{suffix.upper()}"
    lcv.write_flow(path, given_flow, valid)
    assert np.array_equal(lcv.read_flow(path)[0], flow)


@pytest.mark.parametrize("suffix", FLOW_SUFFIXES)
def test_nothing_is_overwritten_unasked_and_nothing_is_left_behind(tmp_path, suffix):
    flow, valid = some_flow()
    path = tmp_path / f"50%03d{suffix}"
    lcv.write_flow(path, flow, valid)
    before = path.read_bytes()
    with pytest.raises(FileError, match="exists already"):
        lcv.write_flow(path, -flow, valid)
    assert path.read_bytes() == before
    lcv.write_flow(path, flow[::-1], overwrite=True)
    assert np.array_equal(lcv.read_flow(path)[0], flow[::-1])
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", FLOW_SUFFIXES)
@pytest.mark.parametrize(
    ("flow", "valid", "message"),
    [
        (np.zeros((2, 6, 8), np.float32), None, r"shape \(2, 6, 8\), wanted \(H, W, 2\)"),
        (np.zeros((0, 8, 2), np.float32), None, r"shape \(0, 8, 2\), wanted \(H, W, 2\)"),
        (np.zeros((6, 8, 2), int), None, "type int64, wanted float32"),
        ([[[0.0, 0.0]]], None, "type list, wanted a numpy array"),
        (np.full((1, 1, 2), np.nan, np.float32), None, r"x=0, y=0 is \(nan, nan\)"),
        (np.full((1, 1, 2), 2e9, np.float32), None, "wanted numbers within ±1e9"),
        (np.full((1, 1, 2), 1e60), None, r"is \(inf, inf\)"),
        (np.zeros((6, 8, 2), np.float32), np.ones((8, 6), bool), r"bool \(8, 6\), wanted bool"),
        (np.zeros((6, 8, 2), np.float32), np.ones((6, 8)), r"float64 \(6, 8\), wanted bool"),
    ],
)
def test_what_is_no_flow_is_not_written(tmp_path, suffix, flow, valid, message):
    path = tmp_path / f"bad{suffix}"
    with pytest.raises(FileError, match=message) as caught:
        lcv.write_flow(path, flow, valid)
    assert str(caught.value).startswith(str(path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", FLOW_SUFFIXES)
def test_a_strange_name_is_read_by_content_and_a_wrong_name_is_refused(tmp_path, suffix):
    flow, valid = some_flow()
    lcv.write_flow(tmp_path / f"a{suffix}", flow, valid)
    content = (tmp_path / f"a{suffix}").read_bytes()
    (tmp_path / "a.flow").write_bytes(content)
    assert np.array_equal(lcv.read_flow(tmp_path / "a.flow")[0], flow)
    other = ".npy" if suffix == ".flo" else ".flo"
    (tmp_path / f"wrong{other}").write_bytes(content)
    message = rf"wrong\{other}: is named \{other} but begins like a \{suffix} file; rename it"
    with pytest.raises(FileError, match=message):
        lcv.read_flow(tmp_path / f"wrong{other}")


def test_unknown_names_missing_files_and_folders_are_refused(tmp_path):
    with pytest.raises(
        FileError, match=r"no flow format has the ending '.txt', wanted one of .flo"
    ):
        lcv.write_flow(tmp_path / "a.txt", some_flow()[0])
    (tmp_path / "a.txt").write_text("hello")
    with pytest.raises(FileError, match=r"a\.txt: neither its name nor its first bytes b'hello'"):
        lcv.read_flow(tmp_path / "a.txt")
    with pytest.raises(FileError, match="there is no such file"):
        lcv.read_flow(tmp_path / "none.flo")
    with pytest.raises(FileError, match="this is a folder, wanted a flow file"):
        lcv.read_flow(tmp_path)


def test_a_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "a.flo")
    with pytest.raises(FileError, match="this is no ordinary file, wanted a flow file on disk"):
        lcv.read_flow(tmp_path / "a.flo")


@pytest.mark.parametrize("suffix", FLOW_SUFFIXES)
def test_the_limit_of_pixels_is_an_argument(tmp_path, suffix):
    lcv.write_flow(tmp_path / f"a{suffix}", some_flow(6, 8)[0])
    assert lcv.read_flow(tmp_path / f"a{suffix}", max_pixels=48)[1].shape == (6, 8)
    message = "declares 8×6 pixels, more than the 47 that are allowed; make it .* max_pixels=48"
    with pytest.raises(FileError, match=message):
        lcv.read_flow(tmp_path / f"a{suffix}", max_pixels=47)


@pytest.mark.parametrize("suffix", FLOW_SUFFIXES)
def test_every_cut_of_a_file_is_refused(tmp_path, suffix):
    lcv.write_flow(tmp_path / f"a{suffix}", *some_flow(3, 4))
    whole = (tmp_path / f"a{suffix}").read_bytes()
    path = tmp_path / f"cut{suffix}"
    for length in [*range(0, len(whole), 1 + len(whole) // 150), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(FileError) as caught:
            lcv.read_flow(path)
        assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("suffix", FLOW_SUFFIXES)
def test_a_mask_that_allows_all_is_none_and_what_is_written_stays_as_it_was(tmp_path, suffix):
    flow, valid = some_flow()
    given = flow.copy()
    given.flags.writeable = False
    for name, mask in (("none", None), ("all", np.ones_like(valid)), ("part", valid)):
        lcv.write_flow(tmp_path / f"{name}{suffix}", given, mask)
        lcv.write_flow(tmp_path / f"{name}-float64{suffix}", given.astype(np.float64), mask)
    assert np.array_equal(given, flow)
    content = {path.stem: path.read_bytes() for path in tmp_path.iterdir()}
    assert content["none"] == content["all"] == content["none-float64"] == content["all-float64"]
    assert content["part"] == content["part-float64"] != content["all"]
    back, where = lcv.read_flow(tmp_path / f"part{suffix}")
    assert np.array_equal(back, flow)
    assert np.array_equal(where, valid)
