"""Learning a patch: on a network whose weakness is known, the weakness is found."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from lcv.errors import ArgumentError, FileError
from lcv.models.build import build, load
from lcv.models.types import FlowOutput
from lcv.studies.patch import OBJECTIVES, STARTS, PatchConfig, learn_patch, start_patch
from lcv.studies.patch_frames import dataset_frames, procedural_frames
from testing import datasets as fake
from testing.networks import Stub
from testing.painted import painted_pair
from testing.shared import shared

SIZE = (64, 80)
SMALL = PatchConfig(side=16, sizes=(14, 18), margin=4.0, steps=40, batch=2, rate=30.0)


class Redness(Stub):
    """Its flow everywhere is the mean red of the first frame: a patch should become red."""

    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(1.0))
        self.norm = nn.BatchNorm2d(3)

    def forward(self, image1, image2, **options):
        red = image1[:, 0].mean((1, 2)) * self.gain
        flow = red[:, None, None, None].expand(-1, 2, *image1.shape[-2:])
        return FlowOutput(flow * torch.tensor([1.0, -1.0])[:, None, None])


def pairs():
    image1, image2, _ = painted_pair(*SIZE)
    dark = image1 * torch.tensor([0.1, 1.0, 1.0])[:, None, None]
    frames = dark.expand(2, -1, -1, -1), image2.expand(2, -1, -1, -1)
    return itertools.repeat((*frames, torch.zeros(2, 2, *SIZE)))


@pytest.mark.parametrize("objective", ["error", "change"])
def test_the_weakness_of_a_network_is_found(objective):
    patch, values = learn_patch(Redness(), pairs(), replace(SMALL, objective=objective))
    middle = patch[:, 5:11, 5:11]
    assert middle[0].mean() > 240  # red, from 127 on average
    assert middle[1:].mean() < 200  # and nothing drives the others there
    assert sum(values[-10:]) > sum(values[:10])
    assert patch.min() >= 0
    assert patch.max() <= 255


def test_the_network_is_left_as_it_was_even_after_an_error():
    model = Redness().train()
    model.norm.eval()
    model.gain.requires_grad_(False)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    learn_patch(model, pairs(), PatchConfig(side=8, sizes=(8, 9), steps=2, batch=2))

    def broken():
        yield next(pairs())
        raise FileError("frame 2: gone")

    with pytest.raises(FileError, match="frame 2: gone"):
        learn_patch(model, broken(), PatchConfig(side=8, sizes=(8, 9), steps=2, batch=2))
    assert model.training
    assert not model.norm.training
    assert not model.gain.requires_grad
    assert model.norm.weight.requires_grad
    assert model.norm.weight.grad is None
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])


def test_the_same_seed_learns_the_same_patch():
    short = PatchConfig(side=12, sizes=(10, 14), margin=4.0, steps=3, batch=2)
    one, values = learn_patch(Redness(), pairs(), short)
    two, again = learn_patch(Redness(), pairs(), short)
    assert torch.equal(one, two)
    assert values == again
    other, _ = learn_patch(
        Redness(),
        pairs(),
        PatchConfig(side=12, sizes=(10, 14), margin=4.0, steps=3, batch=2, seed=1),
    )
    assert not torch.equal(one, other)


class Local(Redness):
    """Its flow at a pixel is the colour there, so a patch does nothing outside itself."""

    def forward(self, image1, image2, **options):
        return FlowOutput(image1[:, :2] - 20)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(("margin", "moves"), [(4.0, False), (-20.0, True)])
def test_only_far_flow_counts(objective, margin, moves):
    """No gradient outside the disc; with a margin that takes the disc in, there is one."""
    config = PatchConfig(
        side=12, sizes=(10, 14), margin=margin, near=0, steps=2, batch=2, objective=objective
    )
    patch, _ = learn_patch(Local(), pairs(), config)
    assert torch.equal(patch, start_patch(config)) != moves


class Given(Redness):
    """Its flows are those it is given, whatever the frames show."""

    def __init__(self, *flows):
        super().__init__()
        self.flows = flows

    def forward(self, image1, image2, **options):
        flows = tuple(flow + 0 * image1[:, :2] for flow in self.flows)
        return FlowOutput(flows[-1], flows)


def objective_of(flows, **settings):
    """The objective before the first step, of a patch 10 pixels wide in the middle of SIZE."""
    config = PatchConfig(side=10, sizes=(10, 10), steps=1, batch=1, **settings)
    frames = iter([(torch.zeros(1, 3, *SIZE), torch.zeros(1, 3, *SIZE), torch.zeros(1, 2, *SIZE))])
    _, values = learn_patch(Given(*flows), frames, config)
    return values[0]


def test_far_begins_a_margin_outside_the_rim(monkeypatch):
    monkeypatch.setattr(
        "lcv.studies.patch.places_at", lambda *_: torch.tensor([[40.0, 32.0]])
    )  # (x, y) of the middle
    y, x = torch.meshgrid(torch.arange(64.0), torch.arange(80.0), indexing="ij")
    distance = (x - 40).hypot(y - 32)
    nothing = math.log(0.05 + 1e-3)  # the floor, and the root of what keeps the slope finite
    for limit, is_far in ((5 + 8, False), (5 + 9, True)):
        wrong = ((distance <= limit) & (distance > 5)) * torch.tensor([3.0, 4.0]).view(2, 1, 1)
        value = objective_of([wrong[None]], margin=8.0, near=0.0)
        assert (value > nothing + 1e-3) == is_far


def test_later_predictions_weigh_more():
    early, late = torch.full((1, 2, 1, 1), 3.0), torch.full((1, 2, 1, 1), 30.0)
    value = objective_of([early, late])
    logs = [math.log(0.05 + flow * 2**0.5) for flow in (3.0, 30.0)]
    assert value == pytest.approx((0.8 * logs[0] + logs[1]) / 1.8, rel=1e-4)


class Forgets(Redness):
    """Its last flow does not depend on the frames; the one before does."""

    def forward(self, image1, image2, **options):
        flow = super().forward(image1, image2).flow
        return FlowOutput(torch.zeros_like(flow), (flow, 0 * flow.detach()))


def test_every_prediction_counts_and_not_the_last_alone():
    patch, _ = learn_patch(Forgets(), pairs(), SMALL)
    assert patch[0, 5:11, 5:11].mean() > 240


@pytest.mark.parametrize("start", STARTS)
def test_starts_fill_the_range_and_a_picture_is_resized(start):
    config = replace(SMALL, start=start)
    first = start_patch(config)
    assert first.shape == (3, 16, 16)
    assert first.min() < 20
    assert first.max() > 235
    # Nothing of this network moves the patch, so that what was begun with comes back.
    picture = torch.rand(3, 32, 32) * 255
    kept, _ = learn_patch(Local(), pairs(), replace(config, steps=1), start=picture)
    assert kept.shape == (3, 16, 16)
    assert (kept - picture.view(3, 16, 2, 16, 2).mean((2, 4))).abs().mean() < 30
    assert (kept - first).abs().mean() > 30


def still(side, objective):
    """One size, one angle, one step."""
    return PatchConfig(
        side=side,
        sizes=(side, side),
        rotation=0.0,
        margin=8.0,
        steps=1,
        batch=1,
        rate=20.0,
        iters=3,
        objective=objective,
    )


def rise(model, size, config):
    """Of the objective over six steps, each begun anew: the same draws, and so the same place.

    Over one run with a place of its own at every step, places would decide it.
    """
    frames = itertools.repeat(painted_pair(*size))
    patch, values = None, []
    for _ in range(6):
        patch, value = learn_patch(model, frames, config, start=patch)
        values += value
    return values[-1] - values[0]


def test_it_rises_against_raft():
    model = load("raft-small", shared("weights", "raft-small.pth"))
    assert rise(model, (96, 128), still(48, "error")) > 0


@pytest.mark.parametrize("name", ["ddflow", "vcn-small"])
def test_it_rises_against_networks_without_iterations(name):
    torch.manual_seed(0)
    assert rise(build(name), (96, 128), still(48, "change")) > 0


@pytest.mark.gpu
def test_a_recorded_step_learns_the_same_patch():
    model = build("raft-small").cuda()
    frames = [tuple(x.cuda() for x in (*painted_pair(96, 128, seed),)) for seed in range(4)]
    config = replace(still(48, "error"), steps=4)
    eager, _ = learn_patch(model, iter(frames), config)
    recorded, _ = learn_patch(model, iter(frames), config, graph=True)
    # Gradients are summed by atomics, in another order each time; Adam's first steps are of signs.
    assert (eager - recorded).abs().mean() < config.rate


def test_procedural_pairs_come_again_in_other_orders():
    frames = procedural_frames("quick", 2, (64, 80), pool=6)
    made = [next(frames) for _ in range(9)]
    assert all(flow.shape == (2, 2, 64, 80) for _, _, flow in made)
    sums = [float(image1.sum()) for image1, _, _ in made]
    assert len(set(sums[:3])) == 3
    assert set(sums[3:6]) == set(sums[6:9]) == set(sums[:3])


def test_frames_of_a_dataset_come_again_in_other_orders(tmp_path):
    fake.chairs(tmp_path, 4)
    frames = dataset_frames(str(tmp_path))
    first = [next(frames) for _ in range(4)]
    second = [next(frames) for _ in range(4)]
    sums = [sorted(float(a.sum() + b.sum()) for a, b, _ in each) for each in (first, second)]
    assert sums[0] == sums[1]
    assert len(set(sums[0])) == 4
    assert first[0][0].shape[:2] == (1, 3)


def test_refusals():
    with pytest.raises(ArgumentError, match="objective is 'cos', wanted one of error, change"):
        PatchConfig(objective="cos")
    with pytest.raises(ArgumentError, match="recipe is 'modest', wanted one of .*moderate"):
        PatchConfig(recipe="modest")
    with pytest.raises(ArgumentError, match="near is 2, wanted a share from 0 to 1"):
        PatchConfig(near=2)
    with pytest.raises(ArgumentError, match="sizes are"):
        PatchConfig(sizes=(9.0, 3.0))
    with pytest.raises(ArgumentError, match="steps is 0, wanted at least 1"):
        PatchConfig(steps=0)
    with pytest.raises(ArgumentError, match="there were no frames"):
        learn_patch(Redness(), iter(()), SMALL)
    with pytest.raises(ArgumentError, match="2 pairs at once, wanted at most 1"):
        learn_patch(Redness(), pairs(), replace(SMALL, batch=1))
    with pytest.raises(ArgumentError, match="a graph needs CUDA"):
        learn_patch(Redness(), pairs(), SMALL, graph=True)
    with pytest.raises(ArgumentError, match="needs frames with truth"):
        learn_patch(Redness(), ((a, b, None) for a, b, _ in pairs()), SMALL)
    with pytest.raises(
        ArgumentError, match="start is 'dots', wanted one of noise, stripes, checks"
    ):
        start_patch(PatchConfig(start="dots"))
