"""From two frames, or a stream of them, to flow: in the memory there is, with all that was asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lcv.predict.predictor import Predictor as Predictor
    from lcv.predict.result import FlowResult as FlowResult


def __getattr__(name: str) -> Any:
    # Imported when they are used: the command line asks this room for little things first.
    if name == "Predictor":
        from lcv.predict.predictor import Predictor

        return Predictor
    if name == "FlowResult":
        from lcv.predict.result import FlowResult

        return FlowResult
    raise AttributeError(f"module 'lcv.predict' has no attribute {name!r}")
