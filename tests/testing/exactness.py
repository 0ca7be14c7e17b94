"""How exact a scene's flow and occlusion are, measured on what is rendered.

For any kind of scene, without effects: how far there and back leads from where it began, how well
the second frame moved along the flow is the first, and how often the occlusion equals that of a
render with many times as many pixels. And how far two renderers differ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from lcv.data.synthetic.backend import Renderer
from lcv.data.synthetic.render import View, flow_to, hidden_at, look, per_pixel, render
from lcv.data.synthetic.scene import Scene
from lcv.data.synthetic.shapes import as_grid


@dataclass(frozen=True)
class Exactness:
    """back: the longest way in pixels from a visible point along the flow and back by the maps;
    grey: the mean difference of the frames where visible, in grey levels; grey_away: the same away
    from outlines, where pixels are not mixtures; hidden: the share of the pixels away from outlines
    whose occlusion equals the fine render's; away: their share of all."""

    back: float
    grey: float
    grey_away: float
    hidden: float
    away: float


@torch.no_grad()
def exactness(scene: Scene, factor: int = 8) -> Exactness:
    """Measured between the first two frames of these scenes."""
    first, second = render(scene, 0), render(scene, 1)
    flow = flow_to(scene, first, 1)
    occluded, _ = hidden_at(scene, first, flow, 1)
    visible = ~occluded
    grey = (_warped(second.image, flow) - first.image).abs().mean(1, keepdim=True)
    back = (flow + way_back(scene, first, flow)).norm(dim=1, keepdim=True)[visible].max()
    found, away = fine_occlusion(scene, first, flow, factor)
    same = (found == occluded)[away].float().mean()
    return Exactness(
        back=back.item(),
        grey=grey[visible].mean().item(),
        grey_away=grey[visible & away].mean().item(),
        hidden=same.item(),
        away=away.float().mean().item(),
    )


@dataclass(frozen=True)
class Agreement:
    """How two renderers differ: pixels that show another layer, as a share; the largest difference
    of images in grey levels; where both show one layer, the largest of flow in pixels and the share
    of pixels hidden or gone in one alone."""

    layer: float
    image: float
    flow: float
    hidden: float
    gone: float


@torch.no_grad()
def agreement(one: Renderer, other: Renderer, here: int, there: int) -> Agreement:
    """Between the frame at a time and another, of two renderers of the same scene."""
    views = [renderer.render(here) for renderer in (one, other)]
    same = views[0].layer == views[1].layer
    (flow, hidden, gone), (flow2, hidden2, gone2) = (
        renderer.follow(view, there) for renderer, view in zip((one, other), views, strict=True)
    )
    return Agreement(
        layer=1 - same.float().mean().item(),
        image=(views[0].image - views[1].image).abs().max().item(),
        flow=(flow - flow2).abs().amax(1)[same].max().item(),
        hidden=(hidden != hidden2)[same[:, None]].float().mean().item(),
        gone=(gone != gone2)[same[:, None]].float().mean().item(),
    )


def way_back(scene: Scene, view: View, flow: Tensor) -> Tensor:
    """From where the flow leads in the second frame, the same layer's flow to the first."""
    h, w = scene.size
    x = flow[:, 0] + torch.arange(w, device=flow.device)
    y = flow[:, 1] + torch.arange(h, device=flow.device)[:, None]
    u, v = torch.zeros_like(x), torch.zeros_like(y)
    for layer in range(scene.layers):
        here = view.layer == layer
        found = look(scene, 1, layer, x, y)
        u, v = torch.where(here, found[0], u), torch.where(here, found[1], v)
    there = flow_to(scene, View(view.image, view.layer, u, v), 0)
    grid = torch.stack(torch.broadcast_tensors(*_grid(scene)))[None]
    return there + grid - torch.stack((x, y), 1)


def fine_occlusion(scene: Scene, view: View, flow: Tensor, factor: int) -> tuple[Tensor, Tensor]:
    """Occlusion read from a second frame with `factor` times as many pixels across, and where it
    can be compared: more than a pixel from any outline in both frames. Each (n, 1, h, w) bool."""
    h, w = scene.size
    fine = render(enlarged(scene, factor), 1)
    x = flow[:, 0] + torch.arange(w, device=flow.device)
    y = flow[:, 1] + torch.arange(h, device=flow.device)[:, None]
    inside = (x >= 0) & (x <= w - 1) & (y >= 0) & (y <= h - 1)
    middle = (factor - 1) / 2
    column = (factor * x + middle).round().long().clamp(0, factor * w - 1)
    row = (factor * y + middle).round().long().clamp(0, factor * h - 1)
    sample = torch.arange(len(flow), device=flow.device)[:, None, None]
    # The same layer, and the same place in it: a cylinder turns parts of itself away.
    same = fine.layer[sample, row, column] == view.layer
    rx, ry = per_pixel(scene.motion.radius, view.layer)
    apart = (fine.u[sample, row, column] - view.u).abs() * rx
    apart = apart + (fine.v[sample, row, column] - view.v).abs() * ry
    hidden = ~inside | ~same | (apart > 2)
    near = outline_within(view.layer, 1)
    near_there = outline_within(fine.layer, factor)[sample, row, column]
    return hidden[:, None], ~(near | near_there)[:, None]


def outline_within(layer: Tensor, reach: int) -> Tensor:
    """True within `reach` pixels of a change of layer: (n, h, w) → (n, h, w)."""
    size = 2 * reach + 1

    def highest(values: Tensor) -> Tensor:
        rows = F.max_pool2d(values[:, None], (size, 1), 1, (reach, 0))
        return F.max_pool2d(rows, (1, size), 1, (0, reach))[:, 0]

    return highest(layer) != -highest(-layer)


def enlarged(scene: Scene, factor: int) -> Scene:
    """The same scene with `factor` times as many pixels across: X = factor·x + (factor − 1)/2."""
    motion = scene.motion
    middle = (factor - 1) / 2
    grow = torch.tensor([[factor, 0, middle], [0, factor, middle], [0, 0, 1]], dtype=torch.float64)
    grow = grow.to(motion.radius.device)
    shrink = torch.linalg.inv(grow)
    forward = grow @ motion.to_frame.double().unflatten(-1, (3, 3))
    back = motion.to_layer.double().unflatten(-1, (3, 3)) @ shrink
    moved = replace(
        motion,
        to_frame=forward.flatten(-2).float(),
        to_layer=back.flatten(-2).float(),
        inverse_depth=(motion.inverse_depth.double() @ shrink).float(),
    )
    h, w = scene.size
    return replace(scene, size=(h * factor, w * factor), motion=moved)


def _warped(image: Tensor, flow: Tensor) -> Tensor:
    """The image at x + flow(x), by cubic convolution, which blurs less than bilinear sampling."""
    h, w = image.shape[-2:]
    x = (flow[:, 0] + torch.arange(w, device=flow.device)) * (2 / (w - 1)) - 1
    y = (flow[:, 1] + torch.arange(h, device=flow.device)[:, None]) * (2 / (h - 1)) - 1
    return F.grid_sample(image, as_grid(x, y), mode="bicubic", align_corners=True)


def _grid(scene: Scene) -> tuple[Tensor, Tensor]:
    h, w = scene.size
    device = scene.outlines.device
    return torch.arange(w, device=device)[None], torch.arange(h, device=device)[:, None]
