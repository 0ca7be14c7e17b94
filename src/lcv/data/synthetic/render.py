"""A frame of a scene, the exact flow to another, and the exact occlusion.

All of it is a loop over layers, back to front, over whole batches. Of the layers that touch a pixel
only the front one and the one behind it are looked up in the atlas: the coverage of the front one
mixes the two. What the pixel *shows*, for flow and occlusion, is the front layer with coverage
above one half, which is d > 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from lcv.data.synthetic.motion import apply_affine, apply_bend, undo_bend
from lcv.data.synthetic.scene import Scene
from lcv.data.synthetic.shapes import as_grid, coverage_depth

MARGIN = 3
"""Texels at a texture's ends that the background keeps away from: a cubic tap needs two."""


@dataclass(frozen=True)
class View:
    """One frame: image (n, 3, h, w), and what each pixel shows: layer (n, h, w), whole numbers
    in float32, and the place (u, v) in that layer's coordinates, each (n, h, w)."""

    image: Tensor
    layer: Tensor
    u: Tensor
    v: Tensor


def layer_coordinates(
    scene: Scene, time: int, layer: int, x: Tensor, y: Tensor
) -> tuple[Tensor, Tensor]:
    """(u, v) of one layer at points (x, y) of the frame at a time.

    x and y: both (n, h, w), or a row (1, 1, w) and a column (1, h, 1).
    """
    motion = scene.motion
    affine = motion.to_layer[:, time, layer].T[..., None, None]  # (6, n, 1, 1)
    u, v = apply_affine(x, y, affine)
    if time > 0:
        # The first frame is never bent.
        bend = motion.bend[:, time, layer].T[..., None, None]
        u, v = undo_bend(u, v, bend, motion.wave[:, layer].T[..., None, None])
    return u, v


def render(scene: Scene, time: int) -> View:
    """The frame at a time, without effects."""
    h, w = scene.size
    device = scene.outlines.device
    x = torch.arange(w, dtype=torch.float32, device=device)[None, None]  # (1, 1, w)
    y = torch.arange(h, dtype=torch.float32, device=device)[None, :, None]  # (1, h, 1)
    u, v = layer_coordinates(scene, time, 0, x, y)
    front = back = _texels(scene, 0, u, v)
    depth = torch.full_like(u, 1.0)
    shown = torch.zeros_like(u)
    shown_u, shown_v = u, v
    for layer in range(1, scene.layers):
        u, v = layer_coordinates(scene, time, layer, x, y)
        d = coverage_depth(scene.outlines[:, layer - 1], u, v)
        touches = _above(d, -0.5)
        texels = _texels(scene, layer, u, v)
        # lerp with weights 0 and 1 chooses exactly, and is many times as fast as where on a CPU.
        back = torch.lerp(back[0], front[0], touches), torch.lerp(back[1], front[1], touches)
        front = torch.lerp(front[0], texels[0], touches), torch.lerp(front[1], texels[1], touches)
        depth = torch.lerp(depth, d, touches)
        covers = _above(d, 0)
        shown_u = torch.lerp(shown_u, u, covers)
        shown_v = torch.lerp(shown_v, v, covers)
        shown = torch.maximum(shown, covers.mul_(layer))
    grid = torch.cat((as_grid(*front), as_grid(*back)), 1)
    colours = F.grid_sample(
        scene.atlas, grid, mode="bicubic", padding_mode="border", align_corners=True
    )  # (n, 3, 2h, w)
    coverage = (depth + 0.5).clamp_(0, 1)[:, None]
    image = torch.lerp(colours[:, :, h:], colours[:, :, :h], coverage)
    return View(image=image.clamp_(0, 255), layer=shown, u=shown_u, v=shown_v)


def flow_to(scene: Scene, view: View, time: int) -> Tensor:
    """Where the frame at another time shows what `view` shows, minus where it is: (n, 2, h, w)."""
    h, w = scene.size
    n = view.layer.shape[0]
    motion = scene.motion
    table = torch.cat(
        (motion.to_frame[:, time], motion.bend[:, time], motion.wave), -1
    )  # (n, L, 12)
    index = view.layer.view(n, 1, h * w).long()
    chosen = torch.gather(table.transpose(1, 2), 2, index.expand(n, table.shape[-1], h * w))
    chosen = chosen.view(n, -1, h, w).transpose(0, 1)  # (12, n, h, w)
    u, v = view.u, view.v
    if time > 0:
        u, v = apply_bend(u, v, chosen[6:8], chosen[8:12])
    x, y = apply_affine(u, v, chosen[:6])
    x -= torch.arange(w, dtype=x.dtype, device=x.device)
    y -= torch.arange(h, dtype=x.dtype, device=x.device)[:, None]
    return torch.stack((x, y), 1)


def occluded_at(scene: Scene, view: View, flow: Tensor, time: int) -> Tensor:
    """Whether what `view` shows is hidden in the frame at `time`: (n, 1, h, w) bool.

    Hidden: the flow leads out of [0, w−1]×[0, h−1], or to a point that a layer further in front
    covers.
    """
    h, w = scene.size
    x = flow[:, 0] + torch.arange(w, dtype=flow.dtype, device=flow.device)
    y = flow[:, 1] + torch.arange(h, dtype=flow.dtype, device=flow.device)[:, None]
    top = torch.zeros_like(view.layer)
    for layer in range(1, scene.layers):
        u, v = layer_coordinates(scene, time, layer, x, y)
        d = coverage_depth(scene.outlines[:, layer - 1], u, v)
        top = torch.maximum(top, _above(d, 0).mul_(layer))
    gone = (x < 0) | (x > w - 1) | (y < 0) | (y > h - 1)
    return ((top > view.layer) | gone)[:, None]


def _texels(scene: Scene, layer: int, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Places in the atlas, in grid_sample's coordinates, for points of one layer."""
    rows, size = scene.atlas.shape[-2:]
    sx, ox, sy, oy = scene.skins.place[:, layer].T[..., None, None]
    step_x, step_y = 2 / (size - 1), 2 / (rows - 1)
    if layer == 0:
        x = _fold(torch.addcmul(ox - MARGIN, sx, u), size - 1 - 2 * MARGIN)
        y = _fold(torch.addcmul(oy - MARGIN, sy, v), size - 1 - 2 * MARGIN)
        return x.add_(MARGIN).mul_(step_x).sub_(1), y.add_(MARGIN).mul_(step_y).sub_(1)
    x = torch.addcmul(ox * step_x - 1, sx * step_x, u)
    y = torch.addcmul((oy + layer * size) * step_y - 1, sy * step_y, v)
    return x, y


def _above(d: Tensor, threshold: float) -> Tensor:
    """1.0 where d > threshold, else 0.0, without a mask of booleans in between."""
    return torch.gt(d, threshold, out=torch.empty_like(d))


def _fold(x: Tensor, length: float) -> Tensor:
    """Reflection into [0, length]: the triangle wave of period 2·length."""
    return length - ((x.remainder_(2 * length)).sub_(length)).abs_()
