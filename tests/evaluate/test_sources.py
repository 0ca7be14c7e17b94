"""The pairs with truth in folders: all of them, a split, those of a pattern, the benchmark's."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch

from lcv.data.synthetic.benchmark import benchmark_pairs
from lcv.data.synthetic.recipe import QUICK
from lcv.data.synthetic.write import write_dataset
from lcv.errors import ArgumentError, FileError
from lcv.evaluate import sources
from lcv.evaluate.sources import records_in
from testing import datasets


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of datasets, one of them without truth."""
    root = tmp_path_factory.mktemp("datasets")
    datasets.kitti(root / "KITTI", [0, 1, 5], testing=[0, 1])
    datasets.sintel(root / "Sintel", {"alley_1": 3, "cave_2": 2}, test={"wall": 3})
    datasets.middlebury(root / "Middlebury", ["Grove2", "Venus"])
    datasets.chairs(root / "FlyingChairs", 3, "1\n2\n1\n")
    return root


def names(records):
    return [f"{record.dataset}/{record.name}" for record in records]


def test_every_dataset_with_truth_is_found(folder):
    found = names(records_in([folder]))
    assert len(found) == len(set(found)) == 3 + 2 * 3 + 2 + 3
    assert {"kitti2015/000005_10", "sintel-final/final/cave_2/frame_0001"} <= set(found)
    assert not any("wall" in name for name in found), "a test scene has no truth"


@pytest.mark.parametrize(
    ("only", "wanted"),
    [
        (["middlebury"], ["middlebury/Grove2", "middlebury/Venus"]),
        (["middlebury/V*", "kitti*/000001*"], ["kitti2015/000001_10", "middlebury/Venus"]),
        (
            ["sintel/*cave_2/frame_0001"],
            [f"sintel-{name}/{name}/cave_2/frame_0001" for name in ("clean", "final")],
        ),
    ],
)
def test_patterns_choose_pairs(folder, only, wanted):
    assert names(records_in([folder], only=only)) == wanted


def test_a_family_is_all_of_its_datasets_and_no_other(folder):
    found = names(records_in([folder], only=["sintel"]))
    assert found == [name for name in names(records_in([folder])) if name.startswith("sintel-")]
    assert len(found) == 2 * 3
    with pytest.raises(ArgumentError, match="only: no pair fits 'kitti'; the datasets are"):
        records_in([folder], only=["kitti"])


def test_a_limit_is_for_each_dataset(folder):
    found = names(records_in([folder], only=["kitti*", "midd*"], limit=1))
    assert found == ["kitti2015/000000_10", "middlebury/Grove2"]


def test_splits(folder):
    assert names(records_in([folder], split="vcn-val")) == [
        "kitti2015/000000_10",
        "kitti2015/000005_10",
        "sintel-clean/clean/cave_2/frame_0001",
        "sintel-final/final/cave_2/frame_0001",
    ]
    assert names(records_in([folder], split="val")) == ["chairs/00002"]
    with pytest.raises(ArgumentError, match="none has the split 'vla'"):
        records_in([folder], split="vla")


@pytest.mark.parametrize(
    ("split", "lost", "left"),
    [
        ("train", "FlyingChairs/data/00001_img2.ppm", "chairs/00003"),
        ("vcn-val", "KITTI/training/image_2/000005_11.png", "kitti2015/000000_10"),
        (
            "vcn-val",
            "Sintel/training/final/cave_2/frame_0002.png",
            "sintel-clean/clean/cave_2/frame_0001",
        ),
    ],
)
def test_a_missing_frame_costs_its_own_pair_alone(folder, tmp_path, split, lost, left):
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / lost).unlink()
    assert names(records_in([copy], split=split, only=[left])) == [left]
    with pytest.raises(FileError, match="missing from the folder .* needs it"):
        records_in([copy], split=split)


def test_procedural_pairs_are_not_taken_for_sintel(tmp_path):
    bank = torch.randint(0, 255, (4, 3, 64, 64), dtype=torch.uint8)
    write_dataset(tmp_path / "made", QUICK, 1, 1, (64, 96), textures=bank)
    found = names(records_in([tmp_path / "made"]))
    assert found
    assert all(name.startswith("procedural-") for name in found)


def test_what_is_not_there_is_named_before_anything_is_measured(folder, tmp_path):
    with pytest.raises(FileError, match="nowhere: there is no such file or folder"):
        records_in([folder / "nowhere"])
    with pytest.raises(
        ArgumentError, match="no pair fits 'kity'; the datasets are chairs, kitti2015"
    ):
        records_in([folder], only=["kity"])
    shutil.copytree(folder / "KITTI/testing", tmp_path / "bare/testing")
    with pytest.raises(ArgumentError, match="bare: there is no pair with truth here"):
        records_in([tmp_path / "bare"])
    shutil.copytree(folder / "KITTI", tmp_path / "KITTI")
    (tmp_path / "KITTI/training/image_2/000001_11.png").unlink()
    message = (
        r"000001_11.png: missing from the folder .*; the pair '000001_10' of kitti2015 needs it"
    )
    with pytest.raises(FileError, match=rf"{message}; `lcv data check`"):
        records_in([tmp_path / "KITTI"])
    (tmp_path / "KITTI/training/image_2/000005_11.png").unlink()
    with pytest.raises(FileError, match=rf"{message} \(and 1 more files\); `lcv data check`"):
        records_in([tmp_path / "KITTI"])


def test_the_benchmarks_pairs_are_those_of_its_batches(monkeypatch):
    """With a small bank of textures, since the real one takes seconds to paint."""
    bank = torch.randint(0, 255, (4, 3, 64, 64), dtype=torch.uint8)
    monkeypatch.setattr(sources, "procedural_bank", lambda part, device: bank)
    records = records_in(["benchmark"], limit=2)
    (batch,) = benchmark_pairs(2, textures=bank, count=2)
    assert [record.name for record in records] == ["000", "001"]
    sample = records[1].read()
    assert np.array_equal(sample.image1, batch.image1[1].permute(1, 2, 0))
    assert np.array_equal(sample.flow, batch.flow[1].permute(1, 2, 0))
    assert np.array_equal(sample.occluded, batch.occluded[1, 0])
    assert sample.valid.all()
    assert len(records_in(["benchmark"])) == 200
    assert names(records_in(["benchmark"], limit=2)) == ["benchmark/000", "benchmark/001"]
