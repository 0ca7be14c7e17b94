"""Flow, occlusion and pixels: exact by their definitions, and equal to the slow truth."""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F

from lcv.cost_volume.conventions import pixel_grid
from lcv.cost_volume.warp import warp
from lcv.data.random import Draws
from lcv.data.synthetic.maps import apply_bend, apply_map, undo_bend
from lcv.data.synthetic.recipe import TRAINING
from lcv.data.synthetic.reference import Truth
from lcv.data.synthetic.render import flow_to, layer_coordinates, occluded_at, per_pixel, render
from lcv.data.synthetic.scene import Scene, draw_scene
from lcv.data.synthetic.textures import procedural_bank

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


def outline_distance(layer: torch.Tensor, reach: int) -> torch.Tensor:
    """True within `reach` pixels of a change of layer; (n, h, w) → (n, 1, h, w)."""
    size = 2 * reach + 1
    high = F.max_pool2d(layer[:, None], size, 1, reach)
    return high != -F.max_pool2d(-layer[:, None], size, 1, reach)


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


def test_flow_and_occlusion_equal_the_scalar_truth(scene, views, flow, occluded):
    h, w = scene.size
    wrong = 0
    for sample in range(12):
        truth = Truth(scene, sample)
        points = Draws(sample, [0]).integers("pixels", (14, 2), 0, 10**6)[0] % torch.tensor([w, h])
        for x, y in points.tolist():
            layer, _ = truth.shown(0, (x, y))
            found = views[0].layer[sample, y, x].item()
            if layer != found:
                # On the outline itself float32 may fall on the other side, but nowhere else.
                covering = max(layer, int(found))
                depth = truth.depth(covering, truth.layer_point(0, covering, (x, y)))
                assert abs(depth) < TEXEL
                continue
            expected = truth.flow(0, 1, (x, y))
            for axis in range(2):
                assert abs(flow[sample, axis, y, x].item() - expected[axis]) < 1e-3
            wrong += truth.occluded(0, 1, (x, y)) != occluded[sample, 0, y, x].item()
    assert wrong == 0


def test_colours_equal_the_scalar_truth_where_two_layers_meet_at_most(scene, views):
    h, w = scene.size
    compared = 0
    for sample in range(0, 12, 2):
        truth = Truth(scene, sample)
        points = Draws(sample, [1]).integers("pixels", (14, 2), 0, 10**6)[0] % torch.tensor([w, h])
        for x, y in points.tolist():
            for time in (0, 1):
                partial = [
                    layer
                    for layer, own in truth.covering(time, (x, y), least=-0.5)
                    if layer > 0 and truth.depth(layer, own) < 0.5
                ]
                if len(partial) > 1:
                    continue
                compared += 1
                expected = torch.tensor(truth.colour(time, (x, y)))
                found = views[time].image[sample, :, y, x]
                assert (found - expected).abs().max() < GREY_LEVEL
    assert compared > 140


def test_there_and_back_is_the_identity_where_visible(scene, views, flow, occluded):
    x = torch.arange(scene.size[1]) + flow[:, 0]
    y = torch.arange(scene.size[0])[:, None] + flow[:, 1]
    back = torch.zeros_like(flow)
    for layer in range(scene.layers):
        # The first frame is not bent.
        own = layer_coordinates(scene, 1, layer, x, y)
        numbers = scene.motion.to_frame[:, 0, layer].T[..., None, None]
        home = apply_map(*own, numbers, scene.motion.perspective)
        here = views[0].layer == layer
        back[:, 0] = torch.where(here, home[0] - x, back[:, 0])
        back[:, 1] = torch.where(here, home[1] - y, back[:, 1])
    error = (flow + back).norm(dim=1, keepdim=True)
    assert error[~occluded].max() < 1e-3


def test_the_second_frame_warped_back_is_the_first_where_visible():
    recipe = TRAINING.without_effects()
    bank = procedural_bank()
    scene = draw_scene(recipe, Draws(3, range(8)), (368, 496), 2, bank)
    first, second = render(scene, 0), render(scene, 1)
    flow = flow_to(scene, first, 1)
    visible = ~occluded_at(scene, first, flow, 1)
    error = (warp(second.image, flow) - first.image).abs().mean(1, keepdim=True)
    at_rest = (second.image - first.image).abs().mean(1, keepdim=True)
    assert torch.quantile(error[visible][::3], 0.95) < 2
    assert torch.quantile(at_rest[visible][::3], 0.95) > 10


def test_occlusion_equals_a_render_at_four_times_the_resolution(scene, views, flow, occluded):
    h, w = scene.size
    fine = enlarged(scene, 4)
    labels = render(fine, 1).layer
    x = torch.arange(w) + flow[:, 0]
    y = torch.arange(h)[:, None] + flow[:, 1]
    inside = (x >= 0) & (x <= w - 1) & (y >= 0) & (y <= h - 1)
    column = (4 * x + 1.5).round().long().clamp(0, 4 * w - 1)
    row = (4 * y + 1.5).round().long().clamp(0, 4 * h - 1)
    on_top = labels[torch.arange(len(labels))[:, None, None], row, column]
    brute = (~inside | (on_top > views[0].layer))[:, None]
    same = brute == occluded
    assert same.float().mean() >= 0.99
    near_here = outline_distance(views[0].layer, 1)
    # One pixel of the coarse frame is four of the fine one.
    near_fine = outline_distance(labels, 4)[:, 0]
    near_there = near_fine[torch.arange(len(labels))[:, None, None], row, column][:, None]
    away = ~(near_here | near_there)
    assert same[away].float().mean() >= 0.999
    assert away.float().mean() > 0.3


def enlarged(scene: Scene, factor: int) -> Scene:
    """The same scene with `factor` times as many pixels: X = factor·x + (factor − 1)/2."""
    move = (factor - 1) / 2
    grow = torch.tensor([[factor, 0, move], [0, factor, move], [0, 0, 1]], dtype=torch.float64)
    shrink = torch.linalg.inv(grow)
    motion = scene.motion
    forward = grow @ motion.to_frame.double().unflatten(-1, (3, 3))
    back = motion.to_layer.double().unflatten(-1, (3, 3)) @ shrink
    moved = replace(
        motion,
        to_frame=forward.flatten(-2).float(),
        to_layer=back.flatten(-2).float(),
        inverse_depth=(motion.inverse_depth.double() @ shrink).float(),
    )
    size = (scene.size[0] * factor, scene.size[1] * factor)
    return replace(scene, size=size, motion=moved)


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


def test_a_scene_without_objects_has_only_its_border_to_lose(bank):
    scene = draw_scene(replace(TRAINING, layers=1), Draws(2, range(3)), (47, 63), 2, bank)
    view = render(scene, 0)
    flow = flow_to(scene, view, 1)
    x = torch.arange(63) + flow[:, :1]
    y = torch.arange(47)[:, None] + flow[:, 1:]
    gone = (x < 0) | (x > 62) | (y < 0) | (y > 46)
    assert torch.equal(occluded_at(scene, view, flow, 1), gone)


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
