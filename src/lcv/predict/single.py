"""One pair to a file that was named, and its companions beside it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from lcv.errors import LcvError
from lcv.predict.failures import check_finite
from lcv.predict.frames import as_frame
from lcv.predict.job import NOTHING_MORE, Listener, Summary
from lcv.predict.kept_plans import out_of_memory
from lcv.predict.outputs import Named, write_output
from lcv.predict.pairs import Wanted
from lcv.predict.scale import own_scale
from lcv.predict.sources import Sequence, inputs_of

if TYPE_CHECKING:
    from lcv.predict.predictor import Predictor


def run_pair(
    predictor: Predictor,
    sequence: Sequence,
    place: Named,
    wanted: Wanted = NOTHING_MORE,
    scale: float | None = None,
    overwrite: bool = False,
    listener: Listener | None = None,
) -> Summary:
    """One pair to files beside a named one. Every error is raised."""
    place.check(overwrite, inputs_of(sequence))
    before, after = sequence.stills()
    for still in (before, after):
        if still.error is not None:
            raise still.error
    assert before.image is not None
    frames = as_frame(before.image, before.label), as_frame(after.image, after.label)
    for frame in frames:
        predictor.take(frame)
    if before.size == after.size and listener is not None:
        listener.say(predictor.plan(*before.size, **wanted._asdict()).text)
    try:
        result = predictor(*frames, **wanted._asdict())
    except LcvError:
        raise
    except (MemoryError, RuntimeError) as error:
        raise out_of_memory(error, before.label) from error
    check_finite(result, before, after)
    scale = own_scale(result.flow) if scale is None else scale
    for output in place.outputs:
        write_output(place.path(output), output, result, before.image, scale, overwrite)
    summary = Summary(done=1, notes=Counter(result.notes))
    if any(output.what == "png" for output in place.outputs):
        summary.scales.add(scale)
    return summary
