"""A pair under way: the device may still be computing it, and any thread may wait for it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lcv.predict.matching import Flows
from lcv.predict.memory import Plan
from lcv.predict.result import FlowResult


class Pending:
    """A pair that the device may still be computing. low: what the next pair can start from"""

    def __init__(self, flows: Flows, plan: Plan, notes: tuple[str, ...]) -> None:
        self.flows, self.plan, self.notes, self.low = flows, plan, notes, flows.low
        device = flows.flow.device
        is_gpu = device.type == "cuda"
        self._computed = torch.cuda.current_stream(device).record_event() if is_gpu else None

    def result(self) -> FlowResult:
        """Wait for it. What the device has been told since goes on meanwhile."""
        if self._computed is None:
            return FlowResult(**_as_arrays(self.flows), plan=self.plan, notes=self.notes)
        stream = torch.cuda.Stream(self.flows.flow.device)
        stream.wait_event(self._computed)
        with torch.cuda.stream(stream):
            return FlowResult(**_as_arrays(self.flows), plan=self.plan, notes=self.notes)


def _as_arrays(flows: Flows) -> dict[str, Any]:
    def array(x: Tensor | None) -> Any:
        if x is None:
            return None
        last = x[0].movedim(0, 2).squeeze(2)  # a map has one channel
        # What a GPU puts in order at once would take a writer milliseconds.
        return (last.contiguous().cpu() if last.is_cuda else last).numpy()

    names = ("flow", "backward", "occluded", "warp_error")
    return {name: array(getattr(flows, name)) for name in names}
