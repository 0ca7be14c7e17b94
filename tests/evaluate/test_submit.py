"""A submission holds the network's flow, passes its own check, or leaves nothing behind."""

from __future__ import annotations

import stat
import zipfile

import numpy as np
import pytest
import torch

import lcv
from lcv.cost_volume.forward_interpolate import forward_interpolate
from lcv.data.formats.flo import read_flo
from lcv.data.formats.image import read_image
from lcv.data.formats.kitti import read_kitti
from lcv.errors import ArgumentError, FileError
from lcv.evaluate.protocols import PROTOCOLS
from lcv.evaluate.submission import layout_of
from lcv.evaluate.submission_check import check_submission
from lcv.evaluate.submit import _in_range, _must_pass, write_submission
from testing import datasets
from testing.networks import Constant, Interrupted


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    datasets.sintel(root / "sintel", {}, test={"ambush_1": 4, "wall": 2})
    datasets.kitti(root / "kitti", [], testing=[0, 1])
    return root


def everything(folder):
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*"))


def as_tensor(path):
    return torch.from_numpy(read_image(path)).movedim(2, 0)[None]


@torch.no_grad()
def test_sintel_is_the_networks_flow_with_warm_start(data, tmp_path):
    torch.manual_seed(0)
    model = lcv.build("raft-small").eval()
    protocol = PROTOCOLS["raft"].changed(iters=2)
    done = write_submission(
        "sintel", model, data / "sintel", tmp_path / "out", protocol=protocol, partial=True
    )
    assert (done.files, done.warm_start, done.clipped) == (8, True, 0)
    assert check_submission(done.archive, "sintel", data=data / "sintel", official=False) == []
    for name in ("clean", "final"):
        low = None
        for number in (1, 2, 3):
            frames = [
                as_tensor(data / f"sintel/test/{name}/ambush_1/frame_{n:04d}.png")
                for n in (number, number + 1)
            ]
            start = None if low is None else forward_interpolate(low)
            output = model(*frames, iters=2, pad="sintel", flow_init=start)
            low = output.low
            flow, valid = read_flo(done.folder / f"{name}/ambush_1/frame{number:04d}.flo")
            assert valid.all()
            assert np.array_equal(flow, output.flow[0].permute(1, 2, 0).numpy())


def test_kitti_is_rounded_to_its_format(data, tmp_path):
    model = Constant((3.3, -7.77))
    done = write_submission("kitti", model, data / "kitti", tmp_path / "out", partial=True)
    assert model.calls[0]["iters"] == 24
    assert model.calls[0]["pad"] == "kitti"
    assert everything(done.folder) == ["flow", "flow/000000_10.png", "flow/000001_10.png"]
    flow, valid = read_kitti(done.folder / "flow/000001_10.png")
    assert flow.shape == (*datasets.SIZE, 2)
    assert valid.all()
    assert np.abs(flow - np.float32([3.3, -7.77])).max() <= 1 / 128
    with zipfile.ZipFile(done.archive) as archive:
        assert archive.namelist() == ["flow/000000_10.png", "flow/000001_10.png"]
        assert archive.testzip() is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out.zip"]


def test_without_warm_start_every_pair_starts_from_nothing(data, tmp_path):
    for recurrent, asked in ((True, False), (False, None)):
        model = Constant(recurrent=recurrent)
        out = tmp_path / f"out{recurrent}"
        done = write_submission(
            "sintel", model, data / "sintel", out, warm_start=asked, partial=True
        )
        assert not done.warm_start
        assert len(model.calls) == 8
        assert not any("flow_init" in call for call in model.calls)


def test_the_same_submission_is_the_same_archive(data, tmp_path):
    for name in ("a", "b.zip"):
        write_submission("kitti", Constant(), data / "kitti", tmp_path / name, partial=True)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    assert (tmp_path / "b").is_dir()


def test_a_test_set_that_is_not_whole_is_refused_before_anything_runs(data, tmp_path):
    model = Constant()
    with pytest.raises(
        ArgumentError, match="not the whole test set: clean/ has 2 scenes, wanted 12"
    ):
        write_submission("sintel", model, data / "sintel", tmp_path / "out")
    with pytest.raises(ArgumentError, match="flow/000002_10.png missing; wanted 200 files"):
        write_submission("kitti", model, data / "kitti", tmp_path / "out")
    assert model.calls == []
    assert everything(tmp_path) == []


@pytest.mark.parametrize(
    ("kind", "flow", "message"),
    [
        ("sintel", (float("nan"), 0.0), "clean/ambush_1/frame0001.flo: .* not a number at 6912"),
        (
            "sintel",
            (0.0, 1000.0),
            r"out of range at 6912 pixels, first at x=0, y=0 with \(0, 1000\)",
        ),
        ("kitti", (-512.0, 0.0), "flow/000000_10.png: the flow is out of range at 6912 pixels"),
        ("kitti", (0.0, 600.0), "wanted inside the format's range of -512 … 511.98 px"),
    ],
)
def test_flow_that_cannot_be_sent_leaves_nothing_behind(kind, flow, message, data, tmp_path):
    with pytest.raises(ArgumentError, match=message):
        write_submission(kind, Constant(flow), data / kind, tmp_path / "out", partial=True)
    assert everything(tmp_path) == []


def test_an_interrupted_submission_goes_on(data, tmp_path):
    model = Interrupted(at=2)
    options = {"partial": True, "warm_start": False}
    with pytest.raises(KeyboardInterrupt):
        write_submission("sintel", model, data / "sintel", tmp_path / "out", **options)
    assert {"out.part", "out.part.done0.jsonl"} == {path.name for path in tmp_path.iterdir()}
    write_submission("sintel", model, data / "sintel", tmp_path / "out", **options)
    assert model.count == 1 + 8, "the interrupted call, and each of eight pairs once"
    write_submission("sintel", Interrupted(), data / "sintel", tmp_path / "whole", **options)
    assert (tmp_path / "out.zip").read_bytes() == (tmp_path / "whole.zip").read_bytes()
    names = {"out", "out.zip", "whole", "whole.zip"}
    assert {path.name for path in tmp_path.iterdir()} == names


def test_a_folder_of_the_users_is_not_taken_for_a_part(data, tmp_path):
    (tmp_path / "out.part").mkdir()
    (tmp_path / "out.part" / "notes.txt").touch()
    with pytest.raises(FileError, match="holds notes.txt, which is no part of a submission"):
        write_submission("kitti", Constant(), data / "kitti", tmp_path / "out", partial=True)
    assert everything(tmp_path) == ["out.part", "out.part/notes.txt"]


@pytest.mark.parametrize(
    ("kind", "flow"), [("sintel", (-2000.0, 1000.0)), ("kitti", (-512.0, 600.0))]
)
def test_clipped_flow_is_inside_the_range_and_counted(kind, flow, data, tmp_path):
    done = write_submission(
        kind, Constant(flow), data / kind, tmp_path / "out", clip=True, partial=True
    )
    h, w = datasets.SIZE
    assert done.clipped == done.files * h * w
    assert check_submission(done.folder, kind, data=data / kind, official=False) == []


def test_nothing_of_the_users_is_replaced(data, tmp_path):
    def write(**options):
        write_submission(
            "kitti", Constant(), data / "kitti", tmp_path / "out", partial=True, **options
        )

    write()
    with pytest.raises(FileError, match="out.zip: exists already"):
        write()
    write(overwrite=True)
    (tmp_path / "out/notes.txt").write_text("mine")
    with pytest.raises(FileError, match="holds notes.txt, which is no part of a submission"):
        write(overwrite=True)
    assert (tmp_path / "out/notes.txt").read_text() == "mine"
    with pytest.raises(FileError, match="does not exist; make it first"):
        write_submission("kitti", Constant(), data / "kitti", tmp_path / "no/out", partial=True)


def test_the_ends_of_the_range():
    """Sintel: the last number under 1000. KITTI: one step of 1/64 inside what sixteen bits hold."""
    flow = np.float32([[[-9e9, 9e9], [1.5, -2.5]]])
    below = np.nextafter(np.float32(1000), np.float32(0))
    for kind, low, high in (("sintel", -below, below), ("kitti", -512 + 1 / 64, 512 - 2 / 64)):
        found, changed = _in_range(kind, "name", flow, clip=True)
        assert np.array_equal(found, np.float32([[[low, high], [1.5, -2.5]]]))
        assert (found.dtype, changed) == (np.float32, 1)
        same, changed = _in_range(kind, "name", found, clip=False)
        assert (np.array_equal(same, found), changed) == (True, 0)
    edge = np.float32([[[0.0, 511.98]]])  # rounds to the last number of the format
    with pytest.raises(ArgumentError, match="a: 1 pixels are at the end .* Say --clip to bring it"):
        _in_range("kitti", "a", edge, clip=False)


def test_how_files_are_packed(data, tmp_path):
    for kind, packed in (("sintel", zipfile.ZIP_DEFLATED), ("kitti", zipfile.ZIP_STORED)):
        heard = []
        done = write_submission(
            kind,
            Constant(),
            data / kind,
            tmp_path / kind,
            partial=True,
            progress=lambda *words, heard=heard: heard.append(words),
        )
        assert heard == [(kind, n, done.files) for n in range(1, done.files + 1)]
        with zipfile.ZipFile(done.archive) as archive:
            for member in archive.infolist():
                assert member.compress_type == packed
                assert member.date_time == (1980, 1, 1, 0, 0, 0)
                assert stat.filemode(member.external_attr >> 16) == "?rw-r--r--"
                assert archive.read(member) == (done.folder / member.filename).read_bytes()


def test_an_archive_that_does_not_pass_is_refused(data, tmp_path):
    layout = layout_of("kitti", data / "kitti")
    path = tmp_path / "bad.zip"
    with zipfile.ZipFile(path, "w"):
        pass
    first = "the submission does not pass its own check: flow/000000_10.png: missing"
    with pytest.raises(FileError, match=rf"{first} \(and 1 more faults\)$"):
        _must_pass(path, layout, official=False)
    with pytest.raises(FileError, match=rf"{first} \(and 199 more faults\)$"):
        _must_pass(path, layout, official=True)
    with zipfile.ZipFile(path, "w") as archive:
        done = write_submission("kitti", Constant(), data / "kitti", tmp_path / "a", partial=True)
        archive.write(done.folder / "flow/000001_10.png", "flow/000001_10.png")
    with pytest.raises(FileError, match=rf"{first}$"):
        _must_pass(path, layout, official=False)
    assert _must_pass(done.archive, layout, official=False) is None


def test_clipped_pixels_of_an_interrupted_run_count(data, tmp_path):
    """And what lies in its folder of another test set goes."""

    class Wide(Interrupted):
        def forward(self, image1, image2, **options):
            output = super().forward(image1, image2, **options)
            return type(output)(output.flow.clone().index_fill_(3, torch.tensor([0]), 9000.0))

    h, _ = datasets.SIZE
    model, out = Wide(at=2), tmp_path / "out"
    options = {"partial": True, "clip": True, "warm_start": False}
    with pytest.raises(KeyboardInterrupt):
        write_submission("kitti", model, data / "kitti", out, **options)
    (tmp_path / "out.part/flow/000099_10.png").touch()
    done = write_submission("kitti", model, data / "kitti", out, **options)
    assert (done.clipped, done.files, model.count) == (2 * h, 2, 3)
    assert everything(done.folder) == ["flow", "flow/000000_10.png", "flow/000001_10.png"]


def test_a_place_that_is_taken_by_something_else(data, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    for name in ("file", "link"):
        with pytest.raises(FileError, match=f"{name}: exists already; choose another name or use"):
            write_submission(
                "kitti", Constant(), data / "kitti", tmp_path / name, partial=True, overwrite=True
            )
    with pytest.raises(FileError, match="folder: exists already"):
        write_submission("kitti", Constant(), data / "kitti", tmp_path / "folder", partial=True)
    assert everything(tmp_path) == ["file", "folder", "link"]


def test_what_cannot_be_written_is_told(data, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr("lcv.evaluate.submit.write_flow", full)
    with pytest.raises(FileError, match="out: writing failed: disk full"):
        write_submission("kitti", Constant(), data / "kitti", tmp_path / "out", partial=True)


def test_an_archive_is_checked_before_it_gets_its_name(data, tmp_path, monkeypatch):
    def packed_badly(part, records, path):
        with zipfile.ZipFile(path, "w"):
            pass

    monkeypatch.setattr("lcv.evaluate.submit._pack", packed_badly)
    with pytest.raises(FileError, match="does not pass its own check"):
        write_submission("kitti", Constant(), data / "kitti", tmp_path / "out", partial=True)
    assert not (tmp_path / "out.zip").exists()
