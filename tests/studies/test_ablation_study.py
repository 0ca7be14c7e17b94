"""A study and its folder: what is written, what is refused, and what its cells are called."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lcv.errors import ArgumentError, FileError
from lcv.models.build import build
from lcv.models.cards import save_weights
from lcv.models.raft import RAFT
from lcv.studies.ablation_base import paced, procedural_base
from lcv.studies.ablation_study import Cell, prepare, read_study
from lcv.studies.columns import BY_NAME, choose
from lcv.train.config import PartConfig
from testing import datasets

COLUMNS = choose(RAFT, ["lcv"])


@pytest.fixture
def base():
    return paced(replace(procedural_base("raft-small", None), steps=100))


def test_a_cell_is_named_by_its_seed_unless_nothing_is_drawn():
    cell = Cell(BY_NAME["lcv"], 3)
    assert (cell.name, str(cell)) == ("lcv-3", "lcv, seed 3")
    cell = Cell(BY_NAME["original"], 0, drawn=False)
    assert (cell.name, str(cell)) == ("original", "original")


def test_what_is_not_said_has_its_default_and_the_file_is_for_people(base, tmp_path):
    study = prepare(tmp_path / "deep" / "out", base, COLUMNS, (2, 0, 2))
    assert study.seeds == (2, 0)
    assert (study.pairs, study.split, study.keep, study.null) == (200, "hash", True, ())
    assert study.tests == {"procedural": "procedural"}
    assert study.weights() is None
    assert study.weights_sha256 is None
    study.check_weights()
    text = (study.folder / "study.json").read_text()
    said = json.loads(text)
    assert text == json.dumps(said, indent=2) + "\n"
    assert {name: value for name, value in said.items() if name != "base"} == {
        "format": "lcv ablation 1",
        "columns": ["continued", "lcv"],
        "seeds": [2, 0],
        "tests": {"procedural": "procedural"},
        "pairs": 200,
        "split": "hash",
        "weights_sha256": None,
        "keep": True,
        "null_controls": [],
    }
    assert read_study(study.folder) == study
    assert [str(cell) for cell in study.cells()] == [
        *("continued, seed 2", "lcv, seed 2", "continued, seed 0", "lcv, seed 0"),
    ]


def test_the_held_out_scenes_of_files_are_listed_and_no_test_is_trained_on(base, tmp_path):
    scenes = dict.fromkeys(("alley_1", "bamboo_1", "cave_4"), 2)
    datasets.sintel(tmp_path / "Sintel", scenes, maps=False)
    part = PartConfig("sintel", "raft-sintel", options={"passes": ["clean"]})
    data = replace(base.data, source="files", root=str(tmp_path), parts=(part,), workers=0)
    base, out = replace(base, data=data), tmp_path / "out"
    study = prepare(out, base, COLUMNS, (0,), split="every-fifth")
    assert study.split == "every-fifth"
    assert study.tests == {"held-out": str(out / "test.txt")}
    assert study.base.validation == {"validation": str(out / "validation.txt")}
    assert "alley_1" in (out / "test.txt").read_text()  # the first of every five
    lines = [(out / f"{name}.txt").read_text().splitlines() for name in ("test", "validation")]
    assert [len(each) for each in lines] == [1, 1]
    with pytest.raises(ArgumentError, match="'held-out' is the study's own; call x something else"):
        prepare(out, base, COLUMNS, (0,), {"held-out": "x"}, split="every-fifth")
    with pytest.raises(ArgumentError, match="the numbers would not be held out"):
        prepare(out, base, COLUMNS, (0,), {"all": str(tmp_path / "Sintel")}, split="every-fifth")


def test_weights_that_have_a_w_are_refused_unless_every_column_has_that_kind(base, tmp_path):
    save_weights(build("raft-small", "elliptical"), tmp_path / "lcv.safetensors")
    weighed = replace(base, model=replace(base.model, weights=str(tmp_path / "lcv.safetensors")))
    with pytest.raises(ArgumentError, match=r"lcv\.safetensors already has a W, and the columns"):
        prepare(tmp_path / "out", weighed, COLUMNS, (0,))
    assert not (tmp_path / "out").exists()
    study = prepare(tmp_path / "out", weighed, (BY_NAME["lcv"],), (0,))
    assert study.weights() == tmp_path / "lcv.safetensors"


def test_a_column_of_a_newer_version_is_refused_by_name(base, tmp_path):
    prepare(tmp_path / "out", base, COLUMNS, (0,))
    path = tmp_path / "out" / "study.json"
    said = json.loads(path.read_text())
    path.write_text(json.dumps({**said, "columns": ["continued", "moon"]}))
    with pytest.raises(FileError, match="there is no column 'moon'; the file is of a newer lcv"):
        read_study(tmp_path / "out")
    path.write_text(json.dumps({**said, "format": "lcv ablation 9"}))
    with pytest.raises(FileError, match=r"study\.json"):
        read_study(tmp_path / "out")


def test_a_hidden_file_does_not_make_a_folder_foreign(base, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".study.json.part").touch()  # another process may be writing it
    prepare(tmp_path / "out", base, COLUMNS, (0,))


def test_how_often_it_is_saved_may_change_and_the_order_of_seeds_stays(base, tmp_path):
    prepare(tmp_path / "out", base, COLUMNS, (1,))
    again = prepare(tmp_path / "out", replace(base, save_every=7), COLUMNS, (0, 1))
    assert again.seeds == (1, 0)
    assert again.base.save_every == 7
