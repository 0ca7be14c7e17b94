"""Learn a universal patch: a picture that disturbs a network's flow wherever it is pasted in both frames.

The patch does not move between the frames. It is changed along the gradient that increases

    mean over pairs of  Σᵢ wᵢ [ (1 − near) log(0.05 px + mean over far pixels of |flowᵢ − target|₂)
                                  + near  log(0.05 px + mean over all pixels outside of the same) ]

over all predictions i of the network, wᵢ ∝ 0.8^(last − i), with a new place, angle and size for every
pair. Why this objective:

- The target is the truth ("error"), so what is maximised is what is measured. Without truth it is
  the network's own flow on the untouched frames ("change"); changed flow need not be worse.
- Far means more than `margin` pixels outside the patch. Any picture does harm under and near it.
- Errors near the patch may spread; the second term gives a gradient before they do.
- All predictions count: RAFT cuts the gradient between iterations, so the last one says little.
- Errors are lengths. The cosine of the attack literature ("cosine", to compare) does not see flow
  that is too long, and is undefined where nothing moves.
- The logarithm gives pairs equal weight; otherwise a few pairs have almost all of the gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lcv.data.random import Draws
from lcv.data.synthetic.recipe import RECIPES
from lcv.errors import ArgumentError
from lcv.evaluate.calling import call_options
from lcv.evaluate.protocols import Setting
from lcv.models.types import in_evaluation, tensor_of
from lcv.studies.patch_frames import Frames
from lcv.studies.patch_step import Climb, Replayed
from lcv.studies.robustness.stress import apply_patch, disc, places_at

Progress = Callable[[int, int, float], None]

OBJECTIVES = ("error", "change", "cosine")
STARTS = ("noise", "stripes", "checks")
STRIPE = 8
"""Pixels of a stripe or check of a start: one cell of RAFT's features."""
_TOLD_EVERY = 25
_FLOOR = 0.05
_DECAY = 0.8
_EPSILON = 1e-6


@dataclass(frozen=True)
class PatchConfig:
    """How a patch is learned; stored in its card.

    side:      pixels of the patch's picture
    sizes:     diameters it is pasted with, log-uniform; a wide range blurs the finest pattern
    rotation:  it is turned by up to this many degrees either way
    margin:    far is more than this many pixels outside the rim
    near:      share of the objective that is of all pixels outside; the rest is of the far ones
    steps, batch: updates, and pairs an update
    rate:      grey levels a step, falling to a tenth along a cosine; see `Climb`
    iters:     iterations of the network, if it iterates
    seed:      of the start and of all places, angles and sizes
    recipe, pool: of procedural pairs, and how many are made before they repeat
    start:     one of STARTS, or the name of a picture
    """

    side: int = 100
    sizes: tuple[float, float] = (97.5, 102.5)
    rotation: float = 5.0
    margin: float = 32.0
    near: float = 0.5
    objective: str = "error"
    steps: int = 1500
    batch: int = 4
    rate: float = 6.0
    iters: int = 8
    seed: int = 0
    recipe: str = "training"
    start: str = "noise"
    pool: int = 256

    def __post_init__(self) -> None:
        for name, known in (("objective", OBJECTIVES), ("recipe", RECIPES)):
            if getattr(self, name) not in known:
                value = getattr(self, name)
                raise ArgumentError(
                    f"PatchConfig: {name} is {value!r}, wanted one of {', '.join(known)}"
                )
        if not 0 <= self.near <= 1:
            raise ArgumentError(f"PatchConfig: near is {self.near}, wanted a share from 0 to 1")
        if not 0 < self.sizes[0] <= self.sizes[1]:
            raise ArgumentError(f"PatchConfig: sizes are {self.sizes}, wanted (low, high) above 0")
        for name, least in (("side", 4), ("steps", 1), ("batch", 1), ("iters", 1), ("pool", 1)):
            if getattr(self, name) < least:
                raise ArgumentError(
                    f"PatchConfig: {name} is {getattr(self, name)}, wanted at least {least}"
                )

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "sizes": list(self.sizes)}


def start_patch(config: PatchConfig) -> Tensor:
    """The picture that learning begins with, one of STARTS: (3, side, side) in 0 … 255.

    Stripes and checks have grey levels 16 and 239 and are `STRIPE` pixels wide.
    """
    if config.start == "noise":
        shape = (3, config.side, config.side)
        return Draws(config.seed, [0]).uniform("start", shape, 0, 255)[0]
    if config.start not in STARTS:
        raise ArgumentError(
            f"PatchConfig: start is {config.start!r}, wanted one of {', '.join(STARTS)}, or the "
            f"pixels of a picture"
        )
    cell = torch.arange(config.side) // STRIPE
    rows = cell[:, None] * (config.start == "checks")
    light = (cell + rows) % 2 == 1  # (1 or side, side)
    return torch.where(light, 239.0, 16.0).expand(3, config.side, config.side).clone()


def learn_patch(
    model: nn.Module,
    frames: Iterator[Frames],
    config: PatchConfig,
    progress: Progress | None = None,
    *,
    start: Tensor | None = None,
    graph: bool = False,
) -> tuple[Tensor, list[float]]:
    """A patch (3, side, side) in 0 … 255, and the objective at every step.

    frames:   batches of any size up to `config.batch`, on the network's device
    progress: called every 25 steps with steps done, their number, and the objective
    start:    pixels (3, s, s) in place of the config's start; resized to its side
    graph:    record a step once and replay it, on CUDA, with batches of one size
    Facts: the network's weights, modes and gradients are left as they were.
    """
    device = tensor_of(model).device
    if graph and device.type != "cuda":
        raise ArgumentError(f"learn_patch: a graph needs CUDA, and the network is on {device.type}")
    first = start_patch(config) if start is None else _resized(start, config.side)
    climb = Climb(first.to(device), config.rate, config.steps)
    options = {**call_options(model, Setting(iters=config.iters)), "all_flows": True}
    draws = Draws(config.seed, range(config.steps * config.batch), device)
    low, high = (math.log(size) for size in config.sizes)
    turn = math.radians(config.rotation)
    drawn = (
        draws.uniform("size", (), low, high).exp(),
        draws.uniform("angle", (), -turn, turn),
        draws.uniform("place", (2,)),
    )

    def step(image1: Tensor, image2: Tensor, truth: Tensor | None, *where: Tensor) -> Tensor:
        def objective(patch: Tensor) -> Tensor:
            return _objective(model, (image1, image2, truth), patch, where, config, options)

        return climb(objective)

    take = Replayed(step) if graph else step
    values = torch.zeros(config.steps, device=device)
    done = 0
    wanted = {p: p.requires_grad for p in model.parameters()}
    with in_evaluation(model):
        model.requires_grad_(False)
        try:
            while done < config.steps and (pair := next(frames, None)) is not None:
                if len(pair[0]) > config.batch:
                    raise ArgumentError(
                        f"learn_patch: {len(pair[0])} pairs at once, wanted at most {config.batch}"
                    )
                here = slice(done * config.batch, done * config.batch + len(pair[0]))
                climb.set_rate(done)
                values[done] = take(*pair, *(part[here] for part in drawn))
                done += 1
                if progress is not None and (done % _TOLD_EVERY == 0 or done == config.steps):
                    progress(done, config.steps, float(values[done - 1]))
        finally:
            for parameter, was in wanted.items():
                parameter.requires_grad_(was)
    if not done:
        raise ArgumentError("learn_patch: there were no frames, wanted at least one batch")
    return climb.patch.clone(), values[:done].tolist()


def _resized(pixels: Tensor, side: int) -> Tensor:
    resized = F.interpolate(pixels[None].float(), (side, side), mode="bilinear", antialias=True)
    return resized[0].clamp(0, 255)


def _objective(
    model: nn.Module,
    frames: Frames,
    patch: Tensor,
    where: Sequence[Tensor],
    config: PatchConfig,
    options: dict[str, Any],
) -> Tensor:
    """What is maximised, of one batch; where: sizes (b,), angles (b,), places as shares (b, 2)."""
    image1, image2, truth = frames
    size, angle, place = where
    centre = places_at(place, image1, size)
    if config.objective != "error":
        with torch.no_grad():
            target = model(image1, image2, **options).flow
    elif truth is not None:
        target = truth
    else:
        raise ArgumentError(
            'learn_patch: the objective "error" needs frames with truth, and these have none; '
            'wanted procedural pairs, or the objective "change"'
        )
    pasted = [
        apply_patch(x, patch, centre, size, angle=angle, largest=config.sizes[1])
        for x in (image1, image2)
    ]
    output = model(*pasted, **options)
    flows = output.flows or (output.flow,)
    regions = [
        (share, ~disc(image1, centre, size + 2 * margin)[:, 0])  # (b, h, w)
        for share, margin in ((1 - config.near, config.margin), (config.near, 0.0))
        if share
    ]

    def of(flow: Tensor) -> Tensor:
        if config.objective == "cosine":
            value = -F.cosine_similarity(flow, target, dim=1, eps=_EPSILON)
        else:
            value = ((flow - target).square().sum(1) + _EPSILON).sqrt()
        found = []
        for share, region in regions:
            mean = (value * region).sum((1, 2)) / region.sum((1, 2)).clamp(min=1)
            found.append(share * (mean if config.objective == "cosine" else (mean + _FLOOR).log()))
        return torch.stack(found).sum(0).mean()

    weights = [_DECAY ** (len(flows) - 1 - i) for i in range(len(flows))]
    parts = [weight * of(flow) for weight, flow in zip(weights, flows, strict=True)]
    return torch.stack(parts).sum() / sum(weights)
