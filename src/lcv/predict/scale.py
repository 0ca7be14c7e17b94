"""The scale of pictures where none is given: one for a whole sequence, known before it begins.

It comes from a few pairs spread over the sequence: the length within which 99 of 100 of their pixels
move, in the pair that moves most. A scale for every picture would make a clip flicker.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress

import numpy as np

from lcv.errors import ArgumentError, LcvError
from lcv.predict.sources import RawFrame, Sequence
from lcv.visual.colours import EPSILON, flow_scale

MOST_SAMPLES = 5
SHARE = 99.0  # a few wild pixels must not make the rest pale
PAIRS_A_SAMPLE = 8  # which bounds what the scale costs
FlowOf = Callable[[np.ndarray, np.ndarray], np.ndarray]


def own_scale(flow: np.ndarray) -> float:
    """The longest motion of one flow (H, W, 2), rounded up so that it can be said and reused."""
    return rounded_up(flow_scale(flow))


def sample_pairs(pairs: int) -> list[int]:
    """The pairs of a sequence that its scale is taken from: one to five, evenly spread."""
    count = min(MOST_SAMPLES, max(1, pairs // PAIRS_A_SAMPLE))
    return [(2 * i + 1) * pairs // (2 * count) for i in range(count)]


def sequence_scale(flow_of: FlowOf, sequence: Sequence, pairs: int) -> float | None:
    """From the sampled pairs, or the first that can be computed; None where none can be."""
    found = list(_scales(flow_of, sequence, frozenset(sample_pairs(pairs))))
    return max(found) if found else next(_scales(flow_of, sequence, None), None)


def _scales(flow_of: FlowOf, sequence: Sequence, chosen: frozenset[int] | None) -> Iterator[float]:
    only = None if chosen is None else chosen | {pair + 1 for pair in chosen}
    before: RawFrame | None = None
    for frame in sequence.frames(only=only):
        if (
            before is not None
            and before.index + 1 == frame.index
            and (chosen is None or before.index in chosen)
        ):
            # What cannot be computed is said by the job itself when it comes to this pair.
            with suppress(LcvError):
                flow = flow_of(before.image, frame.image)
                length = np.hypot(flow[..., 0], flow[..., 1])
                yield rounded_up(float(np.percentile(length, SHARE)) + EPSILON)
        before = frame


def rounded_up(value: float) -> float:
    """At least `value`, of three significant digits: 23.412 → 23.5."""
    if not (math.isfinite(value) and value > 0):
        raise ArgumentError(f"a scale of {value!r} cannot be used, wanted a positive number")
    digits = 2 - math.floor(math.log10(value))
    scaled = value * 10.0**digits
    return float(f"{math.ceil(scaled - 1e-9 * scaled) / 10.0**digits:.3g}")
