"""From a cell to a call: the network in its setting, with its frames, ready to be timed.

Ours are called as a user calls them. A peer's images are scaled and padded beforehand, and its own
call is timed alone. All networks of a point have the same weights: the embedded ones, or random ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

import lcv
from lcv.bench.cells import Cell
from lcv.models.build import build
from lcv.models.embedded import EMBEDDED
from lcv.models.factory import is_factory
from lcv.models.fast import PRECISIONS, Prepared
from lcv.models.registry import NETWORKS


class Call(NamedTuple):
    """`run()` is what is timed; `flow` finds (b, 2, h, w) in what it returned."""

    run: Callable[[], Any]
    flow: Callable[[Any], Tensor]


def make_call(cell: Cell, frames: Sequence[Tensor]) -> Call:
    """The cell's network on the frames' device; compiling and recording happen in the first run."""
    device = frames[0].device
    torch.manual_seed(0)
    iters = cell.point.iters
    with torch.no_grad():
        if cell.peer is not None:
            call = _peer_call(cell, frames, device)
        else:
            model: Any = our_network(cell.model, cell.lcv).eval().to(device)
            model = model.authors_way() if cell.lcv == "authors" else model.with_volume(cell.volume)
            run: Any = Prepared(model, cell.precision) if cell.engine == "prepared" else model
            call = Call(lambda: run(*frames, iters=iters), lambda out: out.flow)
    half = cell.precision in ("fp16", "bf16") and cell.engine != "prepared"
    dtype = PRECISIONS[cell.precision] if half else None

    def timed() -> Any:
        with torch.no_grad(), torch.autocast(device.type, dtype, enabled=half):
            return call.run()

    return Call(timed, call.flow)


def our_network(name: str, lcv_kind: str) -> nn.Module:
    """With its weights, and W in the state that the kind names ("authors" as "unfolded")."""
    if is_factory(name):
        network = build(name, "euclidean" if lcv_kind == "none" else "elliptical")
    elif lcv_kind == "none":
        network = build(name, "euclidean")
        if name in EMBEDDED:
            trained = lcv.load(name).state_dict()
            network.load_state_dict({key: trained[key] for key in network.state_dict()})
    else:
        network = lcv.load(name) if name in EMBEDDED else build(name, "elliptical")
    return lcv.fold(network.eval()) if lcv_kind == "folded" else network


def _peer_call(cell: Cell, frames: Sequence[Tensor], device: torch.device) -> Call:
    peer = next(each for each in NETWORKS[cell.model].peers if each.package == cell.peer)
    network = peer.build(our_network(cell.model, "folded"), cell.point.iters).to(device)
    if cell.engine == "compiled":
        torch.compiler.reset()  # another size before this one would make it compile for any size
        network.compile(dynamic=False)
    theirs = lcv.wrap(network)
    images = [theirs.encode(frame) for frame in frames]
    iters = None if theirs.defaults.iters is None else cell.point.iters
    return Call(
        lambda: theirs.call_network(images[0], images[1], iters),
        lambda returned: theirs.output(returned, images[0], all_flows=False).flow,
    )


@contextmanager
def tf32(allowed: bool) -> Iterator[None]:
    """Products and convolutions on a GPU in TF32, or in full float32."""
    had = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = had
