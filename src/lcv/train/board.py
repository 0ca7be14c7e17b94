"""A run in TensorBoard: every number of the log as a curve, every list of numbers as a histogram.

Needs the extra `train`; used by `lcv train --tensorboard true` alone.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from lcv.errors import ArgumentError


class Board:
    """A listener that writes to the folder `tensorboard` of a run.

        tensorboard --logdir runs

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
        if self._writer is None:
            # The first entry of a resumed run says from where on older events are void.
            self._writer = self._make(str(self.folder), purge_step=step)
        for name, value in entry.items():
            tag = f"{entry['kind']}/{name}"
            if name in ("kind", "step"):
                continue
            if isinstance(value, str):
                self._writer.add_text(tag, value, step)
            elif isinstance(value, int | float):
                self._writer.add_scalar(tag, value, step)
            elif value and all(isinstance(v, int | float) for v in value):
                self._writer.add_histogram(tag, _array(value), step)
            elif value:
                self._writer.add_text(tag, "\n".join(map(str, value)), step)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def _array(values: list[float]) -> Any:
    import numpy as np

    return np.array(values, dtype=np.float64)
