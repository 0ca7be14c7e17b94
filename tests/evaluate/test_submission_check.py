"""The checker refuses every planted fault, and says which file and why."""

from __future__ import annotations

import os
import shutil
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from lcv.data.formats.flo import read_flo
from lcv.data.formats.flow import write_flow
from lcv.data.formats.image import write_image
from lcv.data.formats.kitti import read_kitti
from lcv.errors import ArgumentError, FileError
from lcv.evaluate.submission import layout_of, official_faults
from lcv.evaluate.submission_check import (
    KITTI_RANGE,
    SINTEL_LIMIT,
    Fault,
    check_submission,
    range_fault,
)
from testing import datasets

H, W = datasets.SIZE
SCENES = {"ambush_1": 4, "wall": 3}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Test folders of both benchmarks: 2 scenes of 3 and 2 pairs, and 3 pairs."""
    root = tmp_path_factory.mktemp("data")
    datasets.sintel(root / "sintel", {}, test=SCENES)
    datasets.kitti(root / "kitti", [], testing=[0, 1, 2])
    return root


@pytest.fixture(scope="module")
def good(data, tmp_path_factory):
    """Submissions without a fault."""
    root = tmp_path_factory.mktemp("good")
    flow = np.random.default_rng(0).normal(0, 5, (H, W, 2)).astype(np.float32)
    for kind in ("sintel", "kitti"):
        for name in layout_of(kind, data / kind).records:
            path = root / kind / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_flow(path, flow)
    return root


def zipped(folder: Path, path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(folder).as_posix())
    return path


@pytest.mark.parametrize("kind", ["sintel", "kitti"])
def test_a_good_submission_passes_as_folder_and_as_archive(kind, data, good, tmp_path):
    for path in (good / kind, zipped(good / kind, tmp_path / "good.zip")):
        assert check_submission(path, kind, data=data / kind, official=False) == []


def test_names_are_those_the_servers_know(data):
    assert list(layout_of("sintel", data / "sintel").records)[:4] == [
        "clean/ambush_1/frame0001.flo",
        "clean/ambush_1/frame0002.flo",
        "clean/ambush_1/frame0003.flo",
        "clean/wall/frame0001.flo",
    ]
    assert len(layout_of("sintel", data / "sintel").records) == 2 * (3 + 2)
    names = [f"flow/00000{i}_10.png" for i in range(3)]
    assert list(layout_of("kitti", data / "kitti").records) == names
    assert layout_of("kitti", data / "kitti").sizes() == dict.fromkeys(names, (H, W))


SINTEL = "clean/wall/frame0002.flo"
KITTI = "flow/000001_10.png"


def edit_flo(path: Path, x: int, y: int, u: float) -> None:
    """Write one component straight into the file, past the writer's own checks."""
    content = bytearray(path.read_bytes())
    struct.pack_into("<f", content, 12 + 8 * (y * W + x), u)
    path.write_bytes(content)


def edit_kitti(path: Path, x: int, y: int, u: float) -> None:
    flow, _ = read_kitti(path)
    flow[y, x, 0] = u
    write_flow(path, flow, overwrite=True)


def hole(path: Path) -> None:
    flow, valid = read_kitti(path)
    valid[3:5, 7] = False
    write_flow(path, flow, valid, overwrite=True)


def eight_bits(path: Path) -> None:
    write_image(path, np.zeros((H, W, 3), np.uint8), overwrite=True)


def cropped(path: Path) -> None:
    flow, _ = (read_flo if path.suffix == ".flo" else read_kitti)(path)
    write_flow(path, flow[:-2], overwrite=True)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def renamed(path: Path) -> None:
    path.rename(path.with_name("frame_0002.flo"))


def linked(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


FOLDER_FAULTS = {
    "missing": ("sintel", SINTEL, Path.unlink, f"{SINTEL}: missing"),
    "missing png": ("kitti", KITTI, Path.unlink, f"{KITTI}: missing"),
    "extra": (
        "sintel",
        SINTEL,
        lambda p: p.with_name("notes.txt").touch(),
        "clean/wall/notes.txt: does not belong here; sintel wants clean/<scene>/frame0001.flo",
    ),
    "extra pair": (
        "sintel",
        SINTEL,
        lambda p: shutil.copy(p, p.with_name("frame0003.flo")),
        "clean/wall/frame0003.flo: does not belong here: the dataset has no such pair",
    ),
    "wrong name": ("sintel", SINTEL, renamed, "clean/wall/frame_0002.flo: does not belong here"),
    "empty folder": (
        "kitti",
        KITTI,
        lambda p: p.with_name("old").mkdir(),
        "flow/old: is an empty folder; remove it",
    ),
    "a link": ("sintel", SINTEL, linked, f"{SINTEL}: is a link, wanted the file itself"),
    "size": (
        "sintel",
        SINTEL,
        cropped,
        f"{SINTEL}: is {W}×{H - 2} pixels, wanted {W}×{H}, its frame's size",
    ),
    "size of a png": ("kitti", KITTI, cropped, f"{KITTI}: is {W}×{H - 2} pixels, wanted {W}×{H}"),
    "NaN": (
        "sintel",
        SINTEL,
        lambda p: edit_flo(p, 4, 5, float("nan")),
        f"{SINTEL}: NaN, infinity or the mark for unknown at 1 pixel, wanted a number",
    ),
    "infinite": (
        "sintel",
        SINTEL,
        lambda p: edit_flo(p, 4, 5, float("-inf")),
        f"{SINTEL}: NaN, infinity or the mark for unknown at 1 pixel, wanted a number",
    ),
    "range": (
        "sintel",
        SINTEL,
        lambda p: edit_flo(p, 4, 5, 4000.0),
        f"{SINTEL}: the flow is out of range at 1 pixel, first at x=4, y=5 with (4000, ",
    ),
    "range of a png": (
        "kitti",
        KITTI,
        lambda p: edit_kitti(p, 9, 2, 700.0),
        f"{KITTI}: the flow is out of range at 1 pixel, first at x=9, y=2 with (511.984, ",
    ),
    "eight bits": (
        "kitti",
        KITTI,
        eight_bits,
        f"{KITTI}: is an 8-bit RGB PNG, wanted 16-bit RGB",
    ),
    "truncated": ("sintel", SINTEL, cut, f"{SINTEL}: {12 + 8 * H * W - 100} bytes are too few"),
    "truncated png": ("kitti", KITTI, cut, f"{KITTI}: damaged PNG"),
    "other format": (
        "sintel",
        SINTEL,
        lambda p: p.write_bytes(b"HEIP" + p.read_bytes()[4:]),
        f"{SINTEL}: begins with b'HEIP', wanted b'PIEH'",
    ),
    "invalid pixels": (
        "kitti",
        KITTI,
        hole,
        f"{KITTI}: 2 pixels marked invalid, wanted flow at every pixel",
    ),
}


# An archive of our making holds neither of these two.
CASES = [(fault, False) for fault in FOLDER_FAULTS]
CASES += [(fault, True) for fault in FOLDER_FAULTS if fault not in ("empty folder", "a link")]


@pytest.mark.parametrize(("fault", "packed"), CASES)
def test_a_planted_fault_is_found_and_named(fault, packed, data, good, tmp_path):
    kind, name, plant, message = FOLDER_FAULTS[fault]
    folder = tmp_path / "mine"
    shutil.copytree(good / kind, folder)
    plant(folder / name)
    path = zipped(folder, tmp_path / "mine.zip") if packed else folder
    found = [str(f) for f in check_submission(path, kind, data=data / kind, official=False)]
    assert any(text.startswith(message) for text in found), found
    assert not any(str(tmp_path) in text for text in found), "no path of a scratch file"
    # Nothing else is complained about: a renamed file is also missing, a link's target is extra.
    assert len(found) <= (2 if fault in ("wrong name", "a link") else 1) + (fault == "a link")


def test_faults_that_only_an_archive_can_have(data, good, tmp_path):
    def check(change, kind="sintel"):
        path = zipped(good / kind, tmp_path / "mine.zip")
        change(path)
        return [str(f) for f in check_submission(path, kind, data=data / kind, official=False)]

    def add(path, name, content=b"x"):
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr(name, content)

    def twice(path):
        with pytest.warns(UserWarning, match="Duplicate name"):
            add(path, SINTEL, (good / "sintel" / SINTEL).read_bytes())

    assert check(twice) == [f"{SINTEL}: is in the archive 2 times, wanted once"]
    for name in ("../escape.flo", "/etc/passwd.flo", "a\\b.flo"):
        found = check(lambda path, name=name: add(path, name))
        assert found == [f"{name}: leads out of the archive; wanted a plain path inside it"]

    def flip(path):
        """One byte of a stored file, so that its checksum no longer holds."""
        with zipfile.ZipFile(path, "w") as archive:
            for file in sorted((good / "kitti").rglob("*.png")):
                archive.write(file, file.relative_to(good / "kitti").as_posix())
        content = bytearray(path.read_bytes())
        content[200] ^= 255
        path.write_bytes(content)

    (found,) = check(flip, "kitti")
    assert found.startswith("flow/000000_10.png: cannot be unpacked: Bad CRC-32")

    def huge(path):
        add(path, "clean/wall/frame0009.flo", bytes(65 * 2**20))

    found = check(huge)
    assert "clean/wall/frame0009.flo: unpacks to 68157440 bytes, more than a flow" in found[-1]

    def link(path):
        member = zipfile.ZipInfo("clean/wall/frame0009.flo")
        member.external_attr = 0o120777 << 16
        add(path, member, b"/etc/passwd")

    assert check(link) == ["clean/wall/frame0009.flo: is a link, wanted the file itself"]


def test_a_folder_around_the_files_is_a_fault(data, good, tmp_path):
    """The most common of all: zipping the folder instead of what is in it."""
    shutil.copytree(good / "kitti", tmp_path / "outer/inner")
    path = zipped(tmp_path / "outer", tmp_path / "mine.zip")
    found = check_submission(path, "kitti", data=data / "kitti", official=False)
    assert len(found) == 3 + 3
    assert str(found[0]).startswith("inner/flow/000000_10.png: does not belong here; kitti wants")


def test_the_official_numbers_are_asked_for(good):
    found = [str(f) for f in check_submission(good / "sintel", "sintel")]
    for name in ("clean/", "final/"):
        assert f"{name}: has 2 scenes, wanted 12" in found
        assert f"{name}: has 5 files, wanted 552" in found
    assert f"{SINTEL}: is {W}×{H} pixels, wanted 1024×436, its frame's size" in found
    found = [str(f) for f in check_submission(good / "kitti", "kitti")]
    assert len(found) == 197
    assert found[0] == "flow/000003_10.png: missing; wanted 200 files"


def test_the_official_numbers_by_name():
    scenes = [f"scene_{i}" for i in range(12)]
    count = dict.fromkeys(scenes, 49) | {"scene_0": 22, "scene_1": 40}
    names = [
        f"{p}/{s}/frame{i:04d}.flo" for p in ("clean", "final") for s in scenes
        for i in range(1, count[s] + 1)
    ]  # fmt: skip
    assert official_faults("sintel", names) == []
    shifted = [n.replace("scene_3/frame0049", "scene_3/frame0000") for n in names]
    assert ("clean/scene_3/frame0000.flo", "files are numbered from 1") in official_faults(
        "sintel", shifted
    )
    gap = [n for n in names if n != "final/scene_5/frame0007.flo"]
    assert official_faults("sintel", gap) == [
        ("final/", "has 551 files, wanted 552"),
        ("final/scene_5/frame0007.flo", "missing"),
    ]
    one_pass = [n for n in names if n.startswith("clean")]
    assert ("final/", "has 0 scenes, wanted 12") in official_faults("sintel", one_pass)
    pngs = [f"flow/{i:06d}_10.png" for i in range(200)]
    assert official_faults("kitti", pngs) == []
    assert official_faults("kitti", [*pngs, "flow/000200_10.png"]) == [
        ("flow/000200_10.png", "one too many; the last of 200 is 000199_10.png")
    ]


def test_what_is_no_submission_cannot_be_checked(tmp_path):
    with pytest.raises(FileError, match="lost: there is no such folder or archive"):
        check_submission(tmp_path / "lost", "sintel")
    (tmp_path / "text.zip").write_text("no archive")
    with pytest.raises(FileError, match="text.zip: is no whole zip archive"):
        check_submission(tmp_path / "text.zip", "sintel")
    with pytest.raises(ArgumentError, match="no submission for 'spring'; there are sintel, kitti"):
        check_submission(tmp_path, "spring")


def test_the_ranges_of_both_benchmarks():
    """RAFT's limit of 1000 px, and what KITTI's sixteen bits hold: (0 … 65535 − 2¹⁵) / 64."""
    assert (SINTEL_LIMIT, KITTI_RANGE) == (1000, (-512, 511.984375))
    flow = np.zeros((3, 4, 2), np.float32)
    assert range_fault("sintel", flow) is range_fault("kitti", flow) is None
    for kind, inside, ends in (
        ("sintel", (-999.9, 999.9), (-1000, 1000)),
        ("kitti", (-511.98, 511.96), (-512, 511.984375)),
    ):
        flow[1, 2] = inside
        assert range_fault(kind, flow) is None
        for component, end in enumerate(ends):
            flow[1, 2] = 0
            flow[1, 2, component] = end
            found = range_fault(kind, flow)
            assert found.startswith("the flow is out of range at 1 pixel, first at x=2, y=1 with (")
        flow[1, 2], flow[2, 0] = ends, ends
        assert range_fault(kind, flow).startswith("the flow is out of range at 2 pixels, first at")
        flow[:] = 0


def test_a_file_that_unpacks_to_more_than_a_flow_is_not_unpacked(data, good, tmp_path, monkeypatch):
    """64 MiB at most, which is no limit for 8 bytes a pixel of frames up to 8 million pixels."""
    path = zipped(good / "kitti", tmp_path / "mine.zip")
    sizes = {}
    info = zipfile.ZipFile.getinfo

    def huge(archive, name):
        found = info(archive, name)
        found.file_size = sizes.get(name, found.file_size)
        return found

    monkeypatch.setattr(zipfile.ZipFile, "getinfo", huge)
    name = "flow/000001_10.png"
    sizes[name] = 64 * 2**20 + 1
    found = check_submission(path, "kitti", data=data / "kitti", official=False)
    assert found == [Fault(name, f"unpacks to {2**26 + 1} bytes, more than a flow of this "
                           "benchmark has")]  # fmt: skip
    sizes[name] = 64 * 2**20
    found = check_submission(path, "kitti", data=data / "kitti", official=False)
    assert not any("unpacks to" in fault.message for fault in found)


def test_the_size_of_a_frame_that_cannot_be_read(data, tmp_path):
    shutil.copytree(data / "kitti", tmp_path / "kitti")
    (tmp_path / "kitti/testing/image_2/000001_10.png").write_bytes(b"no picture")
    layout = layout_of("kitti", tmp_path / "kitti")
    with pytest.raises(FileError, match=r"000001_10\.png: its size cannot be read: "):
        layout.sizes()
    assert layout_of("kitti", data / "kitti").sizes() == {
        f"flow/00000{n}_10.png": (H, W) for n in range(3)
    }


def test_what_is_no_ordinary_file_is_a_fault(tmp_path):
    (tmp_path / "flow").mkdir()
    os.mkfifo(tmp_path / "flow" / "000000_10.png")
    found = check_submission(tmp_path, "kitti", sizes={}, official=False)
    assert Fault("flow/000000_10.png", "is no ordinary file") in found
