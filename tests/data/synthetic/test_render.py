"""Flow, occlusion and pixels: exact by their definitions, and equal to the slow truth."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from lcv.cost_volume.conventions import pixel_grid
from lcv.data.random import Draws
from lcv.data.synthetic.maps import apply_bend, apply_map, undo_bend
from lcv.data.synthetic.recipe import FRAMED, GENTLE, SPACE, STREET, TRAINING
from lcv.data.synthetic.reference import Truth
from lcv.data.synthetic.render import flow_to, hidden_at, per_pixel, render
from lcv.data.synthetic.scene import Scene, draw_scene
from testing.exactness import enlarged, outline_within

SIZE = (64, 88)
KINDS = {
    "training": TRAINING.without_effects(),
    "space": replace(SPACE, layers=8, objects=(2, 4)).without_effects(),
    "framed": replace(FRAMED, layers=8, objects=(3, 7)).without_effects(),
    "cylinders": replace(GENTLE, layers=5, objects=None, round_probability=0.8).without_effects(),
}
TEXEL = 1e-3
GREY_LEVEL = 1.0


def own_point(scene: Scene, time: int, layer, x, y):
    """(u, v) in float64 of the given layer at points of a frame, by the inverse of `to_frame`."""
    motion = scene.motion
    matrix = motion.to_frame[:, time].double().unflatten(-1, (3, 3))
    u, v = apply_map(x, y, per_pixel(torch.linalg.inv(matrix).flatten(2), layer), True)
    return undo_bend(u, v, *shears(scene, time, layer))


def shears(scene: Scene, time: int, layer: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The bend and wave, in float64, of the layer that each pixel shows."""
    bend, wave = scene.motion.bend[:, time].double(), scene.motion.wave.double()
    return (
        per_pixel(bend.flatten(2), layer).unflatten(0, bend.shape[-2:]),
        per_pixel(wave.flatten(2), layer).unflatten(0, wave.shape[-2:]),
    )


def test_scenes_hold_every_kind_of_thing(scene, views, occluded):
    counts = torch.bincount(views[0].layer.long().flatten(), minlength=scene.layers)
    assert (counts > 0).all()
    assert 0.02 < occluded.float().mean() < 0.6
    assert (scene.motion.bend[:, 1] != 0).any()


def test_both_maps_meet_in_one_texel(scene, views):
    """|B(x + flow) − A(x)| < 10⁻³ texels everywhere, forwards and backwards."""
    grid = pixel_grid(*scene.size, dtype=torch.float64)
    for here, there in ((0, 1), (1, 0), (1, 2)):
        view = views[here]
        flow = flow_to(scene, view, there).double()
        start = own_point(scene, here, view.layer, grid[0], grid[1])
        end = own_point(scene, there, view.layer, grid[0] + flow[:, 0], grid[1] + flow[:, 1])
        texels = per_pixel(scene.skins.place.double(), view.layer)[[0, 2]].abs()
        for axis in range(2):
            assert ((end[axis] - start[axis]).abs() * texels[axis]).max() < TEXEL


@pytest.mark.parametrize("kind", KINDS)
def test_flow_and_occlusion_equal_the_scalar_truth(kind, bank):
    scene = draw_scene(KINDS[kind], Draws(5, range(10)), SIZE, 2, bank)
    view = render(scene, 0)
    flow = flow_to(scene, view, 1)
    occluded, _ = hidden_at(scene, view, flow, 1)
    h, w = scene.size
    compared = 0
    for sample in range(10):
        truth = Truth(scene, sample)
        points = Draws(sample, [0]).integers("pixels", (14, 2), 0, 10**6)[0] % torch.tensor([w, h])
        for x, y in points.tolist():
            layer, _ = truth.shown(0, (x, y))
            found = int(view.layer[sample, y, x])
            if layer != found:
                # On an outline or a crossing float32 may fall on the other side, nowhere else.
                depths = [abs(truth.depth(0, one, (x, y))) for one in (layer, found)]
                near = [truth.nearness(0, one, (x, y)) for one in (layer, found)]
                assert min(depths) < TEXEL or abs(near[0] - near[1]) < 1e-6
                continue
            expected = truth.flow(0, 1, (x, y))
            for axis in range(2):
                assert abs(flow[sample, axis, y, x].item() - expected[axis]) < 1e-3
            assert truth.occluded(0, 1, (x, y)) == occluded[sample, 0, y, x].item()
            compared += 1
    assert compared > 130


@pytest.mark.parametrize("kind", KINDS)
def test_colours_equal_the_scalar_truth_where_two_layers_meet_at_most(kind, bank):
    scene = draw_scene(KINDS[kind], Draws(6, range(6)), SIZE, 2, bank)
    views = [render(scene, time) for time in (0, 1)]
    h, w = scene.size
    compared = 0
    for sample in range(6):
        truth = Truth(scene, sample)
        points = Draws(sample, [1]).integers("pixels", (10, 2), 0, 10**6)[0] % torch.tensor([w, h])
        for x, y in points.tolist():
            for time in (0, 1):
                partial = [k for k, share in truth.paints(time, (x, y)) if k and share < 1]
                if len(partial) > 1:
                    continue
                compared += 1
                expected = torch.tensor(truth.colour(time, (x, y)))
                found = views[time].image[sample, :, y, x]
                assert (found - expected).abs().max() < GREY_LEVEL
    assert compared > 90


def test_the_scalar_truth_stays_within_the_range_of_grey_levels(scene, monkeypatch):
    truth = Truth(scene, 0)
    monkeypatch.setattr(truth, "texture", lambda layer, own: [-3.0, 100.0, 258.0])
    assert truth.colour(0, (5, 5)) == pytest.approx([0.0, 100.0, 255.0])


def test_edges_are_smooth(scene, views):
    """Coverage at four times the resolution, averaged, is the coverage mixed into the pixels."""
    black, white = torch.zeros_like(scene.skins.gain), torch.full_like(scene.skins.gain, 255.0)
    white[:, 0] = 0
    flat = replace(scene, skins=replace(scene.skins, gain=black, offset=white))
    coverage = render(flat, 0).image[:, 0] / 255
    fine = (render(enlarged(scene, 4), 0).layer > 0).float()
    average = F.avg_pool2d(fine[:, None], 4)[:, 0]
    edge = (average > 0) & (average < 1)
    assert edge.float().mean() > 0.02
    # Sixteen samples a pixel know the coverage to about 1/16, a jagged edge only to 1/2.
    jagged = ((views[0].layer > 0).float() - average).abs()[edge].mean()
    smooth = (coverage - average).abs()[edge].mean()
    assert smooth < jagged / 3


def test_a_shadow_darkens_what_is_behind_and_moves_nothing(bank):
    street = replace(STREET.without_effects(), object_size=(0.4, 0.6))
    scene = draw_scene(street, Draws(2, range(4)), SIZE, 2, bank)
    shaded = draw_scene(replace(street, shadow=1.0), Draws(2, range(4)), SIZE, 2, bank)
    for time in (0, 1):
        bright, dark = render(scene, time), render(shaded, time)
        assert torch.equal(bright.layer, dark.layer)
        assert torch.equal(bright.u, dark.u)
        lost = (bright.image - dark.image).mean(1)
        assert lost.min() > -1e-3
        assert (lost[bright.layer == 0] > 5).float().mean() > 0.02
        # The front object is in nobody's shadow, away from its edge.
        front = bright.layer == scene.motion.inverse_depth[:, 0, :, 2].argmax(1)[:, None, None]
        inner = (front & ~outline_within(bright.layer, 1))[:, 1:-1, 1:-1]
        assert inner.any()
        assert lost[:, 1:-1, 1:-1][inner].max() < 1e-3


def test_an_edge_of_its_own_colour_changes_objects_near_their_outline_alone(bank):
    solid = {"kinds": (0.5, 0.5, 0.0, 0.0, 0.0), "cut_probability": 0.0, "object_size": (0.4, 0.6)}
    recipe = replace(GENTLE.without_effects(), layers=3, objects=None, **solid)
    scene = draw_scene(recipe, Draws(2, range(4)), SIZE, 2, bank)
    trimmed = draw_scene(replace(recipe, trim_probability=1.0), Draws(2, range(4)), SIZE, 2, bank)
    for time in (0, 1):
        plain, framed = render(scene, time), render(trimmed, time)
        assert torch.equal(plain.layer, framed.layer)
        changed = (plain.image - framed.image).abs().amax(1) > 1e-3
        on_outline = outline_within(plain.layer, 2)
        assert not changed[(plain.layer == 0) & ~on_outline].any()
        assert changed[~outline_within(plain.layer, 12)].float().mean() < 0.02
        near = (plain.layer > 0) & on_outline
        assert changed[near].float().mean() > 0.4


def test_a_scene_without_objects_has_only_its_border_to_lose(bank):
    scene = draw_scene(replace(TRAINING, layers=1), Draws(2, range(3)), (47, 63), 2, bank)
    view = render(scene, 0)
    flow = flow_to(scene, view, 1)
    x = torch.arange(63) + flow[:, :1]
    y = torch.arange(47)[:, None] + flow[:, 1:]
    gone = (x < 0) | (x > 62) | (y < 0) | (y > 46)
    for found in hidden_at(scene, view, flow, 1):
        assert torch.equal(found, gone)


def test_consecutive_flows_compose_along_each_layer(scene, views, flow):
    """Two steps, one after the other on the same layer, lead where a flow over both steps leads."""
    direct = flow_to(scene, views[0], 2)
    x = torch.arange(scene.size[1]) + flow[:, 0].double()
    y = torch.arange(scene.size[0])[:, None] + flow[:, 1].double()
    u, v = own_point(scene, 1, views[0].layer, x, y)
    u, v = apply_bend(u, v, *shears(scene, 2, views[0].layer))
    numbers = per_pixel(scene.motion.to_frame[:, 2].double(), views[0].layer)
    end = apply_map(u, v, numbers, True)
    grid = pixel_grid(*scene.size, dtype=torch.float64)
    composed = torch.stack((end[0] - grid[0], end[1] - grid[1]), 1)
    assert (composed - direct).abs().max() < 1e-3
