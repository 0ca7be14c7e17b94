"""The paper's three stresses as the page's sliders set them: light, noise, and a patch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor

from lcv.studies.robustness import stress

SEED = 0
# Where the patch is pasted, as a share of width and height: off the middle, which is often empty.
PLACE = (0.42, 0.55)
SIDE = 160


@dataclass(frozen=True)
class Stresses:
    """gamma: below 1 darkens;  noise: deviation in grey levels;  patch: diameter in % of the
    frame's shorter side, 0 for none"""

    gamma: float = 1.0
    noise: float = 0.0
    patch: float = 0.0

    def __call__(self, first: np.ndarray, second: np.ndarray) -> tuple[Tensor, Tensor]:
        """Both frames, (H, W, 3) uint8, under stress: (1, 3, H, W) float in 0 … 255 each.

        In the order in which they happen to a camera: light, an object in view, the sensor.
        """
        return self.frame(first, 0), self.frame(second, 1)

    def frame(self, frame: np.ndarray, number: int) -> Tensor:
        """One frame under stress. number: each has its own noise"""
        image = torch.from_numpy(np.array(frame)).movedim(2, 0)[None].float()
        image = stress.gamma(image, self.gamma)
        if self.patch:
            image = stress.apply_patch(image, pattern(), *self._disc(image))
        return stress.noise(image, (self.noise / 255) ** 2, SEED, frame=number)

    def untouched(self, shape: tuple[int, int]) -> np.ndarray:
        """Where no patch was pasted, (H, W) bool."""
        if not self.patch:
            return np.ones(shape, bool)
        blank = torch.zeros(1, 3, *shape)
        covered: np.ndarray = stress.disc(blank, *self._disc(blank))[0, 0].numpy()
        return ~covered

    def _disc(self, image: Tensor) -> tuple[tuple[float, float], float]:
        height, width = image.shape[2:]
        diameter = max(1.0, self.patch / 100 * min(height, width))
        return (PLACE[0] * (width - 1), PLACE[1] * (height - 1)), diameter


NO_STRESS = Stresses()


@cache
def pattern() -> Tensor:
    """A patch of high contrast, (3, SIDE, SIDE): spirals of three colours, finer towards the middle.

    It was not learned against any network: `lcv robust learn` makes those.
    """
    reach = torch.linspace(-1, 1, SIDE)
    y, x = torch.meshgrid(reach, reach, indexing="ij")
    turn, depth = torch.atan2(y, x), torch.hypot(x, y).clamp(min=0.03).log()
    waves = [
        (arms * turn + speed * depth + phase).sin()
        for arms, speed, phase in ((5, 9.0, 0.0), (-4, 11.0, 2.1), (3, -13.0, 4.2))
    ]
    # Steep, but not a jump: a patch is resampled to its size.
    return 255 * (4 * torch.stack(waves)).sigmoid()
