"""What layers wear: a tile of the bank each, its colours, where it lies, and a shadow.

Every layer of every scene takes one tile, with its channels in some order, a gain and an offset; the
L tiles of a scene lie one below the other in an atlas (n, 3, L·s, s), so that one call samples all
layers at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lcv.data.random import Draws
from lcv.data.synthetic.settings import Recipe
from lcv.data.synthetic.shapes import draw_round

UNTRIMMED = -1e4
"""The width of an edge that is nowhere."""


@dataclass(frozen=True)
class Skins:
    """What each layer wears: bit-equal parameters of n scenes with L layers.

    tile (n, L) which texture;  order (n, L, 3) its channels;  gain, offset (n, L, 3);
    place (n, L, 4): sx, ox, sy, oy with texel x = sx·u + ox, texel y = sy·v + oy
    shadow (n, L, 5): the shadow that a layer casts, see `draw_shadows`
    trim (n, L, 4): the colour of a layer's edge, see `draw_trims`
    shadows, trims: whether any layer may have one
    """

    tile: Tensor
    order: Tensor
    gain: Tensor
    offset: Tensor
    place: Tensor
    shadow: Tensor
    trim: Tensor
    shadows: bool
    trims: bool


def draw_skins(recipe: Recipe, draws: Draws, radius: Tensor, bank: Tensor) -> Skins:
    """Textures, colours and texture placements of all layers; radius: (n, L, 2) in pixels."""
    layers = recipe.layers
    count, _, size, _ = bank.shape
    low, high = recipe.contrast
    flat = draws.happens("flat", (layers, 1), recipe.flat_probability).float()
    if recipe.flat_objects is not None:
        plain = draws.happens("flat", (layers, 1), recipe.flat_objects).float()
        flat = torch.cat((flat[:, :1], plain[:, 1:]), 1)
    negative = draws.happens("negative", (layers, 1), recipe.negative_probability).float()
    faint = draws.uniform("faint contrast", (layers, 1), 0.03, 0.25)
    gain = draws.uniform("contrast", (layers, 1), low, high)
    gain = gain + (faint - gain) * flat
    gain = gain * (1 - (negative + negative))
    gain = gain * draws.uniform("channel contrast", (layers, 3), 0.85, 1.15)
    offset = draws.normal("tint", (layers, 1)) + draws.normal("channel tint", (layers, 3))
    offset = offset * (0.5 * recipe.tint) + 128 - gain * 128

    tile = draws.integers("texture", (layers,), 0, count)
    # The six orders of three channels without a table on the device: a rotation, then a swap.
    number = draws.integers("channel order", (layers, 1), 0, 6)
    channel = torch.arange(3, device=number.device)
    order = (channel * (1 + number % 2) + number // 2) % 3
    scale = draws.uniform("texture scale", (layers, 1), *recipe.texture_scale)
    hidden = draws.happens("camouflage", (layers, 1), recipe.camouflage_probability)
    tile = torch.where(hidden[..., 0], tile[:, :1], tile)
    order, gain, offset, scale = (
        torch.where(hidden, own[:, :1], own) for own in (order, gain, offset, scale)
    )
    # Objects lie within their texture; the background is folded back at the texture's ends.
    room = size / 2 - 4
    fits = room / radius[:, 1:].amax(-1, keepdim=True)
    scale = torch.cat((scale[:, :1], torch.minimum(scale[:, 1:], fits)), 1)
    flip = draws.integers("texture flip", (layers, 2), 0, 2).float() * 2 - 1
    # The background's photographs keep their upright stance; only left and right may change.
    upright = torch.cat((flip[:, :1, :1], torch.ones_like(flip[:, :1, 1:])), -1)
    stretch = scale * radius * torch.cat((upright, flip[:, 1:]), 1)
    if recipe.round_probability > 0:
        # The middle of a cylinder is four times as wide as a flat layer's, its rim not twice.
        turns = draw_round(recipe, draws)
        across = (stretch[..., 0] * 1.5).clamp(-room, room)
        stretch = torch.stack((torch.where(turns, across, stretch[..., 0]), stretch[..., 1]), -1)
    slack = (room - stretch.abs()).clamp(min=0)
    origin = draws.uniform("texture origin", (layers, 2), -1, 1) * slack + (size - 1) / 2
    sx, sy = stretch.unbind(-1)
    ox, oy = origin.unbind(-1)
    return Skins(
        tile=tile,
        order=order,
        gain=gain,
        offset=offset,
        place=torch.stack((sx, ox, sy, oy), -1),
        shadow=draw_shadows(recipe, draws),
        trim=draw_trims(recipe, draws),
        shadows=recipe.shadow > 0,
        trims=recipe.trim_probability > 0,
    )


def draw_shadows(recipe: Recipe, draws: Draws) -> Tensor:
    """Soft ellipses below objects, in their coordinates, that darken what is behind: (n, L, 5).

    a, u₀, v₀, 1/ru, 1/rv: what is behind (u, v) is multiplied by 1 − a·max(0, 1 − ρ²)² with
    ρ² = ((u − u₀)/ru)² + ((v − v₀)/rv)².
    """
    shape = (recipe.layers,)
    if recipe.shadow == 0:
        return torch.zeros(len(draws), *shape, 5, device=draws.device)
    casts = draws.happens("shadow", shape, recipe.shadow)
    dark = draws.uniform("shadow darkness", shape, 0.2, 0.7) * casts
    dark = torch.cat((torch.zeros_like(dark[:, :1]), dark[:, 1:]), 1)
    aside = draws.uniform("shadow place", shape, -0.4, 0.4)
    below = draws.uniform("shadow height", shape, 0.5, 0.8)
    wide = 1 / draws.uniform("shadow width", shape, 0.9, 1.5)
    high = 1 / draws.uniform("shadow depth", shape, 0.4, 0.7)
    return torch.stack((dark, aside, below, wide, high), -1)


def draw_trims(recipe: Recipe, draws: Draws) -> Tensor:
    """Plain edges of objects, (n, L, 4): how wide, and red, green and blue.

    The colour covers a share (w − d)/2 + ½, clipped to [0, 1], of what is d inside a layer.
    """
    shape = (recipe.layers,)
    if recipe.trim_probability == 0:
        return torch.full((len(draws), *shape, 4), UNTRIMMED, device=draws.device)
    has = draws.happens("trim", shape, recipe.trim_probability)
    has = has & (torch.arange(recipe.layers, device=has.device) > 0)
    wide = torch.where(has, draws.uniform("trim width", shape, *recipe.trim), UNTRIMMED)
    grey = draws.uniform("trim colour", (*shape, 1), 0, 255)
    colour = (grey + 25 * draws.normal("trim tint", (*shape, 3))).clamp(0, 255)
    return torch.cat((wide[..., None], colour), -1)


def make_atlas(bank: Tensor, skins: Skins) -> Tensor:
    """The tiles of each scene, coloured, one below the other: (n, 3, L·s, s) float32."""
    n, layers = skins.tile.shape
    size = bank.shape[-1]
    tiles = bank[skins.tile[:, None], skins.order.transpose(1, 2).contiguous()]  # (n, 3, L, s, s)
    gain = skins.gain.transpose(1, 2).contiguous()[..., None, None]
    offset = skins.offset.transpose(1, 2).contiguous()[..., None, None]
    return (tiles * gain).add_(offset).view(n, 3, layers * size, size)
