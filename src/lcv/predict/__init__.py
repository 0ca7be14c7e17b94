"""From two frames, or a stream of them, to flow: in the memory there is, with all that was asked.

`lcv.cli.predict_inputs` makes sequences of frames of the words of a command line. From there to the
network a pair crosses these modules, in this order:

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

Flow then becomes files (result, scale, outputs). Off this way: selection takes some frames
of a sequence only; reduced and tiles serve frames that are large.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lcv.predict.predictor import Predictor as Predictor
    from lcv.predict.result import FlowResult as FlowResult


def __getattr__(name: str) -> Any:
    # Imported when they are used: the command line asks this room for little things first.
    file = {"Predictor": "predictor", "FlowResult": "result"}.get(name)
    if file is None:
        raise AttributeError(f"module 'lcv.predict' has no attribute {name!r}")
    return getattr(import_module(f"lcv.predict.{file}"), name)
