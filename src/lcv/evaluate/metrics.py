"""Metrics of flow against truth: sums that add up over pairs and processes, then names.

A metric is the mean of a measure (a number a pixel, of its error) over a region (some of the known
pixels). `pair_sums` adds up every measure over every region of one pair, `metrics_from` divides,
and `METRICS` says in words what each name means. Never a bare pair of numbers: every value travels
with its name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from lcv.cost_volume.expect import expect

THRESHOLDS = {"px1": 1.0, "px3": 3.0, "px5": 5.0}
SPEEDS = {"s0_10": (0.0, 10.0), "s10_40": (10.0, 40.0), "s40": (40.0, math.inf)}
WAUC_RANGE = 5.0
_NAMES = ("pixels", "epe", *THRESHOLDS, "fl", "images", "epe_image")

Sums = dict[str, float]
"""Of one pair: "pixels/REGION" → how many, "MEASURE/REGION" → the measure's sum over them."""


@dataclass(frozen=True)
class Metric:
    """What a name means. A share is given in %, of the pixels of its region."""

    title: str
    unit: str
    definition: str
    measure: str
    region: str = "all"
    per_image: bool = False


METRICS = {
    "epe": Metric("EPE", "px", "end-point error |flow − truth|₂, mean over all pixels", "error"),
    "epe_image": Metric(
        "EPE per image", "px", "mean EPE of each image, mean over images", "error", per_image=True
    ),
    "px1": Metric("< 1 px", "%", "pixels with an error below 1 px", "px1"),
    "px3": Metric("< 3 px", "%", "pixels with an error below 3 px", "px3"),
    "px5": Metric("< 5 px", "%", "pixels with an error below 5 px", "px5"),
    "wauc": Metric(
        "WAUC",
        "%",
        "pixels with an error of at most x, averaged over x from 0 to 5 px with weight 1 − x/5; "
        "exactly, the mean of (1 − error/5)², 0 beyond 5 px",
        "wauc",
    ),
    "fl": Metric(
        "Fl-all", "%", "outliers: error above 3 px and above 5 % of the true length", "outlier"
    ),
    "fl_image": Metric(
        "Fl per image", "%", "outliers of each image, mean over images", "outlier", per_image=True
    ),
    "fl_bg": Metric("Fl-bg", "%", "outliers where the object map has background", "outlier", "bg"),
    "fl_fg": Metric("Fl-fg", "%", "outliers where the object map has an object", "outlier", "fg"),
    "fl_noc": Metric("Fl-noc", "%", "outliers of pixels seen in both frames", "outlier", "noc"),
    "fl_occ": Metric("Fl-occ", "%", "outliers of pixels hidden in frame 2", "outlier", "occ"),
    "epe_noc": Metric("EPE noc", "px", "EPE of pixels seen in both frames", "error", "noc"),
    "epe_occ": Metric("EPE occ", "px", "EPE of pixels hidden in frame 2", "error", "occ"),
    "epe_matched": Metric(
        "EPE matched", "px", "the same as EPE noc, under Sintel's name", "error", "noc"
    ),
    "epe_unmatched": Metric(
        "EPE unmatched", "px", "the same as EPE occ, under Sintel's name", "error", "occ"
    ),
    "epe_s0_10": Metric("s0-10", "px", "EPE where the truth is under 10 px long", "error", "s0_10"),
    "epe_s10_40": Metric(
        "s10-40", "px", "EPE where the truth is at least 10 and under 40 px long", "error", "s10_40"
    ),
    "epe_s40": Metric("s40+", "px", "EPE where the truth is at least 40 px long", "error", "s40"),
}


def explain() -> str:
    """Name, title, unit and definition of every metric, one a line."""
    return "\n".join(
        f"{name:<14} {m.title:<14} {m.unit:<3} {m.definition}" for name, m in METRICS.items()
    )


def measures(flow: Tensor, truth: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    """What each pixel adds to a metric, and its true length, in float64.

    flow, truth: (…, 2, h, w) → {"error", "px1", "px3", "px5", "outlier", "wauc"} of (…, h, w)
    Facts: all comparisons are strict; with a truth of length 0 an error above 3 px is an outlier.
    """
    truth = truth.double()
    error = (flow.double() - truth).norm(dim=-3)
    length = truth.norm(dim=-3)
    values = {"error": error}
    values |= {name: error < limit for name, limit in THRESHOLDS.items()}
    values["outlier"] = (error > 3) & (error > 0.05 * length)
    # Of the weight ∫₀⁵ (1 − x/5) dx, the part from the error on: the thresholds that it passes.
    values["wauc"] = (1 - error / WAUC_RANGE).clamp(min=0).square()
    return values, length


def regions(
    length: Tensor, valid: Tensor, occluded: Tensor | None = None, objects: Tensor | None = None
) -> dict[str, Tensor]:
    """The known pixels by what they are; a region whose map is not there is left out. (h, w) each"""
    found = {"all": valid}
    if objects is not None:
        found |= {"bg": valid & (objects == 0), "fg": valid & (objects != 0)}
    if occluded is not None:
        found |= {"noc": valid & ~occluded, "occ": valid & occluded}
    for name, (least, most) in SPEEDS.items():
        found[name] = valid & (length >= least) & (length < most)
    return found


_NEEDED = sorted({(metric.measure, metric.region) for metric in METRICS.values()})


def pair_sums(
    flow: Tensor,
    truth: Tensor,
    valid: Tensor,
    occluded: Tensor | None = None,
    objects: Tensor | None = None,
) -> Sums:
    """The sums of one pair that `metrics_from` divides.

    flow, truth: (2, h, w); valid, occluded: (h, w) bool; objects: (h, w), 0 for the background
    Facts: counts are whole numbers and exact; sums of errors are float64. What is not known
    (`valid` False) counts for nothing, whatever it holds.
    """
    expect("pair_sums", flow, "flow: 2 h w", truth, "truth: 2 h w", valid, "valid: h w")
    # Numbers that are not finite would poison a sum even where a mask multiplies them by 0.
    flow = torch.where(valid, flow, 0)
    values, length = measures(flow, torch.where(valid, truth, 0))
    where = regions(length, valid, occluded, objects)
    sums = {f"pixels/{name}": mask.sum() for name, mask in where.items()}
    for measure, name in _NEEDED:
        if name in where:
            value = values[measure]
            if value.dtype == torch.bool:
                sums[f"{measure}/{name}"] = (value & where[name]).sum()
            else:
                sums[f"{measure}/{name}"] = torch.where(where[name], value, 0).sum()
    whole = {name: not value.is_floating_point() for name, value in sums.items()}
    numbers = torch.stack([value.double() for value in sums.values()]).tolist()
    return {
        name: int(number) if whole[name] else number
        for name, number in zip(sums, numbers, strict=True)
    }


def metrics_from(pairs: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Named metrics over pairs; one that has no pixel in any of them is left out.

    Facts: sums over pairs are rounded once (`math.fsum`), so that neither the order of the pairs
    nor their division among processes changes a bit.
    """
    pairs = list(pairs)
    named = {}
    for name, metric in METRICS.items():
        share = 100.0 if metric.unit == "%" else 1.0
        measure, pixels = f"{metric.measure}/{metric.region}", f"pixels/{metric.region}"
        here = [(pair[measure], pair[pixels]) for pair in pairs if pair.get(pixels)]
        if not here:
            continue
        if metric.per_image:
            value = math.fsum(total / count for total, count in here) / len(here)
        else:
            value = math.fsum(total for total, _ in here) / sum(count for _, count in here)
        named[name] = share * value
    return named


def flow_sums(flow: Tensor, truth: Tensor, valid: Tensor) -> Tensor:
    """The sums that `metrics_of` divides, of a batch at once and left on its device, for training.

    flow, truth: (b, 2, h, w), valid: (b, 1, h, w) bool → (8,) float64, on the flow's device
    Facts: exact to the order of addition; images without a known pixel count for nothing.
    """
    expect("flow_sums", flow, "flow: b 2 h w", truth, "truth: b 2 h w", valid, "valid: b 1 h w")
    known = valid.squeeze(1)
    values, _ = measures(torch.where(valid, flow, 0), torch.where(valid, truth, 0))
    error = values["error"]  # (b, h, w), 0 where not known
    count = known.sum((1, 2)).double()  # (b,)
    below = [(values[name] & known).sum() for name in THRESHOLDS]
    per_image = error.sum((1, 2)) / count.clamp(min=1)
    outliers = (values["outlier"] & known).sum()
    sums = [count.sum(), error.sum(), *below, outliers, (count > 0).sum(), per_image.sum()]
    return torch.stack([value.double() for value in sums])


def metrics_of(sums: Tensor) -> dict[str, float]:
    """Named metrics from `flow_sums`; empty if no pixel was known."""
    values = dict(zip(_NAMES, sums.tolist(), strict=True))
    if not values["pixels"]:
        return {}
    named = {"epe": values["epe"] / values["pixels"]}
    named["epe_image"] = values["epe_image"] / values["images"]
    for name in (*THRESHOLDS, "fl"):
        named[name] = 100 * values[name] / values["pixels"]
    return named
