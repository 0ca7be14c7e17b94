"""Middlebury: one folder a scene, or the official two; its stereo scenes as flow."""

from __future__ import annotations

import pytest

from lcv.data.middlebury import middlebury, survey
from lcv.data.stereo import stereo
from lcv.errors import ArgumentError, FileError
from testing import datasets as fake
from testing.shared import shared


@pytest.mark.parametrize("official", [False, True])
def test_both_layouts(tmp_path, official):
    fake.middlebury(tmp_path, ["Venus", "Grove2"], official)
    dataset = middlebury(tmp_path)
    assert [r.scene for r in dataset] == ["Grove2", "Venus"]
    assert [p.name for p in dataset[0].files()] == ["frame10.png", "frame11.png", "flow10.flo"]
    assert dataset[0].read().flow.shape == (*fake.SIZE, 2)


def test_official_scenes_without_truth_are_left_out(tmp_path):
    fake.middlebury(tmp_path, ["Venus"], official=True)
    (tmp_path / "other-data" / "Beanbags").mkdir()
    assert [r.scene for r in middlebury(tmp_path)] == ["Venus"]
    with pytest.raises(FileError, match="eval-data: expected this folder, with the test scenes"):
        middlebury(tmp_path, "test")
    with pytest.raises(
        ArgumentError, match="middlebury: split is 'tests', wanted one of 'training'"
    ):
        middlebury(tmp_path, "tests")
    where = tmp_path / "eval-data" / "Army"
    where.mkdir(parents=True)
    for name in ("frame10.png", "frame11.png"):
        (where / name).touch()
    assert [(r.scene, r.flow) for r in middlebury(tmp_path, "test")] == [("Army", None)]


def test_a_missing_frame_is_refused(tmp_path):
    fake.middlebury(tmp_path, ["Venus"])
    (tmp_path / "Venus" / "frame11.png").unlink()
    with pytest.raises(FileError, match=r"frame11\.png: missing from the folder .*Venus"):
        middlebury(tmp_path)


def test_real_scenes_have_unknown_pixels():
    dataset = middlebury(shared("data", "middlebury"))
    assert [r.scene for r in dataset] == ["Grove2", "RubberWhale", "Urban2", "Venus"]
    sample = dataset[1].read()
    assert not sample.valid.all()
    assert abs(sample.flow).max() < 10


def test_stereo_is_flow_to_the_left():
    dataset = stereo(shared("data", "stereo"))
    sample = dataset[0].read()
    assert dataset[0].scene == "cones"
    assert sample.flow[..., 0].max() <= 0
    assert not sample.flow[..., 1].any()
    assert 0.9 < sample.valid.mean() < 1
    with pytest.raises(FileError, match="no Middlebury stereo here; expected the folder"):
        stereo(shared("data", "middlebury"))


def test_the_test_scenes_are_a_part_of_their_own(tmp_path):
    fake.middlebury(tmp_path, ["Venus"], official=True)
    assert [(p.label, p.expected) for p in survey(tmp_path).parts] == [("training", 8)]
    (tmp_path / "eval-data" / "Army").mkdir(parents=True)
    found = survey(tmp_path)
    assert [(p.label, p.expected, len(p.dataset)) for p in found.parts] == [
        ("training", 8, 1),
        ("test", None, 1),  # its frames are not there, which is for the check to say
    ]
    assert (found.kind, found.root) == ("Middlebury", tmp_path)
