"""The stresses that paste something: a patch, random pixels in its place, or a random patch like it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from lcv.data.random import Draws
from lcv.errors import ArgumentError
from lcv.studies.patch_file import Patch, matched_patches, random_patches
from lcv.studies.robustness import stress as does
from lcv.studies.robustness.registry import MARGIN, STRESSES, Pairs, Stress, seed_of

PATCH_SIZES = (50.0, 100.0, 150.0, 200.0)


RULES: dict[str, tuple[str, Callable[[Pairs, Tensor], Pairs]]] = {
    "zero": (
        "under the patch the truth is no motion, and counts",
        lambda pairs, covered: replace(
            pairs, flow=torch.where(covered, 0, pairs.flow), valid=pairs.valid | covered
        ),
    ),
    "ignore": (
        "pixels under the patch are not counted",
        lambda pairs, covered: replace(pairs, valid=pairs.valid & ~covered),
    ),
    "truth": (
        "the scene's truth is kept under the patch, which hides it",
        lambda pairs, covered: pairs,
    ),
}
"""What happens to the truth under a patch: words, and the function that does it."""
_PASTED: dict[str, tuple[str, Callable[[Patch, int, Sequence[int]], Tensor]]] = {
    "patch": ("patch", lambda patch, seed, indices: patch.pixels[None]),
    "random": (
        "random pixels in place of",
        lambda patch, seed, indices: random_patches(patch.pixels.shape[-1], seed, indices),
    ),
    "matched": ("random patch of the statistics of", matched_patches),
}
"""For each of PATCH_KINDS, words before the patch's name, and the pixels: (n, 3, s, s) or (1, 3, s, s)."""


def _paste(
    pairs: Pairs, level: float, seed: int, *, patch: Patch, kind: str, rule: str, margin: float
) -> Pairs:
    image = pairs.image1
    # A patch and its controls lie at the same places, to be compared pair by pair.
    draws = Draws(seed_of(seed, "patch", level), pairs.indices, image.device)
    centre = does.places_at(draws.uniform("place", (2,)), image, level)
    pixels = _PASTED[kind][1](patch, seed, pairs.indices).to(image)
    done = pairs.both(lambda frame: does.apply_patch(frame, pixels, centre, level))
    far = ~does.disc(image, centre, level + 2 * margin)
    return replace(RULES[rule][1](done, does.disc(image, centre, level)), far=far)


def with_patches(
    patches: Sequence[Patch], rule: str = "zero", margin: float = MARGIN
) -> dict[str, Stress]:
    """All stresses: `STRESSES`, and for every patch "patch:NAME" and its controls.

    These are "random:NAME", random pixels, and "matched:NAME", random with the patch's statistics.
    """
    if rule not in RULES:
        raise ArgumentError(
            f"there is no rule {rule!r} for truth under a patch; there are {', '.join(RULES)}"
        )
    found = dict(STRESSES)
    for patch in patches:
        for kind, (words, _) in _PASTED.items():
            name = f"{kind}:{patch.name}"
            if name in found:
                raise ArgumentError(
                    f"two patches are called {patch.name!r}; wanted files of different names"
                )
            found[name] = Stress(
                name,
                f"{words} {patch.name}",
                "diameter in px",
                PATCH_SIZES,
                partial(_paste, patch=patch, kind=kind, rule=rule, margin=margin),
                shown=100.0,
                patch=patch,
                control=kind != "patch",
            )
    return found
