"""`.npy` and `.npz`: every way numpy stores them, never a pickle, and damage by name."""

from __future__ import annotations

import io
import pickle
import struct
import zipfile

import numpy as np
import pytest

from data.formats.samples import some_flow
from lcv.data.formats.flow import write_flow
from lcv.data.formats.numpy_files import read_npy, read_npz
from lcv.errors import FileError


class Trap:
    """Fails the test if anything unpickles it."""

    def __reduce__(self):
        return pytest.fail, ("a pickle was opened",)


def npy(array, version=None):
    memory = io.BytesIO()
    np.lib.format.write_array(memory, np.asanyarray(array), version=version)
    return memory.getvalue()


@pytest.mark.parametrize("kind", ["<f4", ">f4", "<f2", "<f8"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_way_numpy_stores_floats_is_read(tmp_path, kind, order, version):
    flow, valid = some_flow()
    stored = np.where(valid[..., None], np.trunc(flow), np.nan).astype(kind, order=order)
    (tmp_path / "a.npy").write_bytes(npy(stored, version))
    read, known = read_npy(tmp_path / "a.npy")
    assert np.array_equal(read, np.trunc(flow))
    assert np.array_equal(known, valid)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_archives_of_numpy_are_read_and_ours_by_numpy(tmp_path, save):
    flow, valid = some_flow()
    save(tmp_path / "a.npz", flow=flow, valid=valid.astype(np.uint8), more=np.zeros(3))
    read, known = read_npz(tmp_path / "a.npz")
    assert np.array_equal(read, flow)
    assert np.array_equal(known, valid)
    save(tmp_path / "bare.npz", flow=np.where(valid[..., None], flow, 1e10))
    assert np.array_equal(read_npz(tmp_path / "bare.npz")[1], valid)
    write_flow(tmp_path / "ours.npz", flow, valid)
    with np.load(tmp_path / "ours.npz", allow_pickle=False) as archive:
        assert sorted(archive) == ["flow", "valid"]
        assert np.array_equal(archive["flow"], flow)
        assert np.array_equal(archive["valid"], valid)


def test_float64_beyond_float32_is_unknown_without_a_warning(tmp_path):
    np.save(tmp_path / "a.npy", np.array([[[1e60, 0.0], [1.0, 2.0]]]))
    flow, valid = read_npy(tmp_path / "a.npy")
    assert valid.tolist() == [[False, True]]
    assert flow.tolist() == [[[0, 0], [1, 2]]]


def headed(shape):
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text


GOOD = npy(np.zeros((2, 3, 2), np.float32))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a numpy array"),
        (b"\x93NUMPX" + GOOD[6:], "not a numpy array"),
        (GOOD[:6] + b"\x09" + GOOD[7:], "not a numpy array: its format has the version 9.0"),
        (GOOD.replace(b"(2, 3, 2), ", b"(True,3,2),"), r"array: its shape is \(True, 3, 2\)"),
        (
            GOOD[:8] + b"\xff\xff" + GOOD[10:],
            "damaged or not a numpy array: EOF: reading array header",
        ),
        (GOOD[:9], "damaged or not a numpy array: EOF"),
        (GOOD[:-1], "too few, wanted 176 for an array"),
        (GOOD + b"\0", "too many, wanted 176 for an array"),
        (GOOD.replace(b"(2, 3, 2)", b"(2, 3, 9)"), r"shape \(2, 3, 9\), wanted \(H, W, 2\)"),
        (GOOD.replace(b"(2, 3, 2)", b"(2, -3, 2)"), "declares -3×2 pixels"),
        (headed("(%s, %s, 2)" % (2 * (10**4000,))), "array: its shape has a side of more than 63"),
        (headed("(-0x%s, 1, 2)" % ("f" * 9000)), "array: its shape has a side of more than 63"),
        (headed("(" + "-" * 9000 + "1, 1, 2)"), "its header is nested deeper than any numpy"),
        (GOOD.replace(b"'shape'", b"'shapes'"), "damaged or not a numpy array"),
        (GOOD.replace(b"'descr'", b"__import__"), "damaged or not a numpy array"),
        (GOOD.replace(b"'<f4'", b"'|O' "), r"its flow has the type '\|O', wanted float32"),
        (npy(np.zeros((2, 3, 2), int)), "its flow has the type '<i8', wanted float32"),
        (npy(np.zeros((2, 3, 2), np.complex64)), "its flow has the type '<c8'"),
        (npy(np.zeros((2, 3), np.float32)), r"shape \(2, 3\), wanted \(H, W, 2\)"),
        (npy(np.zeros((0, 3, 2), np.float32)), "declares 3×0 pixels"),
    ],
)
def test_what_is_wrong_with_an_array_is_said(tmp_path, content, message):
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(FileError, match=message) as caught:
        read_npy(tmp_path / "a.npy")
    assert str(caught.value).startswith(str(tmp_path / "a.npy"))


def test_pickles_are_never_opened(tmp_path):
    trapped = np.empty((1, 1, 2), dtype=object)
    trapped[:] = Trap()
    memory = io.BytesIO()
    np.lib.format.write_array(memory, trapped, allow_pickle=True)
    (tmp_path / "a.npy").write_bytes(memory.getvalue())
    (tmp_path / "bare.npy").write_bytes(pickle.dumps(Trap()))
    for name in ("a.npy", "bare.npy"):
        with pytest.raises(FileError):
            read_npy(tmp_path / name)
    np.savez(tmp_path / "a.npz", flow=trapped)
    with pytest.raises(FileError, match=r"its flow has the type '\|O'"):
        read_npz(tmp_path / "a.npz")


def archive_of(path, method=zipfile.ZIP_STORED, **members):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"arr_0": GOOD}, r"has the keys \['arr_0'\], wanted 'flow'"),
        ({"flow": GOOD, "valid": npy(np.ones((3, 2), bool))}, r"valid is '\|b1' \(3, 2\), wanted"),
        ({"flow": GOOD, "valid": npy(np.ones((2, 3), "c8"))}, "its valid is '<c8'"),
        (
            {"flow": GOOD, "valid": npy(np.full((2, 3), 7, np.uint8))},
            r"its valid holds \[7\], wanted",
        ),
        ({"flow": GOOD[:-1]}, "too few"),
        ({"flow": b"hello"}, "not a numpy array"),
    ],
)
def test_what_is_wrong_with_an_archive_is_said(tmp_path, members, message):
    archive_of(tmp_path / "a.npz", **members)
    with pytest.raises(FileError, match=message):
        read_npz(tmp_path / "a.npz")


def test_other_packing_wrong_checksums_and_text_are_refused(tmp_path):
    path = tmp_path / "a.npz"
    archive_of(path, zipfile.ZIP_LZMA, flow=GOOD)
    with pytest.raises(FileError, match="packed in a way numpy does not use"):
        read_npz(path)
    archive_of(path, flow=GOOD)
    content = bytearray(path.read_bytes())
    content[content.find(GOOD) + 150] ^= 1
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"a\.npz: damaged .*: Bad CRC-32"):
        read_npz(path)
    path.write_text("hello")
    with pytest.raises(FileError, match="damaged .npz archive: File is not a zip file"):
        read_npz(path)


@pytest.mark.parametrize("flag", ["'True'", "'False'", "''", "(1,)"])
def test_text_in_place_of_a_flag_is_refused(tmp_path, flag):
    header = f"{{'descr': '<f4', 'fortran_order': {flag}, 'shape': (1, 2, 2), }}\n".encode()
    path = tmp_path / "a.npy"
    path.write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + bytes(16))
    with pytest.raises(
        FileError, match="damaged or not a numpy array: fortran_order is not a valid bool"
    ):
        read_npy(path)


@pytest.mark.parametrize("yes", [True, 1, 255, 1.0, 255.0])
def test_valid_may_be_truths_or_numbers_of_which_one_means_yes(tmp_path, yes):
    flow, _ = some_flow(3, 4)
    wanted = np.arange(12).reshape(3, 4) % 3 > 0
    for dtype in {np.asarray(yes).dtype.str, "<f4" if isinstance(yes, float) else "|u1"}:
        valid = np.where(wanted, yes, 0).astype(dtype)
        np.savez(tmp_path / "a.npz", flow=flow, valid=valid)
        assert np.array_equal(read_npz(tmp_path / "a.npz")[1], wanted)


@pytest.mark.parametrize("wrong", [2.0, 0.5, -1.0, np.nan, np.inf])
def test_valid_of_other_numbers_is_refused(tmp_path, wrong):
    flow, _ = some_flow(3, 4)
    valid = np.ones((3, 4), np.float32)
    valid[1, 2] = wrong
    np.savez(tmp_path / "a.npz", flow=flow, valid=valid)
    with pytest.raises(FileError, match="its valid holds .* wanted only 0 and 1, or 0 and 255"):
        read_npz(tmp_path / "a.npz")
    valid[1, 2] = 255  # one file, one word for yes
    np.savez(tmp_path / "a.npz", flow=flow, valid=valid)
    with pytest.raises(FileError, match="its valid holds"):
        read_npz(tmp_path / "a.npz")


@pytest.mark.parametrize("read", [read_npy, read_npz])
def test_what_is_no_file_is_said_before_it_is_opened(tmp_path, read):
    with pytest.raises(FileError, match="a: there is no such file"):
        read(tmp_path / "a")
    with pytest.raises(FileError, match=r"this is a folder, wanted a \.np[yz] file"):
        read(tmp_path)
