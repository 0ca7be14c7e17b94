"""KITTI 2012 and 2015: names, the two named splits, refusals."""

from __future__ import annotations

import pytest

from lcv.data.kitti import kitti, survey, validation_scenes
from lcv.errors import ArgumentError, FileError
from testing import datasets as fake


def test_files_of_2015(tmp_path):
    fake.kitti(tmp_path, [0, 10], [3])
    dataset = kitti(tmp_path)
    assert [r.scene for r in dataset] == ["000000", "000010"]
    assert [str(p.relative_to(tmp_path / "training")) for p in dataset[1].files()] == [
        "image_2/000010_10.png",
        "image_2/000010_11.png",
        "flow_occ/000010_10.png",
        "flow_noc/000010_10.png",
        "obj_map/000010_10.png",
    ]
    assert all(r.sparse for r in dataset)
    testing = kitti(tmp_path, "testing")
    assert [(r.name, r.flow, r.objects) for r in testing] == [("000003_10", None, None)]


def test_files_of_2012_in_colour_or_grey(tmp_path):
    fake.kitti(tmp_path, [4], year=2012)
    record = kitti(tmp_path, year=2012)[0]
    assert record.image1.parent.name == "colored_0"
    assert record.objects is None
    (tmp_path / "training/colored_0").rename(tmp_path / "training/image_0")
    assert kitti(tmp_path, year=2012)[0].image1.parent.name == "image_0"
    with pytest.raises(FileError, match="no KITTI 2015 here"):
        kitti(tmp_path)


def test_noc_is_a_truth_of_its_own(tmp_path):
    fake.kitti(tmp_path, [4])
    record = kitti(tmp_path, truth="noc")[0]
    assert record.flow.parent.name == "flow_noc"
    assert record.noc is None
    half = fake.SIZE[0] // 2
    assert not record.read().valid[:half].any()


def test_more_frames_of_the_multi_view_set_make_no_more_pairs(tmp_path):
    fake.kitti(tmp_path, [4])
    for number in (9, 12):
        (tmp_path / f"training/image_2/000004_{number:02d}.png").touch()
    assert len(kitti(tmp_path)) == 1


@pytest.mark.parametrize(("year", "total", "fifth"), [(2015, 200, 40), (2012, 194, 38)])
def test_the_random_split_is_one_to_four_and_depends_on_its_seed(year, total, fifth):
    held_out = validation_scenes("paper", year, seed=0)
    assert len(held_out) == fifth
    assert max(held_out) < total
    assert held_out == validation_scenes("paper", year, seed=0)
    assert held_out != validation_scenes("paper", year, seed=1)
    assert held_out != validation_scenes("vcn", year)


def test_the_random_split_is_pinned():
    # Another choice would make runs incomparable without anybody noticing.
    assert sorted(validation_scenes("paper", 2015, seed=0))[:8] == [7, 15, 18, 20, 25, 36, 44, 46]


def test_vcn_validates_on_every_fifth_scene(tmp_path):
    assert sorted(validation_scenes("vcn")) == list(range(0, 200, 5))
    fake.kitti(tmp_path, [0, 3, 5, 195, 199])
    assert [int(r.scene) for r in kitti(tmp_path, scenes="vcn-val")] == [0, 5, 195]
    assert [int(r.scene) for r in kitti(tmp_path, scenes="vcn-train")] == [3, 199]


def test_both_sides_of_the_random_split_make_the_whole(tmp_path):
    held_out = sorted(validation_scenes("paper", seed=5))[:2]
    others = sorted(set(range(200)) - validation_scenes("paper", seed=5))[:2]
    fake.kitti(tmp_path, held_out + others)
    val = kitti(tmp_path, scenes="paper-val", seed=5)
    train = kitti(tmp_path, scenes="paper-train", seed=5)
    assert [int(r.scene) for r in val] == held_out
    assert [int(r.scene) for r in train] == others


def test_refusals(tmp_path):
    fake.kitti(tmp_path, [0], [0])
    with pytest.raises(ArgumentError, match="year is 2016, wanted 2012 or 2015"):
        kitti(tmp_path, year=2016)
    with pytest.raises(ArgumentError, match="scenes is 'val', wanted one of 'all', 'vcn-train'"):
        kitti(tmp_path, scenes="val")
    with pytest.raises(ArgumentError, match="divides the training set, not 'testing'"):
        kitti(tmp_path, "testing", "vcn-val")
    with pytest.raises(ArgumentError, match="truth is 'all'"):
        kitti(tmp_path, truth="all")
    (tmp_path / "training/image_2/000000_11.png").unlink()
    with pytest.raises(FileError, match=r"000000_11\.png: missing from the folder .*image_2"):
        kitti(tmp_path)


def test_what_check_looks_at(tmp_path):
    fake.kitti(tmp_path, [0, 1], [2])
    found = survey(tmp_path)
    assert [(p.label, len(p.dataset), p.expected) for p in found.parts] == [
        ("training", 2, 200),
        ("testing", 1, 200),
    ]
    assert len(found.holdouts) == 3
