"""Batches: which pairs a step has, in which parts, and how much each pixel counts in the loss."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import count
from types import SimpleNamespace

import pytest
import torch

from lcv.errors import ArgumentError, FileError
from lcv.train import DataConfig, LossConfig
from lcv.train import batches as module
from lcv.train.batches import (
    Procedural,
    TrainBatch,
    make_source,
    meanwhile,
    pixel_weights,
    texture_bank,
)
from lcv.train.distributed import Processes
from testing.streams import pretend_cuda

ALONE = Processes(0, 1, torch.device("cpu"))


def test_less_counts_what_moves_by_itself_and_is_not_seen_again():
    """Of six pixels: seen, hidden, departed; first moved by the camera, then by themselves."""

    def mask(*values):
        return torch.tensor(values, dtype=torch.bool).view(1, 1, 1, 6)

    made = SimpleNamespace(
        flow=torch.zeros(1, 2, 1, 6),
        occluded=mask(0, 1, 1, 0, 1, 1),
        out_of_frame=mask(0, 0, 1, 0, 0, 1),
        independent=mask(0, 0, 0, 1, 1, 1),
    )
    data = DataConfig(occluded_weight=0.25, out_of_frame_weight=0.0)
    assert pixel_weights(made, data).flatten().tolist() == [1, 1, 1, 1, 0.25, 0]
    data = replace(data, out_of_frame_weight=1.0)
    assert pixel_weights(made, data).flatten().tolist() == [1, 1, 1, 1, 0.25, 1]
    data = DataConfig(occluded_weight=2.0, out_of_frame_weight=2.0)
    assert pixel_weights(made, data).flatten().tolist() == [1, 1, 1, 1, 2, 2]
    assert pixel_weights(made, DataConfig()).flatten().tolist() == [1] * 6


def test_only_the_sequence_loss_of_procedural_pairs_has_weights(tiny):
    data = DataConfig(occluded_weight=0.0)
    tiny(data=data)
    for changes in ({"data": replace(data, source="files")}, {"loss": LossConfig("multiscale")}):
        with pytest.raises(ArgumentError, match=r"data\.occluded_weight and .* are for procedural"):
            tiny(**{"data": data, **changes})


def numbered(first: float, count: int = 4) -> TrainBatch:
    """A batch whose k-th pair has the value first + k everywhere, and a valid pixel if that is even."""
    value = (first + torch.arange(count)).view(-1, 1, 1, 1)
    images = [(value + k).expand(-1, 3, 2, 2).clone() for k in (0, 100)]
    flow, weight = value.expand(-1, 2, 2, 2).clone(), value.expand(-1, 1, 2, 2).clone()
    return TrainBatch(*images, flow, weight % 2 == 0, weight)


def test_a_batch_is_split_in_order_cloned_and_filled_anew():
    batch = numbered(0.0)
    parts = batch.split(2)
    assert [part.flow[:, 0, 0, 0].tolist() for part in parts] == [[0, 1], [2, 3]]
    assert [part.image2[:, 0, 0, 0].tolist() for part in parts] == [[100, 101], [102, 103]]
    assert [part.valid.sum().item() for part in parts] == [4, 4]
    with pytest.raises(ArgumentError, match="accumulate is 3, which does not divide a process's 4"):
        batch.split(3)
    copy = batch.clone()
    copy.copy_(numbered(7.0))
    assert copy.weight[:, 0, 0, 0].tolist() == [7, 8, 9, 10]
    assert copy.image2[:, 0, 0, 0].tolist() == [107, 108, 109, 110]
    assert batch.weight[:, 0, 0, 0].tolist() == [0, 1, 2, 3], "a copy is apart"


def test_an_excluded_pair_gives_way_to_one_far_behind_and_groups_begin_at_multiples(
    tiny, monkeypatch
):
    """2⁴⁰ further on: runs that went on after a sample was left out rest on it."""
    monkeypatch.setattr(module, "texture_bank", lambda *_: None)
    far = 1 << 40
    exclude = ("procedural:quick:0:5", f"procedural:quick:0:{5 + far}", "procedural:quick:0:8")
    config = tiny(data=replace(tiny().data, exclude=exclude, ahead=3))
    source = make_source(config, ALONE, torch.float32)
    assert isinstance(source, Procedural)
    assert source.names(2) == ["procedural:quick:0:4", f"procedural:quick:0:{5 + 2 * far}"]
    made = []
    monkeypatch.setattr(
        source, "_make", lambda indices: made.append(indices) or numbered(0.0, len(indices))
    )
    steps = source.batches(2)
    sizes = [len(next(steps).flow) for _ in range(4)]
    assert sizes == [2] * 4
    assert made == [[4, 5 + 2 * far], [6, 7, 8 + far, 9, 10, 11]]
    assert [name for name, _ in source.one_by_one(2)] == source.names(2)
    assert made[2:] == [[4], [5 + 2 * far]]


@pytest.mark.parametrize("name", ["sintel/5", "procedural:quick:0:x", "procedural:quick:0:"])
def test_a_name_that_is_no_procedural_pair_s_cannot_be_excluded(tiny, name, monkeypatch):
    monkeypatch.setattr(module, "texture_bank", lambda *_: None)
    config = tiny(data=replace(tiny().data, exclude=(name,)))
    with pytest.raises(ArgumentError, match=f"data.exclude: '{name}' is not the name of a proced"):
        make_source(config, ALONE, torch.float32)


def test_textures_are_drawn_or_read_and_what_is_wrong_with_them_is_said_once(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(module, "procedural_bank", lambda *a, **k: asked.append((a, k)))
    monkeypatch.setattr(module, "load_bank", lambda *a, **k: asked.append((a, k)))
    texture_bank(DataConfig(), "held-out", ALONE.device)
    texture_bank(DataConfig(textures="x", detailed=True), "train", ALONE.device)
    assert asked == [
        (("held-out",), {"device": "cpu"}),
        (("x", "train"), {"detailed": True, "device": ALONE.device}),
    ]
    monkeypatch.undo()
    with pytest.raises(FileError) as caught:
        texture_bank(DataConfig(textures=str(tmp_path / "no")), "train", ALONE.device)
    assert str(caught.value).count(str(tmp_path / "no")) == 1
    assert str(caught.value).startswith(f"data.textures is '{tmp_path / 'no'}': ")


def test_the_memory_of_a_batch_is_held_for_a_stream():
    held = []
    names = [field.name for field in fields(TrainBatch)]
    tensors = [
        SimpleNamespace(record_stream=lambda stream, name=name: held.append((name, stream)))
        for name in names
    ]
    TrainBatch(*tensors).hold_for("stream")
    assert held == [(name, "stream") for name in names]


def test_on_a_gpu_the_next_group_is_made_while_one_is_trained_on(monkeypatch):
    events = pretend_cuda(monkeypatch)

    def make():
        for number in count():
            events.append(f"make {number}")
            hold = [
                lambda stream, k=k: events.append(f"hold {k} for {stream.name}") for k in (1, 2)
            ]
            yield [SimpleNamespace(number=number, hold_for=each) for each in hold]

    groups = meanwhile(make(), torch.cuda.Stream())
    assert [batch.number for batch in next(groups)] == [0, 0]
    given = ("main waits for an event of side", "hold 1 for main", "hold 2 for main")
    assert events == [
        "side waits for main",
        *("side begins", "make 0", "side records", "side ends"),
        *("side begins", "make 1", "side records", "side ends"),
        *given,
    ]
    events.clear()
    assert [batch.number for batch in next(groups)] == [1, 1]
    assert events == ["side begins", "make 2", "side records", "side ends", *given]


def test_pairs_are_made_on_a_stream_of_their_own_where_there_is_one(tiny, monkeypatch):
    monkeypatch.setattr(module, "texture_bank", lambda *_: None)
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: f"a stream of {device}")
    monkeypatch.setattr(module, "meanwhile", lambda groups, stream: [[groups, stream]])
    source = make_source(tiny(), Processes(0, 1, torch.device("cuda", 1)), torch.float32)
    monkeypatch.setattr(source, "_groups", lambda step: f"groups from {step}")
    assert list(source.batches(7)) == ["groups from 7", "a stream of cuda:1"]
