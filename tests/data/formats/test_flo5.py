"""`.flo5`: Spring's layout, storage that is not all there or lies elsewhere, and life without h5py."""

from __future__ import annotations

import math
import sys
from types import SimpleNamespace

import h5py
import numpy as np
import pytest

from data.formats.samples import some_flow
from lcv.data.formats.flo5 import _check_storage, read_flo5
from lcv.data.formats.flow import write_flow
from lcv.errors import FileError


@pytest.mark.parametrize(
    "storage",
    [{}, {"compression": "gzip"}, {"chunks": (4, 3, 2)}, {"shuffle": True, "fletcher32": True}],
)
@pytest.mark.parametrize("kind", ["<f4", ">f4", "<f8", "<f2"])
def test_files_of_others_are_read(tmp_path, storage, kind):
    flow, valid = some_flow()
    stored = np.where(valid[..., None], np.trunc(flow), np.nan).astype(kind)
    with h5py.File(tmp_path / "a.flo5", "w") as file:
        file.create_dataset("flow", data=stored, **storage)
    read, known = read_flo5(tmp_path / "a.flo5")
    assert np.array_equal(read, np.trunc(flow))
    assert np.array_equal(known, valid)


def test_ours_have_the_layout_of_spring(tmp_path):
    flow, valid = some_flow()
    write_flow(tmp_path / "a.flo5", flow, valid)
    with h5py.File(tmp_path / "a.flo5") as file:
        assert list(file) == ["flow"]
        stored = file["flow"][()]
    assert stored.dtype == np.float32
    assert np.array_equal(np.isnan(stored).any(axis=2), ~valid)


def save(path, **datasets):
    with h5py.File(path, "w") as file:
        for name, data in datasets.items():
            file.create_dataset(name, data=data)


@pytest.mark.parametrize(
    ("datasets", "message"),
    [
        ({"disparity": np.zeros((2, 3))}, r"no dataset 'flow', only \['disparity'\]"),
        ({"flow": np.zeros((2, 3))}, r"its flow is float64 \(2, 3\), wanted float32 \(H, W, 2\)"),
        ({"flow": np.zeros((2, 2, 3))}, r"its flow is float64 \(2, 2, 3\)"),
        ({"flow": np.zeros((2, 3, 2), int)}, r"its flow is int64 \(2, 3, 2\)"),
        ({"flow": np.zeros((0, 3, 2))}, "declares 3×0 pixels"),
        ({"flow/inner": np.zeros((2, 3, 2))}, "'flow' is a Group, wanted a dataset"),
    ],
)
def test_other_content_is_refused(tmp_path, datasets, message):
    save(tmp_path / "a.flo5", **datasets)
    with pytest.raises(FileError, match=message):
        read_flo5(tmp_path / "a.flo5")


def test_flow_that_is_missing_or_lies_elsewhere_is_refused(tmp_path):
    path = tmp_path / "a.flo5"
    save(tmp_path / "other.h5", flow=np.ones((2, 3, 2), np.float32))
    with h5py.File(path, "w") as file:
        file["flow"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "flow")
    with pytest.raises(FileError, match="is a link elsewhere, which is not followed"):
        read_flo5(path)
    (tmp_path / "raw").write_bytes(bytes(48))
    with h5py.File(path, "w") as file:
        where = [(str(tmp_path / "raw"), 0, 48)]
        file.create_dataset("flow", (2, 3, 2), "<f4", external=where)
    with pytest.raises(FileError, match="lies in other files"):
        read_flo5(path)
    with h5py.File(path, "w") as file:
        file.create_dataset("flow", (2, 3, 2), "<f4", compression="lzf")
    with pytest.raises(FileError, match=r"behind filters \[32000\]"):
        read_flo5(path)
    # Declared, never written: HDF5 would fill it with zeros.
    with h5py.File(path, "w") as file:
        file.create_dataset("flow", (4000, 4000, 2), "<f4", chunks=(100, 100, 2))
    with pytest.raises(FileError, match="stores less flow than it declares"):
        read_flo5(path)
    with h5py.File(path, "w") as file:
        file.create_dataset("flow", (4000, 4000, 2), "<f4")
    with pytest.raises(FileError, match="stores less flow than it declares"):
        read_flo5(path)


def test_damage_inside_packed_flow_is_refused(tmp_path):
    path = tmp_path / "a.flo5"
    write_flow(path, some_flow(40, 50)[0])
    content = bytearray(path.read_bytes())
    content[len(content) // 2 + 1000] ^= 1
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"a\.flo5: damaged HDF5 file: "):
        read_flo5(path)


def test_without_h5py_the_message_says_what_to_install(tmp_path, monkeypatch):
    write_flow(tmp_path / "a.flo5", some_flow()[0])
    monkeypatch.setitem(sys.modules, "h5py", None)
    for call in (
        lambda: read_flo5(tmp_path / "a.flo5"),
        lambda: write_flow(tmp_path / "b.flo5", some_flow()[0]),
    ):
        with pytest.raises(
            FileError, match=r"[ab]\.flo5: .* need h5py, .* pip install 'lcv-flow\[spring\]'"
        ):
            call()


def test_chunks_larger_than_their_flow_are_refused(tmp_path):
    """A chunk is unpacked whole: a million numbers, or twice the flow."""

    def data(shape, chunks):
        plan = SimpleNamespace(get_nfilters=lambda: 0)
        counts = math.prod(-(-n // c) for n, c in zip(shape, chunks, strict=True))
        held = SimpleNamespace(
            get_create_plist=lambda: plan,
            get_num_chunks=lambda: counts,
            get_storage_size=lambda: 10,
        )
        return SimpleNamespace(
            id=held,
            is_virtual=False,
            external=None,
            chunks=chunks,
            shape=shape,
            size=math.prod(shape),
            dtype=np.dtype(np.float32),
        )

    _check_storage(tmp_path, data((4, 4, 2), (2**10, 2**9, 2)), 10)
    _check_storage(tmp_path, data((2**10, 2**10, 2), (2**11, 2**10, 2)), 10)
    for shape, chunks in (((4, 4, 2), (2**10, 2**9 + 1, 2)), ((2**10, 2**10, 2), (2**11, 1025, 2))):
        with pytest.raises(FileError, match=r"its chunks .* exceed its flow"):
            _check_storage(tmp_path, data(shape, chunks), 10)
    with pytest.raises(FileError, match="stores less flow than it declares"):
        _check_storage(tmp_path, data((4, 4, 2), (4, 4, 2)), 9)
