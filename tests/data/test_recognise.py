"""Layouts are told apart, alone and side by side."""

from __future__ import annotations

import pytest

from lcv.data.recognise import recognise
from lcv.errors import FileError
from testing import datasets as fake
from testing.shared import shared


def kinds(root):
    return {folder.name: kind.survey(folder).kind for folder, kind in recognise(root)}


def test_a_root_of_many_datasets(tmp_path):
    fake.chairs(tmp_path / "FlyingChairs_release", 1)
    fake.sintel(tmp_path / "Sintel", {"alley_1": 2}, maps=False)
    fake.kitti(tmp_path / "KITTI", [0])
    fake.kitti(tmp_path / "twelve", [0], year=2012)
    fake.hd1k(tmp_path / "HD1K", {0: 2})
    fake.things(tmp_path / "FlyingThings3D", frames=2)
    fake.things_subset(tmp_path / "subset", frames=2)
    fake.middlebury(tmp_path / "flat", ["Venus"])
    fake.middlebury(tmp_path / "official", ["Venus"], official=True)
    fake.spring(tmp_path / "spring", {"0001": 2})
    fake.sequence_list(tmp_path / "mine", frames=2)
    (tmp_path / "papers").mkdir()
    assert kinds(tmp_path) == {
        "FlyingChairs_release": "FlyingChairs",
        "Sintel": "Sintel",
        "KITTI": "KITTI 2015",
        "twelve": "KITTI 2012",
        "HD1K": "HD1K",
        "FlyingThings3D": "FlyingThings3D",
        "subset": "FlyingThings3D subset",
        "flat": "Middlebury",
        "official": "Middlebury",
        "spring": "Spring",
        "mine": "list of pairs",
    }


def test_what_has_no_truth(tmp_path):
    for name in ("0.png", "1.png", "2.png"):
        (tmp_path / name).touch()
    assert kinds(tmp_path) == {tmp_path.name: "frames without truth"}
    pairs = tmp_path / "pairs"
    pairs.mkdir()
    # Numbered like FlyingChairs, but without flow.
    for name in ("00001_img1.png", "00001_img2.png"):
        (pairs / name).touch()
    assert kinds(pairs) == {"pairs": "pairs without truth"}
    assert kinds(shared("data", "video")) == {"video": "videos without truth"}
    assert kinds(shared("data", "video", "cockatoo.mp4")) == {
        "cockatoo.mp4": "videos without truth"
    }


def test_refusals(tmp_path):
    with pytest.raises(FileError, match="no dataset is recognised in this folder .* FlyingChairs"):
        recognise(tmp_path)
    with pytest.raises(FileError, match="nowhere: there is no such file or folder"):
        recognise(tmp_path / "nowhere")
    (tmp_path / "a.txt").write_text("hello")
    with pytest.raises(FileError, match="neither a list of pairs nor a video"):
        recognise(tmp_path / "a.txt")
