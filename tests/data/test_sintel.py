"""Sintel: pairs within scenes, passes, maps, VCN's scenes, refusals."""

from __future__ import annotations

import shutil

import pytest

from lcv.data.sintel import sintel, survey
from lcv.errors import ArgumentError, FileError
from testing import datasets as fake


@pytest.fixture
def root(tmp_path):
    return fake.sintel(tmp_path, {"alley_2": 3, "ambush_2": 6, "cave_2": 3}, {"market_1": 3})


def test_no_pair_spans_two_scenes(root):
    dataset = sintel(root)
    assert len(dataset) == 2 + 5 + 2
    assert [r.name for r in dataset][:3] == [
        "clean/alley_2/frame_0001",
        "clean/alley_2/frame_0002",
        "clean/ambush_2/frame_0001",
    ]
    record = dataset[1]
    parts = [str(p.relative_to(root / "training")) for p in record.files()]
    assert parts == [
        "clean/alley_2/frame_0002.png",
        "clean/alley_2/frame_0003.png",
        "flow/alley_2/frame_0002.flo",
        "occlusions/alley_2/frame_0002.png",
        "invalid/alley_2/frame_0002.png",
    ]
    assert {r.scene for r in dataset} == {"alley_2", "ambush_2", "cave_2"}


def test_passes_share_their_truth(root):
    both = sintel(root, passes=("final", "clean"))
    assert [r.dataset for r in both] == ["sintel-final"] * 9 + ["sintel-clean"] * 9
    assert both[0].flow == both[9].flow
    assert both[0].image1 != both[9].image1
    assert sintel(root, passes="final") == sintel(root, passes=("final",))


def test_the_test_set_has_no_truth(root):
    dataset = sintel(root, "test")
    assert [r.flow for r in dataset] == [None, None]
    assert dataset[0].image2 == dataset[1].image1


def test_maps_that_are_not_there_are_none(root):
    shutil.rmtree(root / "training" / "invalid")
    record = sintel(root)[0]
    assert record.invalid is None
    assert record.occlusions is not None


def test_vcn_validates_on_every_third_pair_of_its_scenes(root):
    val = sintel(root, scenes="vcn-val", passes=("clean", "final"))
    # ambush_2 has pairs 1..5, cave_2 has 1..2: of these seven the first, fourth and seventh.
    names = ["ambush_2/frame_0001", "ambush_2/frame_0004", "cave_2/frame_0002"]
    assert [r.name for r in val] == [f"{p}/{n}" for p in ("clean", "final") for n in names]
    train = sintel(root, scenes="vcn-train")
    assert {r.scene for r in train} == {"alley_2"}


def test_scenes_by_name(root):
    assert {r.scene for r in sintel(root, scenes=["cave_2"])} == {"cave_2"}
    with pytest.raises(ArgumentError, match=r"scene 'cave_9' is not in .*; it has \['alley_2'"):
        sintel(root, scenes=["cave_9"])
    with pytest.raises(
        ArgumentError, match="scenes is 'vcn', wanted one of 'vcn-train', 'vcn-val'"
    ):
        sintel(root, scenes="vcn")


def test_refusals(root):
    with pytest.raises(ArgumentError, match="split is 'train', wanted one of 'training', 'test'"):
        sintel(root, "train")
    with pytest.raises(ArgumentError, match="passes is 'albedo'"):
        sintel(root, passes=("albedo",))
    (root / "training/clean/ambush_2/frame_0003.png").unlink()
    with pytest.raises(
        FileError, match=r"ambush_2/frame_0003\.png: missing .* \(and 1 more files\)"
    ):
        sintel(root)
    shutil.rmtree(root / "training/final")
    with pytest.raises(FileError, match=r"training/final: expected this folder, with one folder a"):
        sintel(root, passes=("final",))


def test_what_check_looks_at(root):
    found = survey(root)
    assert [(p.label, len(p.dataset), p.expected) for p in found.parts] == [
        ("training/clean", 9, 1041),
        ("training/final", 9, 1041),
        ("test/clean", 2, 552),
        ("test/final", 2, 552),
    ]


def test_a_flow_of_another_name_is_refused(root):
    (root / "training" / "flow" / "cave_2" / "odd.flo").touch()
    with pytest.raises(
        FileError, match=r"odd\.flo: not a name of Sintel's; wanted frame_0001\.flo"
    ):
        sintel(root)
