"""A network over pairs: the right pixels, the right settings, and the truth about failures."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest
import torch

import lcv
from lcv.data.kitti import kitti
from lcv.data.middlebury import middlebury
from lcv.data.record import Sample
from lcv.data.sintel import sintel
from lcv.errors import ArgumentError, FileError
from lcv.evaluate.protocols import PROTOCOLS
from lcv.evaluate.reference import slow_metrics
from lcv.evaluate.run import evaluate, read_ahead
from lcv.inner_product import InnerProduct
from testing import datasets
from testing.networks import Constant

RAFT = PROTOCOLS["raft"]


class Given:
    """A pair from memory."""

    def __init__(self, name: str, sample: dict, dataset: str = "made") -> None:
        self.name, self.dataset, self.scene = name, dataset, name
        self.sample = sample

    def read(self) -> Sample:
        h, w = self.sample["flow"].shape[:2]
        black = np.zeros((h, w, 3), np.uint8)
        return Sample(None, black, black, **self.sample)


def field(*flows):
    """(1, n, 2) float32"""
    return np.array([flows], np.float32)


def test_metrics_are_those_of_the_networks_flow(tmp_path):
    records = kitti(datasets.kitti(tmp_path, [0, 3]))
    result = evaluate(Constant((2.0, -1.0)), records, RAFT)
    pairs = []
    for record in records:
        sample = record.read()
        flow = np.broadcast_to(np.float32([2, -1]), sample.flow.shape)
        pairs.append((flow, sample.flow, sample.valid, sample.occluded, sample.objects))
    wanted = slow_metrics(pairs, 10)
    found = result.datasets["kitti2015"]
    assert found.metrics.keys() == wanted.keys()
    assert {"fl_bg", "fl_fg", "epe_noc", "epe_occ"} <= found.metrics.keys()
    for name in wanted.keys() - {"wauc"}:
        assert found.metrics[name] == pytest.approx(wanted[name]), name
    assert [pair.name for pair in found.pairs] == ["000000_10", "000003_10"]
    assert found.settings == {"iters": 24, "pad": "kitti"}
    assert result.protocol == RAFT
    assert result.provenance["torch"] == torch.__version__


def test_each_dataset_is_called_by_its_own_setting(tmp_path):
    model = Constant()
    records = [
        *middlebury(datasets.middlebury(tmp_path / "m", ["Venus"])),
        *kitti(datasets.kitti(tmp_path / "k", [1])),
        *sintel(datasets.sintel(tmp_path / "s", {"alley_1": 3}), passes=("clean", "final")),
    ]
    result = evaluate(model, records, RAFT)
    assert list(result.datasets) == ["middlebury", "kitti2015", "sintel-clean", "sintel-final"]
    assert [(c["iters"], c["pad"]) for c in model.calls] == [
        (20, "sintel"),
        (24, "kitti"),
        *[(32, "sintel")] * 4,
    ]
    assert len(result.per_pair("epe", "sintel-final")) == 2
    other = evaluate(Constant(recurrent=False), records[:1], RAFT)
    assert other.datasets["middlebury"].settings == {"iters": None, "pad": None}


def test_what_counts_is_the_protocols_choice():
    flow = field((3, 4), (1500, 0), (0, 0))
    valid = np.array([[True, True, False]])
    invalid = np.array([[True, False, False]])
    pair = [Given("a", {"flow": flow, "valid": valid, "invalid": invalid})]
    model = Constant()
    assert evaluate(model, pair, RAFT).metric("epe", "made") == (5 + 1500) / 2
    limited = RAFT.changed(limit=1000.0)
    assert evaluate(model, pair, limited).metric("epe", "made") == 5
    without = RAFT.changed(validity="not-invalid")
    assert evaluate(model, pair, without).metric("epe", "made") == 1500


def test_flow_is_measured_as_it_was_stored():
    pair = [Given("a", {"flow": field((0, 0)), "valid": np.array([[True]])})]
    model = Constant((0.9 / 64, 0.0))
    for storage, error in (("exact", 0.9), ("kitti-rounded", 1.0), ("kitti-truncated", 0.0)):
        found = evaluate(model, pair, RAFT.changed(storage=storage)).metric("epe", "made")
        assert found == pytest.approx(error / 64, rel=1e-6)


def test_precision_reaches_the_network():
    pair = [Given("a", {"flow": field((1, 1)), "valid": np.array([[True]])})]
    model = Constant().train()
    evaluate(model, pair, RAFT.changed(precision="float32"))
    assert model.calls[-1]["dtype"] == torch.float32
    assert model.calls[-1]["training"] is False
    assert model.training


def test_warm_start_changes_later_pairs_only(tmp_path):
    """With a real network, since only that looks at where it starts."""
    torch.manual_seed(0)
    model = lcv.build("raft-small").eval()
    records = sintel(datasets.sintel(tmp_path, {"alley_1": 3, "cave_2": 2}))
    cold = evaluate(model, records, RAFT.changed(iters=2))
    warm = evaluate(model, records, RAFT.changed(iters=2, warm_start=True))
    a, b = (r.per_pair("epe", "sintel-clean") for r in (cold, warm))
    differs = {name.partition("/")[2]: a[name] != b[name] for name in a}
    assert differs == {
        "alley_1/frame_0001": False,
        "alley_1/frame_0002": True,
        "cave_2/frame_0001": False,
    }


def test_progress_counts_pairs_by_dataset(tmp_path):
    heard = []
    records = sintel(datasets.sintel(tmp_path, {"a": 3}), passes=("clean", "final"))
    evaluate(Constant(), records, RAFT, progress=lambda *words: heard.append(words))
    clean, final = "sintel-clean", "sintel-final"
    assert heard == [(clean, 1, 2), (clean, 2, 2), (final, 1, 2), (final, 2, 2)]


def test_what_cannot_be_measured_is_refused_by_name(tmp_path):
    pair = Given("a", {"flow": field((0, 0)), "valid": np.array([[True]])})
    with pytest.raises(
        ArgumentError, match="made, pair a: the network's flow is not a number at 1"
    ):
        evaluate(Constant((float("nan"), 0.0)), [pair], RAFT)
    with pytest.raises(ArgumentError, match="the pair 'a' of made is there twice"):
        evaluate(Constant(), [pair, pair], RAFT)
    with pytest.raises(ArgumentError, match="there is no pair to measure"):
        evaluate(Constant(), [], RAFT)
    (bare,) = kitti(datasets.kitti(tmp_path, [], testing=[5]), "testing")
    with pytest.raises(ArgumentError, match="kitti2015, pair 000005_10: has no truth"):
        evaluate(Constant(), [bare], RAFT)
    lost = replace(bare, image2=tmp_path / "lost.png")
    with pytest.raises(FileError, match="lost.png: there is no such file"):
        evaluate(Constant(), [lost], RAFT)


def test_not_known_pixels_may_be_anything():
    valid = np.array([[True, False]])
    pair = Given("a", {"flow": field((1, 0), (0, 0)), "valid": valid})

    class HalfBlind(Constant):
        def forward(self, image1, image2, **options):
            output = super().forward(image1, image2, **options)
            flow = output.flow.clone()
            flow[..., 1] = torch.nan
            return replace(output, flow=flow)

    assert evaluate(HalfBlind(), [pair], RAFT).metric("epe", "made") == 1


def test_whether_w_is_the_identity_is_noted(tmp_path):
    for kind in ("elliptical", "euclidean", "free"):
        model = lcv.build("raft-small", kind).eval()
        records = middlebury(datasets.middlebury(tmp_path / kind, ["Grove"]))

        def noted(model=model, records=records):
            return evaluate(model, records, RAFT.changed(1)).datasets["middlebury"].model

        assert noted()["w_is_identity"] is True
        assert noted()["inner_product"] == kind
        [product] = (each for each in model.modules() if isinstance(each, InnerProduct))
        for parameter in product.parameters():
            parameter.data += 0.01 * torch.randn_like(parameter)
        assert noted()["w_is_identity"] is (kind == "euclidean")


def test_weights_are_noted(tmp_path):
    file = tmp_path / "w.pth"
    file.write_bytes(b"x")
    pair = Given("a", {"flow": field((0, 0)), "valid": np.array([[True]])})
    result = evaluate(Constant(), [pair], RAFT, weights=file, label="mine")
    assert result.datasets["made"].weights["file"] == "w.pth"
    assert result.datasets["made"].model == {"name": "Constant", "supervised": True}
    assert result.label == "mine"


def test_an_error_of_one_process_is_raised_by_all(monkeypatch):
    """So that nobody waits for a process that has given up."""

    class Processes:
        rank, world = 0, 2

    def another_failed(everyone, mine):
        everyone[:] = [mine, ({}, FileError("frame.png: cut"))]

    monkeypatch.setattr(torch.distributed, "all_gather_object", another_failed)
    pair = Given("a", {"flow": field((0, 0)), "valid": np.array([[True]])})
    with pytest.raises(FileError, match="frame.png: cut"):
        evaluate(Constant(), [pair], RAFT, processes=Processes())


def truth() -> dict[str, np.ndarray]:
    """One pixel is unknown, and one that is known does not move."""
    flow = np.random.default_rng(0).normal(size=(3, 5, 2)).astype(np.float32)
    flow[1, 1] = 0
    valid = np.ones((3, 5), bool)
    valid[0, 0] = False
    return {"flow": flow, "valid": valid}


def noted_truth(protocol=RAFT, **change) -> str:
    """The hash that an evaluation notes."""
    pair = Given("a", truth() | change)
    return evaluate(Constant(), [pair], protocol).datasets["made"].pairs[0].truth


@pytest.mark.parametrize("change", ["a known vector", "an unknown vector", "what is known"])
def test_the_hash_of_the_truth_changes_with_what_is_known(change):
    other = truth()
    if change == "what is known":
        other["valid"][1, 1] = False
    else:
        other["flow"][(2, 2) if change == "a known vector" else (0, 0)] += 1
    assert (noted_truth() == noted_truth(**other)) == (change == "an unknown vector")


@pytest.mark.parametrize("name", ["occluded", "objects", "invalid"])
def test_the_hash_of_the_truth_changes_with_what_its_maps_count(name):
    """They decide the errors of hidden pixels and of objects, and what is left out."""
    protocol = replace(RAFT, validity="not-invalid")
    maps = np.zeros((4, 3, 5), np.uint8 if name == "objects" else bool)
    maps[1, 1, 1] = maps[2, 1, 2] = 1
    maps[3, 0, 0] = 1  # where nothing is known
    none, one, other, unknown = (noted_truth(protocol, **{name: m}) for m in maps)
    assert len({none, one, other}) == 3
    assert none == unknown
    assert (none == noted_truth(protocol)) == (name == "invalid")


def test_the_hash_of_the_truth_changes_with_no_map_or_number_that_does_not_count():
    """Sintel's `invalid` under a protocol that keeps such pixels; which object; how it is stored."""
    marked = np.zeros((3, 5), np.uint8)
    marked[1, 1] = 1
    assert noted_truth(invalid=marked != 0) == noted_truth()
    alike = {noted_truth(objects=each) for each in (marked, 2 * marked, marked.astype(np.int32))}
    assert len(alike) == 1


def test_the_hash_of_the_truth_changes_with_its_shape():
    flow, valid = np.zeros((3, 5, 2), np.float32), np.ones((3, 5), bool)
    turned = noted_truth(flow=flow.reshape(5, 3, 2), valid=valid.reshape(5, 3))
    assert turned != noted_truth(flow=flow, valid=valid)


def test_reading_ahead_keeps_the_order_and_ends_with_whoever_asks():
    """After the first of nine pairs two more are being read; what waits for a reader is left."""
    going, read = threading.Event(), []

    class Slow:
        def __init__(self, number):
            self.number = number

        def read(self):
            if self.number:
                going.wait(9)
            read.append(self.number)
            return self.number

    records = [Slow(number) for number in range(9)]
    order = [0, 8, 3, 5, 1, 2]
    samples = read_ahead(records, order)
    assert next(samples) == (0, 0)
    threading.Timer(0.05, going.set).start()
    samples.close()
    assert {*read} == {0, 8, 3}
    assert [*read_ahead(records, order)] == [(index, index) for index in order]


def test_processes_share_pairs_and_each_has_them_all(monkeypatch):
    """The second of two measures every second pair, on the device that is asked for."""

    class Second:
        rank, world = 1, 2

    measured = []

    def gathered(everyone, mine):
        measured.append(mine)
        others = {0: mine[0][1], 2: mine[0][1]}
        everyone[:] = [(others, None), mine]

    monkeypatch.setattr(torch.distributed, "all_gather_object", gathered)
    pairs = [
        Given(name, {"flow": field((3, 4)), "valid": np.array([[True]])}, f"set {name[0]}")
        for name in ("a1", "a2", "b1")
    ]
    found = evaluate(Constant(), pairs, RAFT, processes=Second(), device="cpu")
    assert [*measured[0][0]] == [1]
    assert measured[0][1] is None
    assert {name: len(each.pairs) for name, each in found.datasets.items()} == {
        "set a": 2,
        "set b": 1,
    }
    assert found.metric("epe", "set b") == 5
