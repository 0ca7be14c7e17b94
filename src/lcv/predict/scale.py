"""The scale of pictures where none is given: one for a whole sequence, known before it begins.

It comes from all pairs of a short sequence, and from a few spread over a long one: `picture_scale` of
the pair that moves most. A scale for every picture would make a clip flicker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import numpy as np

from lcv.errors import FileError, LcvError
from lcv.predict.folder import OR_OVERWRITE, JobFolder
from lcv.predict.job import Job, Listener
from lcv.predict.predictor import Predictor
from lcv.predict.sources import RawFrame, Sequence, title
from lcv.visual.colours import picture_scale
from lcv.visual.legend import readable_scale

LARGEST = 2e9  # longer motion counts as unknown
SHORT, FEWEST, MOST = 8, 3, 5  # fewer pairs than SHORT are all looked at, of more an eighth
FlowOf = Callable[[np.ndarray, np.ndarray], np.ndarray]


def own_scale(flow: np.ndarray) -> float:
    """The scale of one flow (H, W, 2), rounded up so that it can be said and reused."""
    return readable_scale(picture_scale(flow))


def sample_pairs(pairs: int) -> list[int]:
    """The pairs of a sequence that its scale is taken from, evenly spread."""
    count = pairs if pairs < SHORT else min(MOST, max(FEWEST, pairs // 8))
    return [(2 * i + 1) * pairs // (2 * count) for i in range(count)]


def sequence_scale(flow_of: FlowOf, sequence: Sequence, pairs: int) -> float | None:
    """From the sampled pairs, or the first that can be computed; None where none can be."""
    found = list(_scales(flow_of, sequence, frozenset(sample_pairs(pairs))))
    return max(found) if found else next(_scales(flow_of, sequence, frozenset(range(pairs))), None)


def _scales(flow_of: FlowOf, sequence: Sequence, chosen: frozenset[int]) -> Iterator[float]:
    before: RawFrame | None = None
    for frame in sequence.frames(only=chosen | {pair + 1 for pair in chosen}):
        if before and before.index + 1 == frame.index and before.index in chosen:
            with suppress(LcvError):  # the job says so when it comes to this pair
                yield own_scale(flow_of(before.image, frame.image))
        before = frame


class Scales:
    """The scales of a job's sequences, each decided once for all of its workers."""

    def __init__(
        self, predictor: Predictor, job: Job, folder: JobFolder | None, listener: Listener
    ) -> None:
        self.predictor, self.job, self.folder, self.listener = predictor, job, folder, listener
        self._known: dict[str, float | None] = {}

    def of(self, sequence: Sequence) -> float | None:
        """One scale for a sequence; None for a single pair, and for a live stream."""
        pairs, name = (sequence.length or 1) - 1, title(sequence)
        if self.job.scale is not None or pairs < 2:
            return self.job.scale
        if name not in self._known:
            scale = None if self.folder is None else self.folder.kept("scale", name)
            if scale is None:
                few = len(sample_pairs(pairs))
                self.listener.say(f"{name}: looking at {few} of {pairs} pairs for a common scale")
                scale = sequence_scale(lambda a, b: self.predictor(a, b).flow, sequence, pairs)
                if scale is not None and self.folder is not None:
                    scale = self.folder.keep("scale", name, scale)
            if scale is not None and not (isinstance(scale, float) and 1 <= scale <= LARGEST):
                raise FileError(f"scale/{name}.json: holds no scale. {OR_OVERWRITE}")
            self._known[name] = scale
        return self._known[name]
