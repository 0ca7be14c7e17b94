"""Results are written whole, read back as they were, and refused when they are something else."""

from __future__ import annotations

import json
import re

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


PAIR = "datasets.kitti2015.pairs.0"


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (f"{PAIR}.sums.px1/all", ..., r"pairs\[0\]\.sums has no 'px1/all', wanted a number"),
        (
            f"{PAIR}.sums.error/all",
            int("9" * 4000),
            r"error/all is 9+\.\.\.9+, wanted a number from",
        ),
        (f"{PAIR}.sums.error/all", 1e308, r"sums\.error/all is 1e\+308, wanted a number from 0"),
        (f"{PAIR}.sums.error/all", -1, r"sums\.error/all is -1, wanted a number from 0"),
        (f"{PAIR}.sums.error/all", float("nan"), r"sums\.error/all is nan, wanted a number"),
        (f"{PAIR}.sums.error/all", True, r"sums\.error/all is True, wanted a number"),
        (f"{PAIR}.sums.pixels/all", 1e-320, r"pixels/all is 1e-320, wanted a whole number"),
        (f"{PAIR}.sums", [], r"pairs\[0\]\.sums is \[\], wanted names with values"),
        (f"{PAIR}.name", ["a"], r"pairs\[0\]\.name is \['a'\], wanted text"),
        (f"{PAIR}.scene", {}, r"pairs\[0\]\.scene is \{\}, wanted text"),
        (f"{PAIR}.more", 1, r"pairs\[0\] has 'more', wanted only name, scene, sums, truth"),
        (PAIR, None, r"pairs\[0\] is None, wanted names with values"),
        ("datasets.kitti2015.pairs", {}, r"kitti2015\.pairs is \{\}, wanted a list"),
        ("datasets.kitti2015.metrics.epe", "1", r"metrics\.epe is '1', wanted a number"),
        (
            "datasets.kitti2015.settings.iters",
            "x",
            "iters is 'x', wanted a whole number .* or null",
        ),
        ("datasets.kitti2015.model.name", [], r"model\.name is \[\], wanted text"),
        ("datasets.kitti2015.weights", {"sha256": ""}, "weights has no 'file', wanted text"),
        ("datasets.\ud800", {}, r"datasets: the name '\\ud800' is '\\ud800', wanted text"),
        ("label", 7, r"results\[0\]\.label is 7, wanted text"),
        ("label", "\ud800", r"results\[0\]\.label is '\\ud800', wanted text"),
        ("provenance", ..., r"results\[0\] has no 'provenance', wanted names with values"),
        ("protocol.limit", int("9" * 4000), r"protocol\.limit is 9+\.\.\.9+, wanted a number"),
        ("protocol.warm_start", 1, "warm_start is 1, wanted true or false"),
        ("protocol.validity", "none", "validity is 'none', wanted one of known, not-invalid"),
        ("protocol.settings", {}, "settings has none for kitti2015, wanted one, or '\\*'"),
        ("protocol.settings.*.headline", ["a"], r"headline\[0\] is 'a', wanted a metric's name"),
    ],
    ids=lambda value: "number" if isinstance(value, int) else None,
)
def test_a_value_of_another_kind_is_refused_by_its_place(two, tmp_path, place, value, message):
    path = tmp_path / "odd.json"
    write_results(path, two[:1])
    said = json.loads(path.read_text())
    *way, last = ["results", "0", *place.split(".")]
    inner = said
    for step in way:
        inner = inner[int(step) if isinstance(inner, list) else step]
    if value is ...:
        del inner[last]
    else:
        inner[int(last) if isinstance(inner, list) else last] = value
    path.write_text(json.dumps(said))
    with pytest.raises(
        FileError, match=f"^{re.escape(str(path))}: is damaged or of another version: .*{message}"
    ):
        read_results(path)


def test_what_older_versions_did_not_write_may_be_missing(two, tmp_path):
    path = tmp_path / "old.json"
    write_results(path, two[:1])
    said = json.loads(path.read_text())
    del said["results"][0]["label"]
    del said["results"][0]["protocol"]["warm_start"]
    for pair in said["results"][0]["datasets"]["kitti2015"]["pairs"]:
        del pair["truth"]
    path.write_text(json.dumps(said))
    (read,) = read_results(path)
    assert (read.label, read.protocol) == ("", two[0].protocol)
    assert read.datasets["kitti2015"].metrics == two[0].datasets["kitti2015"].metrics
