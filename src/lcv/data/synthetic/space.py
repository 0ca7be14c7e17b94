"""Scenes in space: planes seen by a moving camera, with what is nearer in front at every pixel.

A pixel looks along ray = ((x − x₀)/F, (y − y₀)/F, 1). A plane is a vector m: its inverse depth along
the ray is q = m·ray, so the point seen is X = ray/q and m·X = 1. Where a layer moves by X' = R X + t
as seen from the camera,

    the ray goes to     (R + t mᵀ) ray,
    the plane to        m' = R m / (1 + m·Rᵀt),

which makes a homography of the frame and an inverse depth that is linear in it. All layers share the
camera's motion; a few have one of their own before it. Turns are written with half-angle tangents
(Cayley), so everything is made of +, −, ×, ÷ and equal on every device.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lcv.data.random import Draws
from lcv.data.synthetic.bends import draw_relief
from lcv.data.synthetic.maps import affine_inverse, homography
from lcv.data.synthetic.motion import ABSENT, Motion, length
from lcv.data.synthetic.planes import Planes, along, draw_planes
from lcv.data.synthetic.settings import SURFACES, Recipe, Space

LIMIT = 0.3
"""The largest share of a plane's depth, at any corner of the frame, that anything moves by."""
LEAST = 0.4
"""No denominator of a map is smaller than this anywhere in the frame."""
FORWARD, SIDEWAYS, ANYWHERE = range(3)


@dataclass(frozen=True)
class Pose:
    """A motion of everything: the camera's turn and shift (n, 1, 3), and each layer's own (n, L, 3).

    Turns are axes times the tangent of half the angle. Parts of a pose are multiples of it.
    """

    turn: Tensor
    shift: Tensor
    own_turn: Tensor
    own_shift: Tensor

    def times(self, factor: Tensor) -> Pose:
        parts = (self.turn, self.shift, self.own_turn, self.own_shift)
        return Pose(*(part * factor[:, None, None] for part in parts))

    def plus(self, other: Pose) -> Pose:
        return Pose(
            self.turn + other.turn,
            self.shift + other.shift,
            self.own_turn + other.own_turn,
            self.own_shift + other.own_shift,
        )


def draw_space_motion(recipe: Recipe, draws: Draws, size: tuple[int, int], times: int) -> Motion:
    """The motion of n scenes in space over `times` frames, in float64, kept in float32.

    Facts: bit-equal on every device; the first k frames are the same whatever `times` is; no
    denominator is below `LEAST` in the frame.
    """
    space = recipe.space
    assert space is not None
    planes = draw_planes(recipe, space, draws, size)
    step, moving = draw_pose(recipe, space, draws, planes, size)
    pace = 1 + draws.normal("pace", (max(times - 2, 0),)).double() * recipe.change
    pace = torch.cat((torch.ones_like(planes.focal), pace), 1)  # (n, at least 1)

    rest = _at_rest(planes, size)
    placed = [rest]
    pose = step.times(torch.zeros_like(pace[:, 0]))
    for k in range(times - 1):
        pose = pose.plus(step.times(pace[:, k]))
        # What would come too near keeps to the limit; what is unsafe even so does not move.
        pose = pose.times(LIMIT / _reach(planes, pose).clamp(min=LIMIT))
        safe, *seen = _seen(planes, pose, size)
        pose = pose.times(safe.double())
        placed.append(
            [torch.where(safe[:, None, None], a, b) for a, b in zip(seen, rest, strict=True)]
        )
    to_frame, to_layer, depth = (torch.stack(parts, 1) for parts in zip(*placed, strict=True))
    absent = torch.zeros_like(depth[..., :1])
    absent = torch.cat((absent, absent, absent + ABSENT), -1)
    # Where the origin of each layer goes in the first step.
    x, y = (
        to_frame[:, 1, :, k] / to_frame[:, 1, :, 8] - to_frame[:, 0, :, k] / to_frame[:, 0, :, 8]
        for k in (2, 5)
    )
    bend, wave = draw_relief(recipe, draws, length(x, y), planes.radius, times)
    return Motion(
        to_frame=to_frame.float(),
        to_layer=to_layer.float(),
        bend=bend.float(),
        wave=wave.float(),
        inverse_depth=torch.where(planes.present[:, None, :, None], depth, absent).float(),
        radius=planes.radius.float(),
        independent=moving,
        roll=torch.zeros_like(depth[..., :2]).float(),
        perspective=True,
        cylinders=False,
    )


def draw_pose(
    recipe: Recipe, space: Space, draws: Draws, planes: Planes, size: tuple[int, int]
) -> tuple[Pose, Tensor]:
    """What moves how far in the first step, and which layers move by themselves, (n, L) bool."""
    w = size[1]
    low, high = space.median_range
    speed = draws.log_normal("speed", (1,), space.median_sigma) * space.median_flow
    speed = speed.clamp(low, high).double()
    fade = (speed * (1 / space.median_flow)).clamp(max=1)  # (n, 1)

    shift = _direction(space, draws, planes)  # (n, 3)
    nearest = _nearest(planes)
    across = planes.focal * length(shift[:, :1], shift[:, 1:2]) * nearest
    middling = _median_flow(planes, shift)
    sideways = draws.uniform("sideways", (1,), *space.sideways).double() * w
    kind = draws.choice("camera", (1,), space.cameras)
    tiny = 1e-9
    wanted = torch.where(kind == SIDEWAYS, sideways / (across + tiny), speed / (middling + tiny))
    wanted = torch.minimum(wanted, (recipe.largest_shift * w) / (across + tiny))
    wanted = torch.minimum(wanted, space.approach / (shift[:, 2:].abs() * nearest + tiny))

    turn = draws.normal("camera turn", (3,)).double() * (0.5 * space.turn)
    large = draws.uniform("large turn", (3,), -0.5, 0.5).double() * space.large_turn
    turned = draws.happens("turns far", (1,), space.large_turn_probability)
    turn = torch.where(turned, large, turn) * fade

    cards = recipe.layers - SURFACES
    number = torch.arange(-SURFACES, cards, device=draws.device)
    fewest, most = space.moving
    moving = number < draws.integers("moving", (1,), fewest, most + 1)
    moving = moving & (number >= 0) & planes.present  # (n, L)
    pixels = draws.log_normal("own shift", (recipe.layers,)).double() * space.own_shift * fade
    pixels = pixels.clamp(max=recipe.largest_shift * w) * moving
    direction = draws.direction("own direction", (recipe.layers,))
    along_x = torch.where(direction[..., 0] < 0, -1.0, 1.0)
    flat_x = torch.where(planes.standing, along_x, direction[..., 0])
    flat_y = torch.where(planes.standing, 0.0, direction[..., 1])
    inward = draws.normal("own depth", (recipe.layers,), std=0.5).double()
    unit = pixels / (planes.focal * along(planes.plane, *planes.centre.unbind(-1)))
    own_shift = torch.stack((flat_x * unit, flat_y * unit, inward * unit), -1)
    own_turn = draws.normal("own turn", (recipe.layers, 3)).double() * (0.5 * space.own_turn)
    own_turn = own_turn * (moving * fade)[..., None]
    return Pose(turn[:, None], (shift * wanted)[:, None], own_turn, own_shift), moving


def _direction(space: Space, draws: Draws, planes: Planes) -> Tensor:
    """Which way everything goes past the camera, of no particular length: (n, 3)."""
    kind = draws.choice("camera", (1,), space.cameras)
    aim = planes.ahead + draws.normal("aim", (2,), std=0.1).double() * planes.edge
    back = draws.happens("backward", (1,), space.backward_probability)
    sign = torch.where(back, 1.0, -1.0).double()
    forward = torch.cat((aim, torch.ones_like(sign)), -1) * sign
    drift = draws.normal("drift", (2,)).double()
    level = draws.happens("level", (1,), 0.5)
    left = torch.where(draws.happens("leftward", (1,), 0.5), -1.0, 1.0).double()
    up = torch.where(level, 0.0, 0.3 * drift[:, :1])
    side = torch.cat((left, up, 0.05 * drift[:, 1:]), -1)
    free = draws.normal("free camera", (3,)).double()
    return torch.where(kind == FORWARD, forward, torch.where(kind == SIDEWAYS, side, free))


def _nearest(planes: Planes) -> Tensor:
    """The largest inverse depth of any surface in the frame or any card at its centre: (n, 1)."""
    m = planes.plane[:, :SURFACES]
    corner = (m[..., :2].abs() * planes.edge[:, None]).sum(-1) + m[..., 2]
    cards = along(planes.plane, *planes.centre.unbind(-1)) * planes.present
    return torch.cat((corner, cards[:, SURFACES:]), 1).amax(1, keepdim=True)


def _median_flow(planes: Planes, shift: Tensor) -> Tensor:
    """The median |flow| of the surfaces if everything goes past by `shift`, to first order: (n, 1)."""
    number = torch.arange(48, device=shift.device)
    x = ((number % 8) * 0.25 - 0.875).double() * planes.edge[:, :1]  # (n, 48)
    y = ((number // 8) * (1 / 3) - 5 / 6).double() * planes.edge[:, 1:]
    q = along(planes.plane[:, :SURFACES, None], x[:, None], y[:, None]).amax(1)
    right, down, inward = shift[..., None].unbind(1)
    pixels = planes.focal * q * length(right - x * inward, down - y * inward)
    return pixels.sort(1).values[:, 24:25]


def _layer_motion(planes: Planes, pose: Pose) -> tuple[Tensor, Tensor]:
    """R (n, L, 3, 3) and t (n, L, 3) of each layer: its own motion, then the camera's."""
    turns = _rotation(torch.cat((pose.turn, pose.own_turn), 1))
    camera, own = turns[:, :1], turns[:, 1:]
    x, y = planes.centre.unbind(-1)
    centre = torch.stack((x, y, torch.ones_like(x)), -1) / along(planes.plane, x, y)[..., None]
    shift = centre - _turned(own, centre) + pose.own_shift
    return _product(camera, own), _turned(camera, shift) + pose.shift


def _at_rest(planes: Planes, size: tuple[int, int]) -> list[Tensor]:
    """to_frame, to_layer (n, L, 9) and inverse depth (n, L, 3) in pixels, at the first time."""
    inverse = affine_inverse(planes.affine)
    return [homography(planes.affine), homography(inverse), _in_pixels(planes, planes.plane, size)]


def _seen(planes: Planes, pose: Pose, size: tuple[int, int]) -> list[Tensor]:
    """Whether a pose is safe (n,) bool, and as `_at_rest`: that all denominators are at least
    `LEAST` in the frame, there and back."""
    middle_x, middle_y = (size[1] - 1) / 2, (size[0] - 1) / 2
    focal = planes.focal[..., None]
    rotation, shift = _layer_motion(planes, pose)
    motion = rotation + shift[..., None] * planes.plane[..., None, :]
    a, b, c = homography(planes.affine).unflatten(-1, (3, 3)).unbind(-2)
    rays = torch.stack(((a - middle_x * c) / focal, (b - middle_y * c) / focal, c), -2)
    x, y, z = _product(motion, rays).unbind(-2)
    to_frame = torch.stack((focal * x + middle_x * z, focal * y + middle_y * z, z), -2)
    to_layer = _inverse(to_frame)
    moved = _turned(rotation, planes.plane)
    moved = moved / (1 + _dot(moved, shift)[..., None])

    # Denominators are linear in the frame, so its corners tell: half its extent about its middle.
    there = motion[..., 2, :]
    spread = (there[..., :2].abs() * planes.edge[:, None]).sum(-1)
    least = there[..., 2] - spread
    p, q, r = to_layer[..., 2, :].unbind(-1)
    back = (r + p * middle_x + q * middle_y) - (p.abs() * middle_x + q.abs() * middle_y)
    safe = torch.minimum(least, back).amin(1) >= LEAST
    return [safe, to_frame.flatten(-2), to_layer.flatten(-2), _in_pixels(planes, moved, size)]


def _in_pixels(planes: Planes, plane: Tensor, size: tuple[int, int]) -> Tensor:
    """The inverse depth of planes m (n, L, 3) as a x + b y + c of the frame: (n, L, 3)."""
    p, q, r = plane.unbind(-1)
    p, q = p / planes.focal, q / planes.focal
    return torch.stack((p, q, r - (p * ((size[1] - 1) / 2) + q * ((size[0] - 1) / 2))), -1)


def _reach(planes: Planes, pose: Pose) -> Tensor:
    """The largest share of its depth that any layer comes or goes by in the frame: (n,)."""
    rotation, shift = _layer_motion(planes, pose)
    largest = (planes.plane[..., :2].abs() * planes.edge[:, None]).sum(-1)
    largest = largest + planes.plane[..., 2].abs()
    before = _turned(rotation.transpose(-1, -2), shift)[..., 2].abs() * largest
    after = shift[..., 2].abs() * largest
    apart = _dot(_turned(rotation, planes.plane), shift).abs()
    return torch.maximum(torch.maximum(before, after), apart).amax(-1)


def _rotation(half: Tensor) -> Tensor:
    """Rotations (…, 3, 3) about axes, given as axis times the tangent of half the angle.

    ((1 − |c|²) I + 2 [c]× + 2 c cᵀ) / (1 + |c|²)
    """
    x, y, z = half.unbind(-1)
    xx, yy, zz, xy, yz, zx = x * x, y * y, z * z, x * y, y * z, z * x
    rows = (
        (1 + xx - yy - zz, 2 * (xy - z), 2 * (zx + y)),
        (2 * (xy + z), 1 - xx + yy - zz, 2 * (yz - x)),
        (2 * (zx - y), 2 * (yz + x), 1 - xx - yy + zz),
    )
    matrix = torch.stack([torch.stack(row, -1) for row in rows], -2)
    return matrix / (1 + xx + yy + zz)[..., None, None]


def _product(left: Tensor, right: Tensor) -> Tensor:
    """Products of 3×3 matrices, one rounded operation at a time: a matmul may round otherwise."""
    parts = [left[..., :, k, None] * right[..., k, None, :] for k in range(3)]
    return parts[0] + parts[1] + parts[2]


def _turned(matrix: Tensor, vector: Tensor) -> Tensor:
    """Products of 3×3 matrices and vectors, in the same way."""
    parts = [matrix[..., :, k] * vector[..., k, None] for k in range(3)]
    return parts[0] + parts[1] + parts[2]


def _dot(left: Tensor, right: Tensor) -> Tensor:
    """Inner products of vectors (…, 3), in the same way."""
    x, y, z = (left * right).unbind(-1)
    return x + y + z


def _inverse(matrix: Tensor) -> Tensor:
    """Inverses of 3×3 matrices by their minors."""
    (a, b, c), (d, e, f), (g, h, i) = (row.unbind(-1) for row in matrix.unbind(-2))
    rows = (
        (e * i - f * h, c * h - b * i, b * f - c * e),
        (f * g - d * i, a * i - c * g, c * d - a * f),
        (d * h - e * g, b * g - a * h, a * e - b * d),
    )
    determinant = a * rows[0][0] + b * rows[1][0] + c * rows[2][0]
    minors = torch.stack([torch.stack(row, -1) for row in rows], -2)
    return minors / determinant[..., None, None]
