"""RAFT's layout, torchvision's layout and the dataset itself are all found."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from lcv.data.chairs import chairs
from lcv.data.hd1k import hd1k
from lcv.data.kitti import kitti
from lcv.data.layouts import files_in, natural
from lcv.data.middlebury import middlebury
from lcv.data.sintel import sintel
from lcv.data.spring import spring
from lcv.data.things import things
from lcv.errors import FileError
from testing import datasets as fake

READERS = {
    "chairs": (chairs, lambda folder: fake.chairs(folder, 1)),
    "sintel": (sintel, lambda folder: fake.sintel(folder, {"alley_1": 2}, maps=False)),
    "kitti": (kitti, lambda folder: fake.kitti(folder, [0])),
    "hd1k": (hd1k, lambda folder: fake.hd1k(folder, {0: 2})),
    "things": (things, lambda folder: fake.things(folder, frames=2)),
    "subset": (things, fake.things_subset),
    "middlebury": (middlebury, lambda folder: fake.middlebury(folder, ["Venus"])),
    "spring": (spring, lambda folder: fake.spring(folder, {"0001": 2})),
}


@pytest.mark.parametrize(
    ("reader", "child"),
    [
        ("chairs", "FlyingChairs_release"),  # RAFT
        ("chairs", "FlyingChairs"),  # torchvision
        ("sintel", "Sintel"),  # both
        ("kitti", "KITTI"),  # RAFT
        ("kitti", "KittiFlow"),  # torchvision
        ("hd1k", "HD1K"),  # RAFT
        ("hd1k", "hd1k"),  # torchvision
        ("things", "FlyingThings3D"),  # both
        ("subset", "FlyingThings3D_subset"),
        ("middlebury", "Middlebury"),
        ("spring", "spring"),
    ],
)
def test_a_dataset_is_found_from_above_and_from_itself(tmp_path, reader, child):
    read, write = READERS[reader]
    write(tmp_path / child)
    assert len(read(tmp_path)) > 0
    assert read(tmp_path) == read(tmp_path / child) == read(str(tmp_path))


def test_the_folder_of_chairs_that_raft_names_is_the_data_folder(tmp_path):
    fake.chairs(tmp_path, 2)
    assert chairs(tmp_path / "data") == chairs(tmp_path)


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        (chairs, "data"),
        (sintel, "training/clean"),
        (kitti, "training/image_2"),
        (hd1k, "hd1k_input/image_2"),
        (things, "optical_flow"),
        (middlebury, "other-data"),
        (spring, "train/0001/frame_left"),
    ],
)
def test_nothing_there_names_the_folder_expected(tmp_path, read, expected):
    with pytest.raises(FileError, match=f"{tmp_path}: no .* here; expected the folder ") as caught:
        read(tmp_path)
    assert str(tmp_path / expected) in str(caught.value)
    with pytest.raises(FileError, match=r"nowhere: there is no such folder"):
        read(tmp_path / "nowhere")


def test_order_is_natural_and_hidden_files_are_left_out(tmp_path):
    for name in ("f10.png", "f9.png", ".f1.png", "note.txt", "f2.PNG"):
        (tmp_path / name).touch()
    assert [p.name for p in files_in(tmp_path, frozenset((".png",)))] == [
        "f2.PNG",
        "f9.png",
        "f10.png",
    ]
    assert natural(Path("a2")) < natural(Path("a10"))
    assert files_in(tmp_path / "none", frozenset((".png",))) == []


@pytest.mark.parametrize(
    ("name", "pairs"),
    [
        ("chairs", 22_872),
        ("hd1k", 1047),
        (
            "kitti",
            {2015: {"training": 200, "testing": 200}, 2012: {"training": 194, "testing": 195}},
        ),
        ("middlebury", 8),
        ("sintel", {"training": 1041, "test": 552}),
        ("spring", {"train": 5000 - 37, "test": 1000 - 10}),
        ("things", {"train": 20_151, "test": 3933}),
    ],
)
def test_a_whole_dataset_has_the_pairs_that_its_authors_count(name, pairs):
    module = importlib.import_module(f"lcv.data.{name}")
    assert (module.TOTALS if isinstance(pairs, dict) else module.TOTAL) == pairs
