"""What is measured: a `Cell` is one network in one setting at one size; `table_jobs` lists them.

Cells of one job are timed in turns, so that what drifts (clocks, other work) meets all of them alike.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from lcv.errors import ArgumentError
from lcv.models.build import build
from lcv.models.factory import is_factory, label_of
from lcv.models.registry import NETWORKS
from lcv.models.types import OWN_VOLUME

LCV = {
    "none": "without LCV",
    "unfolded": "with LCV",
    "folded": "LCV folded",
    "authors": "LCV, authors' way",
}
"""How W is computed. The authors rebuild it and the volume at every update."""


@dataclass(frozen=True)
class Point:
    """The size of the work. `iters` is None for a network that does not iterate."""

    height: int
    width: int
    batch: int = 1
    iters: int | None = 12


@dataclass(frozen=True)
class Cell:
    """One thing to measure.

    peer:      the package whose copy of the network it is; None for ours
    lcv:       a key of LCV
    volume:    how the network holds its cost volume
    engine:    "plain", "prepared" (`lcv.models.fast`) or "compiled" (torch.compile)
    precision: "float32", "tf32", "fp16" or "bf16"
    compared:  whether its flow should be that of the reference, to rounding
    reference: whether its flow is what the others of the same point are compared with
    """

    model: str
    point: Point
    lcv: str
    volume: str
    engine: str = "plain"
    precision: str = "float32"
    peer: str | None = None
    compared: bool = True
    reference: bool = False

    @property
    def label(self) -> str:
        """Who and how, in words: `lcv, all-pairs, prepared fp16`. What is usual is left out: W in
        ours, none in a factory's."""
        how = self.precision if self.engine == "plain" else f"{self.engine} {self.precision}"
        if self.peer is not None:
            return f"{self.peer}, {how}"
        usual = "none" if is_factory(self.model) else "unfolded"
        who = label_of(self.model) if is_factory(self.model) else "lcv"
        words = [who, self.volume, LCV[self.lcv], how]
        return ", ".join(word for word in words if word not in (OWN_VOLUME, LCV[usual]))


@dataclass(frozen=True)
class Offer:
    """What a network can be measured with, asked once of the network itself.

    lcv: keys of LCV, the usual one first
    """

    model: str
    lcv: tuple[str, ...]
    volumes: tuple[str, ...]
    prepared: tuple[str, ...]
    least: int
    iterates: bool
    peers: tuple[str, ...]
    missing: tuple[str, ...]


def offer_of(name: str, peers: Sequence[str] | None = None) -> Offer:
    """Build the network and ask. peers: packages to compare with; None for all that import."""
    with torch.random.fork_rng(devices=[]):  # the caller's random numbers stay as they are
        network: Any = build(name, "euclidean")
        try:
            with_w: Any = build(name, "elliptical")
        except ArgumentError:  # of a foreign network the user has to say where W goes
            with_w = None
    kinds = ["none"]
    if with_w is not None:
        kinds.append("unfolded")
        kinds += ["folded"] if with_w.layer_before_w() is not None else []
        kinds += ["authors"] if hasattr(with_w, "authors_way") else []
        if not is_factory(name):
            kinds = ["unfolded", "none", *kinds[2:]]
    known = [peer.package for peer in NETWORKS[name].peers] if name in NETWORKS else []
    wanted = [each for each in known if peers is None or each in peers]
    here = [each for each in wanted if importlib.util.find_spec(each) is not None]
    return Offer(
        model=name,
        lcv=tuple(kinds),
        volumes=tuple(network.volumes),
        prepared=("fp16", "bf16") if hasattr(network, "for_inference") else ("float32", "bf16"),
        least=network.least_side,
        iterates=network.defaults.iters is not None,
        peers=tuple(here),
        missing=tuple(each for each in wanted if each not in here),
    )


def known_peers() -> list[str]:
    """Packages that have a network of ours."""
    return list(dict.fromkeys(peer.package for entry in NETWORKS.values() for peer in entry.peers))


Job = tuple[Cell, ...]


def table_jobs(offer: Offer, point: Point, *, gpu: bool, compiled: bool = False) -> list[Job]:
    """Our settings and the peers' at one point: the reference first, the cost of LCV in its turns."""
    point = _checked(offer, point)
    usual, *others = offer.lcv
    first, *rest = offer.volumes
    base = Cell(offer.model, point, usual, first, reference=True)
    jobs: list[Job] = [(base, *(_with_lcv(base, kind, usual) for kind in others))]
    plain = replace(base, reference=False)
    if gpu:
        jobs.append((replace(plain, precision="tf32"),))
        for i, precision in enumerate(offer.prepared):
            cell = replace(plain, engine="prepared", precision=precision)
            # W is multiplied into the weights here; without it is all there is to compare with.
            without = [_with_lcv(cell, "none", usual)] if i == 0 and usual != "none" else []
            jobs.append((cell, *without))
    for volume in rest:
        jobs.append((replace(plain, volume=volume),))
        if gpu:
            own = replace(plain, volume=volume, engine="prepared", precision=offer.prepared[0])
            jobs.append((own,))
    for peer in offer.peers:
        theirs = replace(plain, peer=peer, lcv="none", volume="")
        precisions = ("float32", "tf32", "bf16") if gpu else ("float32",)
        jobs += [(replace(theirs, precision=precision),) for precision in precisions]
        if compiled:
            jobs.append((replace(theirs, engine="compiled", precision=precisions[-1]),))
    return jobs


def _with_lcv(cell: Cell, kind: str, usual: str) -> Cell:
    """The same with W computed in another way; without W it is another function."""
    same = kind != "none" or usual == "none"
    return replace(cell, lcv=kind, compared=same, reference=False)


def _checked(offer: Offer, point: Point) -> Point:
    if min(point.height, point.width) < offer.least:
        raise ArgumentError(
            f"size is {point.height}x{point.width}, but {label_of(offer.model)} needs at least "
            f"{offer.least}x{offer.least}"
        )
    return point if offer.iterates else replace(point, iters=None)
