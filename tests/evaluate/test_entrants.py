"""Weights by dataset: the right file for each, one result for all."""

from __future__ import annotations

import pytest
import torch

import lcv
from lcv.errors import ArgumentError, FileError
from lcv.evaluate.entrants import Entrant, check_entrants, entrant_of, evaluate_entrant
from lcv.evaluate.protocols import PROTOCOLS
from lcv.evaluate.run import evaluate
from lcv.evaluate.sources import records_in
from lcv.models.embedded import embedded_file
from testing import datasets


def test_the_longest_name_chooses():
    entrant = Entrant("raft-large", {"": "a.pth", "kitti": "b.pth", "kitti2012": "d/c.pth"})
    chosen = [entrant.chosen(name) for name in ("sintel-clean", "kitti2015", "kitti2012")]
    assert chosen == ["a.pth", "b.pth", "d/c.pth"]
    assert entrant.label == "raft-large, a.pth, kitti: b.pth, kitti2012: c.pth"
    assert Entrant("raft-large", {"kitti": "b.pth"}).chosen("chairs") is None


def test_each_dataset_is_measured_with_its_own(tmp_path):
    protocol = PROTOCOLS["raft"].changed(iters=1)
    models = {}
    for seed, name in enumerate(("one", "two")):
        torch.manual_seed(seed)
        models[name] = lcv.build("raft-small").eval()
        lcv.save(models[name], tmp_path / f"{name}.safetensors")
    datasets.kitti(tmp_path / "data/kitti", [3])
    datasets.middlebury(tmp_path / "data/middlebury", ["Venus"])
    datasets.sintel(tmp_path / "data/sintel", {"a": 2})
    records = records_in([tmp_path / "data"], only=["kitti*", "middlebury", "sintel-clean"])
    weights = {"": "one", "kitti": "two"}
    weights = {k: str(tmp_path / f"{v}.safetensors") for k, v in weights.items()}
    found = evaluate_entrant(Entrant("raft-small", weights), records, protocol)
    assert list(found.datasets) == ["kitti2015", "middlebury", "sintel-clean"]
    for name, each in found.datasets.items():
        file = "two" if name == "kitti2015" else "one"
        assert each.weights["file"] == f"{file}.safetensors"
        mine = [record for record in records if record.dataset == name]
        assert each.metrics == evaluate(models[file], mine, protocol).datasets[name].metrics


def test_what_cannot_run_is_refused_before_anything_runs(tmp_path):
    datasets.kitti(tmp_path, [3])
    records = records_in([tmp_path])
    cases = [
        (Entrant("raft-small", {"sintel": "raft-small"}), ArgumentError, "fits no dataset"),
        (Entrant("raft-tiny", {"": "raft-small"}), ArgumentError, "unknown model 'raft-tiny'"),
        (Entrant("raft-small", {"": "lost.pth"}), FileError, "lost.pth: there is no such file"),
    ]
    for entrant, kind, message in cases:
        with pytest.raises(kind, match=message):
            check_entrants([entrant], records)


def test_a_file_alone_says_its_network(tmp_path):
    """The name of a network stays as it is, and weights that are given by dataset too."""
    file = str(tmp_path / "mine.safetensors")
    lcv.save(lcv.build("raft-small"), file)
    assert entrant_of(None, {"": file}) == Entrant("raft-small", {"": file})
    assert entrant_of(None, {"kitti": file}) == Entrant("raft-small", {"kitti": file})
    assert entrant_of(file, {}) == Entrant("raft-small", {"": file})
    assert entrant_of("raft-small", {}) == Entrant("raft-small", {})
    assert entrant_of("raft-large", {"": file}) == Entrant("raft-large", {"": file})


def test_without_a_pair_nothing_is_measured():
    with pytest.raises(
        ArgumentError, match="evaluate: there is no pair to measure; wanted at least"
    ):
        evaluate_entrant(Entrant("raft-small"), [], PROTOCOLS["raft"])


def test_our_own_weights_are_named_too(tmp_path):
    records = records_in([datasets.kitti(tmp_path, [3])])
    found = evaluate_entrant(Entrant("raft-small"), records, PROTOCOLS["raft"].changed(iters=1))
    weights = found.datasets["kitti2015"].weights
    assert weights["file"] == embedded_file("raft-small").name
    assert found.label == "raft-small"
