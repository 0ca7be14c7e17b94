"""How layers change their form: bends of a few pixels, or relief as rough as a surface in depth.

Both are the shears of `maps.py`. They grow from nothing in the first frame, and stop growing where
a layer would look torn.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from lcv.data.random import Draws, exp_exactly
from lcv.data.synthetic.settings import Recipe

STRAIN = 0.35
"""The steepest that a shear may be: well below 1, where layers would look torn."""
SHEARS = 3
OCTAVES = 5
FALLOFF = 0.8
"""Octave k of relief is 2^(−0.8 k) as high as the first."""
SHORTEST = 64.0
"""The first octave of relief is at least this many pixels long."""
FARTHEST = 20.0
"""Relief grows with a layer's motion up to this many pixels."""


def draw_bends(
    recipe: Recipe, draws: Draws, gentle: Tensor, radius: Tensor, times: int
) -> tuple[Tensor, Tensor]:
    """Two crossed sine shears a layer: bend (n, T, L, 2, 2) and wave (n, L, 2, 3).

        u' = u + p sin(k₁ v + φ₁)          v' = v + q sin(k₂ u' + φ₂)

    gentle: (n, 1 or L) factors of the amplitudes.
    """
    layers, steps = recipe.layers, times - 1
    bent = draws.happens("bent", (layers, 1), recipe.warp_probability)
    deviate = changing(recipe, draws, "bend", steps, (layers, 2))
    pixels = deviate * (gentle * recipe.warp_shift)[:, None, :, None] * bent[:, None]
    number = draws.uniform("wave number", (layers, 2), 1.5, 5.0).double()
    phase = draws.uniform("wave phase", (layers, 2), -3.14159, 3.14159).double()
    growth = pixels / radius[:, None]  # (n, steps, L, 2)

    # A shear of u by v is p k₁ rx/ry steep, of v by u q k₂ ry/rx. The shorter radius counts: a thin
    # stick may sway sideways, not be smeared along its length.
    rx, ry = radius.unbind(-1)
    k1, k2 = number.unbind(-1)
    limit = torch.stack((STRAIN * ry / (k1 * rx), STRAIN * rx / (k2 * ry)), -1)
    amounts = [torch.zeros_like(radius)]
    for step in range(steps):
        grown = amounts[-1] + growth[:, step]
        amounts.append(torch.minimum(torch.maximum(grown, -limit), limit))
    p, q = torch.stack(amounts, 1).unbind(-1)
    no_p, no_k = torch.zeros_like(p), torch.zeros_like(k1)
    bend = torch.stack((torch.stack((p, no_p), -1), torch.stack((no_p, q), -1)), -2)
    first = torch.stack((no_k, k1, phase[..., 0]), -1)
    second = torch.stack((k2, no_k, phase[..., 1]), -1)
    return bend, torch.stack((first, second), -2)


def draw_relief(
    recipe: Recipe, draws: Draws, moved: Tensor, radius: Tensor, times: int
) -> tuple[Tensor, Tensor]:
    """Three shears a layer in any direction, each of five octaves: bend (n, T, L, 3, 2) and wave.

    moved: (n, L) how far each layer moves in the first step, in pixels. Relief grows with it, as the
    parallax of a rough surface does. In half of the layers the third shear is absent.
    """
    layers = recipe.layers
    rough = draws.happens("relief", (layers, 1), recipe.relief_probability)
    third = draws.happens("third shear", (layers, 1), 0.5)
    present = torch.cat((rough, rough, rough & third), -1)
    share = power_of_ten(draws.uniform("relief amplitude", (layers, 1), *recipe.relief).double())
    part = draws.uniform("relief part", (layers, SHEARS), 0.5, 1.0).double()
    length = draws.uniform("relief length", (layers, SHEARS), 0.7, 2.5).double()
    length = (length * radius.amax(-1, keepdim=True)).clamp(min=SHORTEST)
    number = (2 * math.pi) / length  # (n, L, 3), radians a pixel
    steepness = sum(2 ** ((1 - FALLOFF) * k) for k in range(OCTAVES))
    limit = (STRAIN / steepness) / number
    pixels = moved.clamp(max=FARTHEST)[..., None] * share * part * present
    amounts = torch.stack([torch.minimum(pixels * t, limit) for t in range(times)], 1)

    cos, sin = draws.direction("relief direction", (layers, SHEARS)).unbind(-1)
    rx, ry = radius[..., None, :].unbind(-1)
    bend = torch.stack((amounts * (cos / rx)[:, None], amounts * (sin / ry)[:, None]), -1)
    phase = draws.uniform("relief phase", (layers, SHEARS), -3.14159, 3.14159).double()
    form = [-(sin * rx) * number, (cos * ry) * number, phase]
    for k in range(1, OCTAVES):
        octave = draws.direction(f"relief octave {k}", (layers, SHEARS)) * 2 ** (-FALLOFF * k)
        form += octave.unbind(-1)
    return bend, torch.stack(form, -1)


def changing(recipe: Recipe, draws: Draws, name: str, steps: int, shape: tuple[int, ...]) -> Tensor:
    """Normals (n, steps, *shape), those of later steps near those of the first."""
    first = draws.normal(name, (1, *shape)).double()
    if steps <= 1:
        return first[:, :steps]
    later = draws.normal(f"{name}, later", (steps - 1, *shape)).double() * recipe.change
    return torch.cat((first, first + later), 1)


def power_of_ten(x: Tensor) -> Tensor:
    """10ˣ, equal on every device."""
    return exp_exactly(x * math.log(10))


def between(draws: Draws, name: str, shape: tuple[int, ...], ends: tuple[float, float]) -> Tensor:
    """Log-uniform between two lengths, float64."""
    low, high = ends
    return exp_exactly(draws.uniform(name, shape).double() * math.log(high / low)) * low
