"""A run in TensorBoard: numbers of the log as curves, lists of them as histograms, and pictures.

Needs the extra `train`; used by `lcv train --tensorboard true` alone.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from lcv.errors import ArgumentError


class Board:
    """A listener that writes to the folder `tensorboard` of a run.

        tensorboard --logdir runs

    Curves of losses, errors and rates; how the spectrum of W and the angle of P from I change; at
    validation some pairs as frame, flow, truth and error.
    A resumed run hides what a killed one had written after the checkpoint. Close it at the end.
    """

    def __init__(self, run: str | os.PathLike[str]) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ArgumentError(
                f"TensorBoard is asked for but cannot be imported ({error}); install it with "
                f"`pip install 'lcv-flow[train]'`, or leave --tensorboard out"
            ) from error
        self.folder = Path(run) / "tensorboard"
        self._make = SummaryWriter
        self._writer: Any = None

    def __call__(self, entry: dict[str, Any]) -> None:
        step = entry["step"]
        writer = self._from(step)
        for name, value in entry.items():
            tag = f"{entry['kind']}/{name}"
            if name in ("kind", "step"):
                continue
            if isinstance(value, str):
                writer.add_text(tag, value, step)
            elif isinstance(value, int | float):
                writer.add_scalar(tag, value, step)
            elif value and all(isinstance(v, int | float) for v in value):
                writer.add_histogram(tag, np.array(value, dtype=np.float64), step)
            elif value:
                writer.add_text(tag, "\n".join(map(str, value)), step)

    def picture(self, name: str, step: int, picture: np.ndarray) -> None:
        """picture: (H, W, 3) uint8"""
        self._from(step).add_image(f"pictures/{name}", picture, step, dataformats="HWC")

    def _from(self, step: int) -> Any:
        if self._writer is None:
            # What comes first in a resumed run says from where on older events are void.
            self._writer = self._make(str(self.folder), purge_step=step)
        return self._writer

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
