"""A pair under way: the device may still be computing it, and any thread may wait for it."""

from __future__ import annotations

import torch
from torch import Tensor

from lcv.predict.matching import Flows
from lcv.predict.memory import Plan
from lcv.predict.result import FlowResult


class Pending:
    """A pair that the device may still be computing. low: what the next pair can start from"""

    def __init__(self, flows: Flows, plan: Plan, notes: tuple[str, ...]) -> None:
        self.maps, self.plan, self.notes, self.low = _channels_last(flows), plan, notes, flows.low
        self.device = flows.flow.device
        is_gpu = self.device.type == "cuda"
        self._computed = torch.cuda.current_stream(self.device).record_event() if is_gpu else None

    def result(self) -> FlowResult:
        """Wait for it. What the device has been told since goes on meanwhile."""
        if self._computed is None:
            return self._fetched()
        stream = torch.cuda.Stream(self.device)
        stream.wait_event(self._computed)
        with torch.cuda.stream(stream):
            return self._fetched()

    def _fetched(self) -> FlowResult:
        arrays = {name: x.cpu().numpy() for name, x in self.maps.items()}
        return FlowResult(**arrays, plan=self.plan, notes=self.notes)


def _channels_last(flows: Flows) -> dict[str, Tensor]:
    """Flows as (h, w, 2), maps as (h, w); on a GPU in that order in memory, as files have it."""
    maps = {name: x for name, x in flows._asdict().items() if name != "low" and x is not None}
    last = {name: x[0].movedim(0, 2) for name, x in maps.items()}
    last = {name: x[:, :, 0] if x.shape[2] == 1 else x for name, x in last.items()}
    # The GPU reorders this at once; on the CPU it takes milliseconds, and not all need it.
    return {name: x.contiguous() if x.is_cuda else x for name, x in last.items()}
