"""A run that goes on measures what is missing, and its result is that of one that was not stopped."""

from __future__ import annotations

import json
import os

import pytest
import torch

from lcv.data.kitti import kitti
from lcv.data.sintel import sintel
from lcv.evaluate.finished import Finished, forget
from lcv.evaluate.protocols import PROTOCOLS
from lcv.evaluate.run import evaluate
from lcv.evaluate.sources import BenchmarkPair
from testing import datasets
from testing.networks import Interrupted

RAFT = PROTOCOLS["raft"]


@pytest.fixture
def records(tmp_path):
    return list(kitti(datasets.kitti(tmp_path / "kitti", [0, 3, 5])))


def test_an_interrupted_evaluation_goes_on(records, tmp_path):
    model, output = Interrupted(at=3), tmp_path / "result.json"
    with pytest.raises(KeyboardInterrupt):
        evaluate(model, records, RAFT, output=output)
    (log,) = tmp_path.glob("result.json.*")
    log.write_bytes(log.read_bytes() + b'["torn')
    result = evaluate(model, records, RAFT, output=output)
    assert model.count == 3 + 1
    whole = evaluate(Interrupted(), records, RAFT)
    assert json.dumps(result.as_dict()["datasets"]) == json.dumps(whole.as_dict()["datasets"])
    forget(output)
    assert not list(tmp_path.glob("result.json*"))


def test_other_settings_weights_or_files_are_measured_again(records, tmp_path):
    output = tmp_path / "result.json"
    model = Interrupted()
    evaluate(model, records, RAFT, output=output)
    evaluate(model, records, RAFT.changed(iters=3), output=output)
    assert model.count == 3 + 3
    os.utime(records[0].image1, (1, 1))
    evaluate(model, records, RAFT, output=output)
    assert model.count == 6 + 1
    with torch.no_grad():
        for tensor in model.parameters():
            tensor.add_(1)
    evaluate(model, records, RAFT, output=output)
    assert model.count == 7 + 3


def test_a_log_that_cannot_be_written_is_named(records, tmp_path):
    with pytest.raises(Exception, match="no/result.json.done0.jsonl: writing failed"):
        Finished(tmp_path / "no" / "result.json", []).add(records[0], 1)


def test_with_warm_start_a_scene_is_measured_whole(tmp_path):
    scenes = sintel(datasets.sintel(tmp_path / "sintel", {"alley_1": 4}), passes=("clean",))
    warm = RAFT.changed(warm_start=True)
    model, output = Interrupted(at=2), tmp_path / "result.json"
    with pytest.raises(KeyboardInterrupt):
        evaluate(model, scenes, warm, output=output)
    evaluate(model, scenes, warm, output=output)
    assert model.count == 2 + 3


def test_a_line_is_found_by_settings_pair_and_rank(records, tmp_path):
    output = tmp_path / "result[1].json"
    first, second = Finished(output, ["raft", 3]), Finished(output, ["raft", 3], rank=2)
    assert [log.own.name for log in (first, second)] == [
        "result[1].json.done0.jsonl",
        "result[1].json.done2.jsonl",
    ]
    first.add(records[0], {"epe": 1.5})
    second.add(records[1], 7)
    again = Finished(output, ["raft", 3])
    assert [again.get(record) for record in records] == [{"epe": 1.5}, 7, None]
    assert Finished(output, ["raft", 4]).get(records[0]) is None
    ((key, found),) = map(json.loads, first.own.read_text().splitlines())
    assert (len(key), found) == (32, {"epe": 1.5})
    for line in ("[]", "3", '["a", 1, 2]', "\xff"):
        first.own.write_text(f"{line}\n{first.own.read_text()}", encoding="latin-1")
    assert Finished(output, ["raft", 3]).get(records[0]) == {"epe": 1.5}
    forget(output)
    assert not list(tmp_path.glob("result*"))
    assert Finished(output, ["raft", 3]).get(records[0]) is None
    forget(output)


def test_a_pair_without_files_is_known_by_its_name(tmp_path):
    made = [BenchmarkPair(index) for index in (1, 2)]
    log = Finished(tmp_path / "result.json", [])
    log.add(made[0], 5)
    again = Finished(tmp_path / "result.json", [])
    assert [again.get(each) for each in made] == [5, None]
    assert again.get(BenchmarkPair(1, dataset="other")) is None
