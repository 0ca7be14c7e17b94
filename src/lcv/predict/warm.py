"""Where a warm start goes on after a run was broken off: the last pair's low flow, kept on disk.

OUT/warm/SEQUENCE.npz is written after the outputs of every pair and removed at the sequence's end.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from lcv.files import whole_file
from lcv.predict.outputs import make_folder, sweep
from lcv.predict.stream import Stream

FOLDER = "warm"


class State(NamedTuple):
    """What the pair after `pair` starts from. low: (1, 2, h', w'), or None after none"""

    pair: int
    low: Tensor | None


def state_path(root: Path, name: str) -> Path:
    return root / FOLDER / f"{name}.npz"


def write(path: Path, stream: Stream, pair: int) -> None:
    """Keep what a stream would start its next pair from."""
    low = stream._low
    make_folder(path.parent)
    values = np.zeros(0, np.float32) if low is None else low.float().cpu().numpy()
    with whole_file(path, overwrite=True) as temporary, temporary.open("wb") as file:
        np.savez(file, low=values, pair=np.int64(pair))


def read(path: Path) -> State | None:
    """What was kept; None where there is nothing, or it is damaged: then all is computed again."""
    try:
        with np.load(path, allow_pickle=False) as content:
            low, pair = content["low"], int(content["pair"])
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    return State(pair, torch.from_numpy(low) if low.size else None)


def restore(stream: Stream, state: State) -> None:
    """Let a stream that has seen one frame start its pair from what was kept."""
    if state.low is not None:
        stream._low = state.low.to(stream.predictor.device)


def remove(path: Path) -> None:
    """Forget it; the sequence is done."""
    path.unlink(missing_ok=True)
    sweep(path)
    # Folders that others still use are not empty, and stay.
    for folder in path.parents:
        try:
            folder.rmdir()
        except OSError:
            return
        if folder.name == FOLDER:
            return
