"""Results are written whole, read back as they were, and refused when they are something else."""

from __future__ import annotations

import json

import pytest

from lcv.data.kitti import kitti
from lcv.data.middlebury import middlebury
from lcv.errors import ArgumentError, FileError
from lcv.evaluate.metrics import METRICS
from lcv.evaluate.protocols import PROTOCOLS
from lcv.evaluate.results import read_results, write_results
from lcv.evaluate.run import evaluate
from testing import datasets
from testing.networks import Constant


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """A result on KITTI and one on Middlebury."""
    folder = tmp_path_factory.mktemp("data")
    first = evaluate(
        Constant((1.0, 2.0)), kitti(datasets.kitti(folder / "k", [2])), PROTOCOLS["raft"], label="A"
    )
    scenes = datasets.middlebury(folder / "m", ["Venus"])
    return first, evaluate(Constant(), middlebury(scenes), PROTOCOLS["raft"], label="B")


def test_what_is_written_is_read_back(two, tmp_path):
    path = tmp_path / "result.json"
    write_results(path, two)
    assert read_results(path) == list(two)
    two[0].save(tmp_path / "one.json")
    assert read_results(tmp_path / "one.json") == [two[0]]


def test_the_file_says_what_its_numbers_are(two, tmp_path):
    path = tmp_path / "result.json"
    write_results(path, two)
    said = json.loads(path.read_text())
    numbers = said["results"][0]["datasets"]["kitti2015"]["metrics"]
    assert {"epe", "epe_image", "fl", "fl_fg", "wauc"} <= numbers.keys()
    for name in numbers:
        assert said["metrics"][name]["definition"] == METRICS[name].definition
        assert said["metrics"][name]["unit"] == METRICS[name].unit
    assert said["results"][0]["protocol"]["settings"]["kitti"]["iters"] == 24
    assert {"commit", "torch", "device"} <= said["results"][0]["provenance"].keys()


def test_nothing_is_overwritten_unasked(two, tmp_path):
    path = tmp_path / "result.json"
    path.write_text("mine")
    with pytest.raises(FileError, match="exists already"):
        write_results(path, two)
    assert path.read_text() == "mine"
    write_results(path, two, overwrite=True)


def test_unknown_names_list_the_known_ones(two):
    with pytest.raises(ArgumentError, match="A has no dataset 'sintel'; it has kitti2015"):
        two[0].metric("epe", "sintel")
    with pytest.raises(ArgumentError, match="B has no metric 'fl_bg' of middlebury; it has epe"):
        two[1].metric("fl_bg", "middlebury")
    with pytest.raises(ArgumentError, match="there is no metric 'aepe'"):
        two[0].per_pair("aepe", "kitti2015")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: No such file"),
        ("{", "is not JSON; wanted a result that `lcv eval -o` wrote"),
        ("[1, 2]", "holds a list; wanted a result"),
        ('{"format": "lcv evaluation 1"}', "is damaged or of another version"),
        ('{"format": "lcv evaluation 1", "results": [{}]}', "is damaged or of another version"),
    ],
)
def test_other_files_are_refused(tmp_path, content, message):
    path = tmp_path / "other.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(FileError, match=message):
        read_results(path)
