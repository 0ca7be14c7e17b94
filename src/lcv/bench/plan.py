"""A plan: which jobs to measure on which device, and which peers are missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lcv.bench.cells import Job, Offer, Point, offer_of, table_jobs
from lcv.bench.growth import BATCHES, ITERS, SIZES, base_of, growth_jobs, points
from lcv.errors import ArgumentError


@dataclass(frozen=True)
class Plan:
    """missing: packages that do not import; base: of a growth chart, the point its axes cross in."""

    jobs: list[Job]
    device: str
    missing: tuple[str, ...] = ()
    base: Point | None = None


def plan_table(
    models: Sequence[str],
    at: Sequence[Point],
    *,
    device: str = "cpu",
    peers: Sequence[str] | None = None,
    compiled: bool = False,
) -> Plan:
    """Every setting of every network at every point, beside its peers.

    models:   names of networks, or factories
    at:       sizes, batches and iterations
    peers:    packages to compare with; None for all that import
    compiled: the peers under torch.compile too, which takes minutes a point
    """
    gpu = device != "cpu"
    offers = _offers(models, at, peers)
    jobs = [
        job
        for offer in offers
        for point in at
        for job in table_jobs(offer, point, gpu=gpu, compiled=compiled)
    ]
    return Plan(jobs, device, _missing(offers))


def plan_growth(
    models: Sequence[str],
    sizes: Sequence[tuple[int, int]] = SIZES,
    batches: Sequence[int] = BATCHES,
    iters: Sequence[int] = ITERS,
    *,
    device: str = "cpu",
    peers: Sequence[str] | None = None,
) -> Plan:
    """The best settings of every network and of its peers: one axis at a time from the base."""
    offers = _offers(models, sizes, peers)
    every = points(sizes, batches, iters)
    jobs = [job for each in offers for job in growth_jobs(each, every, gpu=device != "cpu")]
    base = base_of(sizes, batches, iters)
    return Plan(list(dict.fromkeys(jobs)), device, _missing(offers), base)


def _offers(
    models: Sequence[str], points: Sequence[object], peers: Sequence[str] | None
) -> list[Offer]:
    for what, given in (("model", models), ("size", points)):
        if not given:
            raise ArgumentError(f"bench: no {what} is given, wanted at least one")
    return [offer_of(name, peers) for name in models]


def _missing(offers: Sequence[Offer]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each for offer in offers for each in offer.missing))
