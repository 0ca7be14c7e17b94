"""Spring: names, directions and cameras."""

from __future__ import annotations

import pytest

from lcv.data.spring import spring, survey
from lcv.errors import ArgumentError, FileError
from testing import datasets as fake


@pytest.fixture
def root(tmp_path):
    return fake.spring(tmp_path, {"0001": 3, "0010": 2}, {"0003": 3})


def test_forward_and_backward(root):
    dataset = spring(root)
    assert [r.name for r in dataset] == [
        "0001/left/FW/0001",
        "0001/left/FW/0002",
        "0010/left/FW/0001",
    ]
    assert [p.name for p in dataset[1].files()] == [
        "frame_left_0002.png",
        "frame_left_0003.png",
        "flow_FW_left_0002.flo5",
        "flow_BW_left_0003.flo5",
    ]
    back = spring(root, cameras=("right",), directions=("BW",))
    assert [p.name for p in back[0].files()] == [
        "frame_right_0002.png",
        "frame_right_0001.png",
        "flow_BW_right_0002.flo5",
        "flow_FW_right_0001.flo5",
    ]
    assert {r.step for r in dataset} == {2}


def test_the_test_set_has_no_truth(root):
    assert [(r.name, r.flow) for r in spring(root, "test")] == [
        ("0003/left/FW/0001", None),
        ("0003/left/FW/0002", None),
    ]
    labels = [p.label for p in survey(root).parts]
    assert labels == [
        "train/left/FW",
        "train/left/BW",
        "train/right/FW",
        "train/right/BW",
        "test/left/FW",
        "test/right/FW",
    ]


def test_refusals(root):
    with pytest.raises(ArgumentError, match="directions is 'fw', wanted one of 'FW', 'BW'"):
        spring(root, directions=("fw",))
    with pytest.raises(ArgumentError, match="cameras is 'middle', wanted one of 'left', 'right'"):
        spring(root, cameras=("left", "middle"))
    with pytest.raises(ArgumentError, match="split is 'val', wanted one of 'train', 'test'"):
        spring(root, "val")
    (root / "train/0001/frame_left/frame_left_0003.png").unlink()
    with pytest.raises(FileError, match=r"frame_left_0003\.png: missing from the folder"):
        spring(root)


def test_a_split_that_is_not_there(tmp_path):
    fake.spring(tmp_path, {"0001": 3})
    with pytest.raises(FileError, match="test: expected this folder, with one folder a scene"):
        spring(tmp_path, "test")
