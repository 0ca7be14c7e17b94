"""HD1K: pairs within sequences, the last flow of each left out."""

from __future__ import annotations

import pytest

from lcv.data.hd1k import hd1k, survey
from lcv.errors import ArgumentError, FileError
from testing import datasets as fake


@pytest.fixture
def root(tmp_path):
    return fake.hd1k(tmp_path, {0: 3, 7: 2}, testing=3)


def test_a_sequence_of_n_flows_gives_n_minus_one_pairs(root):
    dataset = hd1k(root)
    assert [r.name for r in dataset] == ["000000_0000", "000000_0001", "000007_0000"]
    assert [p.name for p in dataset[1].files()] == [
        "000000_0001.png",
        "000000_0002.png",
        "000000_0001.png",
    ]
    assert dataset[1].flow.parent.name == "flow_occ"
    assert all(r.sparse for r in dataset)
    assert hd1k(root)[0].read().flow.shape == (*fake.SIZE, 2)


def test_the_test_set_has_no_truth(root):
    assert [r.flow for r in hd1k(root, "testing")] == [None, None]
    assert [(p.label, len(p.dataset), p.expected) for p in survey(root).parts] == [
        ("training", 3, 1047),
        ("testing", 2, None),
    ]


def test_a_frame_lost_inside_a_sequence_is_missed(root):
    (root / "hd1k_input/image_2/000000_0001.png").unlink()
    with pytest.raises(FileError, match=r"000000_0001\.png: missing from the folder .*image_2"):
        hd1k(root)
    with pytest.raises(ArgumentError, match="split is 'test'"):
        hd1k(root, "test")
