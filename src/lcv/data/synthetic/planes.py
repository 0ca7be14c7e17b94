"""The planes of scenes in space at the first time: a far plane, ground, walls, and cards.

A plane is a vector m with m·X = 1 for its points X, as `space.py` says. The camera looks along z, x
points to the right and y down.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lcv.data.random import Draws
from lcv.data.synthetic.bends import between
from lcv.data.synthetic.motion import draw_presence
from lcv.data.synthetic.settings import SURFACES, Recipe, Space
from lcv.data.synthetic.shapes import draw_places

NEARER = 1.15
"""A card's inverse depth is at least this many times that of the surface behind its centre."""
STEEPEST = 1.5
"""The inverse depth of a card changes by at most this share of it within the frame."""
FEET = 0.7
"""A standing card's feet are this share of its radius below its centre."""


@dataclass(frozen=True)
class Planes:
    """n scenes of L layers, the first `SURFACES` of which are not cards; float64.

    focal (n, 1) in pixels;  plane (n, L, 3): m;  present, standing (n, L) bool
    centre (n, L, 2) as rays;  radius (n, L, 2) in pixels;  affine (n, L, 6) from layer to frame
    ahead (n, 2): the ray along which a road would lead;  edge (n, 2): rays at the frame's edges
    """

    focal: Tensor
    plane: Tensor
    present: Tensor
    standing: Tensor
    centre: Tensor
    radius: Tensor
    affine: Tensor
    ahead: Tensor
    edge: Tensor


def draw_planes(recipe: Recipe, space: Space, draws: Draws, size: tuple[int, int]) -> Planes:
    """Where everything is when the first frame is taken."""
    h, w = size
    cards = recipe.layers - SURFACES
    focal = draws.uniform("focal length", (1,), *space.focal).double() * w
    edge = torch.cat(((w / 2) / focal, (h / 2) / focal), -1)  # (n, 2)
    grounded = draws.happens("ground", (1,), space.ground_probability)
    column = draws.uniform("vanishing column", (1,), -0.5, 0.5).double() * edge[:, :1]
    horizon = (draws.uniform("horizon", (1,), *space.horizon).double() * 2 - 1) * edge[:, 1:]
    height = draws.uniform("camera height", (1,), *space.camera_height).double()
    walled = draws.happens("walls", (2,), space.wall_probability)
    there = torch.cat((torch.ones_like(grounded), grounded, walled), -1)  # (n, 4)
    surfaces = _surfaces(space, draws, grounded, column, horizon, height, edge)
    # What is absent lies in the far plane, where its maps do no harm.
    surfaces = torch.where(there[..., None], surfaces, surfaces[:, :1])

    radius, place = draw_places(recipe, draws, size)
    radius, place = radius[:, SURFACES:], place[:, SURFACES - 1 :]
    nearness = 1 / between(draws, "card depth", (cards,), space.card_depth)
    centre_x = (place[..., 0] - (w - 1) / 2) / focal
    centre_y = (place[..., 1] - (h - 1) / 2) / focal

    # Standing cards are upright, half of them tall, their feet where the ground is as far as they.
    standing = draws.happens("standing", (cards,), space.standing_probability) & grounded
    tall = draws.happens("tall", (cards,), 0.5) & standing
    radius = torch.where(tall[..., None], radius.flip(-1), radius)
    lowest = (1.2 * edge[:, 1:] - horizon) / height
    nearness = torch.where(standing, torch.minimum(nearness, lowest), nearness)
    feet = horizon + nearness * height
    centre_y = torch.where(standing, feet - FEET * radius[..., 1] / focal, centre_y)

    behind = along(surfaces[:, None], centre_x[..., None], centre_y[..., None]).amax(-1)
    nearness = torch.maximum(nearness, NEARER * behind)
    centre = torch.stack((centre_x, centre_y), -1)
    tilt = _tilts(space, draws, standing, centre, edge)
    third = 1 - (tilt[..., 0] * centre_x + tilt[..., 1] * centre_y)
    plane = nearness[..., None] * torch.cat((tilt, third[..., None]), -1)

    whole = torch.cat((torch.full_like(focal, w / 2), torch.full_like(focal, h / 2)), -1)
    whole = whole[:, None].expand(-1, SURFACES, -1)
    radius = torch.cat((whole, radius), 1)
    upright = torch.cat((torch.ones_like(there), standing), 1)
    centre = torch.cat((torch.zeros_like(whole), centre), 1)
    cos, sin = draws.direction("orientation", (recipe.layers,)).unbind(-1)
    cos, sin = torch.where(upright, 1.0, cos), torch.where(upright, 0.0, sin)
    rx, ry = radius.unbind(-1)
    x, y = centre[..., 0] * focal + (w - 1) / 2, centre[..., 1] * focal + (h - 1) / 2
    return Planes(
        focal=focal,
        plane=torch.cat((surfaces, plane), 1),
        present=torch.cat((there, draw_presence(recipe, draws, SURFACES)[:, SURFACES:]), 1),
        standing=torch.cat((torch.zeros_like(there), standing), 1),
        centre=centre,
        radius=radius,
        affine=torch.stack((cos * rx, -(sin * ry), x, sin * rx, cos * ry, y), -1),
        ahead=torch.cat((column, horizon), -1),
        edge=edge,
    )


def along(plane: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """q = m·(x, y, 1), the inverse depth of planes (…, 3) along rays."""
    return plane[..., 0] * x + plane[..., 1] * y + plane[..., 2]


def _surfaces(
    space: Space,
    draws: Draws,
    grounded: Tensor,
    column: Tensor,
    horizon: Tensor,
    height: Tensor,
    edge: Tensor,
) -> Tensor:
    """The far plane, the ground, the right and the left wall: (n, 4, 3)."""
    far = between(draws, "far depth", (1,), space.far)
    backdrop = between(draws, "backdrop depth", (1,), space.backdrop)
    slope = draws.direction("slope direction") * draws.uniform("slope", (1,), 0, space.slope)
    slope = torch.where(grounded, 0.0, slope) / edge
    first = torch.cat((slope, torch.ones_like(far)), -1) / torch.where(grounded, far, backdrop)
    roll = draws.normal("ground roll", (1,), std=0.02).double()
    ground = torch.cat((roll, torch.ones_like(roll), -horizon), -1) / height
    distance = draws.uniform("wall distance", (2,), *space.wall_distance).double()
    one, zero = torch.ones_like(column), torch.zeros_like(column)
    right = torch.cat((one, zero, -column), -1) / distance[:, :1]
    left = torch.cat((-one, zero, column), -1) / distance[:, 1:]
    return torch.stack((first, ground, right, left), 1)


def _tilts(space: Space, draws: Draws, standing: Tensor, centre: Tensor, edge: Tensor) -> Tensor:
    """How fast the inverse depth of each card changes across rays, as a share of it: (n, cards, 2)."""
    shape = (standing.shape[1], 1)
    tilted = draws.happens("tilted", shape, space.tilt_probability)
    half = draws.uniform("tilt", shape, 0, space.tilt).double() * tilted
    tangent = (half + half) / (1 - half * half)
    direction = draws.direction("tilt direction", (shape[0],))
    # A standing card turns about the vertical alone.
    level = torch.stack((direction[..., 0], torch.where(standing, 0.0, direction[..., 1])), -1)
    tilt = tangent * level
    change = (tilt.abs() * (edge[:, None] + centre.abs())).sum(-1, keepdim=True)
    return tilt * (STEEPEST / change.clamp(min=STEEPEST))
