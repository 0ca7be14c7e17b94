"""The stresses as data: name, levels, function, unit, label."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from lcv.data.random import Draws, mix_integer, name_key
from lcv.errors import ArgumentError
from lcv.studies.patch_file import Patch
from lcv.studies.robustness import stress as does

MARGIN = 32.0
"""Far from a patch is further than this many pixels outside its rim."""
PATCH_KINDS = ("patch", "random", "matched")
"""A patch and its two controls: names of stresses begin with them."""


@dataclass(frozen=True)
class Pairs:
    """b pairs of one size, before or after a stress.

    image1, image2: (b, 3, h, w) float in 0 … 255;  flow: (b, 2, h, w);  valid: (b, 1, h, w) bool
    indices: which pairs of their dataset these are;  far: (b, 1, h, w) bool, where a patch was pasted
    """

    image1: Tensor
    image2: Tensor
    flow: Tensor
    valid: Tensor
    indices: tuple[int, ...]
    far: Tensor | None = None

    def both(self, change: Callable[[Tensor], Tensor]) -> Pairs:
        """The same change of both frames."""
        return replace(self, image1=change(self.image1), image2=change(self.image2))


Function = Callable[[Pairs, float, int], Pairs]
"""(pairs, level, seed) → pairs; whatever it draws is a function of seed, pair index and level."""


@dataclass(frozen=True)
class Stress:
    """One way to disturb frames, and how severely.

    levels:  what is measured; those of gamma, noise and patches are the paper's
    neutral: the level that changes nothing, if there is one
    shown:   the level for pictures; `choose` sees to it that it is one of `levels`
    log:     levels are drawn on a logarithmic axis
    patch:   the patch that it pastes, if it does; `control` where it pastes a random one instead
    """

    name: str
    label: str
    unit: str
    levels: tuple[float, ...]
    function: Function
    shown: float
    neutral: float | None = None
    log: bool = False
    patch: Patch | None = None
    control: bool = False


def seed_of(seed: int, stress: str, level: float) -> int:
    """The seed of one level of one stress: another one for each."""
    return mix_integer(mix_integer(seed) + name_key(f"{stress}, {level:g}"))


def _both(change: Callable[[Tensor, float], Tensor]) -> Function:
    return lambda pairs, level, seed: pairs.both(lambda frame: change(frame, level))


def _noise(pairs: Pairs, variance: float, seed: int) -> Pairs:
    first, second = (
        does.noise(image, variance, seed, indices=pairs.indices, frame=frame)
        for frame, image in enumerate((pairs.image1, pairs.image2))
    )
    return replace(pairs, image1=first, image2=second)


def _noise_variance(pairs: Pairs, level: float, seed: int) -> Pairs:
    return _noise(pairs, level, seed_of(seed, "noise-variance", level))


def _noise_deviation(pairs: Pairs, level: float, seed: int) -> Pairs:
    return _noise(pairs, level**2, seed_of(seed, "noise-deviation", level))


def _fog(pairs: Pairs, level: float, seed: int) -> Pairs:
    # The same fog at all levels of a pair: the curve is then of the thickness alone.
    draws = Draws(seed_of(seed, "fog", 0), pairs.indices, pairs.image1.device)
    first, second = does.fog(pairs.image1, pairs.image2, level, draws)
    return replace(pairs, image1=first, image2=second)


def _light_change(pairs: Pairs, level: float, seed: int) -> Pairs:
    return replace(pairs, image2=does.exposure(pairs.image2, level))


_NOISE = (0.0001, 0.001, 0.01, 0.1)
_GAMMA = (0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 2.0, 3.0)

STRESSES: dict[str, Stress] = {
    s.name: s
    for s in (
        Stress(
            "gamma",
            "illumination, both frames",
            "γ; below 1 darker",
            _GAMMA,
            _both(does.gamma),
            shown=0.3,
            neutral=1.0,
            log=True,
        ),
        Stress(
            "noise-variance",
            "noise, levels as variance",
            "variance, image in 0 … 1",
            _NOISE,
            _noise_variance,
            shown=0.01,
            neutral=0.0,
            log=True,
        ),
        Stress(
            "noise-deviation",
            "noise, levels as deviation",
            "deviation, image in 0 … 1",
            _NOISE,
            _noise_deviation,
            shown=0.1,
            neutral=0.0,
            log=True,
        ),
        Stress(
            "blur",
            "Gaussian blur, both frames",
            "σ in px",
            (0.5, 1.0, 2.0, 3.0, 4.0),
            _both(does.blur),
            shown=2.0,
            neutral=0.0,
        ),
        Stress(
            "jpeg",
            "losses like JPEG's, both frames",
            "quality",
            (5.0, 10.0, 20.0, 40.0, 70.0),
            _both(does.jpeg),
            shown=10.0,
            log=True,
        ),
        Stress(
            "fog",
            "fog that drifts",
            "share of full thickness",
            (0.2, 0.4, 0.6, 0.8, 1.0),
            _fog,
            shown=1.0,
            neutral=0.0,
        ),
        Stress(
            "light-change",
            "light between the frames, second frame only",
            "stops",
            (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0),
            _light_change,
            shown=-1.0,
            neutral=0.0,
        ),
    )
}
"""All stresses that need nothing but frames; `pasted.with_patches` adds those that paste one."""


def choose(
    known: Mapping[str, Stress],
    names: Sequence[str] | None,
    levels: Mapping[str, Sequence[float]] | None = None,
) -> list[Stress]:
    """The stresses asked for, in the registry's order, at their own levels or at others.

    names: of stresses, or their beginnings up to a colon: "patch" is every patch. None is all.
    levels: by name, likewise; those of a patch are its controls' too, unless these have their own
    """
    levels = levels or {}

    def matches(name: str, word: str) -> bool:
        return name == word or name.partition(":")[0] == word

    for word in (*(names or ()), *levels):
        if not any(matches(name, word) for name in known):
            if word in PATCH_KINDS:
                raise ArgumentError(
                    f"the stress {word!r} needs a patch: --patch FILE, a picture or what `lcv robust "
                    f"learn` has made"
                )
            raise ArgumentError(f"there is no stress {word!r}; there are {', '.join(known)}")
    chosen = []
    for name, stress in known.items():
        if names is not None and not any(matches(name, word) for word in names):
            continue
        patch = f"patch:{name.partition(':')[2]}" if stress.control else name
        own = next(
            (tuple(v) for of in (name, patch) for word, v in levels.items() if matches(of, word)),
            stress.levels,
        )
        if not own:
            raise ArgumentError(f"stress {name}: no level was given, wanted at least one")
        measured = tuple(sorted(set(map(float, own))))
        chosen.append(replace(stress, levels=measured, shown=_drawn(stress, measured)))
    return chosen


def _drawn(stress: Stress, measured: Sequence[float]) -> float:
    """The level for pictures among those measured: the nearest to `shown` on the stress's own axis,
    and one that changes the frames if there is one."""
    log = stress.log and min(measured) > 0

    def apart(level: float) -> float:
        return abs(math.log(level / stress.shown)) if log else abs(level - stress.shown)

    telling = [level for level in measured if level != stress.neutral]
    return min(telling or measured, key=apart)
