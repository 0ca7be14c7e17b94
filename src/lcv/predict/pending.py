"""A pair under way: the device may still be computing it, and any thread may wait for it."""

from __future__ import annotations

import torch
from torch import Tensor

from lcv.predict.matching import Flows
from lcv.predict.memory import Plan
from lcv.predict.result import FlowResult


class Pending:
    """A pair that the device may still be computing. low: what the next pair can start from

    A GPU copies the flow to pinned memory of the host once it is computed, and computes the next meanwhile.
    """

    def __init__(self, flows: Flows, plan: Plan, notes: tuple[str, ...]) -> None:
        self.maps, self.plan, self.notes, self.low = _channels_last(flows), plan, notes, flows.low
        self._copied: torch.cuda.Event | None = None
        if flows.flow.is_cuda:
            self._computed = self.maps  # held here, since they are still to be copied
            self.maps, self._copied = fetched(self.maps, flows.flow.device)

    def result(self, lent: bool = False) -> FlowResult:
        """Wait for it. What the device has been told since goes on meanwhile.

        lent: the arrays are not a copy, and on a GPU in pinned memory: for a short use
        """
        if self._copied is not None:
            self._copied.synchronize()
        arrays = {name: x.numpy() for name, x in self.maps.items()}
        if self._copied is not None and not lent:
            arrays = {name: array.copy() for name, array in arrays.items()}
        return FlowResult(**arrays, plan=self.plan, notes=self.notes)


def fetched(
    maps: dict[str, Tensor], device: torch.device
) -> tuple[dict[str, Tensor], torch.cuda.Event]:
    """Copies of what the device is computing, and the event after which they are complete."""
    stream = torch.cuda.Stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(stream):
        copies = {name: _on_its_way(x) for name, x in maps.items()}
    return copies, stream.record_event()


def _on_its_way(x: Tensor) -> Tensor:
    """A copy on the CPU, which is there once the stream has come so far."""
    return torch.empty_like(x, device="cpu", pin_memory=True).copy_(x, non_blocking=True)


def _channels_last(flows: Flows) -> dict[str, Tensor]:
    """Flows as (h, w, 2), maps as (h, w); on a GPU in that order in memory, as files have it."""
    maps = {name: x for name, x in flows._asdict().items() if name != "low" and x is not None}
    last = {name: x[0].movedim(0, 2) for name, x in maps.items()}
    last = {name: x[:, :, 0] if x.shape[2] == 1 else x for name, x in last.items()}
    # The GPU reorders this at once; on the CPU it takes milliseconds, and not all need it.
    return {name: x.contiguous() if x.is_cuda else x for name, x in last.items()}
