"""The scale of pictures where none is given: one for a whole sequence, known before it begins.

A scale for every picture would make a film flicker, and one from all its flows would have to wait
for the last. Here it comes from a few pairs spread over the sequence: the length within which 99 of
100 of their pixels move, in the pair that moves most. That depends on the input alone: a run that
is taken up again, or split over processes, draws the same pictures.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from collections.abc import Sequence as Many
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from lcv.errors import ArgumentError, LcvError
from lcv.predict.sources import Sequence, Still
from lcv.visual.colours import EPSILON, flow_scale

if TYPE_CHECKING:
    from lcv.predict.predictor import Predictor

MOST_SAMPLES = 5
# A few wild pixels must not make the rest pale; beyond the scale, colours are darkened.
SHARE = 99.0
# So many pairs for each that is computed beforehand, which bounds what the scale costs.
PAIRS_A_SAMPLE = 8


class Scale:
    """The scale of one sequence's pictures.

    given:  by the user
    common: of the whole sequence; None where every picture has its own: of a single pair, and of
            what runs now and has no end
    used:   every scale that was asked for
    """

    def __init__(self, predictor: Predictor, sequence: Sequence, given: float | None) -> None:
        self.predictor, self.sequence = predictor, sequence
        self.common = given
        self.is_settled = given is not None
        self.used: set[float] = set()

    def needs_samples(self, pairs: int | None) -> bool:
        """Whether pairs must be computed to find it."""
        return not self.is_settled and not self.sequence.is_live and pairs is not None and pairs > 1

    def settle(self, pairs: int | None, known: float | None) -> None:
        """Take the scale that is known from an earlier run, or find it."""
        if known is not None:
            self.common = float(known)
        elif self.needs_samples(pairs):
            assert pairs is not None
            self.common = sequence_scale(self.predictor, self.sequence, pairs)
        self.is_settled = True

    def of(self, flow: np.ndarray | None) -> float:
        """The scale for a picture of this flow; None: of one that was drawn before."""
        if self.common is None and flow is None:
            raise LcvError("the scale of pictures that were drawn before is not known any more")
        scale = self.common
        if scale is None:
            assert flow is not None
            scale = own_scale(flow)
        self.used.add(scale)
        return scale


def parse_scale(text: str) -> float | None:
    """A length in pixels, or None for "auto"."""
    if text == "auto":
        return None
    try:
        scale = float(text)
    except ValueError:
        scale = math.nan
    if not (math.isfinite(scale) and scale > 0):
        raise ArgumentError(
            f"--scale is {text!r}, wanted auto, or a positive number: the length in pixels that is "
            f"drawn in full colour"
        )
    return scale


def own_scale(flow: np.ndarray) -> float:
    """The longest motion of one flow, rounded up to three digits so that it can be said and reused.

    flow: (H, W, 2)
    """
    return rounded_up(flow_scale(flow))


def sample_pairs(pairs: int) -> list[int]:
    """The pairs of a sequence that its scale is taken from: one to five, evenly spread."""
    count = min(MOST_SAMPLES, max(1, pairs // PAIRS_A_SAMPLE))
    return [(2 * i + 1) * pairs // (2 * count) for i in range(count)]


def sampled_from(hashes: Many[str]) -> str:
    """A hash of what a scale is found in. hashes: of the frames of each pair of a sequence"""
    chosen = sample_pairs(len(hashes)) if hashes else []
    told = [str(len(hashes)), *(hashes[pair] for pair in chosen)]
    return hashlib.sha256(" ".join(told).encode()).hexdigest()[:20]


def sequence_scale(predictor: Predictor, sequence: Sequence, pairs: int) -> float | None:
    """From the sampled pairs, or the first that can be computed; None where none can be."""
    chosen = frozenset(sample_pairs(pairs))
    found = list(_scales(predictor, sequence, chosen))
    return max(found) if found else next(_scales(predictor, sequence, None), None)


def _scales(
    predictor: Predictor, sequence: Sequence, chosen: frozenset[int] | None
) -> Iterator[float]:
    only = None if chosen is None else chosen | {pair + 1 for pair in chosen}
    before: Still | None = None
    for still in sequence.stills(only=only):
        if still.image is None:
            before = None
            continue
        if (
            before is not None
            and (before.index + 1, before.size) == (still.index, still.size)
            and (chosen is None or before.index in chosen)
        ):
            # What cannot be computed is said by the job itself when it comes to this pair.
            with suppress(LcvError):
                flow = predictor(before.image, still.image).flow
                length = np.hypot(flow[..., 0], flow[..., 1])
                yield rounded_up(float(np.percentile(length, SHARE)) + EPSILON)
        before = still


def rounded_up(value: float) -> float:
    """At least `value`, of three significant digits: 23.412 → 23.5."""
    if not (math.isfinite(value) and value > 0):
        raise ArgumentError(f"a scale of {value!r} cannot be used, wanted a positive number")
    digits = 2 - math.floor(math.log10(value))
    scaled = value * 10.0**digits
    return float(f"{math.ceil(scaled - 1e-9 * scaled) / 10.0**digits:.3g}")
