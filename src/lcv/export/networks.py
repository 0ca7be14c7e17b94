"""What of each network is exported: its core, the sizes it takes, and how an image gets there.

The core is `encode` and `match`. It has no padding, so that sizes can stay open; whoever runs the
file pads by the rule that the file states.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor, nn

from lcv.errors import ArgumentError
from lcv.models.ddflow import DDFlow
from lcv.models.raft import RAFT
from lcv.models.raft.padding import padding_for
from lcv.models.vcn import VCN
from lcv.models.vcn.model import fit, fit_flow, next_multiple


class RaftCore(nn.Module):
    """image1, image2: (1, 3, 8m, 8n) RGB 0 … 255 → flow (1, 2, 8m, 8n)."""

    def __init__(self, model: RAFT, iters: int | None) -> None:
        super().__init__()
        self.model = model
        self.iters = iters

    def forward(self, image1: Tensor, image2: Tensor) -> Tensor:
        features1 = self.model.encode(image1)
        features2 = self.model.encode(image2, context=False)
        return self.model.match(features1, features2, iters=self.iters).flow


class VcnCore(nn.Module):
    """image1, image2: (1, 3, 64m, 64n) RGB 0 … 255 → flow (1, 2, 64m, 64n)."""

    def __init__(self, model: VCN, iters: None) -> None:
        super().__init__()
        self.model = model

    def forward(self, image1: Tensor, image2: Tensor) -> Tensor:
        features1 = self.model.encode(image1, frame=1)
        features2 = self.model.encode(image2, frame=2)
        return self.model.match(features1, features2).flow


class DdflowCore(nn.Module):
    """image1, image2: (1, 3, h, w) RGB 0 … 255 → flow (1, 2, h, w)."""

    def __init__(self, model: DDFlow, iters: None) -> None:
        super().__init__()
        self.model = model

    def forward(self, image1: Tensor, image2: Tensor) -> Tensor:
        size = (image1.shape[2], image1.shape[3])
        return self.model.match(
            self.model.encode(image1), self.model.encode(image2), size=size
        ).flow


class Fitted(NamedTuple):
    """Two images at a size that the core takes, and the way back for the flow between them."""

    image1: Tensor
    image2: Tensor
    undo: Callable[[Tensor], Tensor]


def pad(image1: Tensor, image2: Tensor, mode: str | None) -> Fitted:
    """RAFT's rule."""
    padding = padding_for(image1.shape[2], image1.shape[3], RAFT.stride, mode or "sintel")
    return Fitted(padding.apply(image1), padding.apply(image2), padding.undo)


def resize(image1: Tensor, image2: Tensor, mode: str | None) -> Fitted:
    """VCN's rule."""
    h, w = image1.shape[2], image1.shape[3]
    size = next_multiple(h, VCN.stride), next_multiple(w, VCN.stride)
    return Fitted(fit(image1, size), fit(image2, size), lambda flow: fit_flow(flow, (h, w)))


def keep(image1: Tensor, image2: Tensor, mode: str | None) -> Fitted:
    """DDFlow's rule: the size is right as it is."""
    return Fitted(image1, image2, lambda flow: flow)


@dataclass(frozen=True)
class Network:
    """One network's way into a file.

    core:       what is traced, built with the model and its number of iterations
    stride:     sides are multiples of it; fixed_stride, those of a file of one size
    least:      the smallest side of a file of one size; least_open, where sizes stay open
    why_fixed:  why they cannot stay open, if they cannot; least_open is then None
    lookups:    the ways to read costs or warp features, the default first
    why_not:    why the others are missing
    fit, modes: how images of any size get there, and the names of its variants
    fits_any:   whether `fit` takes images of every size, or only those that are right as they are
    rule:       the same in words, for the file
    iters:      the default number of iterations; None for a network that does not iterate
    """

    core: Callable[..., nn.Module]
    stride: int
    fixed_stride: int
    least: int
    least_open: int | None
    why_fixed: str
    lookups: tuple[str, ...]
    why_not: str
    fit: Callable[[Tensor, Tensor, str | None], Fitted]
    modes: tuple[str | None, ...]
    fits_any: bool
    rule: str
    iters: int | None


MOST = 4096  # pixels a side, where sizes stay open; a square of them would have 370 GB of costs

RAFT_NETWORK = Network(
    core=RaftCore,
    stride=8,
    fixed_stride=8,
    least=64,
    # Below, the coarsest costs are one pixel wide, a size that tracers treat apart.
    least_open=128,
    why_fixed="",
    lookups=("gather", "grid_sample"),
    why_not="",
    fit=pad,
    modes=("sintel", "kitti"),
    fits_any=True,
    rule="Pad both images to multiples of 8 by repeating their borders, and cut the same pixels off "
    "the flow. sintel: half left and half right, half above and half below, an odd pixel right and "
    "below. kitti: half left and half right, all below.",
    iters=RAFT.default_iters,
)

VCN_NETWORK = Network(
    core=VcnCore,
    stride=64,
    fixed_stride=64,
    least=128,
    least_open=None,
    why_fixed="it pools its coarsest features over cells whose number and size follow the image's "
    "shape, so that each size is a program of its own",
    lookups=("grid_sample", "gather"),
    why_not="",
    fit=resize,
    modes=(None,),
    fits_any=True,
    rule="Resize both images to the next multiples of 64, bilinearly, corners not aligned, without "
    "rounding; resize the flow back the same way and multiply its x by width / resized width and "
    "its y by height / resized height.",
    iters=None,
)

DDFLOW_NETWORK = Network(
    core=DdflowCore,
    stride=64,
    fixed_stride=1,
    least=5,
    least_open=None,
    why_fixed="with open sizes torch's tracer works on its 405 reads of windows for longer than is of "
    "use",
    lookups=("gather",),
    why_not="its warp continues the image at two edges and ends it at the other two, which no "
    "grid_sample does",
    fit=keep,
    modes=(None,),
    fits_any=False,
    rule="None: the images have a size that the file takes. (The network itself takes any size as it "
    "is, so a padded pair gives the flow of the padded images, not quite that of the images.)",
    iters=None,
)


def network_of(model: nn.Module) -> Network:
    """How a network of ours is exported."""
    for kind, network in ((RAFT, RAFT_NETWORK), (VCN, VCN_NETWORK), (DDFlow, DDFLOW_NETWORK)):
        if isinstance(model, kind):
            return network
    raise ArgumentError(
        f"export: a {type(model).__name__} is no network of lcv; wanted a RAFT, a VCN or a DDFlow. "
        f"For a network with LCV attached, use torch.export itself, after lcv.fold."
    )


def choose_lookup(name: str, network: Network, lookup: str | None) -> str:
    """The way asked for, if the network has it; its default if none was."""
    if lookup is None:
        return network.lookups[0]
    if lookup not in network.lookups:
        has = ", ".join(network.lookups)
        why = f": {network.why_not}" if lookup in ("gather", "grid_sample") else ""
        raise ArgumentError(f"export: {name} has no lookup {lookup!r}{why}. It has {has}.")
    return lookup


def choose_iters(name: str, network: Network, iters: int | None) -> int | None:
    """The number of iterations, refused where it is none or where there are none."""
    if iters is None:
        return network.iters
    if network.iters is None:
        raise ArgumentError(f"export: {name} does not iterate, got iters={iters}. Leave it out.")
    if isinstance(iters, bool) or not isinstance(iters, int) or iters < 1:
        raise ArgumentError(f"export: iters is {iters!r}, wanted a whole number of at least 1")
    return iters
