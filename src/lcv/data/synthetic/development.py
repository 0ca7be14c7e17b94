"""Development sets: seven times 64 pairs, each fixed, to choose by while training.

    for name in DEVELOPMENT:
        batch = development_batch(name, range(8), device="cuda", textures=held_out_bank)

Each asks for one thing, so that a change shows what it is good for. `cylinders` is of a kind that no
recipe for training has. A table that quotes them names the textures, as for the benchmark split.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from lcv.data.synthetic.recipe import GENTLE, SPACE, STREET
from lcv.data.synthetic.sequence import Batch, generate
from lcv.data.synthetic.settings import Recipe, Space
from lcv.data.synthetic.textures import procedural_bank
from lcv.errors import ArgumentError

PAIRS = 64
SIZE = (320, 448)
SEED = 0x5EED_DE7E

DEVELOPMENT: dict[str, Recipe] = {
    "subpixel": replace(
        GENTLE,
        speed_sigma=0.6,
        speed_range=(0.1, 3.0),
        background_shift=0.4,
        object_shift=0.5,
        fast_probability=0.0,
        background_turn=0.002,
        object_turn=0.004,
        background_zoom=0.002,
        object_zoom=0.004,
        background_shear=0.001,
        object_shear=0.002,
    ),
    "flat": GENTLE,
    "forward": replace(SPACE, space=Space(cameras=(1.0, 0.0, 0.0))),
    "sideways": replace(SPACE, space=Space(cameras=(0.0, 1.0, 0.0), sideways=(0.05, 0.2))),
    "street": STREET,
    "thin": replace(
        GENTLE,
        layers=10,
        objects=(6, 9),
        kinds=(0.2, 0.1, 0.25, 0.25, 0.2),
        thin=(0.5, 4.0),
        cut_probability=0.6,
        hole_probability=0.6,
    ),
    "cylinders": replace(
        GENTLE,
        layers=8,
        objects=(4, 7),
        object_size=(0.15, 0.6),
        texture_scale=(0.2, 0.6),
        round_probability=0.8,
    ),
}
"""Motion below a pixel; flat layers; a camera that drives forward; one that moves sideways, so that
much leaves the frame; streets; thin things and holes; and cylinders that turn."""


def development_batch(
    name: str,
    indices: Sequence[int],
    size: tuple[int, int] = SIZE,
    device: torch.device | str = "cpu",
    textures: Tensor | None = None,
) -> Batch:
    """The pairs of a set with these indices, 0 … 63.

    textures: a bank on the device, e.g. load_bank(folder, "held-out"); by default the held-out
    procedural one.
    """
    if name not in DEVELOPMENT:
        raise ArgumentError(
            f"development_batch: there is no set {name!r}; there are {', '.join(DEVELOPMENT)}"
        )
    if not all(0 <= index < PAIRS for index in indices):
        raise ArgumentError(
            f"development_batch: indices are {list(indices)}, wanted some of 0 … {PAIRS - 1}"
        )
    if textures is None:
        textures = procedural_bank("held-out", device=str(torch.empty(0, device=device).device))
    seed = SEED + list(DEVELOPMENT).index(name)
    return generate(DEVELOPMENT[name], seed, indices, size, device, textures=textures)
