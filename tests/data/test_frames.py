"""Frames, pairs and videos without truth."""

from __future__ import annotations

import pytest

from lcv.data.frames import frames, has_pairs, pairs, videos
from lcv.data.record import FrameRef
from lcv.errors import ArgumentError, FileError
from testing.shared import shared


def touch(folder, *names):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).touch()
    return folder


def test_neighbours_in_natural_order(tmp_path):
    touch(tmp_path, "f10.png", "f9.png", "f8.jpg", "notes.txt")
    dataset = frames(tmp_path)
    assert [(r.image1.name, r.image2.name) for r in dataset] == [
        ("f8.jpg", "f9.png"),
        ("f9.png", "f10.png"),
    ]
    assert {r.flow for r in dataset} == {None}


def test_a_gap_is_not_bridged_and_scenes_are_apart(tmp_path):
    touch(tmp_path / "a", "1.png", "2.png", "4.png", "5.png")
    touch(tmp_path / "b", "1.png", "2.png")
    assert [r.name for r in frames(tmp_path)] == ["a/1", "a/4", "b/1"]


def test_scenes_in_one_folder_are_apart_too(tmp_path):
    touch(tmp_path, "000000_19.png", "000000_20.png", "000001_00.png", "000001_01.png")
    assert [r.name for r in frames(tmp_path)] == ["000000_19", "000001_00"]


def test_pairs_by_their_endings(tmp_path):
    touch(tmp_path, "x_img1.png", "x_img2.png", "y_img1.ppm", "y_img2.png")
    assert [(r.name, r.image2.name) for r in pairs(tmp_path)] == [
        ("x", "x_img2.png"),
        ("y", "y_img2.png"),
    ]
    assert has_pairs(tmp_path)
    touch(tmp_path, "z.png")
    assert not has_pairs(tmp_path)


def test_pairs_by_their_folders(tmp_path):
    touch(tmp_path / "one", "before.png", "later.png")
    touch(tmp_path / "three", "a.png", "b.png", "c.png")
    assert [(r.name, r.image1.name) for r in pairs(tmp_path)] == [("one", "before.png")]


def test_videos_give_frames_by_number():
    dataset = videos(shared("data", "video"))
    assert {r.scene for r in dataset} == {"cockatoo", "mmflow-demo"}
    assert dataset[0].image1 == FrameRef(dataset[0].image1.video, 0)
    assert dataset[0].image2 == dataset[1].image1
    sample = dataset[1].read()
    assert sample.image1.shape == sample.image2.shape
    assert (sample.image1 != sample.image2).any()
    assert videos(shared("data", "video", "cockatoo.mp4"))[0] == dataset[0]


def test_refusals(tmp_path):
    with pytest.raises(FileError, match=r"expected at least two images in this folder"):
        frames(tmp_path)
    with pytest.raises(
        FileError, match=r"expected pairs in this folder, with names ending in _img1/_img2"
    ):
        pairs(tmp_path)
    with pytest.raises(FileError, match=r"expected videos in this folder \(\.avi"):
        videos(tmp_path)
    with pytest.raises(FileError, match="none: there is no such folder"):
        frames(tmp_path / "none")


@pytest.mark.parametrize(("count", "train", "held"), [(2, 1, 0), (4, 1, 1), (11, 7, 2), (12, 7, 3)])
def test_the_last_fifth_is_held_out_and_shares_no_frame_with_the_rest(tmp_path, count, train, held):
    folder = touch(tmp_path / "a", *(f"{k}.png" for k in range(count)))
    touch(tmp_path / "b", *(f"{k}.png" for k in range(20)))
    own = {
        part: [r for r in frames(tmp_path, part) if r.scene == "a"]
        for part in ("train", "held-out")
    }
    assert (len(own["train"]), len(own["held-out"])) == (train, held)
    seen, kept = ({f for r in records for f in (r.image1, r.image2)} for records in own.values())
    assert not seen & kept
    if held:
        assert folder / f"{count - 1}.png" in kept


def test_parts_are_refused_where_there_are_none(tmp_path):
    touch(tmp_path, "1.png", "2.png", "3.png")
    with pytest.raises(FileError, match="no pair is held out; wanted a scene of at least four"):
        frames(tmp_path, "held-out")
    with pytest.raises(ArgumentError, match="part is 'test', wanted one of all, train, held-out"):
        frames(tmp_path, "test")
