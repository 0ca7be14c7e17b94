"""Learning a patch: on a network whose weakness is known, the weakness is found."""

from __future__ import annotations

import inspect
import itertools
import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from lcv.data.random import Draws
from lcv.data.synthetic.recipe import RECIPES
from lcv.data.synthetic.sequence import generate
from lcv.data.synthetic.textures import procedural_bank
from lcv.errors import ArgumentError, FileError
from lcv.models.build import build, load
from lcv.models.types import FlowOutput
from lcv.studies.patch import (
    OBJECTIVES,
    STARTS,
    PatchConfig,
    _resized,
    learn_patch,
    start_patch,
)
from lcv.studies.patch_frames import dataset_frames, procedural_frames
from lcv.studies.robustness.stress import places_at
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
    """Of the objective from the first three of six steps to the last three.

    Each step is begun anew, with the same draws and so the same place, which would decide it
    otherwise. Single steps go up and down: VCN takes an argmax.
    """
    frames = itertools.repeat(painted_pair(*size))
    patch, values = None, []
    for _ in range(6):
        patch, value = learn_patch(model, frames, config, start=patch)
        values += value
    return sum(values[3:]) - sum(values[:3])


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


def test_procedural_pairs_come_again_in_other_orders(monkeypatch):
    banks = {part: procedural_bank(part, count=4, size=64) for part in ("train", "held-out")}
    monkeypatch.setattr(
        "lcv.studies.patch_frames.procedural_bank", lambda part, device: banks[part].to(device)
    )
    frames = procedural_frames("quick", 2, (64, 80), pool=6)
    made = [next(frames) for _ in range(15)]
    assert all(flow.shape == (2, 2, 64, 80) for _, _, flow in made)
    sums = [float(image1.sum()) for image1, _, _ in made]
    assert len(set(sums[:3])) == 3
    rounds = [tuple(sums[first : first + 3]) for first in range(0, 15, 3)]
    assert all(set(each) == set(rounds[0]) for each in rounds)
    assert len(set(rounds)) > 2
    # Of the textures of training and from the first on; another seed makes others.
    bank = banks["train"]
    for number, batch in enumerate(made[:3]):
        indices = range(2 * number, 2 * number + 2)
        one = generate(RECIPES["quick"], 0, indices, (64, 80), "cpu", textures=bank)
        for found, expected in zip(batch, (one.image1, one.image2, one.flow), strict=True):
            assert torch.equal(found, expected)
    other = next(procedural_frames("quick", 2, (64, 80), pool=6, seed=1))
    assert not torch.equal(other[0], made[0][0])


def test_frames_of_a_dataset_come_again_in_other_orders(tmp_path):
    fake.chairs(tmp_path, 4)
    frames = dataset_frames(str(tmp_path))
    first = [next(frames) for _ in range(4)]
    second = [next(frames) for _ in range(4)]
    sums = [sorted(float(a.sum() + b.sum()) for a, b, _ in each) for each in (first, second)]
    assert sums[0] == sums[1]
    assert len(set(sums[0])) == 4
    assert first[0][0].shape[:2] == (1, 3)
    assert first[0][0].dtype == first[0][1].dtype == torch.float32
    orders = [tuple(float(a.sum()) for a, _, _ in each) for each in (first, second)]
    more = [tuple(float(next(frames)[0].sum()) for _ in range(4)) for _ in range(3)]
    assert len({*orders, *more}) > 2
    assert all(truth is None for _, _, truth in first)


def test_a_folder_without_pairs_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("lcv.studies.patch_frames.recognise", lambda data: [])
    with pytest.raises(FileError, match="no pair of frames was found here, wanted at least one"):
        next(dataset_frames(str(tmp_path)))


def test_what_is_not_said_of_a_patch_is_as_it_was():
    """Cards of patches hold them: with others the same command would learn another patch."""
    assert PatchConfig().as_dict() == {
        "side": 100,
        "sizes": [97.5, 102.5],
        "rotation": 5.0,
        "margin": 32.0,
        "near": 0.5,
        "objective": "error",
        "steps": 1500,
        "batch": 4,
        "rate": 6.0,
        "iters": 8,
        "seed": 0,
        "recipe": "training",
        "start": "noise",
        "pool": 256,
    }
    pool = inspect.signature(procedural_frames).parameters["pool"].default
    assert pool == PatchConfig().pool


def test_stripes_and_checks_are_eight_pixels_wide_and_noise_is_uniform():
    row = torch.tensor([16.0] * 8 + [239.0] * 8 + [16.0] * 4)
    stripes = start_patch(PatchConfig(side=20, start="stripes"))
    assert torch.equal(stripes, row.expand(3, 20, 20))
    checks = start_patch(PatchConfig(side=20, start="checks"))
    expected = torch.where((row[:, None] == 16) == (row == 16), 16.0, 239.0)
    assert torch.equal(checks, expected.expand(3, 20, 20))
    noise = start_patch(PatchConfig(side=64, seed=3))
    assert torch.equal(noise, Draws(3, [0]).uniform("start", (3, 64, 64), 0, 255)[0])
    assert 254 < noise.max() <= 255
    assert 0 <= noise.min() < 1


def test_progress_is_told_every_25_steps_and_at_the_end():
    told = []
    config = PatchConfig(side=4, sizes=(4, 4), margin=1.0, steps=30, batch=1)
    frames = itertools.repeat((*torch.zeros(2, 1, 3, 8, 8), torch.zeros(1, 2, 8, 8)))
    _, values = learn_patch(Redness(), frames, config, lambda *words: told.append(words))
    assert told == [(25, 30, pytest.approx(values[24])), (30, 30, pytest.approx(values[29]))]
    _, values = learn_patch(Redness(), itertools.islice(frames, 3), config)
    assert len(values) == 3  # where there are no more frames


def test_every_pair_has_a_size_an_angle_and_a_place_of_its_own(monkeypatch):
    """Sizes are log-uniform, angles uniform either way; parameters get no gradient meanwhile."""
    seen, wanted = [], []

    def pasted(image, patch, centre, size, *, angle, largest):
        seen.append((centre, size, angle, largest))
        wanted.append(model.gain.requires_grad)
        return image + 0 * patch.sum()

    monkeypatch.setattr("lcv.studies.patch.apply_patch", pasted)
    model = Redness()
    config = PatchConfig(side=8, sizes=(8, 16), rotation=90.0, margin=4.0, steps=3, batch=2, seed=5)
    learn_patch(model, pairs(), config)
    first, second = seen[::2], seen[1::2]  # of the two frames
    for one, two in zip(first, second, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one[:3], two[:3], strict=True))
    draws = Draws(5, range(6))
    size = draws.uniform("size", (), math.log(8), math.log(16)).exp()
    assert torch.equal(torch.cat([each[1] for each in first]), size)
    angle = draws.uniform("angle", (), -math.pi / 2, math.pi / 2)
    assert torch.equal(torch.cat([each[2] for each in first]), angle)
    shares = draws.uniform("place", (2,))
    centre = places_at(shares, torch.zeros(6, 3, *SIZE), size)
    assert torch.equal(torch.cat([each[0] for each in first]), centre)
    assert {each[3] for each in seen} == {16}
    assert wanted == [False] * 6
    assert model.gain.requires_grad


@pytest.mark.parametrize(("near", "share"), [(0.0, 0.0), (0.25, 0.25), (1.0, 1.0)])
def test_the_objective_is_the_logarithm_of_both_means_by_hand(monkeypatch, near, share):
    monkeypatch.setattr("lcv.studies.patch.places_at", lambda *_: torch.tensor([[40.0, 32.0]]))
    y, x = torch.meshgrid(torch.arange(64.0), torch.arange(80.0), indexing="ij")
    distance = (x - 40).hypot(y - 32).double()
    error = 5 * (distance < 20).double()  # 3, 4 there and nothing elsewhere
    flow = (error / 5 * torch.tensor([3.0, 4.0]).view(2, 1, 1)).float()
    lengths = (error.square() + 1e-6).sqrt()
    logs = [math.log(0.05 + float(lengths[distance > limit].mean())) for limit in (5 + 8, 5)]
    value = objective_of([flow[None]], margin=8.0, near=near)
    assert value == pytest.approx((1 - share) * logs[0] + share * logs[1], rel=1e-5)


def test_nothing_wrong_is_the_floor_and_the_cosine_is_a_mean():
    still = objective_of([torch.zeros(1, 2, 1, 1)])
    assert still == pytest.approx(math.log(0.05 + 1e-3), rel=1e-5)
    same = objective_of([torch.tensor([3.0, 4.0]).view(1, 2, 1, 1)], objective="cosine")
    assert same == pytest.approx(-1, rel=1e-5)


def test_a_picture_to_start_from_is_reduced_smoothly_and_clipped():
    picture = torch.full((3, 8, 8), 300.0)
    picture[0] = -5.0
    picture[1] = torch.arange(8.0).repeat_interleave(8).view(8, 8) % 2 * 200
    made = _resized(picture, 4)
    assert made.shape == (3, 4, 4)
    assert (made[0] == 0).all()
    assert (made[2] == 255).all()
    assert (made[1] - 100).abs().max() < 40  # stripes of a pixel become grey


def test_refusals():
    for name, least in (("side", 4), ("steps", 1), ("batch", 1), ("iters", 1), ("pool", 1)):
        with pytest.raises(ArgumentError, match=f"{name} is {least - 1}, wanted at least {least}"):
            PatchConfig(**{name: least - 1})
        assert getattr(PatchConfig(**{name: least}), name) == least
    for near in (0, 1):
        assert PatchConfig(near=near).near == near
    assert PatchConfig(sizes=(0.5, 0.5)).sizes == (0.5, 0.5)
    with pytest.raises(ArgumentError, match="sizes are"):
        PatchConfig(sizes=(0.0, 3.0))
    with pytest.raises(ArgumentError, match="near is -0.5, wanted a share from 0 to 1"):
        PatchConfig(near=-0.5)
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
