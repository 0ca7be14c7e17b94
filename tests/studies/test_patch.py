"""Learning a patch: on a network whose weakness is known, the weakness is found."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

from lcv.data.random import Draws
from lcv.errors import ArgumentError, FileError
from lcv.models.types import FlowOutput
from lcv.studies.patch import OBJECTIVES, PatchConfig, frames_of, learn_patch
from testing import datasets as fake
from testing.painted import painted_pair

SIZE = (64, 80)
SMALL = PatchConfig(side=16, sizes=(14, 18), margin=4.0, steps=40, batch=2, rate=30.0)


class Redness(nn.Module):
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
    return itertools.repeat((dark.expand(2, -1, -1, -1), image2.expand(2, -1, -1, -1)))


def test_the_weakness_of_a_network_is_found():
    patch, values = learn_patch(Redness(), pairs(), SMALL)
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
        side=12, sizes=(10, 14), margin=margin, steps=2, batch=2, objective=objective
    )
    patch, _ = learn_patch(Local(), pairs(), config)
    start = Draws(config.seed, [0]).uniform("start", (3, 12, 12), 0, 255)[0]
    assert torch.equal(patch, start) != moves


def test_frames_of_a_dataset_come_again_in_other_orders(tmp_path):
    fake.chairs(tmp_path, 4)
    frames = frames_of(str(tmp_path), SMALL, SIZE)
    first = [next(frames) for _ in range(4)]
    second = [next(frames) for _ in range(4)]
    sums = [sorted(float(a.sum() + b.sum()) for a, b in each) for each in (first, second)]
    assert sums[0] == sums[1]
    assert len(set(sums[0])) == 4
    assert first[0][0].shape[:2] == (1, 3)


def test_refusals():
    with pytest.raises(ArgumentError, match="objective is 'cos', wanted one of change, cosine"):
        PatchConfig(objective="cos")
    with pytest.raises(ArgumentError, match="no recipe 'modest'; there are .*moderate"):
        PatchConfig(recipe="modest")
    with pytest.raises(ArgumentError, match="sizes are"):
        PatchConfig(sizes=(9.0, 3.0))
    with pytest.raises(ArgumentError, match="steps is 0, wanted at least 1"):
        PatchConfig(steps=0)
    with pytest.raises(ArgumentError, match="there were no frames"):
        learn_patch(Redness(), iter(()), SMALL)
