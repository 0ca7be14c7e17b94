"""A frame of a scene, the exact flow to another, and the exact occlusion.

All of it is a loop over layers, over whole batches. Layers hide each other by their inverse depth at
the pixel. Of the layers that touch a pixel only the nearest and the one behind it are looked up in
the atlas: the coverage of the nearest mixes the two. What the pixel *shows*, for flow and occlusion,
is the nearest layer with coverage above one half, which is d > 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from lcv.data.synthetic.maps import (
    apply_bend,
    apply_map,
    plane,
    roll_back,
    roll_forward,
    undo_bend,
)
from lcv.data.synthetic.scene import Scene
from lcv.data.synthetic.shapes import as_grid, coverage_depth

MARGIN = 3
"""Texels at a texture's ends that layers keep away from: a cubic tap needs two."""

Found = tuple[Tensor, ...]
"""What a pixel has of a layer: its inverse depth, the place (u, v) in it, its number, and d."""


@dataclass(frozen=True)
class View:
    """One frame: image (n, 3, h, w), and what each pixel shows: layer (n, h, w), whole numbers
    in float32, and the place (u, v) in that layer's coordinates, each (n, h, w)."""

    image: Tensor
    layer: Tensor
    u: Tensor
    v: Tensor


class Renderer:
    """Renders one batch of scenes, with torch alone, on any device."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    def render(self, time: int) -> View:
        return render(self.scene, time)

    def follow(self, view: View, time: int) -> tuple[Tensor, Tensor, Tensor]:
        """Flow to the frame at a time, what is hidden there, and what is out of it."""
        flow = flow_to(self.scene, view, time)
        return flow, *hidden_at(self.scene, view, flow, time)


def look(
    scene: Scene, time: int, layer: int, x: Tensor, y: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """(u, v) of one layer at points (x, y) of the frame at a time, and d, how deep they lie in it.

    x and y: both (n, h, w), or a row (1, 1, w) and a column (1, h, 1).
    """
    motion = scene.motion
    u, v = apply_map(x, y, _leading(motion.to_layer[:, time, layer]), motion.perspective)
    inside = None
    if motion.cylinders:
        u, inside = roll_back(u, _leading(motion.roll[:, time, layer]))
    bend = motion.bend[:, time, layer]
    if not at_rest(bend, time):
        u, v = undo_bend(u, v, _leading(bend), _leading(motion.wave[:, layer]))
    if layer == 0:
        return u, v, torch.ones_like(u)
    d = coverage_depth(scene.outlines[:, layer - 1], u, v)
    if inside is not None:
        # Beyond the rim of a cylinder; other layers are as far inside as they are wide.
        d = torch.minimum(d, inside * _leading(motion.radius[:, layer, 0]))
    return u, v, d


def at_rest(bend: Tensor, time: int) -> bool:
    """Whether these shears are known to do nothing, without waiting for a GPU."""
    return time == 0 or (bend.device.type == "cpu" and not bend.any())


def render(scene: Scene, time: int) -> View:
    """The frame at a time, without effects."""
    h, w = scene.size
    device = scene.outlines.device
    x = torch.arange(w, dtype=torch.float32, device=device)[None, None]  # (1, 1, w)
    y = torch.arange(h, dtype=torch.float32, device=device)[None, :, None]  # (1, h, 1)
    inverse_depth = scene.motion.inverse_depth[:, time]
    u, v, d = look(scene, time, 0, x, y)
    q = plane(x, y, _leading(inverse_depth[:, 0])).expand_as(u)
    front: Found = (q, u, v, torch.zeros_like(u), d)
    back, shown = front, front[:4]
    for layer in range(1, scene.layers):
        u, v, d = look(scene, time, layer, x, y)
        q = plane(x, y, _leading(inverse_depth[:, layer])).expand_as(u)
        own: Found = (q, u, v, torch.full_like(u[:1, :1, :1], layer), d)
        touches = _above(d, -0.5)
        first = _above(q, front[0]).mul_(touches)
        if scene.motion.perspective:
            second = _above(q, back[0]).mul_(touches)
            back = _chosen(back, _chosen(own, front, first), second)
        else:  # layers come in order, each in front of all before it
            back = _chosen(back, front, first)
        front = _chosen(front, own, first)
        shown = _chosen(shown, own[:4], _above(q, shown[0]).mul_(_above(d, 0)))
    grid = torch.cat([as_grid(*_texels(scene, *found[1:4])) for found in (front, back)], 1)
    colours = F.grid_sample(
        scene.atlas, grid, mode="bicubic", padding_mode="border", align_corners=True
    ).split(h, 2)  # the front's and the back's (n, 3, h, w)
    if scene.skins.trims:
        colours = tuple(map(partial(_trimmed, scene), colours, (front, back)))
    if scene.skins.shadows:
        shades = _shades(scene, time, x, y, (front[0], back[0]))
        colours = tuple(c * s[:, None] for c, s in zip(colours, shades, strict=True))
    depth = front[4]
    if scene.motion.perspective:
        depth = torch.minimum(depth, _beyond_crossing(inverse_depth, front, back))
    coverage = (depth + 0.5).clamp_(0, 1)[:, None]
    image = torch.lerp(colours[1], colours[0], coverage)
    return View(image=image.clamp_(0, 255), u=shown[1], v=shown[2], layer=shown[3])


def flow_to(scene: Scene, view: View, time: int) -> Tensor:
    """Where the frame at another time shows what `view` shows, minus where it is: (n, 2, h, w)."""
    h, w = scene.size
    u, v, _ = _moved(scene, view, time)
    rows = 9 if scene.motion.perspective else 6
    numbers = per_pixel(scene.motion.to_frame[:, time, :, :rows], view.layer)
    x, y = apply_map(u, v, numbers, scene.motion.perspective)
    x -= torch.arange(w, dtype=x.dtype, device=x.device)
    y -= torch.arange(h, dtype=x.dtype, device=x.device)[:, None]
    return torch.stack((x, y), 1)


def hidden_at(scene: Scene, view: View, flow: Tensor, time: int) -> tuple[Tensor, Tensor]:
    """Whether what `view` shows is hidden in the frame at `time`, and whether it is out of the frame.

    Each (n, 1, h, w) bool. Out of the frame: the flow leads out of [0, w−1]×[0, h−1]. Hidden: that,
    or it leads to a point where a nearer layer covers, or beyond the rim of a cylinder.
    """
    h, w = scene.size
    x = flow[:, 0] + torch.arange(w, dtype=flow.dtype, device=flow.device)
    y = flow[:, 1] + torch.arange(h, dtype=flow.dtype, device=flow.device)[:, None]
    gone = (x < 0) | (x > w - 1) | (y < 0) | (y > h - 1)
    x, y = x.clamp(0, w - 1), y.clamp(0, h - 1)
    inverse_depth = scene.motion.inverse_depth[:, time]
    own = plane(x, y, per_pixel(inverse_depth, view.layer))
    hidden = torch.zeros_like(own)
    for layer in range(scene.layers):
        q = plane(x, y, _leading(inverse_depth[:, layer]))
        nearer = _above(q, own).mul_(_other(view.layer, layer))
        if layer > 0:
            nearer.mul_(_above(look(scene, time, layer, x, y)[2], 0))
        hidden = torch.maximum(hidden, nearer)
    if scene.motion.cylinders:
        hidden = torch.maximum(hidden, _moved(scene, view, time)[2])
    return ((hidden > 0) | gone)[:, None], gone[:, None]


def independent(scene: Scene, view: View) -> Tensor:
    """Whether the layer that a pixel shows moves by itself: (n, 1, h, w) bool."""
    return per_pixel(scene.motion.independent[..., None].float(), view.layer)[0, :, None] > 0


def _moved(scene: Scene, view: View, time: int) -> tuple[Tensor, Tensor, Tensor]:
    """What `view` shows, bent and rolled as at another time, and 1.0 where it is not seen."""
    motion = scene.motion
    u, v = view.u, view.v
    if not at_rest(motion.bend[:, time], time):
        form = torch.cat((motion.bend[:, time], motion.wave), -1)  # (n, L, K, …)
        shears = per_pixel(form.flatten(2), view.layer).unflatten(0, form.shape[2:])
        u, v = apply_bend(u, v, shears[:, :2], shears[:, 2:])
    if not motion.cylinders:
        return u, v, torch.zeros_like(u)
    u, away = roll_forward(u, per_pixel(motion.roll[:, time], view.layer))
    return u, v, away


def _beyond_crossing(inverse_depth: Tensor, front: Found, back: Found) -> Tensor:
    """How many pixels a point is from the line where the front layer cuts through the back one."""
    slope = per_pixel(inverse_depth, front[3])[:2] - per_pixel(inverse_depth, back[3])[:2]
    steepness = (slope * slope).sum(0).sqrt_()
    return (front[0] - back[0]) / steepness.clamp_(min=1e-12)


def _trimmed(scene: Scene, colour: Tensor, found: Found) -> Tensor:
    """The colour (n, 3, h, w) of layers with the edges that they have."""
    wide, *edge = per_pixel(scene.skins.trim, found[3])
    share = ((wide - found[4]) * 0.5 + 0.5).clamp_(0, 1)
    return torch.lerp(colour, torch.stack(edge, 1), share[:, None])


def _shades(
    scene: Scene, time: int, x: Tensor, y: Tensor, depths: tuple[Tensor, ...]
) -> list[Tensor]:
    """What the shadows of nearer layers leave of the light at these inverse depths, each (n, h, w)."""
    left = [torch.ones_like(q) for q in depths]
    for layer in range(1, scene.layers):
        shadow = scene.skins.shadow[:, layer]
        if shadow.device.type == "cpu" and not shadow[:, 0].any():
            continue
        dark, u0, v0, wide, high = _leading(shadow)
        u, v, _ = look(scene, time, layer, x, y)
        q = plane(x, y, _leading(scene.motion.inverse_depth[:, time, layer]))
        across, down = (u - u0) * wide, (v - v0) * high
        soft = (1 - across * across - down * down).clamp_(min=0).square_().mul_(dark)
        for k, behind in enumerate(depths):
            left[k] = left[k] * (1 - soft * (q > behind))
    return left


def per_pixel(table: Tensor, layer: Tensor) -> Tensor:
    """The rows of a table (n, L, k) that belong to a map of layers (n, h, w): (k, n, h, w)."""
    n, h, w = layer.shape
    k = table.shape[-1]
    index = layer.view(n, 1, h * w).long().expand(n, k, h * w)
    return torch.gather(table.transpose(1, 2), 2, index).view(n, k, h, w).transpose(0, 1)


def _leading(table: Tensor) -> Tensor:
    """(n, …) → (…, n, 1, 1)."""
    return table.movedim(0, -1)[..., None, None]


def _texels(scene: Scene, u: Tensor, v: Tensor, layer: Tensor) -> tuple[Tensor, Tensor]:
    """Places in the atlas, in grid_sample's coordinates, for points of layers."""
    rows, size = scene.atlas.shape[-2:]
    sx, ox, sy, oy = per_pixel(scene.skins.place, layer)
    x = _fold(torch.addcmul(ox, sx, u), size)
    y = _fold(torch.addcmul(oy, sy, v), size)
    y = torch.add(y, layer, alpha=size)
    return x.mul_(2 / (size - 1)).sub_(1), y.mul_(2 / (rows - 1)).sub_(1)


def _chosen(old: Found, new: Found, where: Tensor) -> Found:
    """`new` where the weight is 1 and `old` where it is 0."""
    # lerp with weights 0 and 1 chooses exactly, and is many times as fast as where on a CPU.
    return tuple(torch.lerp(a, b, where) for a, b in zip(old, new, strict=True))


def _above(d: Tensor, threshold: Tensor | float) -> Tensor:
    """1.0 where d > threshold, else 0.0, without a mask of booleans in between."""
    return torch.gt(d, threshold, out=torch.empty_like(d))


def _other(shown: Tensor, layer: int) -> Tensor:
    """1.0 where another layer than this one is shown."""
    return torch.ne(shown, layer, out=torch.empty_like(shown))


def _fold(x: Tensor, size: int) -> Tensor:
    """Reflection into [MARGIN, size − 1 − MARGIN]: a triangle wave."""
    length = size - 1 - 2 * MARGIN
    return (size - 1 - MARGIN) - (x.sub_(MARGIN).remainder_(2 * length).sub_(length)).abs_()
