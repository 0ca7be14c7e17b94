"""Outlines of objects: where a layer covers, as the smaller of two fields read from a small grid.

A layer covers the point (u, v) of its own coordinates where d(u, v) > 0, with

    d = min(f₁, f₂),    f₁, f₂ bilinear in a g×g grid over [−1, 1]², the border value beyond it.

f₁ and f₂ are about signed distances to an outline, in pixels, so that d + ½, clipped to [0, 1], is
the coverage of a pixel. A solid has its outline in f₁. A thin curve of half width ω about the zero
set of s has f₁ = ω + s and f₂ = ω − s: each is smooth, so a curve far thinner than a cell of the
grid keeps its width. f₂ also ends every layer within the unit disc.

The grid *is* the outline: rendering and occlusion read the same d at any real point.
"""

from __future__ import annotations

import functools
import math

import torch
import torch.nn.functional as F
from torch import Tensor

from lcv.data.random import Draws, exp_exactly
from lcv.data.synthetic.settings import SURFACES, Recipe

BLOB, POLYGON, STICK, RIBBON, RING = range(5)
KINDS = ("blob", "polygon", "stick", "ribbon", "ring")

GRID = 80
TERMS = 6
SIDES = 5
KNOTS = 7
PARTS = 6
LEGS = 6
NO_EDGE = 1e4
OUTSIDE = -4.0
REACH = 0.97
"""Everything ends at this share of the disc, so that beyond the grid d < 0."""


def draw_kinds(recipe: Recipe, draws: Draws) -> Tensor:
    """Which of the five kinds each object is, (n, L−1) int64."""
    return draws.choice("kind", (recipe.layers - 1,), recipe.kinds)


def draw_round(recipe: Recipe, draws: Draws) -> Tensor:
    """Which layers are cylinders, (n, L) bool; never the background."""
    happens = draws.happens("round", (recipe.layers,), recipe.round_probability)
    return happens & (torch.arange(recipe.layers, device=draws.device) > 0)


def draw_thickness(recipe: Recipe, draws: Draws) -> Tensor:
    """Half widths of thin things in pixels, (n, L−1, 1) float64."""
    unit = draws.uniform("thickness", (recipe.layers - 1, 1)).double()
    low, high = recipe.thin
    return unit * unit * unit * (high - low) + low


def draw_places(recipe: Recipe, draws: Draws, size: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Radii (n, L, 2) of all layers and centres (n, L−1, 2) of the objects, float64."""
    n, objects = len(draws), recipe.layers - 1
    h, w = size
    low, high = recipe.object_size
    unit = draws.uniform("size", (objects, 1)).double()
    long = (unit * unit * (high - low) + low) * min(h, w)
    stretch = exp_exactly(draws.normal("elongation", (objects, 1), std=recipe.elongation).abs())
    kind = draw_kinds(recipe, draws)[..., None]
    stick = kind == STICK
    # Curves in less space than this are tangles.
    long = torch.where(kind >= STICK, long.clamp(min=0.15 * min(h, w)), long)
    # A stick's outline lies near half its radius.
    thin = torch.minimum(draw_thickness(recipe, draws) * 2, long)
    radius = torch.cat((long, torch.where(stick, thin, long / stretch.double())), -1)
    background = torch.cat(
        (radius.new_full((n, 1, 1), w / 2), radius.new_full((n, 1, 1), h / 2)), -1
    )
    place = draws.uniform("place", (objects, 2), -0.05, 1.05).double()
    centre = torch.cat((place[..., :1] * (w - 1), place[..., 1:] * (h - 1)), -1)
    return torch.cat((background, radius), 1), centre


def draw_outlines(recipe: Recipe, draws: Draws, radius: Tensor) -> Tensor:
    """The grids (n, L−1, 2, g, g) of all layers but the first; radius: (n, L−1, 2) in pixels.

    In space the next ones are surfaces, which have no edge.
    blob     r(θ) − ρ with six Fourier terms in r
    polygon  the intersection of five half planes
    stick    a blob or polygon squeezed by its radii
    ribbon   about the zero set of smooth noise, half of them crossing the disc as one wavy line
    ring     about the edge of a blob
    """
    n, objects = len(draws), recipe.layers - 1
    if objects == 0:
        return radius.new_zeros(n, 0, 2, GRID, GRID)
    u, v, rho, waves = _plane(radius.device)
    kind = draw_kinds(recipe, draws)[..., None, None]
    chosen = draws.integers("solid form", (objects, 1, 1), 0, 2)
    angular = (kind == POLYGON) | ((kind == STICK) & (chosen == 1))

    terms = draws.normal("blob terms", (objects, 2 * TERMS)).double()
    # float64 keeps this product out of TF32, which would move outlines by tenths of a pixel.
    ripple = (terms @ waves.flatten(1)).float().view(n, objects, GRID, GRID)
    blob = (0.62 + 0.62 * ripple).clamp(0.15, 0.93) - rho

    turn = draws.uniform("polygon turn", (objects, SIDES)) * 0.9
    apothem = draws.uniform("polygon apothem", (objects, SIDES), 0.35, 0.75)
    angle = (turn + torch.arange(SIDES, device=u.device)) * (2 * math.pi / SIDES)
    polygon = torch.full_like(blob, NO_EDGE)
    for side in range(SIDES):
        cos, sin = angle[..., side, None, None].cos(), angle[..., side, None, None].sin()
        polygon = torch.minimum(polygon, apothem[..., side, None, None] - cos * u - sin * v)

    knots = draws.normal("outline noise", (objects, KNOTS, KNOTS))
    noise = F.interpolate(knots, size=(GRID, GRID), mode="bicubic", align_corners=True)
    edge = torch.where(angular, polygon, blob)
    solid = torch.where(_cut(recipe, draws, kind), torch.minimum(edge, 0.25 * noise + 0.12), edge)
    if recipe.compound_probability > 0:
        solid = torch.where(_compound(recipe, draws, kind), _parts(draws, solid, u, v), solid)
    if recipe.legs_probability > 0:
        solid = torch.where(_legged(recipe, draws, kind), _legs(draws, solid, u, v, rho), solid)
    solid = torch.where(
        _holed(recipe, draws, kind), torch.minimum(solid, _hole(draws, objects, u, v)), solid
    )

    straight = draws.integers("ribbon form", (objects, 1, 1), 0, 2)
    curve = torch.where(kind == RING, blob, 0.35 * noise + straight * v)
    band = (kind == RIBBON) | (kind == RING)
    s = _in_pixels(torch.where(band, curve, solid), radius)
    ending = _in_pixels((REACH - rho).expand_as(s), radius)
    width = torch.where(band, draw_thickness(recipe, draws)[..., None].float(), 0.0 * s)
    other = torch.where(band, width - s, NO_EDGE + 0.0 * s)
    # Beyond the grid its border goes on for ever; a thin stick's would be a faint veil.
    second = F.pad(torch.minimum(other, ending)[..., 1:-1, 1:-1], (1, 1, 1, 1), value=OUTSIDE)
    outlines = torch.stack((width + s, second), 2)
    if recipe.space is not None:
        outlines[:, : SURFACES - 1] = NO_EDGE
    if recipe.round_probability > 0:
        # A cylinder ends above and below; its sides are its rim.
        round_ = draw_round(recipe, draws)[:, 1:]
        ends = (0.85 - v.abs()) * radius[..., 1, None, None]
        tube = torch.stack((ends, torch.full_like(ends, NO_EDGE)), 2)
        outlines = torch.where(round_[..., None, None, None], tube, outlines)
    return outlines


def coverage_depth(outline: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """d(u, v), positive where the layer covers: outline (n, 2, g, g), u and v (n, h, w)."""
    fields = F.grid_sample(outline, as_grid(u, v), padding_mode="border", align_corners=True)
    return torch.minimum(fields[:, 0], fields[:, 1])


def as_grid(x: Tensor, y: Tensor) -> Tensor:
    """x and y side by side, (…, 2): as stack does, at a third of its time on a CPU."""
    return torch.view_as_real(torch.complex(x, y))


def _cut(recipe: Recipe, draws: Draws, kind: Tensor) -> Tensor:
    cut = draws.happens("cut", tuple(kind.shape[1:]), recipe.cut_probability)
    return cut & (kind <= POLYGON)


def _holed(recipe: Recipe, draws: Draws, kind: Tensor) -> Tensor:
    holed = draws.happens("hole", tuple(kind.shape[1:]), recipe.hole_probability)
    return holed & (kind <= POLYGON)


def _compound(recipe: Recipe, draws: Draws, kind: Tensor) -> Tensor:
    compound = draws.happens("compound", tuple(kind.shape[1:]), recipe.compound_probability)
    return compound & (kind <= POLYGON)


def _parts(draws: Draws, solid: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """The solid with one to six ellipses, each added to it or taken away; (n, L−1, g, g)."""
    shape = (solid.shape[1], PARTS, 1, 1)
    count = draws.integers("parts", (shape[0], 1, 1), 1, PARTS + 1)
    taken = draws.happens("part taken", shape, 0.5)
    x, y = (draws.uniform("part place", (*shape, 2), -0.6, 0.6)).unbind(-1)
    wide, high = draws.uniform("part size", (*shape, 2), 0.12, 0.45).unbind(-1)
    cos, sin = draws.direction("part turn", shape).float().unbind(-1)
    for k in range(PARTS):
        du, dv = u - x[:, :, k], v - y[:, :, k]
        a = (cos[:, :, k] * du + sin[:, :, k] * dv) / wide[:, :, k]
        b = (cos[:, :, k] * dv - sin[:, :, k] * du) / high[:, :, k]
        inside = (1 - (a * a + b * b).sqrt()) * torch.minimum(wide, high)[:, :, k]
        changed = torch.where(
            taken[:, :, k], torch.minimum(solid, -inside), torch.maximum(solid, inside)
        )
        solid = torch.where(k < count, changed, solid)
    return solid


def _legged(recipe: Recipe, draws: Draws, kind: Tensor) -> Tensor:
    legged = draws.happens("legged", tuple(kind.shape[1:]), recipe.legs_probability)
    return legged & (kind <= POLYGON)


def _legs(draws: Draws, solid: Tensor, u: Tensor, v: Tensor, rho: Tensor) -> Tensor:
    """The middle of the solid with straight legs, in about one direction or spread out; (n, L−1, g, g)."""
    objects = solid.shape[1]
    body = draws.uniform("leg body", (objects, 1, 1), 0.25, 0.6)
    spread = draws.uniform("leg spread", (objects, 1), 0.1, 1.5)
    way = draws.direction("leg way", (objects,)).float()
    count = draws.integers("legs", (objects, 1, 1), 2, LEGS + 1)
    place = draws.uniform("leg place", (objects, LEGS, 2, 1, 1), -0.22, 0.22)
    thick = draws.uniform("leg thickness", (objects, LEGS, 1, 1))
    long = draws.uniform("leg length", (objects, LEGS, 1, 1), 0.6, 1.0)
    turned = draws.normal("leg turn", (objects, LEGS, 2))
    solid = torch.minimum(solid, body - rho)
    for k in range(LEGS):
        x, y = place[:, :, k].unbind(2)
        to = way + spread * turned[:, :, k]
        to = to / (to * to).sum(-1, keepdim=True).sqrt().clamp(min=1e-3)
        dx, dy = to[..., None, None].unbind(2)
        du, dv = u - x, v - y
        along = torch.minimum((du * dx + dv * dy).clamp(min=0), long[:, :, k])
        across_u, across_v = du - along * dx, dv - along * dy
        leg = (
            0.018 + 0.04 * thick[:, :, k] ** 2 - (across_u * across_u + across_v * across_v).sqrt()
        )
        solid = torch.where(k < count, torch.maximum(solid, leg), solid)
    return solid


def _hole(draws: Draws, objects: int, u: Tensor, v: Tensor) -> Tensor:
    """Positive outside a disc near the middle; (n, L−1, g, g)."""
    place = draws.uniform("hole place", (objects, 3, 1, 1))
    x, y, r = (place * 2 - 1).unbind(2)
    du, dv = u - 0.25 * x, v - 0.25 * y
    return (du * du + dv * dv).sqrt() - (0.18 + 0.1 * r)


@functools.lru_cache(maxsize=16)
def _plane(device: torch.device) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """u, v, ρ (g, g) and the Fourier terms (2·TERMS, g, g), float64, with their falloff."""
    with torch.inference_mode(False):
        line = torch.linspace(-1, 1, GRID, dtype=torch.float64)
        v, u = torch.meshgrid(line, line, indexing="ij")
        rho, theta = (u * u + v * v).sqrt(), torch.atan2(v, u)
        waves = []
        for k in range(1, TERMS + 1):
            waves += [
                0.22 / max(k, 1.5) * (k * theta).cos(),
                0.22 / max(k, 1.5) * (k * theta).sin(),
            ]
        parts = (u.float(), v.float(), rho.float(), torch.stack(waves))
        u, v, rho, terms = (part.to(device) for part in parts)
        return u, v, rho, terms


def _in_pixels(field: Tensor, radius: Tensor) -> Tensor:
    """The field over its gradient's length: about the distance to its zero set, in pixels.

    Where the gradient all but vanishes (saddles, peaks) a floor of a third of 1/radius holds.
    """
    rx, ry = radius[..., 0, None, None], radius[..., 1, None, None]
    wide = F.pad(field, (1, 1, 1, 1), mode="replicate")
    step = 2 * 2 / (GRID - 1)
    gx = (wide[..., 1:-1, 2:] - wide[..., 1:-1, :-2]) / (rx * step)
    gy = (wide[..., 2:, 1:-1] - wide[..., :-2, 1:-1]) / (ry * step)
    floor = 0.3 / torch.maximum(rx, ry)
    return field / (gx * gx + gy * gy + floor * floor).sqrt()
