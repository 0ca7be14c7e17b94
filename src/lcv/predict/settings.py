"""What decides the numbers in a job's files, and whether two jobs agree on it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from torch import nn

from lcv.version import __version__

if TYPE_CHECKING:
    from lcv.predict.job import Job
    from lcv.predict.predictor import Predictor


def settings_of(predictor: Predictor, job: Job) -> dict[str, Any]:
    """All that decides the numbers in a job's files. scale: None where nothing is drawn"""
    draws = job.clip or any(output.what == "png" for output in job.outputs)
    return {
        "lcv": __version__,
        "model": predictor.name,
        "source": getattr(getattr(predictor.model, "spec", None), "source", None),
        "weights": weights_hash(predictor.model),
        "iters": predictor.matcher.iters,
        "pad": predictor.matcher.pad,
        "precision": predictor.precision,
        "warm_start": job.warm_start,
        "scale": (job.scale or "auto") if draws else None,
    }


def difference(there: dict[str, Any], here: dict[str, Any]) -> str | None:
    """The first setting that differs, as in "there iters is 1, here 2"; None: they may be mixed.

    A scale decides pictures alone, so that one where nothing is drawn goes with any.
    """
    for name in sorted({*there, *here}):
        found, wanted = there.get(name), here.get(name)
        if found != wanted and not (name == "scale" and None in (found, wanted)):
            return f"there {name} is {_short(found)}, here {_short(wanted)}"
    return None


def combined(there: dict[str, Any], here: dict[str, Any]) -> dict[str, Any]:
    """Settings that agree, with the scale of whichever draws."""
    scale = here.get("scale")
    return {**there, **here, "scale": there.get("scale") if scale is None else scale}


def weights_hash(model: nn.Module) -> str:
    """A hash of all numbers of a network with their names: the same wherever its file lies."""
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        array = value.detach().cpu().contiguous()
        digest.update(f"{name} {array.dtype} {tuple(array.shape)}\n".encode())
        digest.update(array.view(-1).numpy().tobytes())
    return digest.hexdigest()


def _short(value: Any) -> str:
    text = "not set" if value is None else str(value)
    return text if len(text) <= 24 else f"{text[:12]}…"
