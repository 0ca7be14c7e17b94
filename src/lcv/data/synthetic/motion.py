"""Where the layers of flat scenes are in each frame: affine maps, bends, and which is in front.

A flat scene is a stack of layers: its maps are affine and its inverse depths are constant, 1 for
the background and one more for each layer in front. What the maps mean is in `maps.py`. Writing A
for "to layer" at the first time and B at the second, the flow of a layer is B⁻¹(A(x)) − x.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lcv.data.random import Draws, exp_exactly
from lcv.data.synthetic.bends import between, changing, draw_bends, draw_relief, power_of_ten
from lcv.data.synthetic.maps import affine_inverse, homography
from lcv.data.synthetic.settings import Recipe
from lcv.data.synthetic.shapes import draw_places, draw_round

ABSENT = -1.0
"""The inverse depth of a layer that is not there: behind the background, which is everywhere."""
FARTHEST_ROLL = 0.32
"""A cylinder turned farther would show what lies beyond its outline's grid."""


@dataclass(frozen=True)
class Motion:
    """The maps of n scenes, T times, L layers (0 is the background, which covers everything).

    to_frame, to_layer: (n, T, L, 9) homographies and their inverses
    bend: (n, T, L, K, 2) and wave: (n, L, K, 3 + 2(octaves − 1)): K shears, see `maps.py`
    inverse_depth: (n, T, L, 3) a, b, c; of the layers that cover a point (x, y) of the frame the
        one with the largest a x + b y + c is seen
    radius: (n, L, 2) pixels per unit
    independent: (n, L) bool, whether a layer moves by itself and not only with the camera
    roll: (n, T, L, 2), whether a layer is a cylinder, 1 or 0, and how far it has turned
    perspective, cylinders: whether any map may divide by other than 1, any layer be a cylinder
    """

    to_frame: Tensor
    to_layer: Tensor
    bend: Tensor
    wave: Tensor
    inverse_depth: Tensor
    radius: Tensor
    independent: Tensor
    roll: Tensor
    perspective: bool
    cylinders: bool


def draw_motion(recipe: Recipe, draws: Draws, size: tuple[int, int], times: int) -> Motion:
    """The motion of n flat scenes over `times` frames, worked out in float64, kept in float32.

    Facts: bit-equal on every device; the first k frames are the same whatever `times` is.
    """
    n, objects = len(draws), recipe.layers - 1
    h, w = size
    steps = times - 1
    speed = draws.log_normal("speed", (1,), recipe.speed_sigma).clamp(*recipe.speed_range).double()
    gentle = draw_gentleness(recipe, draws, speed)

    radius, places = draw_places(recipe, draws, size)
    shift = draw_shifts(recipe, draws, speed, size, steps)  # (n, steps, L, 2)
    linear = draw_linear(recipe, draws, gentle, steps)  # (n, steps, L, 4)

    middle = torch.stack(
        (radius.new_full((n, 1), (w - 1) / 2), radius.new_full((n, 1), (h - 1) / 2)), -1
    )  # (n, 1, 2)
    if objects:
        # Half the first shift back: as many objects leave the view as enter it.
        start = places - 0.5 * shift[:, 0, 1:]
        centre = torch.cat((middle, start), 1)  # (n, L, 2)
    else:
        centre = middle
    lin = draw_stance(recipe, draws, radius)  # (n, L, 4)
    share = draws.uniform("camera share", (recipe.layers, 1), *recipe.camera_share).double()

    maps = [_affine(lin, centre)]
    for step in range(steps):
        camera = linear[:, step, :1]  # (n, 1, 4)
        carried = _times_vector(camera, centre - middle) + middle - centre + shift[:, step, :1]
        own = torch.cat((torch.zeros_like(middle), shift[:, step, 1:]), 1)
        part = torch.cat((torch.ones_like(share[:, :1]), share[:, 1:]), 1)
        centre = centre + part * carried + own
        lin = _times(camera, lin)
        if objects:
            lin = torch.cat((lin[:, :1], _times(linear[:, step, 1:], lin[:, 1:])), 1)
        maps.append(_affine(lin, centre))
    to_frame = torch.stack(maps, 1)  # (n, T, L, 6)
    if recipe.relief_probability > 0:
        across = to_frame[:, 1] - to_frame[:, 0]
        moved = length(across[..., 2], across[..., 5])
        bend, wave = draw_relief(recipe, draws, moved, radius, times)
    else:
        bend, wave = draw_bends(recipe, draws, gentle, radius, times)
    present = draw_presence(recipe, draws, 1)
    order = torch.arange(1, recipe.layers + 1, device=radius.device).expand(n, -1)
    order = torch.where(present, order, ABSENT).float()
    nothing = torch.zeros_like(order)
    inverse_depth = torch.stack((nothing, nothing, order), -1)  # (n, L, 3)
    return Motion(
        to_frame=homography(to_frame).float(),
        to_layer=homography(affine_inverse(to_frame)).float(),
        bend=bend.float(),
        wave=wave.float(),
        inverse_depth=inverse_depth[:, None].expand(-1, times, -1, -1),
        radius=radius.float(),
        independent=(torch.arange(recipe.layers, device=radius.device) > 0).expand(n, -1),
        roll=draw_roll(recipe, draws, speed.clamp(max=1.0), times),
        perspective=False,
        cylinders=recipe.round_probability > 0,
    )


def draw_presence(recipe: Recipe, draws: Draws, first: int) -> Tensor:
    """Which layers are there, (n, L) bool: all before `first`, then as many as there are objects."""
    number = torch.arange(recipe.layers, device=draws.device).expand(len(draws), -1)
    if recipe.objects is None:
        return number >= 0
    low, high = recipe.objects
    return number < first + draws.integers("objects", (1,), low, high + 1)


def draw_gentleness(recipe: Recipe, draws: Draws, speed: Tensor) -> Tensor:
    """What turns, zooms, shears and bends are multiplied by, (n, 1 or L): they fade with shifts."""
    gentle = speed.clamp(max=1.0)  # (n, 1)
    if recipe.gentle != (0.0, 0.0):
        exponent = draws.uniform("gentle", (recipe.layers,), *recipe.gentle).double()
        gentle = gentle * power_of_ten(exponent)
    if recipe.still_probability > 0:
        still = draws.happens("still", (1,), recipe.still_probability)
        gentle = gentle.expand(-1, recipe.layers)
        gentle = torch.cat((gentle[:, :1] * ~still, gentle[:, 1:]), 1)
    return gentle


def draw_roll(recipe: Recipe, draws: Draws, factor: Tensor, times: int) -> Tensor:
    """Which objects are cylinders, and the tangent of half the angle turned so far: (n, T, L, 2)."""
    if recipe.round_probability == 0:
        return torch.zeros(len(draws), times, recipe.layers, 2, device=draws.device)
    solid = draw_round(recipe, draws)
    steps = changing(recipe, draws, "roll", times - 1, (recipe.layers,)) * recipe.roll
    steps = steps * (factor * solid)[:, None]
    turned = [torch.zeros_like(steps[:, 0])]
    for step in range(times - 1):
        turned.append((turned[-1] + steps[:, step]).clamp(-FARTHEST_ROLL, FARTHEST_ROLL))
    angle = torch.stack(turned, 1)
    return torch.stack((solid[:, None].expand_as(angle).double(), angle), -1).float()


def draw_stance(recipe: Recipe, draws: Draws, radius: Tensor) -> Tensor:
    """The linear parts (n, L, 4) of the first frame's maps: radii, and a turn of the objects."""
    turn = draws.direction("orientation", (recipe.layers,))
    upright = recipe.layers if recipe.upright else 1  # the background is
    cos = torch.cat((torch.ones_like(turn[:, :upright, 0]), turn[:, upright:, 0]), 1)
    sin = torch.cat((torch.zeros_like(turn[:, :upright, 1]), turn[:, upright:, 1]), 1)
    rx, ry = radius.unbind(-1)
    return torch.stack((cos * rx, -(sin * ry), sin * rx, cos * ry), -1)


def draw_shifts(
    recipe: Recipe, draws: Draws, speed: Tensor, size: tuple[int, int], steps: int
) -> Tensor:
    """Shifts (n, steps, L, 2): the camera's first, then each object's own."""
    h, w = size
    deviate = changing(recipe, draws, "shift", steps, (recipe.layers, 2))
    fast = draws.happens("fast", (recipe.layers - 1,), recipe.fast_probability)
    factor = fast.double() * (recipe.fast_factor - 1) + 1
    sigma = torch.cat(
        (torch.full_like(speed, recipe.background_shift), factor * recipe.object_shift), 1
    )
    shift = deviate * (sigma * speed)[:, None, :, None]
    if recipe.shift_range is not None:
        reach = between(draws, "shift length", (1, recipe.layers - 1), recipe.shift_range)
        reach = reach * speed[:, None]
        along, down = deviate[:, :, 1:].unbind(-1)
        side = torch.where(along[:, :1] < 0, -1.0, 1.0)
        along = side + (along - along[:, :1])
        own = torch.stack((along * reach, down * recipe.level * reach), -1)
        shift = torch.cat((shift[:, :, :1], own), 2)
    most_x, most_y = recipe.largest_shift * w, recipe.largest_shift * h
    x, y = shift.unbind(-1)
    return torch.stack((x.clamp(-most_x, most_x), y.clamp(-most_y, most_y)), -1)


def draw_linear(recipe: Recipe, draws: Draws, gentle: Tensor, steps: int) -> Tensor:
    """Turn, zoom and shear as matrices (n, steps, L, 4), row by row.

    A turn by θ is written with t = tan(θ/2): cos θ = (1 − t²)/(1 + t²), sin θ = 2t/(1 + t²).
    """
    deviate = changing(recipe, draws, "turn, zoom, shear", steps, (recipe.layers, 3))
    deviate = deviate * gentle[:, None, :, None]
    rows = []
    for k, (background, object_) in enumerate(
        (
            (recipe.background_turn * 0.5, recipe.object_turn * 0.5),
            (recipe.background_zoom, recipe.object_zoom),
            (recipe.background_shear, recipe.object_shear),
        )
    ):
        value = deviate[..., k]
        rows.append(torch.cat((value[:, :, :1] * background, value[:, :, 1:] * object_), 2))
    t, log_zoom, shear = rows
    whole = 1 + t * t
    zoom = exp_exactly(log_zoom)
    cos, sin = zoom * ((1 - t * t) / whole), zoom * ((t + t) / whole)
    return torch.stack((cos, cos * shear - sin, sin, sin * shear + cos), -1)


def length(x: Tensor, y: Tensor) -> Tensor:
    """About the length of (x, y), within 8 %, without a root: max + 0.4 min."""
    x, y = x.abs(), y.abs()
    return torch.maximum(x, y) + 0.4 * torch.minimum(x, y)


def _affine(lin: Tensor, centre: Tensor) -> Tensor:
    a, b, d, e = lin.unbind(-1)
    c, f = centre.unbind(-1)
    return torch.stack((a, b, c, d, e, f), -1)


def _times(left: Tensor, right: Tensor) -> Tensor:
    """Products of 2×2 matrices (…, 4), one rounded operation at a time."""
    a, b, c, d = left.unbind(-1)
    e, f, g, h = right.unbind(-1)
    return torch.stack((a * e + b * g, a * f + b * h, c * e + d * g, c * f + d * h), -1)


def _times_vector(left: Tensor, right: Tensor) -> Tensor:
    a, b, c, d = left.unbind(-1)
    x, y = right.unbind(-1)
    return torch.stack((a * x + b * y, c * x + d * y), -1)
