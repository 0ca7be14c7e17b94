"""The peak of a prediction in bytes, from a rehearsal of it with hollow tensors."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any, cast

import torch
from torch import Tensor, nn

from lcv.cost_volume.ondemand import OnDemand, OnDemandState, torch_impl
from lcv.predict.ledger import Ledger, hollow_model
from lcv.predict.matching import Encoded, Matcher
from lcv.predict.pairs import Flows, Wanted, match_whole
from lcv.predict.tiles import Tiling, match_tiles

# Measured: code that is read and kernels that are made when they are first used, and again the
# kernels for the other size of the coarse pass.
FIRST_USE, FIRST_COARSE = 20 * 2**20, 18 * 2**20
# Of a lookup's many pieces, so many are enough: the later ones fill the holes of the earlier.
PIECES = 3
# The second iteration still holds the costs of the first; later ones are like it.
ITERATIONS = 2
TILES = 2


class BriefOnDemand(OnDemand):
    """`OnDemand` with a lookup of the first few pieces, which returns room for all."""

    def lookup(self, state: OnDemandState, coords: Tensor) -> Tensor:
        b, h, w = state.shape
        levels, rx, ry, _, _ = state.settings
        out = coords.new_empty(b, levels * (2 * rx + 1) * (2 * ry + 1), h, w)
        points, *packed = state.features
        plan = torch_impl.make_plan(h, w, levels=levels, rx=rx, ry=ry, max_bytes=self.max_bytes)
        *_, (_, last, _) = islice(torch_impl._chunks(points, plan, copies=1), PIECES)
        few = last.stop
        places = coords.flatten(2)[:, :, None, :few]
        torch_impl.lookup((points[:, :few], *packed), places, plan)
        return out


def rehearse(
    matcher: Matcher,
    size: tuple[int, int],
    wanted: Wanted,
    *,
    device: torch.device,
    autocast: torch.dtype | None = None,
    tiling: Tiling | None = None,
) -> int:
    """The most bytes that a pair of frames takes above what the process holds before.

    size: (h, w); matcher: with its volume chosen; autocast: its dtype, if any
    On a CPU the heap is counted as glibc keeps it, with 20 MiB for what is first used then (38 in
    tiles). On CUDA it is the tensors alone.
    """
    # Not in inference mode: there, operations made of others would not be taken apart.
    with (
        torch.inference_mode(False),
        torch.no_grad(),
        torch.autocast(device.type, dtype=autocast, enabled=autocast is not None),
    ):
        return _rehearse(_hollow(matcher, device), size, wanted, device, tiling)


def _rehearse(
    matcher: Matcher,
    size: tuple[int, int],
    wanted: Wanted,
    device: torch.device,
    tiling: Tiling | None,
) -> int:
    with Ledger(device) as ledger:
        first, second = (Encoded(torch.empty(1, 3, *size, dtype=torch.uint8)) for _ in range(2))
        if tiling is None:
            flows = match_whole(matcher, first, second, wanted)
        else:
            brief = tiling._replace(tops=tiling.tops[:1], lefts=tiling.lefts[:TILES])
            flows, _ = match_tiles(matcher, first, second, brief, wanted, shift_of=_no_shift)
        _as_arrays(flows)
    if device.type != "cpu":
        return ledger.most
    return ledger.heap.peak + FIRST_USE + (0 if tiling is None else FIRST_COARSE)


def _hollow(matcher: Matcher, device: torch.device) -> Matcher:
    model: Any = hollow_model(cast(nn.Module, matcher.model), device)
    volume = getattr(model, "cost_volume", None)
    if isinstance(volume, OnDemand):
        brief = BriefOnDemand(volume.levels, volume.radius, volume.scale, volume.max_bytes)
        model.cost_volume = brief
    iters = matcher.iters or matcher.model.defaults.iters
    return replace(matcher, model=model, iters=None if iters is None else min(iters, ITERATIONS))


def _as_arrays(flows: Flows) -> list[Tensor]:
    """The copies that a FlowResult is made of."""
    return [x[0].movedim(0, 2).contiguous() for x in flows if isinstance(x, Tensor)]


def _no_shift(flow: Tensor) -> tuple[int, int]:
    return 0, 0
