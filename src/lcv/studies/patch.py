"""Learn a universal patch: one picture that, pasted anywhere in both frames, disturbs a network's flow.

The patch stands still in both frames, so that it moves nothing itself; what it does to the flow
elsewhere is the network's own doing. It is moved up the gradient of

    mean over pairs of log(0.05 px + mean over far pixels of |flow(patched) − flow(untouched)|₂)

with a new place, angle and size for every pair. Why this objective:

- It compares with the network's own untouched flow, so that any frames serve and no truth is needed.
- It looks further than `margin` pixels outside the patch only. There a patch can do harm only through
  the network; what happens under and beside it would happen with any picture.
- Lengths, not angles: the cosine of the attack literature is blind to a flow that is many times too
  long and undefined where nothing moves. It is here too ("cosine"), to compare.
- The logarithm weighs pairs alike. Without it the few pairs whose flow is about to break anyway give
  almost all of the gradient.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lcv.data.random import Draws
from lcv.data.recognise import recognise
from lcv.data.record import read_frame
from lcv.data.synthetic.recipe import RECIPES
from lcv.data.synthetic.sequence import generate
from lcv.data.synthetic.textures import procedural_bank
from lcv.errors import ArgumentError, FileError
from lcv.studies.robustness.stress import apply_patch, disc, places

Frames = tuple[Tensor, Tensor]
Progress = Callable[[int, int, float], None]

OBJECTIVES = ("change", "cosine")
_FLOOR = 0.05
_EPSILON = 1e-6


@dataclass(frozen=True)
class PatchConfig:
    """How a patch is learned; stored in its card."""

    side: int = 100
    """Pixels of the patch's picture."""
    sizes: tuple[float, float] = (80.0, 125.0)
    """Diameters it is pasted with, log-uniform."""
    rotation: float = 10.0
    """It is turned by up to this many degrees either way."""
    margin: float = 32.0
    """Flow counts further than this many pixels outside the rim."""
    objective: str = "change"
    """One of OBJECTIVES."""
    steps: int = 1000
    """Updates."""
    batch: int = 8
    """Pairs an update."""
    rate: float = 6.0
    """Adam's rate in grey levels, falling to a tenth along a cosine."""
    iters: int | None = None
    """Iterations of the network, for those that iterate; None is its own choice."""
    seed: int = 0
    """Of the start and of all places, angles and sizes."""
    recipe: str = "moderate"
    """Of procedural pairs. Where motion is so large that the network errs anyway, as in much of
    "training", flow that changes need not become worse."""

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise ArgumentError(
                f"PatchConfig: objective is {self.objective!r}, wanted one of {', '.join(OBJECTIVES)}"
            )
        if self.recipe not in RECIPES:
            raise ArgumentError(
                f"PatchConfig: there is no recipe {self.recipe!r}; there are {', '.join(RECIPES)}"
            )
        if not 0 < self.sizes[0] <= self.sizes[1]:
            raise ArgumentError(f"PatchConfig: sizes are {self.sizes}, wanted (low, high) above 0")
        for name, least in (("side", 4), ("steps", 1), ("batch", 1)):
            if getattr(self, name) < least:
                raise ArgumentError(
                    f"PatchConfig: {name} is {getattr(self, name)}, wanted at least {least}"
                )

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "sizes": list(self.sizes)}


def procedural_frames(
    config: PatchConfig, size: tuple[int, int], device: torch.device | str = "cpu"
) -> Iterator[Frames]:
    """Endless procedural pairs, of the seeds and textures of training: the benchmark has others."""
    bank = procedural_bank("train", device=str(torch.empty(0, device=device).device))
    first = 0
    while True:
        indices = range(first, first + config.batch)
        made = generate(RECIPES[config.recipe], config.seed, indices, size, device, textures=bank)
        yield made.image1, made.image2
        first += config.batch


def frames_of(
    data: str, config: PatchConfig, size: tuple[int, int], device: torch.device | str = "cpu"
) -> Iterator[Frames]:
    """ "procedural", of this size; or the frames of a dataset, pair after pair, again and again.

    Pairs of a dataset come at their own sizes, one at a time, in an order that is drawn anew each
    time round; truth is not read.
    """
    if data == "procedural":
        yield from procedural_frames(config, size, device)
        return
    records = [
        record
        for home, kind in recognise(data)
        for part in kind.survey(home).parts
        for record in part.dataset
    ]
    if not records:
        raise FileError(f"{data}: no pair of frames was found here, wanted at least one")
    for around in itertools.count():
        order = Draws(config.seed, [around]).words("order", (len(records),))[0].argsort()
        for index in order.tolist():
            record = records[index]
            pair = [
                torch.from_numpy(np.array(read_frame(frame))).to(device).movedim(2, 0)[None].float()
                for frame in (record.image1, record.image2)
            ]
            yield pair[0], pair[1]


def learn_patch(
    model: nn.Module,
    frames: Iterator[Frames],
    config: PatchConfig,
    progress: Progress | None = None,
) -> tuple[Tensor, list[float]]:
    """A patch (3, side, side) in 0 … 255, and the objective at every step.

    frames: batches (b, 3, h, w) of any size, on the network's device; it ends the learning if it ends
    progress: called with steps done, their number, and the objective
    Facts: the network's weights, modes and gradients are left as they were.
    """
    device = next(model.parameters()).device
    draws = Draws(config.seed, [0], device)
    patch = draws.uniform("start", (3, config.side, config.side), 0, 255)[0].requires_grad_(True)
    optimiser = torch.optim.Adam([patch], lr=config.rate)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(
        optimiser, config.steps, eta_min=config.rate / 10
    )
    options: dict[str, Any] = {"all_flows": False}
    if config.iters is not None:
        options["iters"] = config.iters
    modes = {module: module.training for module in model.modules()}
    wanted = {p: p.requires_grad for p in model.parameters()}
    values: list[float] = []
    try:
        model.eval().requires_grad_(False)
        for step in range(config.steps):
            pair = next(frames, None)
            if pair is None:
                break
            value = _objective(model, pair, patch, step, config, options)
            optimiser.zero_grad()
            (-value).backward()
            optimiser.step()
            cosine.step()
            with torch.no_grad():
                patch.clamp_(0, 255)
            values.append(float(value.detach()))
            if progress is not None:
                progress(step + 1, config.steps, values[-1])
    finally:
        for module, training in modes.items():
            module.training = training
        for parameter, was in wanted.items():
            parameter.requires_grad_(was)
    if not values:
        raise ArgumentError("learn_patch: there were no frames, wanted at least one batch")
    return patch.detach(), values


def _objective(
    model: nn.Module,
    pair: Frames,
    patch: Tensor,
    step: int,
    config: PatchConfig,
    options: dict[str, Any],
) -> Tensor:
    """What is maximised, of one batch."""
    image1, image2 = pair
    b = len(image1)
    first = step * config.batch
    draws = Draws(config.seed, range(first, first + b), image1.device)
    low, high = (math.log(size) for size in config.sizes)
    size = draws.uniform("size", (), low, high).exp()
    turn = math.radians(config.rotation)
    angle = draws.uniform("angle", (), -turn, turn)
    centre = places(draws, image1, size)
    with torch.no_grad():
        untouched = model(image1, image2, **options).flow
    pasted = [apply_patch(x, patch, centre, size, angle=angle) for x in (image1, image2)]
    flow = model(*pasted, **options).flow
    far = ~disc(image1, centre, size + 2 * config.margin)[:, 0]  # (b, h, w)
    count = far.sum((1, 2)).clamp(min=1)
    if config.objective == "cosine":
        same = F.cosine_similarity(flow, untouched, dim=1, eps=_EPSILON)
        return -((same * far).sum((1, 2)) / count).mean()
    change = ((flow - untouched).square().sum(1) + _EPSILON).sqrt()
    return ((change * far).sum((1, 2)) / count + _FLOOR).log().mean()
