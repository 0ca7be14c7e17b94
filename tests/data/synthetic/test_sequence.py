"""Batches: shapes, sameness at any batch size and order, sequences, devices."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
import torch

from lcv.data.random import Draws
from lcv.data.synthetic.development import DEVELOPMENT
from lcv.data.synthetic.recipe import GENTLE, MIXED, QUICK, RECIPES, TRAINING
from lcv.data.synthetic.scene import draw_scene
from lcv.data.synthetic.sequence import Batch, generate, generate_sequence
from lcv.data.synthetic.settings import EFFECTS
from lcv.errors import ArgumentError

GREY_LEVEL = 1.0


def parameters(device, indices, bank, recipe=TRAINING) -> list[torch.Tensor]:
    scene = draw_scene(recipe, Draws(6, indices, device), (96, 128), 3, bank.to(device))
    values = [getattr(p, f.name) for p in (scene.motion, scene.skins) for f in fields(p)]
    return [value.cpu() for value in values if isinstance(value, torch.Tensor)]


@pytest.mark.parametrize("size", [(47, 63), (64, 96)])
def test_shapes_and_ranges(size, bank):
    batch = generate(TRAINING, 1, [3, 5], size, textures=bank)
    h, w = size
    for name, channels in (("image1", 3), ("image2", 3), ("flow", 2), ("backward", 2)):
        value = getattr(batch, name)
        assert value.shape == (2, channels, h, w)
        assert value.dtype == torch.float32
        assert value.isfinite().all()
    for name in ("occluded", "occluded_backward", "out_of_frame", "independent"):
        assert getattr(batch, name).shape == (2, 1, h, w)
        assert getattr(batch, name).dtype == torch.bool
    assert batch.image1.min() >= 0
    assert batch.image1.max() <= 255


def test_a_pair_is_the_same_at_any_batch_size_and_order(bank):
    together = generate(TRAINING, 2, range(9), (48, 72), textures=bank)
    shuffled = generate(TRAINING, 2, torch.tensor([7, 2, 4]), (48, 72), textures=bank)
    for field in fields(Batch):
        whole, part = getattr(together, field.name), getattr(shuffled, field.name)
        assert torch.equal(whole[[7, 2, 4]], part), field.name


# Of eight pairs of seed 5: mean, spread and roughness of the images, mean x and length of the flow,
# length of flow less backward, and how much is occluded and moves by itself, in %.
AS_EVER = {
    "flat, all effects": (144.024, 42.565, 5.158, 0.385, 10.585, 19.629, 35.041, 24.859),
    "space": (123.001, 51.715, 11.062, -0.601, 4.023, 7.182, 19.361, 7.165),
    "street": (121.325, 56.229, 6.874, 0.188, 4.586, 8.922, 14.091, 4.044),
    "cylinders": (123.732, 51.353, 7.447, -0.342, 12.296, 21.013, 41.081, 47.070),
    "training": (127.812, 53.415, 7.819, 0.685, 18.548, 34.610, 48.217, 23.702),
}


@pytest.mark.parametrize("name", AS_EVER)
def test_a_seed_gives_the_pairs_that_it_always_gave(name, bank):
    """Weights, tables and ablations name recipe and seed alone, and are of those pairs."""
    every = {"flat, all effects": replace(GENTLE, **dict.fromkeys(EFFECTS, 1.0))}
    batch = generate((every | DEVELOPMENT | RECIPES)[name], 5, range(8), (48, 72), textures=bank)
    images, flow = torch.stack((batch.image1, batch.image2)), batch.flow
    found = (
        images.mean(),
        images.std(),
        images.diff(dim=-1).abs().mean(),
        flow[:, 0].mean(),
        flow.norm(dim=1).mean(),
        (flow - batch.backward).norm(dim=1).mean(),
        100 * batch.occluded.float().mean(),
        100 * batch.independent.float().mean(),
    )
    # One pixel that goes to another layer by rounding makes 0.004 %.
    assert [float(value) for value in found] == pytest.approx(AS_EVER[name], rel=0, abs=0.02)


def test_masks_tell_what_leaves_and_what_moves_by_itself(bank):
    size = (48, 72)
    batch = generate(MIXED, 2, range(8), size, textures=bank)
    x = torch.arange(size[1]) + batch.flow[:, :1]
    y = torch.arange(size[0])[:, None] + batch.flow[:, 1:]
    gone = (x < 0) | (x > size[1] - 1) | (y < 0) | (y > size[0] - 1)
    assert torch.equal(batch.out_of_frame, gone)
    assert not (batch.out_of_frame & ~batch.occluded).any()
    # In a flat scene that is everything but the background, which is what stays without objects.
    flat = generate(QUICK, 2, range(4), size, textures=bank)
    empty = generate(replace(QUICK, layers=1), 2, range(4), size, textures=bank)
    apart = (flat.flow - empty.flow).norm(dim=1, keepdim=True) > 0.05
    assert (apart <= flat.independent).all()
    assert 0.1 < flat.independent.float().mean() < 0.9


def test_parameters_are_bit_equal_at_any_batch_size_and_order(bank):
    together = parameters("cpu", range(50, 80), bank)
    apart = [parameters("cpu", [k], bank) for k in range(79, 49, -1)]
    for k, whole in enumerate(together):
        assert torch.equal(whole, torch.cat([one[k] for one in apart[::-1]]))


def test_seeds_and_indices_give_different_pairs(bank):
    one, two = (generate(QUICK, seed, [0, 1], (48, 72), textures=bank) for seed in (1, 2))
    assert (one.image1[0] - one.image1[1]).abs().mean() > 5
    assert (one.image1[0] - two.image1[0]).abs().mean() > 5
    assert not torch.allclose(one.flow, two.flow, atol=0.1)


def test_a_sequence_begins_with_the_pair_and_goes_on(bank):
    pair = generate(TRAINING, 3, range(3), (48, 72), textures=bank)
    long = generate_sequence(TRAINING, 3, range(3), (48, 72), frames=4, textures=bank)
    assert long.images.shape == (3, 4, 3, 48, 72)
    assert long.flow.shape == long.backward.shape == (3, 3, 2, 48, 72)
    assert long.occluded.shape == long.occluded_backward.shape == (3, 3, 1, 48, 72)
    assert torch.equal(long.images[:, 0], pair.image1)
    assert torch.equal(long.images[:, 1], pair.image2)
    assert torch.equal(long.flow[:, 0], pair.flow)
    assert torch.equal(long.backward[:, 0], pair.backward)
    assert torch.equal(long.occluded[:, 0], pair.occluded)
    assert not torch.equal(long.flow[:, 0], long.flow[:, 1])


def test_every_step_of_a_sequence_is_a_true_pair(bank):
    """Where the flow of step t lands on a visible point, the backward flow there leads back."""
    recipe = replace(QUICK.without_effects(), kinds=(1.0, 1.0, 0.0, 0.0, 0.0))
    long = generate_sequence(recipe, 3, range(4), (96, 128), frames=4, textures=bank)
    grid_x, grid_y = torch.arange(128), torch.arange(96)[:, None]
    for step in range(3):
        flow, backward = long.flow[:, step], long.backward[:, step]
        x, y = (grid_x + flow[:, 0]).round().long(), (grid_y + flow[:, 1]).round().long()
        visible = ~long.occluded[:, step, 0]
        x, y = x.clamp(0, 127), y.clamp(0, 95)
        n = torch.arange(4)[:, None, None]
        residual = (flow + backward.movedim(1, -1)[n, y, x].movedim(-1, 1)).norm(dim=1)[visible]
        # The nearest pixel is at most 0.7 px away, and flow varies by a few per cent a pixel.
        assert torch.quantile(residual, 0.9) < 0.1


def test_autocast_around_it_changes_nothing(bank):
    plain = generate(TRAINING, 3, [1], (48, 72), textures=bank)
    with torch.autocast("cpu", torch.bfloat16):
        inside = generate(TRAINING, 3, [1], (48, 72), textures=bank)
    for field in fields(Batch):
        assert torch.equal(getattr(plain, field.name), getattr(inside, field.name)), field.name


def test_refusals(bank):
    with pytest.raises(ArgumentError, match="frames is 1, wanted 2 or more"):
        generate_sequence(QUICK, 0, [0], (48, 72), frames=1, textures=bank)
    with pytest.raises(ArgumentError, match="size is 48×7, wanted at least 16×16"):
        generate(QUICK, 0, [0], (48, 7), textures=bank)
    with pytest.raises(ArgumentError, match=r"texture bank is \(8, 192, 192\)"):
        generate(QUICK, 0, [0], (48, 72), textures=bank[:, 0])
    with pytest.raises(ArgumentError, match="texture bank is on meta"):
        generate(QUICK, 0, [0], (48, 72), textures=bank.to("meta"))


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["training", "gentle", "space", "street"])
def test_parameters_are_bit_equal_on_cuda(name, bank):
    here, there = (parameters(at, range(300), bank, RECIPES[name]) for at in ("cpu", "cuda"))
    for one, other in zip(here, there, strict=True):
        assert torch.equal(one, other)


@pytest.mark.gpu
def test_pixels_and_flow_agree_on_cuda(bank):
    here = generate(TRAINING, 1, range(12), (96, 128), textures=bank)
    there = generate(TRAINING, 1, range(12), (96, 128), "cuda", textures=bank.cuda())
    # An outline may fall on the other side of a pixel centre by rounding; flow jumps there.
    same = (here.flow - there.flow.cpu()).abs().amax(1, keepdim=True) < 1e-3
    assert same.float().mean() > 0.9999
    for name in ("image1", "image2"):
        difference = (getattr(here, name) - getattr(there, name).cpu()).abs()
        assert difference.max() < GREY_LEVEL
    assert (here.occluded == there.occluded.cpu()).float().mean() > 0.9999


@pytest.mark.gpu
def test_generate_never_waits_for_the_device(bank):
    textures = bank.cuda()
    for _ in range(2):  # tables are made by the first, plans of draws by the second
        generate(MIXED, 1, range(12), (96, 128), "cuda", textures=textures)
    torch.cuda.set_sync_debug_mode("error")
    try:
        generate(MIXED, 1, range(12), (96, 128), "cuda", textures=textures)
    finally:
        torch.cuda.set_sync_debug_mode("default")
