"""Validation: chosen splits, shares that make up the whole, and an error to compare with."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import nn

from lcv.data.formats.image import read_image, write_image
from lcv.data.random import Draws
from lcv.data.synthetic.recipe import RECIPES
from lcv.data.synthetic.render import render
from lcv.data.synthetic.scene import draw_scene
from lcv.data.synthetic.textures import procedural_bank
from lcv.errors import ArgumentError, FileError, LcvError
from lcv.evaluate.sources import records_in
from lcv.losses.census import census_loss
from lcv.models.types import FlowOutput
from lcv.recipes import load_recipe
from lcv.train import LossConfig, SplitConfig
from lcv.train.distributed import Processes
from lcv.train.validate import HELD_OUT_SEED, PAIRS, SAMPLES, Validation, held_out_pairs
from testing import datasets

CPU = torch.device("cpu")
ALONE = Processes(0, 1, CPU)


class Still(nn.Module):
    """Sees no motion, and keeps what it was called with."""

    def __init__(self) -> None:
        super().__init__()
        self.nothing = nn.Parameter(torch.zeros(1))
        self.frozen = nn.Dropout().eval()
        self.calls: list[dict] = []

    def forward(self, image1, image2, **options):
        assert not self.training
        self.calls.append(options)
        return FlowOutput(flow=torch.zeros_like(image1[:, :2]))


@pytest.fixture
def sintel(tiny, tmp_path):
    """A run's configuration, with a fake of Sintel below its root: 3 + 2 pairs a pass."""
    datasets.sintel(tmp_path / "Sintel", {"alley_1": 4, "cave_2": 3}, test={"cave_3": 2})
    config = tiny(validate_every=1)
    return replace(config, data=replace(config.data, root=str(tmp_path)))


def validation_of(config, **splits) -> Validation:
    return Validation(replace(config, validation=splits), ALONE)


def test_no_motion_has_the_error_of_zero_flow(tiny):
    config = tiny(validation={"p": "procedural"}, validate_iters=3)
    model = Still()
    results = Validation(config, ALONE)(model)
    truth = torch.cat([flow for _, _, flow, _ in held_out_pairs(config, CPU)])
    assert results["p/epe"] == results["p/zero_flow_epe"]
    assert results["p/epe"] == pytest.approx(float(truth.double().norm(dim=1).mean()), rel=1e-12)
    assert all(call == {"iters": 3} for call in model.calls)
    assert model.training
    assert not model.frozen.training


def test_a_split_is_chosen_by_the_datasets_own_options(sintel, tmp_path):
    one_pass = SplitConfig("sintel", options={"passes": ["final"]})
    held_out = SplitConfig("sintel", "Sintel", {"scenes": "vcn-val"})
    found = validation_of(sintel, a=one_pass, b=held_out, c=str(tmp_path / "Sintel")).records
    assert [len(found[name]) for name in "abc"] == [5, 1, 10]
    assert all(record.name.startswith("final/") for record in found["a"])
    assert {record.scene for record in found["b"]} == {"cave_2"}


@pytest.mark.parametrize(
    ("where", "error", "message"),
    [
        (SplitConfig("sintle"), ArgumentError, "validation.x: there is no dataset 'sintle', want"),
        (SplitConfig("chairs"), FileError, "validation.x: .*FlyingChairs"),
        (
            SplitConfig("sintel", options={"pass": "final"}),
            ArgumentError,
            "validation.x: sintel has no option 'pass', wanted one of split, passes, scenes",
        ),
        (
            SplitConfig("sintel", options={"split": "test"}),
            ArgumentError,
            "validation.x: no pair of sintel-test has truth; choose another split",
        ),
        ("/none", ArgumentError, "validation.x: there is no /none; wanted a dataset, or the words"),
    ],
)
def test_what_cannot_be_validated_on_is_said_when_the_run_begins(sintel, where, error, message):
    with pytest.raises(error, match=message):
        validation_of(sintel, x=where)


def test_what_is_wrong_with_a_folder_is_said_with_the_name_of_its_split(sintel, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(LcvError) as plain:
        records_in([str(tmp_path / "empty")])
    with pytest.raises(type(plain.value)) as caught:
        validation_of(sintel, x=str(tmp_path / "empty"))
    assert str(caught.value) == f"validation.x: {plain.value}"


def test_the_held_out_pairs_are_always_the_same(tiny, monkeypatch):
    """48 scenes of a seed of their own, on which every number of a procedural validation rests."""
    asked = []

    def made(recipe, seed, indices, size, device, textures):
        asked.append((recipe, seed, list(indices), size, textures))
        flow = torch.zeros(len(indices), 2, 2, 2)
        return SimpleNamespace(image1=flow, image2=flow, flow=flow, occluded=flow[:, :1] > 0)

    monkeypatch.setattr("lcv.train.validate.generate", made)
    monkeypatch.setattr("lcv.train.validate.texture_bank", lambda _, part, __: part)
    config = tiny()
    for _, _, _, valid in held_out_pairs(config, CPU):
        assert valid.all()
    eights = [list(range(k, k + 8)) for k in range(0, 48, 8)]
    assert asked == [(RECIPES["quick"], 1 << 31, each, (64, 64), "held-out") for each in eights]
    asked.clear()
    files = replace(config, data=replace(config.data, source="files"))
    assert len(list(held_out_pairs(files, CPU, 1, 4))) == 2
    assert [(recipe, indices) for recipe, _, indices, _, _ in asked] == [
        (RECIPES["training"], eights[1]),
        (RECIPES["training"], eights[5]),
    ]


def test_of_many_pairs_without_truth_up_to_16_are_compared(tiny, tmp_path):
    for k in range(34):
        (tmp_path / f"{k:02d}.png").touch()
    config = tiny(
        validate_every=1,
        loss=LossConfig("unsupervised", iters=None),
        validation={"film": SplitConfig("frames")},
        best="film/census",
    )
    config = replace(config, data=replace(config.data, root=str(tmp_path)))
    found = Validation(config, ALONE)
    assert [record.name[-2:] for record in found.without_truth["film"]] == [
        f"{k:02d}" for k in range(0, 33, 3)
    ]
    assert found.records == {}
    found.check_best()
    with pytest.raises(ArgumentError, match="best is 'film/epe', .* less is better: film/census$"):
        Validation(replace(config, best="film/epe"), ALONE).check_best()
    Validation(replace(config, best="film/epe", validate_every=0), ALONE).check_best()
    Validation(replace(config, best="film/epe", validation={}), ALONE).check_best()


def test_a_frame_that_is_smaller_than_the_crop_is_seen_whole(tiny):
    image = np.arange(30 * 70 * 3, dtype=np.uint8).reshape(30, 70, 3)
    record = SimpleNamespace(read=lambda: SimpleNamespace(image1=image, image2=image[::-1]))
    one, two = Validation(tiny(), ALONE)._middles(record, torch.float64)
    wanted = torch.from_numpy(image[:, 3:67].copy()).movedim(2, 0)[None].double()
    assert torch.equal(one, wanted)
    assert torch.equal(two, wanted.flip(2))


def test_pairs_that_are_kept_have_the_name_of_their_dataset(tiny, monkeypatch):
    asked = []
    monkeypatch.setattr("lcv.train.validate.held_out_pairs", lambda *words: iter([words[1:]]))

    class Named:
        def pairs(self, name, make):
            asked.append(name)
            return make()

    config = tiny(validate_every=1, validation={"p": "procedural"})
    assert list(Validation(config, ALONE, Named())._share("p")) == [(CPU, 0, 1)]
    assert asked == ["validation p"]
    assert list(Validation(config, ALONE)._share("p")) == [(CPU, 0, 1)]
    assert len(asked) == 1


def test_a_run_that_never_validates_needs_no_dataset(sintel):
    config = replace(sintel, validation={"x": SplitConfig("chairs")}, validate_every=0)
    assert Validation(config, ALONE).records == {}


def test_the_shares_of_processes_make_up_the_whole(sintel):
    config = replace(sintel, validation={"p": "procedural", "s": SplitConfig("sintel")})

    def flows(rank: int, world: int, name: str) -> list[torch.Tensor]:
        share = Validation(config, Processes(rank, world, CPU))._share(name)
        return [flow for pair in share for flow in pair[2]]

    for name, count in (("p", PAIRS), ("s", 5)):
        whole = flows(0, 1, name)
        assert len(whole) == count
        apart = [flow for rank in range(3) for flow in flows(rank, 3, name)]
        assert len(apart) == count
        assert all(any(torch.equal(a, b) for b in apart) for a in whole)


def test_the_first_pairs_are_shown(tiny, sintel):
    config = replace(sintel, validation={"p": "procedural", "s": SplitConfig("sintel")})
    shown = {}
    Validation(config, ALONE)(Still(), shown.__setitem__)
    assert SAMPLES == 4
    assert list(shown) == [f"{name}/{i}" for name in "ps" for i in range(SAMPLES)]
    first = next(held_out_pairs(config, CPU))
    for i in range(SAMPLES):
        judged = shown[f"p/{i}"]
        assert torch.equal(judged.image, first[0][i])
        assert torch.equal(judged.truth, first[2][i])
        assert judged.flow.count_nonzero() == 0


def test_the_scenes_that_quick_is_judged_by():
    """At least 3 layers, 4 to 8 px of motion in the mean, textures of their own, for every seed."""
    config = load_recipe("quick")
    truth = torch.cat([flow for _, _, flow, _ in held_out_pairs(config, CPU)])
    assert 4 < float(truth.norm(dim=1).mean()) < 8

    recipe, held_out = RECIPES[config.data.recipe], procedural_bank("held-out")
    assert recipe.layers >= 3
    scene = draw_scene(recipe, Draws(HELD_OUT_SEED, range(PAIRS)), config.data.size, 2, held_out)
    visible = [len(shown.unique()) for shown in render(scene, 0).layer]
    assert sum(count >= 3 for count in visible) >= 0.95 * PAIRS  # now and then one hides another

    assert not any(torch.equal(a, b) for a in procedural_bank() for b in held_out)
    other = next(held_out_pairs(replace(config, seed=1), CPU))[2]
    assert torch.equal(other, truth[: len(other)])


class Moved(nn.Module):
    """Sees the same motion everywhere, and its reverse from the other side."""

    def __init__(self, shift) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.tensor(shift)[None, :, None, None])
        self.seen = []

    def forward(self, image1, image2):
        self.seen += [image1, image2]
        flow = self.shift.expand(len(image1), 2, *image1.shape[2:])
        return FlowOutput(flow=flow, backward=FlowOutput(flow=-flow))


@pytest.fixture
def panned(tiny, tmp_path):
    """A run without truth, and ten frames of a picture that is panned by 3 px, 40 × 64 seen of it."""
    wide = procedural_bank(count=1, size=192)[0].permute(1, 2, 0).numpy()
    (tmp_path / "films").mkdir()
    for k in range(10):
        write_image(tmp_path / "films" / f"{k}.png", wide[20:70, 3 * k : 3 * k + 80].copy())
    config = tiny(validate_every=1, loss=LossConfig("unsupervised", iters=None))
    return replace(config, data=replace(config.data, root=str(tmp_path / "films"), size=(40, 64)))


def test_without_truth_the_census_loss_of_the_middles_is_told(panned):
    split = SplitConfig("frames", options={"part": "held-out"})
    validation = validation_of(panned, film=split)
    resting = Moved((0.0, 0.0))
    still, right = validation(resting), validation(Moved((-3.0, 0.0)))
    assert still["film/census"] == still["film/zero_flow_census"] == right["film/zero_flow_census"]
    # Little but the edge over which new pixels enter does not match.
    assert right["film/census"] < 0.5 * still["film/census"]
    middles = [
        torch.from_numpy(read_image(panned.data.root + f"/{k}.png")[5:45, 8:72].copy())
        for k in (7, 8, 9)
    ]
    frames = [middle.movedim(2, 0)[None].float() for middle in middles]
    assert torch.equal(torch.cat(resting.seen), torch.cat([*frames[:2], *frames[1:]]))
    flow = torch.zeros(1, 2, 40, 64)
    losses = [census_loss(a, b, flow, flow) for a, b in pairwise(frames)]
    assert still["film/census"] == pytest.approx(float(sum(losses)) / 2, rel=1e-6)


def test_a_network_without_backward_flow_cannot_be_judged_by_frames(panned):
    with pytest.raises(ArgumentError, match=r"validation.film: .*gives no backward flow"):
        validation_of(panned, film=SplitConfig("frames"))(Still())


class Met(Processes):
    """Processes that are threads: a sum waits until each has come to it."""

    meeting = threading.Barrier(3, timeout=10)
    brought: ClassVar[list[torch.Tensor]] = []

    def sum(self, value):
        self.brought.append(value)
        self.meeting.wait()
        return torch.stack(self.brought).sum(0)


def test_processes_without_a_pair_of_their_own_refuse_it_too(panned):
    """Two pairs for three processes: the third has none to see the network by."""
    split = SplitConfig("frames", options={"part": "held-out"})
    config = replace(panned, validation={"film": split})

    def refusal(rank: int) -> str:
        try:
            Validation(config, Met(rank, 3, CPU))(Still())
        except ArgumentError as error:
            return str(error)
        except threading.BrokenBarrierError:
            return "waited in vain"
        return "measured"

    with ThreadPoolExecutor(3) as threads:
        told = list(threads.map(refusal, range(3)))
    assert len({*told}) == 1
    assert "gives no backward flow" in told[0]
