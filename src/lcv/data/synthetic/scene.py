"""Everything random about a batch of scenes, drawn before a pixel is made."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from torch import Tensor

from lcv.data.random import Draws
from lcv.data.synthetic.motion import Motion, draw_motion
from lcv.data.synthetic.settings import Recipe
from lcv.data.synthetic.shapes import draw_outlines
from lcv.data.synthetic.skins import Skins, draw_skins, make_atlas
from lcv.data.synthetic.space import draw_space_motion
from lcv.errors import ArgumentError


@dataclass(frozen=True)
class Scene:
    """n scenes of L layers at T times.

    size (h, w);  motion and skins: parameters, bit-equal on every device
    outlines (n, L−1, 2, g, g): made from parameters, equal to rounding
    bank (k, 3, s, s) uint8: the textures that the skins choose from
    """

    size: tuple[int, int]
    motion: Motion
    skins: Skins
    outlines: Tensor
    bank: Tensor

    @property
    def layers(self) -> int:
        return self.motion.radius.shape[1]

    @property
    def times(self) -> int:
        return self.motion.to_frame.shape[1]

    @functools.cached_property
    def atlas(self) -> Tensor:
        """The textures of each scene's layers, one below the other: (n, 3, L·s, s)."""
        return make_atlas(self.bank, self.skins)


def draw_scene(
    recipe: Recipe, draws: Draws, size: tuple[int, int], times: int, bank: Tensor
) -> Scene:
    """The scenes of these draws, textures from the bank (k, 3, s, s) uint8."""
    h, w = size
    if min(h, w) < 16:
        raise ArgumentError(f"draw_scene: size is {h}×{w}, wanted at least 16×16")
    if bank.ndim != 4 or bank.shape[1] != 3 or bank.shape[2] != bank.shape[3]:
        raise ArgumentError(
            f"draw_scene: the texture bank is {tuple(bank.shape)}, wanted (k, 3, s, s); "
            "make one with procedural_bank or load_bank"
        )
    draw = draw_motion if recipe.space is None else draw_space_motion
    motion = draw(recipe, draws, size, times)
    skins = draw_skins(recipe, draws, motion.radius, bank)
    return Scene(
        size=(h, w),
        motion=motion,
        skins=skins,
        outlines=draw_outlines(recipe, draws, motion.radius[:, 1:]),
        bank=bank,
    )
