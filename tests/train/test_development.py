"""The development sets: regions by hand, numbers by set and region, pairs made once."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
from torch import nn

from lcv.models.types import FlowOutput
from lcv.train import development, run
from lcv.train.checkpoint import read
from lcv.train.development import (
    AT_ONCE,
    PAIRS,
    Development,
    PerPair,
    motion_boundaries,
    regions,
)
from lcv.train.distributed import Processes
from lcv.train.log import read_log


class Wrong(nn.Module):
    """Says that pair i moves down by i pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.nothing = nn.Parameter(torch.zeros(1))

    def forward(self, image1, image2):
        down = torch.tensor([0.0, 1.0]).view(1, 2, 1, 1)
        return FlowOutput(flow=down * image1[:, :1])


def test_boundaries_are_where_motion_changes():
    flow = torch.zeros(1, 2, 20, 30)
    flow[:, 0, :, 12:] = 5.0
    assert motion_boundaries(flow).nonzero()[:, 3].unique().tolist() == [11]
    # A tenth of the length from pixel to pixel is still smooth; so is little of nothing.
    zoom = torch.linspace(-1, 1, 30).view(1, 1, 1, 30).expand(1, 2, 20, 30)
    assert not motion_boundaries(0.3 * zoom).any()
    assert motion_boundaries(flow.mT).nonzero()[:, 2].unique().tolist() == [11]


@pytest.mark.parametrize("axis", [2, 3])
def test_boundaries_are_sundarams(axis):
    """From a pixel to the next (a, 0) → (a, b): b² > 0.01 a² + 0.002, the motion of the first."""
    for a, b in ((0.0, 0.002**0.5), (1.0, 0.012**0.5), (10.0, 1.002**0.5)):
        for more, found in ((0.999, 0), (1.001, 1)):
            flow = torch.zeros(1, 2, 4, 4)
            flow[:, 0] = a
            flow.select(axis, 2)[:, 1] = flow.select(axis, 3)[:, 1] = more * b
            assert motion_boundaries(flow).sum() == 4 * found, (a, more)


def test_the_error_of_each_pair_is_written_to_a_millionth(tmp_path, monkeypatch):
    monkeypatch.setattr("lcv.train.development.DEVELOPMENT", dict.fromkeys(["a", "b"]))
    errors = torch.tensor([[[1.0, 0.0, 1.0], [3.0, 0.0, 0.0]], [[0.0, 5.0, 0.0], [0.0, 0.0, 2.0]]])
    pixels = torch.tensor([[[1.0, 0.0, 2.0], [3.0, 0.0, 4.0]], [[0.0, 1.0, 0.0], [0.0, 0.0, 9.0]]])
    per_pair = PerPair(errors.double(), pixels.double())
    for step in (2, 4):
        per_pair.write(tmp_path / "development.json", step)
    assert (tmp_path / "development.json").read_text(encoding="utf-8") == (
        '{"format": "lcv development 1", "step": 4, '
        '"epe": {"a": [0.666667, 0.428571], "b": [5.0, 0.222222]}}\n'
    )
    assert per_pair.numbers() == pytest.approx(
        {
            "epe": (0.5 + 0.7) / 2,
            "a/epe": 0.5,
            "b/epe": 0.7,
            "boundary": 1.0,
            "a/boundary": 1.0,
            "out_of_frame": 5.0,
            "b/out_of_frame": 5.0,
            "interior": (1 / 6 + 2 / 9) / 2,
            "a/interior": 1 / 6,
            "b/interior": 2 / 9,
        }
    )


def test_regions_are_apart():
    flow = torch.zeros(1, 2, 20, 60)
    flow[:, 0, :, 12:] = 50.0
    gone = torch.zeros(1, 1, 20, 60, dtype=torch.bool)
    gone[..., 10:] = True
    row = regions(flow, gone)[0, 0, 7].tolist()
    assert row == [2] * 3 + [0] * 7 + [1] * 50


def test_every_set_and_region_is_told_and_pairs_are_made_once(tiny, development_sets):
    measure = Development(tiny(), Processes(0, 1, torch.device("cpu")), None)
    first = measure(Wrong(), {})
    made = list(development_sets)
    again = measure(Wrong(), {})
    assert development_sets == made  # kept
    assert torch.equal(first.errors, again.errors)
    assert len(made) == 2 * PAIRS // AT_ONCE
    numbers = first.numbers()
    mean = sum(range(PAIRS)) / PAIRS
    assert numbers["still/epe"] == numbers["still/interior"] == pytest.approx(mean)
    assert "still/boundary" not in numbers
    moved = sum((9 + (i - 4) ** 2) ** 0.5 for i in range(PAIRS)) / PAIRS
    assert numbers["split/out_of_frame"] == numbers["out_of_frame"] == pytest.approx(moved)
    assert numbers["split/boundary"] == pytest.approx((9 * mean + 8 * moved) / 17)
    assert numbers["split/epe"] == pytest.approx((mean + moved) / 2)
    assert numbers["epe"] == pytest.approx((mean + (mean + moved) / 2) / 2)


def test_the_sets_are_painted_with_the_held_out_textures(tiny, development_sets, monkeypatch):
    make, painted = development.development_batch, []

    def noted(name, indices, size, device, textures):
        painted.append(textures)
        return make(name, indices, size, device, textures)

    monkeypatch.setattr(development, "texture_bank", lambda data, part, device: (data, part))
    monkeypatch.setattr(development, "development_batch", noted)
    config = tiny()
    Development(config, Processes(0, 1, torch.device("cpu")), None)(Wrong(), {})
    assert painted == [(config.data, "held-out")] * len(development_sets)


class Added(Processes):
    """One of several processes; the sums of the others are added by hand."""

    def sum(self, value):
        return value.clone()


def test_shares_make_up_the_whole(tiny, development_sets):
    cpu = torch.device("cpu")
    whole = Development(tiny(), Processes(0, 1, cpu), None)(Wrong(), {})
    parts = [Development(tiny(), Added(rank, 3, cpu), None)(Wrong(), {}) for rank in range(3)]
    assert torch.equal(sum(part.errors for part in parts), whole.errors)
    assert torch.equal(sum(part.pixels for part in parts), whole.pixels)


def test_a_run_is_judged_by_them_and_leaves_the_error_of_each_pair(
    tiny, development_sets, tmp_path, monkeypatch
):
    monkeypatch.setattr("lcv.train.development.PAIRS", 3)
    config = tiny(
        steps=2,
        validate_every=1,
        validate_iters=1,
        validation={"dev": "development"},
        best="dev/epe",
    )
    run(config, device="cpu")
    log = [e for e in read_log(tmp_path / "run" / "log.jsonl") if e["kind"] == "validation"]
    assert {"dev/epe", "dev/split/boundary", "dev/out_of_frame"} <= set(log[-1])
    best = read(tmp_path / "run" / "checkpoints" / "best.pt")["best"]
    assert best == min(entry["dev/epe"] for entry in log)
    left = json.loads((tmp_path / "run" / "development.json").read_text(encoding="utf-8"))
    assert (left["step"], [len(row) for row in left["epe"].values()]) == (2, [3, 3])
    means = [sum(row) / 3 for row in left["epe"].values()]
    assert sum(means) / 2 == pytest.approx(log[-1]["dev/epe"], abs=1e-6)
    with pytest.raises(ValueError, match="best is 'dev/fl', wanted a number .*: dev/epe"):
        run(replace(config, best="dev/fl", folder=str(tmp_path / "other")), device="cpu")
