"""From two frames, or a stream of them, to flow and its files, within the available memory.

`lcv.cli.predict_inputs` turns the command line into sequences of frames. From there to the network
a pair crosses these modules of the package, in this order:

    sources     a sequence of frames, from files, a video or a camera
    outputs     which files are asked for
    job         the job, and what came of it
    predictor   a network on its device, called on frames or a stream of them
    matching    the network with its settings
    memory      which strategy fits
    run         what is missing of the job
    worker      the loop over the pairs of a sequence
    folder      the job's folder: its settings, its decisions, where outputs lie
    done_log    which outputs are done, from which files
    frames      a frame as a tensor

Flow then becomes files (result, scale, outputs). Not on this path: selection takes part of
a sequence; reduced and tiles serve large frames.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lcv.predict.predictor import Predictor as Predictor
    from lcv.predict.result import FlowResult as FlowResult


def __getattr__(name: str) -> Any:
    # Imported when they are used: the command line needs small parts of this package first.
    file = {"Predictor": "predictor", "FlowResult": "result"}.get(name)
    if file is None:
        raise AttributeError(f"module 'lcv.predict' has no attribute {name!r}")
    return getattr(import_module(f"lcv.predict.{file}"), name)
