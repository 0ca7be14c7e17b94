"""Tables 1 and 2 of the paper next to ours, and every other number of `lcv eval`."""

from __future__ import annotations

from collections.abc import Sequence

from lcv.data.kitti import TOTALS as KITTI_TOTALS
from lcv.data.sintel import TOTALS as SINTEL_TOTALS
from lcv.evaluate.metrics import METRICS
from lcv.evaluate.protocols import call_words
from lcv.evaluate.results import DatasetResult, Result
from lcv.evaluate.tables import number
from lcv.studies import paper
from lcv.studies.blocks import Block, Folded, Heading, Points, Row, TableBlock, Words

WHOLE = {
    "sintel-clean": SINTEL_TOTALS["training"],
    "sintel-final": SINTEL_TOTALS["training"],
    "kitti2015": KITTI_TOTALS[2015]["training"],
}
QUOTED = ("epe", "epe_image", "fl", "px1", "px3", "wauc")


def who(result: Result, measured: DatasetResult) -> str:
    """The network, what its W is unless that is I, and its weights."""
    name = str(measured.model.get("name", result.label or "network"))
    kind = measured.model.get("inner_product")
    plain = kind in (None, "euclidean") or measured.model.get("w_is_identity", False)
    lcv = "" if plain else f" ({kind})"
    weights = f", {measured.weights['file']}" if measured.weights else ""
    warm = ", warm start" if result.protocol.warm_start else ""
    return f"{name}{lcv}{weights}{warm}"


def supervised(results: Sequence[Result]) -> list[Block]:
    """Table 1: Sintel and KITTI 2015."""
    ours, differs = [], []
    for result in _of(results, unsupervised=False):
        for name, sets in _by_network(result, WHOLE).items():
            cells = [
                _value(sets, "sintel-clean", "epe"),
                paper.NOT_GIVEN,
                _value(sets, "sintel-final", "epe"),
                paper.NOT_GIVEN,
                _value(sets, "kitti2015", kitti_epe(result)),
                _value(sets, "kitti2015", "fl"),
                paper.NOT_GIVEN,
            ]
            ours.append(Row((name, *cells), "here"))
            differs += _differences(name, result, sets)
    table = _table("Sintel and KITTI 2015", paper.SUPERVISED_HEAD, paper.SUPERVISED, ours)
    lead = "What differs here (test columns need the benchmarks' servers)"
    blocks = (table, Points(paper.SUPERVISED_NOTES))
    return _part("Table 1: supervised", blocks, Points(tuple(differs), lead) if ours else None)


def unsupervised(results: Sequence[Result]) -> list[Block]:
    """Table 2: KITTI 2015 without labels."""
    ours, differs = [], []
    for result in _of(results, unsupervised=True):
        for name, sets in _by_network(result, ("kitti2015",)).items():
            epe = _value(sets, "kitti2015", kitti_epe(result))
            ours.append(Row((name, epe, *[paper.NOT_GIVEN] * 3), "here"))
            differs += _differences(name, result, sets)
            fl = _value(sets, "kitti2015", "fl")
            differs.append(f"{name}: Fl-all on these training pairs {fl} %")
    caption = "KITTI 2015, trained without labels"
    table = _table(caption, paper.UNSUPERVISED_HEAD, paper.UNSUPERVISED, ours)
    differing = Points(tuple(differs), "What differs here") if ours else None
    return _part("Table 2: unsupervised", (table,), differing)


def _table(
    caption: str, head: Sequence[str], printed: dict[str, tuple[str, ...]], ours: Sequence[Row]
) -> TableBlock:
    rows = [Row((name, *cells), "paper") for name, cells in printed.items()]
    return TableBlock(caption, ("method", *head), (*rows, *ours))


def _part(title: str, blocks: tuple[Block, ...], differs: Points | None) -> list[Block]:
    """The blocks under a heading; folded where nothing was measured here."""
    if differs is None:
        return [Heading(title), Folded("The paper's; none measured here", blocks)]
    return [Heading(title), *blocks, differs]


def everything(results: Sequence[Result]) -> list[Block]:
    """Every dataset that was measured, a table each, with the protocol in words."""
    blocks: list[Block] = []
    for dataset in dict.fromkeys(name for result in results for name in result.datasets):
        here = [(r, r.datasets[dataset]) for r in results if dataset in r.datasets]
        names = [n for n in QUOTED if any(n in each.metrics for _, each in here)]
        head = (
            "network",
            "pairs",
            "protocol",
            *(f"{METRICS[n].title}, {METRICS[n].unit}" for n in names),
        )
        rows = []
        for result, each in here:
            values = (
                number(each.metrics[n], METRICS[n].unit) if n in each.metrics else paper.NOT_GIVEN
                for n in names
            )
            protocol = f"{result.protocol.name}, {call_words(each.settings)}"
            rows.append(Row((who(result, each), str(len(each.pairs)), protocol, *values)))
        blocks.append(TableBlock(dataset, head, tuple(rows)))
    if not blocks:
        return []
    used = {n for r in results for each in r.datasets.values() for n in each.metrics}
    meanings = tuple(f"{METRICS[n].title}: {METRICS[n].definition}" for n in QUOTED if n in used)
    return [
        Heading("Everything measured"),
        Words("Lower is better for EPE and Fl, higher for < 1 px, < 3 px and WAUC."),
        *blocks,
        Folded("What the names mean", (Points(meanings),)),
    ]


def kitti_epe(result: Result) -> str:
    """The mean that the protocol quotes on KITTI: within each image first (RAFT), or over pixels."""
    return "epe_image" if "epe_image" in result.protocol.setting("kitti2015").headline else "epe"


def _of(results: Sequence[Result], unsupervised: bool) -> list[Result]:
    def is_unsupervised(result: Result) -> bool:
        return any(not each.model.get("supervised", True) for each in result.datasets.values())

    return [result for result in results if is_unsupervised(result) == unsupervised]


def _by_network(
    result: Result, wanted: Sequence[str] | dict[str, int]
) -> dict[str, dict[str, DatasetResult]]:
    """The datasets of a table by network and weights, which may differ between datasets."""
    found: dict[str, dict[str, DatasetResult]] = {}
    for dataset in wanted:
        if dataset in result.datasets:
            each = result.datasets[dataset]
            found.setdefault(who(result, each), {})[dataset] = each
    return found


def _value(sets: dict[str, DatasetResult], dataset: str, metric: str) -> str:
    if dataset not in sets or metric not in sets[dataset].metrics:
        return paper.NOT_GIVEN
    value, pairs = sets[dataset].metrics[metric], len(sets[dataset].pairs)
    # A number of a few pairs must not pass for one of the whole set.
    few = "" if pairs == WHOLE[dataset] else f", {pairs} pair{'s' * (pairs != 1)}"
    return f"{value:.2f}{few}"


def _differences(name: str, result: Result, sets: dict[str, DatasetResult]) -> list[str]:
    """How a row of ours differs from the paper's, in sentences."""
    said = []
    for dataset, each in sets.items():
        total = WHOLE.get(dataset)
        part = "" if total == len(each.pairs) else f"{len(each.pairs)} of {total} pairs, "
        mean = ""
        if dataset == "kitti2015":
            per_image = kitti_epe(result) == "epe_image"
            mean = ", AEPE " + ("within each image first" if per_image else "over all pixels")
        said.append(
            f"{name}, {dataset}: {part}protocol {result.protocol.name}, {call_words(each.settings)}, "
            f"{result.protocol.precision}{mean}"
        )
    return said
