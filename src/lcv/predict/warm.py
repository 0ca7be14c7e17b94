"""Where a warm start goes on after a run was broken off: the last pair's low flow, kept on disk.

OUT/warm/SEQUENCE.npz is written after the outputs of every pair and removed at the sequence's end.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence as Many
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from lcv.errors import LcvError
from lcv.files import whole_file
from lcv.predict.cuts import Glance, glance, is_cut
from lcv.predict.frames import as_frame
from lcv.predict.outputs import make_folder, sweep
from lcv.predict.sources import Sequence, Still
from lcv.predict.stream import Stream

if TYPE_CHECKING:
    from lcv.predict.predictor import Predictor

FOLDER = "warm"


class State(NamedTuple):
    """What the pair after `pair` starts from. low: (1, 2, h', w'), or None after none"""

    pair: int
    low: Tensor | None


def state_path(root: Path, name: str) -> Path:
    return root / FOLDER / f"{name}.npz"


def write(path: Path, stream: Stream, pair: int) -> None:
    """Keep what a stream would start its next pair from."""
    low = stream.low
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
        stream.low = state.low.to(stream.predictor.device)


def spoiled(predictor: Predictor, sequence: Sequence, changed: Many[int], pairs: int) -> list[int]:
    """The pairs that are not what they were because others changed: those after them, up to the
    next that begins anew, by a scene cut or since the pair before it cannot be computed.

    changed: pairs whose own frames changed, in order; pairs: of the sequence
    """
    ours, last, found, is_spoiled = {*changed}, max(changed), [], False
    looks: dict[int, tuple[tuple[int, int], Glance] | None] = {}

    def resets(pair: int) -> bool:
        before, first, second = (looks.get(pair + step) for step in (-1, 0, 1))
        if first is None or second is None:
            return False
        if pair - 1 not in ours and (before is None or before[0] != first[0]):
            return True
        return is_cut(first[1], second[1])

    with closing(cast(Any, sequence.stills(max(0, changed[0] - 1)))) as stills:
        for still in stills:
            looks[still.index] = _look(predictor, still)
            looks.pop(still.index - 3, None)
            pair = still.index - 1
            if pair < changed[0] or pair >= pairs:
                continue
            is_spoiled = pair in ours or (is_spoiled and not resets(pair))
            found += [pair] if is_spoiled else []
            if pair >= last and not is_spoiled:
                break
    return sorted({*found, *changed})


def _look(predictor: Predictor, still: Still) -> tuple[tuple[int, int], Glance] | None:
    if still.image is None:
        return None
    try:
        return still.size, glance(predictor.take(as_frame(still.image, still.label)).image)
    except LcvError:
        return None


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
