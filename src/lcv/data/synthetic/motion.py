"""Where the layers are in each frame: affine maps composed with sine shears, inverted exactly.

A layer has coordinates (u, v) of its own in which it lies within the unit disc (objects) or fills
[−1, 1]² in the first frame (background). At time t it is bent, then placed:

    u' = u + p sin(k₁ v + φ₁)          v' = v + q sin(k₂ u' + φ₂)
    x = a u' + b v' + c                y = d u' + e v' + f                           (to frame)

so the way back is closed too:

    (u', v') = the inverse affine map of (x, y)
    v = v' − q sin(k₂ u' + φ₂)         u = u' − p sin(k₁ v + φ₁)                     (to layer)

Only the amplitudes (p, q) and the affine map depend on time; the first frame is not bent. Writing A
for "to layer" at the first time and B at the second, the flow of a layer is B⁻¹(A(x)) − x.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lcv.data.random import Draws, exp_exactly
from lcv.data.synthetic.recipe import Recipe
from lcv.data.synthetic.shapes import draw_places

STRAIN = 0.35
"""The steepest that a bend may shear a layer: well below 1, where layers would look torn."""


@dataclass(frozen=True)
class Motion:
    """The maps of n scenes, T times, L layers (0 is the background, the last is in front).

    to_frame, to_layer: (n, T, L, 6) the affine maps a … f and their inverses
    bend: (n, T, L, 2) p, q;  wave: (n, L, 4) k₁, φ₁, k₂, φ₂;  radius: (n, L, 2) pixels per unit
    """

    to_frame: Tensor
    to_layer: Tensor
    bend: Tensor
    wave: Tensor
    radius: Tensor


def apply_bend(u: Tensor, v: Tensor, bend: Tensor, wave: Tensor) -> tuple[Tensor, Tensor]:
    """(u, v) → (u', v'); bend and wave lead with their component axis and broadcast behind it."""
    u = torch.addcmul(u, bend[0], torch.addcmul(wave[1], wave[0], v).sin_())
    v = torch.addcmul(v, bend[1], torch.addcmul(wave[3], wave[2], u).sin_())
    return u, v


def undo_bend(u: Tensor, v: Tensor, bend: Tensor, wave: Tensor) -> tuple[Tensor, Tensor]:
    """(u', v') → (u, v), exactly the inverse of `apply_bend`."""
    v = torch.addcmul(v, bend[1], torch.addcmul(wave[3], wave[2], u).sin_(), value=-1)
    u = torch.addcmul(u, bend[0], torch.addcmul(wave[1], wave[0], v).sin_(), value=-1)
    return u, v


def apply_affine(x: Tensor, y: Tensor, affine: Tensor) -> tuple[Tensor, Tensor]:
    """(a x + b y + c, d x + e y + f); affine leads with its six components and broadcasts."""
    a, b, c, d, e, f = affine.unbind(0)
    if x.shape != y.shape:
        # A row and a column: only the last sum is as large as the frame.
        return a * x + (b * y + c), d * x + (e * y + f)
    along = torch.addcmul(torch.addcmul(c, b, y), a, x)
    down = torch.addcmul(torch.addcmul(f, e, y), d, x)
    return along, down


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
    return Motion(
        to_frame=to_frame.float(),
        to_layer=_inverse(to_frame).float(),
        bend=torch.stack(bends, 1).float(),
        wave=wave.float(),
        radius=radius.float(),
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


def _inverse(affine: Tensor) -> Tensor:
    a, b, c, d, e, f = affine.unbind(-1)
    det = a * e - b * d
    ia, ib, id_, ie = e / det, -b / det, -d / det, a / det
    return torch.stack((ia, ib, -(ia * c + ib * f), id_, ie, -(id_ * c + ie * f)), -1)
