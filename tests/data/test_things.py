"""FlyingThings3D: directions, cameras, passes; the full set and the subset."""

from __future__ import annotations

import numpy as np
import pytest

from lcv.data.record import Record
from lcv.data.things import survey, things
from lcv.errors import ArgumentError, FileError
from testing import datasets as fake


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    folder = tmp_path_factory.mktemp("full")
    return fake.things(folder, ("TRAIN/A/0000", "TRAIN/C/0012", "TEST/B/0001"))


@pytest.fixture(scope="module")
def subset(tmp_path_factory):
    return fake.things_subset(tmp_path_factory.mktemp("subset"))


def numbers(record: Record) -> list[str]:
    return [record.image1.stem, record.image2.stem, record.flow.stem]


def test_the_future_pairs_with_the_next_frame_and_the_past_with_the_one_before(full):
    future = things(full, directions=("future",))
    assert [numbers(r) for r in future][:2] == [
        ["0006", "0007", "OpticalFlowIntoFuture_0006_L"],
        ["0007", "0008", "OpticalFlowIntoFuture_0007_L"],
    ]
    past = things(full, directions=("past",), cameras=("right",))
    assert [numbers(r) for r in past][:2] == [
        ["0007", "0006", "OpticalFlowIntoPast_0007_R"],
        ["0008", "0007", "OpticalFlowIntoPast_0008_R"],
    ]
    assert [r.scene for r in past] == ["A/0000", "A/0000", "C/0012", "C/0012"]


def test_the_default_is_rafts_choice(full):
    dataset = things(full)
    assert len(dataset) == 2 * 2 * 2  # sequences, pairs, directions; 2239 × 9 × 2 in the real one
    assert {r.image1.parent.name for r in dataset} == {"left"}
    assert {r.dataset for r in dataset} == {"things-clean"}


def test_everything(full):
    dataset = things(full, passes=("clean", "final"), cameras=("left", "right"))
    assert len(dataset) == 4 * 8
    assert len({r.name for r in dataset}) == 32
    assert len(things(full, "test")) == 4


def test_the_backward_flow_is_that_of_the_second_frame(full):
    film = fake.Film(0, frames=5)
    record = things(full, directions=("future",))[0]
    assert np.array_equal(record.read().flow, film.flow(1, 2))
    flow, valid = record.read_backward()
    assert np.array_equal(flow, film.flow(2, 1))
    assert valid.all()


def test_the_subset(subset):
    dataset = things(subset)
    assert [numbers(r) for r in dataset] == [
        ["0000000", "0000001", "0000000"],
        ["0000001", "0000002", "0000001"],
        ["0000001", "0000000", "0000001"],
        ["0000002", "0000001", "0000002"],
    ]
    assert dataset[0].backward.name == "0000001.flo"
    assert dataset[0].backward.parent.name == "into_past"
    assert dataset[2].occlusions.parent.name == "into_past"
    assert dataset[0].read().occluded.dtype == bool
    assert things(subset, "test")[0].image1.is_relative_to(subset / "val")


def test_records_can_be_excluded_by_name(subset):
    name = things(subset)[0].name
    assert len(things(subset, exclude=[name])) == 3
    with pytest.raises(ArgumentError, match="has no record 'nothing'"):
        things(subset, exclude=["nothing"])


def test_refusals(full, subset):
    for words, message in (
        ({"split": "val"}, "split is 'val'"),
        ({"passes": ("dirty",)}, "passes is 'dirty'"),
        ({"cameras": ("middle",)}, "cameras is 'middle'"),
        ({"directions": ("sideways",)}, "directions is 'sideways'"),
    ):
        with pytest.raises(ArgumentError, match=message):
            things(full, **words)
    with pytest.raises(FileError, match=r"image_final: expected this folder of FlyingThings3D"):
        things(subset, passes=("final",))


def test_a_frame_lost_inside_a_sequence_is_missed(tmp_path):
    fake.things(tmp_path)
    (tmp_path / "frames_cleanpass/TRAIN/A/0000/left/0007.png").unlink()
    with pytest.raises(FileError, match=r"0007\.png: missing from the folder"):
        things(tmp_path)


def test_what_check_looks_at(full, subset):
    found = survey(full)
    assert len(found.parts) == 2 * 2 * 2 * 2
    assert found.parts[0].label == "train/clean/left/into_future"
    assert found.parts[0].expected == 20_151
    assert [h.label for h in found.holdouts] == ["train against test"]
    assert survey(subset).kind == "FlyingThings3D subset"
    assert len(survey(subset).parts) == 8


def test_what_is_no_pair_of_the_subset_is_passed_over(tmp_path):
    root = fake.things_subset(tmp_path)
    before = [r.name for r in things(root, directions=("future",))]
    flow = things(root, directions=("future",))[0].flow
    (flow.parent / f"notes{flow.suffix}").touch()
    (flow.parent / f"0099999{flow.suffix}").touch()  # without a frame after it
    assert [r.name for r in things(root, directions=("future",))] == before
