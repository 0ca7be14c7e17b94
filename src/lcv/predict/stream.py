"""Flow along a sequence: every frame encoded once, and each pair started from the last on request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor

from lcv.cost_volume.forward_interpolate import forward_interpolate
from lcv.predict.cuts import Glance, glance, is_cut
from lcv.predict.frames import Frame, as_frame, same_size
from lcv.predict.matching import Encoded
from lcv.predict.pairs import Wanted
from lcv.predict.result import FlowResult

if TYPE_CHECKING:
    from lcv.predict.predictor import Predictor


class Stream:
    """Frames in, one at a time; from the second on, flow from the frame before.

        stream = Stream(predictor)
        for frame in frames:
            result = stream.push(frame)  # None for the first

    Facts: without warm start the results are those of `predictor(before, frame)`, to the last bit.
    A frame that cannot be used raises and breaks the stream there: the next one is a first again,
    so that no pair spans a gap.

    low: what the next pair starts from, (1, 2, h', w'), or None: from zero flow. It may be kept
         and set again once the frame after which it was kept has been pushed
    """

    def __init__(
        self, predictor: Predictor, *, warm_start: bool = False, wanted: Wanted | None = None
    ) -> None:
        predictor.check_warm_start(warm_start)
        self.predictor = predictor
        self.warm_start = warm_start
        self.wanted = wanted or Wanted()
        self.count = 0
        self.reset()

    def reset(self) -> None:
        """Forget the last frame and its flow: what comes next is the start of something else."""
        self._last: Frame | None = None
        self._encoded: Encoded | None = None
        self._glance: Glance | None = None
        self.low: Tensor | None = None

    def push(self, given: Any) -> FlowResult | None:
        """Flow from the frame pushed before to this one; None if there was none."""
        self.count += 1
        try:
            return self._push(as_frame(given, f"frame {self.count}"))
        except Exception:
            self.reset()
            raise

    def _push(self, frame: Frame) -> FlowResult | None:
        predictor, last = self.predictor, self._last
        encoded = predictor.take(frame, reused=True)
        seen = glance(encoded.image) if self.warm_start else None
        result = None
        if last is not None and self._encoded is not None:
            same_size(last, frame)
            notes: tuple[str, ...] = ()
            if self._glance is not None and seen is not None and is_cut(self._glance, seen):
                self.low = None
                notes = ("scene cut: started from zero flow",)
            start = None if self.low is None else forward_interpolate(self.low)
            result, low = predictor.match(self._encoded, encoded, self.wanted, start, notes)
            self.low = low if self.warm_start else None
        self._last, self._encoded, self._glance = frame, encoded, seen
        return result
