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
from lcv.data.synthetic.maps import affine_inverse, homography
from lcv.data.synthetic.recipe import Recipe
from lcv.data.synthetic.shapes import draw_places

STRAIN = 0.35
"""The steepest that a bend may shear a layer: well below 1, where layers would look torn."""


@dataclass(frozen=True)
class Motion:
    """The maps of n scenes, T times, L layers (0 is the background, which covers everything).

    to_frame, to_layer: (n, T, L, 9) homographies and their inverses
    bend: (n, T, L, K, 2) and wave: (n, L, K, 3 + 2(octaves − 1)): K shears, see `maps.py`
    inverse_depth: (n, T, L, 3) a, b, c; of the layers that cover a point (x, y) of the frame the
        one with the largest a x + b y + c is seen. A layer that is absent has (0, 0, −1)
    radius: (n, L, 2) pixels per unit
    perspective: whether any last row differs from (0, 0, 1)
    """

    to_frame: Tensor
    to_layer: Tensor
    bend: Tensor
    wave: Tensor
    inverse_depth: Tensor
    radius: Tensor
    perspective: bool


def draw_motion(recipe: Recipe, draws: Draws, size: tuple[int, int], times: int) -> Motion:
    """The motion of n scenes over `times` frames, worked out in float64, kept in float32.

    Facts: bit-equal on every device; the first k frames are the same whatever `times` is.
    """
    n, objects = len(draws), recipe.layers - 1
    h, w = size
    steps = times - 1
    speed = draws.log_normal("speed", (1,), recipe.speed_sigma).clamp(*recipe.speed_range).double()
    gentle = speed.clamp(max=1.0)  # (n, 1); what turns and bends must fade with the shifts

    radius, places = draw_places(recipe, draws, size)
    shift = draw_shifts(recipe, draws, speed, size, steps)  # (n, steps, L, 2)
    linear = draw_linear(recipe, draws, gentle, steps)  # (n, steps, L, 4)
    bend_steps, wave = draw_bends(recipe, draws, gentle, radius, steps)

    middle = torch.stack(
        (radius.new_full((n, 1), (w - 1) / 2), radius.new_full((n, 1), (h - 1) / 2)), -1
    )  # (n, 1, 2)
    if objects:
        # Half the first shift back: as many objects leave the view as enter it.
        start = places - 0.5 * shift[:, 0, 1:]
        centre = torch.cat((middle, start), 1)  # (n, L, 2)
    else:
        centre = middle
    turn = draws.direction("orientation", (recipe.layers,))
    cos = torch.cat((torch.ones_like(turn[:, :1, 0]), turn[:, 1:, 0]), 1)
    sin = torch.cat((torch.zeros_like(turn[:, :1, 1]), turn[:, 1:, 1]), 1)
    rx, ry = radius.unbind(-1)
    lin = torch.stack((cos * rx, -(sin * ry), sin * rx, cos * ry), -1)  # (n, L, 4)
    share = draws.uniform("camera share", (recipe.layers, 1), *recipe.camera_share).double()

    maps, bends = [_affine(lin, centre)], [torch.zeros_like(radius)]
    limit = _bend_limit(radius, wave)
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
        bends.append(torch.minimum(torch.maximum(bends[-1] + bend_steps[:, step], -limit), limit))
    to_frame = torch.stack(maps, 1)  # (n, T, L, 6)
    bend, form = _crossed(torch.stack(bends, 1), wave)
    order = torch.arange(1, recipe.layers + 1, device=radius.device, dtype=torch.float32)
    nothing = torch.zeros_like(order)
    inverse_depth = torch.stack((nothing, nothing, order), -1)  # (L, 3)
    return Motion(
        to_frame=homography(to_frame).float(),
        to_layer=homography(affine_inverse(to_frame)).float(),
        bend=bend.float(),
        wave=form.float(),
        inverse_depth=inverse_depth.expand(n, times, -1, -1),
        radius=radius.float(),
        perspective=False,
    )


def draw_shifts(
    recipe: Recipe, draws: Draws, speed: Tensor, size: tuple[int, int], steps: int
) -> Tensor:
    """Shifts (n, steps, L, 2): the camera's first, then each object's own."""
    h, w = size
    deviate = _changing(recipe, draws, "shift", steps, (recipe.layers, 2))
    fast = draws.happens("fast", (recipe.layers - 1,), recipe.fast_probability)
    factor = fast.double() * (recipe.fast_factor - 1) + 1
    sigma = torch.cat(
        (torch.full_like(speed, recipe.background_shift), factor * recipe.object_shift), 1
    )
    shift = deviate * (sigma * speed)[:, None, :, None]
    most_x, most_y = recipe.largest_shift * w, recipe.largest_shift * h
    x, y = shift.unbind(-1)
    return torch.stack((x.clamp(-most_x, most_x), y.clamp(-most_y, most_y)), -1)


def draw_linear(recipe: Recipe, draws: Draws, gentle: Tensor, steps: int) -> Tensor:
    """Turn, zoom and shear as matrices (n, steps, L, 4), row by row.

    A turn by θ is written with t = tan(θ/2): cos θ = (1 − t²)/(1 + t²), sin θ = 2t/(1 + t²).
    """
    deviate = _changing(recipe, draws, "turn, zoom, shear", steps, (recipe.layers, 3))
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


def draw_bends(
    recipe: Recipe, draws: Draws, gentle: Tensor, radius: Tensor, steps: int
) -> tuple[Tensor, Tensor]:
    """How much the bends grow each step (n, steps, L, 2), and their waves (n, L, 4)."""
    layers = recipe.layers
    bent = draws.happens("bent", (layers, 1), recipe.warp_probability)
    deviate = _changing(recipe, draws, "bend", steps, (layers, 2))
    pixels = deviate * (gentle * recipe.warp_shift)[:, None, :, None] * bent[:, None]
    number = draws.uniform("wave number", (layers, 2), 1.5, 5.0).double()
    phase = draws.uniform("wave phase", (layers, 2), -3.14159, 3.14159).double()
    wave = torch.stack((number[..., 0], phase[..., 0], number[..., 1], phase[..., 1]), -1)
    return pixels / radius[:, None], wave


def _crossed(bend: Tensor, wave: Tensor) -> tuple[Tensor, Tensor]:
    """u' = u + p sin(k₁ v + φ₁), then v' = v + q sin(k₂ u' + φ₂), written as two shears.

    bend (n, T, L, 2): p, q;  wave (n, L, 4): k₁, φ₁, k₂, φ₂.
    """
    p, q = bend.unbind(-1)
    k1, phase1, k2, phase2 = wave.unbind(-1)
    no_p, no_k = torch.zeros_like(p), torch.zeros_like(k1)
    shears = torch.stack((torch.stack((p, no_p), -1), torch.stack((no_p, q), -1)), -2)
    first = torch.stack((no_k, k1, phase1), -1)
    second = torch.stack((k2, no_k, phase2), -1)
    return shears, torch.stack((first, second), -2)


def _bend_limit(radius: Tensor, wave: Tensor) -> Tensor:
    """The largest |p|, |q| (n, L, 2): a shear of u by v is p k₁ rx/ry steep, of v by u q k₂ ry/rx.

    The shorter radius counts: a thin stick may sway sideways, not be smeared along its length.
    """
    rx, ry = radius.unbind(-1)
    return torch.stack((STRAIN * ry / (wave[..., 0] * rx), STRAIN * rx / (wave[..., 2] * ry)), -1)


def _changing(
    recipe: Recipe, draws: Draws, name: str, steps: int, shape: tuple[int, ...]
) -> Tensor:
    """Normals (n, steps, *shape), those of later steps near those of the first."""
    first = draws.normal(name, (1, *shape)).double()
    if steps <= 1:
        return first[:, :steps]
    later = draws.normal(f"{name}, later", (steps - 1, *shape)).double() * recipe.change
    return torch.cat((first, first + later), 1)


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
