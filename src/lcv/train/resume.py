"""What may change when a run goes on: nothing that decides its result, which would be of neither.

Free are those settings that leave the trained numbers as they are (workers, the log, what is kept,
what is validated, graph and compile up to rounding) and `data.exclude`, which is how a run goes on
after a sample that could not be used. The number of processes and parts of a batch is free unless
batch norms or masks make it matter (`check_passes`). Where files lie may change, and is noted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from lcv.errors import ArgumentError
from lcv.models.build import find
from lcv.models.published import sha256_of
from lcv.train.checkpoint import Folder
from lcv.train.config import TrainConfig, by_dotted_name

FREE = frozenset(
    [
        "folder",
        "name",
        "half",
        "accumulate",
        "graph",
        "compile",
        "log_every",
        "save_every",
        "keep_every",
        "validate_every",
        "validate_iters",
        "validation",
        "goal",
        "best",
        "data.workers",
        "data.ahead",
        "data.exclude",
    ]
)
PATHS = ("data.textures", "loss.teacher")
MOVED = ("data.root", "data.textures")
"""Folders: what is in them counts, and that is the caller's to know."""
HELD = ("model.", "optim.optimiser", "optim.w_alone", "precision")
"""What the tensors of a checkpoint are of: these cannot change in another folder either."""
JUDGED = ("validation", "validate_iters", "best")


def check_resumed(content: dict[str, Any], config: TrainConfig, checkpoint: Path) -> list[str]:
    """Refuse, by name and with both values, what a checkpoint's run was not begun with.

    Returns what there is to note. In the run's own folder nothing that decides the result may
    change. From a checkpoint of another folder a new run begins, whose rates, data or loss may be
    others: that is noted, and only what the checkpoint's tensors are of is refused.
    """
    before, now = _settings(content.get("config", {})), _settings(config.as_dict())
    own = Folder(config.folder).has(checkpoint)
    step = content["step"]
    if config.steps < step:
        raise ArgumentError(
            f"steps is {config.steps}, and {step} are done already; say {step} or more, or choose "
            f"another --folder"
        )
    notes, refused = [], []
    for name, value in now.items():
        # A setting that an older version did not have yet was what is now its default.
        if name in FREE or name not in before or before[name] == value:
            continue
        if name == "steps":
            notes.append(_other_length(before[name], config, step))
        elif name == "model.weights" and _is_start(value, content):
            continue
        elif name in MOVED and None not in (value, before[name]):
            notes.append(f"{name} is another folder now, which has to hold the same files")
        elif own or name.startswith(HELD):
            refused.append((name, value, before[name]))
        else:
            old, new = _shown(name, before[name]), _shown(name, value)
            notes.append(f"after step {step}, {name} {new!r} in place of {old!r}")
    if refused:
        said = "; ".join(f"{name} is {value!r}, but was {old!r}" for name, value, old in refused)
        raise ArgumentError(
            f"{said} when the run of {_short(checkpoint)} began, and it decides the result: leave "
            f"it as it was, or begin a run of its own in another --folder"
        )
    return notes


def check_passes(
    content: dict[str, Any], config: TrainConfig, world: int, model: nn.Module, checkpoint: Path
) -> list[str]:
    """Refuse other parts of a batch, or other processes, where they change the result.

    Batch norms take their statistics from the pairs of one pass: batch / processes / accumulate.
    Losses other than the sequence loss divide by what a mask counts in a part. As in
    `check_resumed`, a run in another folder may differ, which is noted.
    """
    was = content.get("config", {})
    if "processes" not in content or "accumulate" not in was:
        return []  # of an older version
    found = []
    if config.loss.name != "sequence" and config.accumulate != was["accumulate"]:
        found.append(("accumulate is", config.accumulate, "was", was["accumulate"], ""))
    norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    before = was["batch"] // content["processes"] // was["accumulate"]
    now = config.batch // world // config.accumulate
    if any(norm.training for norm in norms) and now != before:
        found.append(("batch norms see", now, "saw", before, " pairs at once"))
    if found and Folder(config.folder).has(checkpoint):
        said = "; ".join(f"{a} {new}{unit}, but {b} {old}" for a, new, b, old, unit in found)
        raise ArgumentError(
            f"{said} when the run of {_short(checkpoint)} began, and it decides the result: keep "
            f"accumulate, and batch / processes / accumulate, or begin a run in another --folder"
        )
    step = content["step"]
    return [
        f"after step {step}, {a} {new}{unit} in place of {old}" for a, new, _, old, unit in found
    ]


def judged_alike(content: dict[str, Any], config: TrainConfig) -> bool:
    """Whether the best number of a checkpoint can be compared with those of this configuration."""
    before, now = _settings(content.get("config", {})), _settings(config.as_dict())
    return all(before.get(name) == now[name] for name in JUDGED)


def _settings(config: dict[str, Any]) -> dict[str, Any]:
    flat = by_dotted_name(config)
    for part in flat.get("data.parts", []):
        part.pop("root", None)  # as data.root
    return flat


def _other_length(before: int, config: TrainConfig, step: int) -> str:
    text = f"steps is now {config.steps} in place of {before}"
    if config.optim.schedule != "one_cycle":
        return text
    return f"{text}: after step {step} the rates are those of a one-cycle of {config.steps} steps"


def _shown(name: str, value: Any) -> Any:
    """Of a path its last name: notes go into the card of the weights."""
    return Path(value).name if name in PATHS and value is not None else value


def _is_start(weights: str | None, content: dict[str, Any]) -> bool:
    """Whether this is the file that the run began with, by another path."""
    source = (content.get("start") or {}).get("source")
    if weights is None or source is None:
        return False
    return bool(sha256_of(find(weights)) == source["sha256"])


def _short(checkpoint: Path) -> str:
    """The run's folder, where the checkpoint is in its place in one."""
    return str(checkpoint.parents[1] if checkpoint.parent.name == "checkpoints" else checkpoint)
