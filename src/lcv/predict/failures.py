"""What may become of a pair instead of flow."""

from __future__ import annotations

import numpy as np

from lcv.errors import LcvError
from lcv.predict.result import FlowResult
from lcv.predict.sources import Still


class Abandoned(Exception):
    """A sequence whose frames none can be computed, with the reason."""

    def __init__(self, error: LcvError) -> None:
        self.error = error


def check_finite(result: FlowResult, before: Still, after: Still) -> None:
    """Refuse flow that is no number: no format has a word for it, and no picture a colour."""
    if not all(np.isfinite(x).all() for x in (result.flow, result.backward) if x is not None):
        raise LcvError(
            f"{before.label}: the flow to {after.label} is not finite; look at the weights, or "
            f"leave out --precision"
        )
