"""How the points of a layer and the points of a frame correspond, both ways in closed form.

A layer has coordinates (u, v) of its own in which it lies within the unit disc (objects) or fills
[−1, 1]² in the first frame (background). At time t it is bent, then placed in the frame:

    shears      (u, v) += e g(θ)                 θ = f·(u, v) + φ, one after the other, f·e = 0
    placement   x = (a u + b v + c) / (g u + h v + i)     y = (d u + e v + f) / (g u + h v + i)

A shear moves points along e by an amount that depends on f·(u, v) alone, which it does not change.
So it is undone by subtracting what it added, and the way back is closed too. Its profile is

    g(θ) = sin θ + Σₖ (aₖ sin 2ᵏθ + bₖ cos 2ᵏθ),       k = 1 … octaves − 1.

A few layers are cylinders about their v axis. Between shears and placement a point at the angle α
from the middle goes to sin α. Written with tangents of half angles, u = tan(α/2)/2 and τ = that of
the turn so far, angles add by a = 2u + τ, b = 1 − 2uτ, and

    cylinder    u' = 2ab/(a² + b²),         which faces away where |a| > b.

Only what is seen within `RIM` of the axis is there: beyond it a texture would be squeezed together.

A placement is a homography, nine numbers row by row, scaled so that its denominator is near 1; it
is affine where the last row is (0, 0, 1). Only e and the placement depend on time; the first frame
is not bent. Parameters lead with their component axes and broadcast over (n, h, w) behind them.
"""

from __future__ import annotations

import torch
from torch import Tensor

RIM = 0.85
"""The share of a cylinder's radius within which it is seen: 58° to either side."""


def apply_map(x: Tensor, y: Tensor, numbers: Tensor, perspective: bool) -> tuple[Tensor, Tensor]:
    """The image of (x, y) under a homography (9, …).

    x and y: the same shape, or a row (1, 1, w) and a column (1, h, 1).
    perspective: False leaves out the division where every last row is (0, 0, 1).
    """
    along, down = _linear(x, y, numbers[:3]), _linear(x, y, numbers[3:6])
    if not perspective:
        return along, down
    scale = _linear(x, y, numbers[6:]).reciprocal_()
    return along.mul_(scale), down.mul_(scale)


def plane(x: Tensor, y: Tensor, numbers: Tensor) -> Tensor:
    """a x + b y + c; numbers (3, …), x and y as in `apply_map`."""
    return _linear(x, y, numbers)


def apply_bend(u: Tensor, v: Tensor, bend: Tensor, wave: Tensor) -> tuple[Tensor, Tensor]:
    """All shears in order; bend (K, 2, …): e of each; wave (K, 3 + 2(octaves − 1), …): f, φ, aₖ, bₖ."""
    for e, form in zip(bend.unbind(0), wave.unbind(0), strict=True):
        moved = profile(u, v, form)
        u, v = torch.addcmul(u, e[0], moved), torch.addcmul(v, e[1], moved)
    return u, v


def undo_bend(u: Tensor, v: Tensor, bend: Tensor, wave: Tensor) -> tuple[Tensor, Tensor]:
    """The inverse of `apply_bend`: the same shears subtracted, the last first."""
    for e, form in zip(reversed(bend.unbind(0)), reversed(wave.unbind(0)), strict=True):
        moved = profile(u, v, form)
        u, v = torch.addcmul(u, e[0], moved, value=-1), torch.addcmul(v, e[1], moved, value=-1)
    return u, v


def profile(u: Tensor, v: Tensor, form: Tensor) -> Tensor:
    """g(θ) of one shear; form (3 + 2(octaves − 1), …)."""
    theta = torch.addcmul(torch.addcmul(form[2], form[1], v), form[0], u)
    if len(form) == 3:
        return theta.sin_()
    sine, cosine = theta.sin(), theta.cos()
    total = sine
    for k in range(3, len(form), 2):
        # Double angles: sin 2θ = 2 sin θ cos θ and cos 2θ = 1 − 2 sin² θ.
        sine, cosine = 2 * sine * cosine, 1 - 2 * sine * sine
        total = torch.addcmul(torch.addcmul(total, form[k], sine), form[k + 1], cosine)
    return total


def roll_forward(u: Tensor, roll: Tensor) -> tuple[Tensor, Tensor]:
    """u' of the points u of cylinders, and 1.0 where they are not seen; roll (2, …): is it one, τ.

    Other layers pass through unchanged.
    """
    solid, turned = roll.unbind(0)
    a, b = 2 * u + turned, 1 - 2 * u * turned
    rolled = 2 * a * b / (a * a + b * b)
    return torch.lerp(u, rolled, solid), ((a.abs() > b) | (rolled.abs() > RIM)) * solid


def roll_back(u: Tensor, roll: Tensor) -> tuple[Tensor, Tensor]:
    """The points u of cylinders that are seen at u', and how far |u'| is from the rim.

    Other layers pass through unchanged, and are always a whole unit from it.
    """
    solid, turned = roll.unbind(0)
    seen = u.clamp(-1, 1)
    half = seen / (1 + (1 - seen * seen).sqrt())
    rolled = 0.5 * (half - turned) / (1 + half * turned)
    return torch.lerp(u, rolled, solid), 1 - (u.abs() + (1 - RIM)) * solid


def homography(affine: Tensor) -> Tensor:
    """Affine maps a … f (…, 6) as homographies (…, 9)."""
    last = torch.zeros_like(affine[..., :3])
    last[..., 2] = 1
    return torch.cat((affine, last), -1)


def affine_inverse(affine: Tensor) -> Tensor:
    """Inverses of affine maps a … f, (…, 6)."""
    a, b, c, d, e, f = affine.unbind(-1)
    det = a * e - b * d
    ia, ib, id_, ie = e / det, -b / det, -d / det, a / det
    return torch.stack((ia, ib, -(ia * c + ib * f), id_, ie, -(id_ * c + ie * f)), -1)


def _linear(x: Tensor, y: Tensor, row: Tensor) -> Tensor:
    a, b, c = row.unbind(0)
    if x.shape != y.shape:
        # A row and a column: only the last sum is as large as the frame.
        return a * x + (b * y + c)
    return torch.addcmul(torch.addcmul(c, b, y), a, x)
