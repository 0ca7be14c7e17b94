"""Brightness, contrast, saturation and hue in a random order, and channels that change places.

With f the drawn factor, grey = 0.299 R + 0.587 G + 0.114 B, and every result clamped to 0 … 255:

    brightness   f·x
    contrast     f·x + (1 − f)·mean(grey), one mean over both frames if they are changed alike
    saturation   f·x + (1 − f)·grey
    hue          the hue of HSV turned by f of a full turn, S and V kept

These are PIL's ImageEnhance and torchvision's ColorJitter, which RAFT calls, without the rounding:
PIL rounds the mean, and every intermediate image, to whole grey levels, and hue and saturation to
1/255. **Departure:** ours stays in floats.

The first three are one formula, a·x + b·grey + c, and unused it is the identity to the bit. So a
batch in which every sample has an order of its own takes three such steps, the hue, and three more:
a sample whose hue comes second has one step before it and two after.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lcv.data.augment.means import exact_sum, mean_of
from lcv.data.augment.recipes import Jitter
from lcv.data.random import Draws

BRIGHTNESS, CONTRAST, SATURATION, HUE = range(4)
GREY = (0.299, 0.587, 0.114)


@dataclass(frozen=True, eq=False)
class Colours:
    """Drawn for b pairs. order: (b, 2, 4) int64, the changes first to last, of each frame;
    factor: (b, 2, 4) float32, by change; is_joint: (b,) bool, both frames alike."""

    order: Tensor
    factor: Tensor
    is_joint: Tensor


def draw_colours(jitter: Jitter, draws: Draws) -> Colours:
    """An order and four factors a frame; the second frame's are the first's if it is changed alike."""
    is_joint = ~draws.happens("augment: asymmetric colours", (), jitter.asymmetric)
    # A sort of random words is a permutation, each as likely.
    order = draws.words("augment: colour order", (2, 4)).argsort(dim=-1, stable=True)
    factors = []
    for name in ("brightness", "contrast", "saturation"):
        amount = getattr(jitter, name)
        low, high = max(0.0, 1 - amount), 1 + amount
        factors.append(draws.uniform(f"augment: {name}", (2,), low, high))
    factors.append(draws.uniform("augment: hue", (2,), -jitter.hue, jitter.hue))
    factor = torch.stack(factors, -1)  # (b, 2, 4)
    alike = is_joint[:, None, None]
    return Colours(
        torch.where(alike, order[:, :1], order), torch.where(alike, factor[:, :1], factor), is_joint
    )


def change_colours(frames: Tensor, inside: Tensor, colours: Colours) -> Tensor:
    """Both frames of b pairs, changed: (b, 2, 3, h, w) float in 0 … 255, the same shape.

    inside: (b, h, w) bool, the pixels that belong to the sample; only they enter the mean.
    """
    rank = colours.order.argsort(-1)  # (b, 2, 4): when each change comes
    hue_rank = rank[..., HUE]
    factor = colours.factor.to(frames.dtype)
    # Steps 0 … 2 lie before the hue, 3 … 5 after it.
    step_of = torch.where(rank > hue_rank[..., None], rank - hue_rank[..., None] + 2, rank)
    for step in range(6):
        if step == 3:
            frames = turn_hue(frames, factor[..., HUE])
        now = step_of[..., :HUE] == step  # (b, 2, 3), at most one change a frame
        f = torch.where(now, factor[..., :HUE], torch.ones_like(factor[..., :HUE])).prod(-1)
        grey = grey_of(frames)
        middle = _grey_mean(grey, inside, colours.is_joint).to(frames.dtype)
        zero = torch.zeros_like(f)
        b = torch.where(now[..., SATURATION], 1 - f, zero)[..., None, None]
        c = torch.where(now[..., CONTRAST], (1 - f) * middle, zero)[..., None, None]
        added = grey.mul_(b).add_(c)[:, :, None]
        frames = (frames * f[..., None, None, None]).add_(added).clamp_(0, 255)
    return frames


def grey_of(frames: Tensor) -> Tensor:
    """0.299 R + 0.587 G + 0.114 B: (…, 3, h, w) → (…, h, w)."""
    red, green, blue = frames.unbind(-3)
    return (red * GREY[0]).add_(green * GREY[1]).add_(blue * GREY[2])


def _grey_mean(grey: Tensor, inside: Tensor, is_joint: Tensor) -> Tensor:
    """Mean of each frame (b, 2), or of both where they are changed alike."""
    total = exact_sum(grey, inside[:, None])  # (b, 2)
    count = inside.sum((-2, -1))[:, None]  # (b, 1)
    both = mean_of(total.sum(1, keepdim=True), 2 * count)
    return torch.where(is_joint[:, None], both, mean_of(total, count))


def turn_hue(frames: Tensor, turn: Tensor) -> Tensor:
    """The hue of HSV moved on by `turn` of a circle: (b, n, 3, h, w) and (b, n) → (b, n, 3, h, w).

    With V the greatest and V − D the least channel and H in sixths of the circle, channel number
    n = 5, 3, 1 for R, G, B becomes V − D·clamp(min(k, 4 − k), 0, 1), k = (n + H) mod 6.
    Facts: V and D stay; grey stays grey to the bit.
    """
    red, green, blue = frames.unbind(-3)
    value = frames.amax(-3)
    spread = value - frames.amin(-3)
    over = torch.where(spread > 0, spread, torch.ones_like(spread))
    hue = torch.where(
        value == red,
        (green - blue) / over,
        torch.where(value == green, (blue - red) / over + 2, (red - green) / over + 4),
    )
    hue = hue + 6 * turn[..., None, None]
    channels = []
    for number in (5, 3, 1):
        k = (hue + number).remainder(6)
        share = torch.minimum(k, 4 - k).clamp_(0, 1)
        channels.append(value - share.mul_(spread))
    return torch.stack(channels, -3)


def draw_swap(draws: Draws) -> Tensor:
    """Which channel comes first, second and third, each order as likely: (b, 3) int64."""
    return draws.words("augment: channels", (3,)).argsort(dim=-1, stable=True)


def swap_channels(frames: Tensor, swap: Tensor) -> Tensor:
    """Both frames of b pairs with their channels in another order: out[:, :, k] = in[:, :, swap[k]]."""
    return frames.gather(2, swap[:, None, :, None, None].expand(frames.shape))
