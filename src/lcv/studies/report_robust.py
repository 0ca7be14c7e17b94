"""Table 4 of the paper in its three parts with ours beside, curves of every stress, pictures."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lcv.data.formats.image import read_image
from lcv.evaluate.metrics import METRICS
from lcv.studies import paper
from lcv.studies.charts import Line, line_chart
from lcv.studies.report_blocks import (
    Beside,
    Block,
    ChartBlock,
    Folded,
    Heading,
    Picture,
    Points,
    Row,
    TableBlock,
)
from lcv.studies.report_sources import Robustness
from lcv.studies.robustness.pasted import RULES
from lcv.studies.robustness.plots import CONTROLS, curves_of
from lcv.studies.robustness.results import NONE, Key
from lcv.studies.robustness.versus import about_differences, difference_words, leave_out_zero
from lcv.words import counted

PARTS = {
    "gamma": ("Illumination, γ", ("gamma",)),
    "noise": ("Noise", ("noise-variance", "noise-deviation")),
    "patch": ("Adversarial patch, size in px", ("patch", *CONTROLS)),
}
METRIC = "epe_image"
WIDEST = 1500


def robustness(sources: Sequence[Robustness]) -> list[Block]:
    """The three tables; then what each study has beyond them."""
    blocks: list[Block] = []
    for part, (caption, stresses) in PARTS.items():
        levels = list(paper.ROBUSTNESS[part])
        unit = "method" if part != "noise" else "method (levels as printed)"
        head = (unit, *(f"{level:g}" for level in levels))
        beside: list[Row] = []
        apart: list[Row] = []
        for source in sources:
            for curve in _curves(source, stresses, levels):
                there = beside if _belongs_beside(source, curve) else apart
                there += _our_rows(source, curve)
        blocks.append(TableBlock(caption, head, (*_paper_rows(part), *beside)))
        if apart:
            more = TableBlock(f"{caption}: controls, and single levels", head, tuple(apart))
            blocks.append(Folded(f"{more.caption} ({len(apart)} rows)", (more,)))
        blocks.append(Points((f"{caption}: {paper.ROBUSTNESS_NOTES[part]}.",)))
    title = Heading("Table 4: robustness")
    if not sources:
        return [title, Folded("The paper's; none measured here", tuple(blocks))]
    said = [paper.ROBUSTNESS_PROTOCOL, *(words for s in sources for words in _differences(s))]
    blocks = [title, *blocks, Points(tuple(said), "What differs here")]
    for source in sources:
        blocks += in_full(source)
    return blocks


def _paper_rows(part: str) -> list[Row]:
    rows = []
    for i, method in enumerate(("VCN", "VCN+LCV")):
        both = [values[i] for values in paper.ROBUSTNESS[part].values()]
        rows.append(Row((f"paper, {method}: Fl-all %", *(f"{fl:.1f}" for fl, _ in both)), "paper"))
        rows.append(Row((f"paper, {method}: AEPE px", *(f"{epe:.3f}" for _, epe in both)), "paper"))
    return rows


def _curves(
    source: Robustness, stresses: Sequence[str], levels: Sequence[float]
) -> list[list[Key]]:
    """The paper's levels of every set, network and stress of ours that has one of them at least."""
    study = source.study
    names = [key[:3] for key in study.cells if key[2].partition(":")[0] in stresses]
    found = [[(*name, level) for level in levels] for name in dict.fromkeys(names)]
    return [keys for keys in found if any(key in study.cells for key in keys)]


def _belongs_beside(source: Robustness, keys: Sequence[Key]) -> bool:
    """Whether the paper has its like: no control, and not one of its levels alone."""
    measured = sum(key in source.study.cells for key in keys)
    return keys[0][2].partition(":")[0] not in CONTROLS and measured > 1


def _our_rows(source: Robustness, keys: Sequence[Key]) -> list[Row]:
    """Fl-all and EPE over all pixels, as in the paper."""
    study = source.study
    where, network, stress, _ = keys[0]
    kind = "" if stress == "gamma" else f", {stress}"
    rows = []
    for metric, decimals in (("fl", 1), ("epe", 3)):
        words = f"{network}, {where}{kind}: {METRICS[metric].title} {METRICS[metric].unit}"
        values = (
            f"{study.metrics(key)[metric]:.{decimals}f}" if key in study.cells else "–"
            for key in keys
        )
        rows.append(Row((words, *values), "here"))
    return rows


def _differences(source: Robustness) -> list[str]:
    study = source.study
    settings = study.settings
    sets = ", ".join(
        f"{name} ({counted(len(groups), 'pair')})" for name, groups in study.groups.items()
    )
    said = [
        f"{source.name}: {sets}; protocol {settings['protocol']['name']}, seed {settings['seed']}."
    ]
    rule = settings["rule"]
    if any(key[2].startswith("patch") for key in study.cells):
        said.append(f"{source.name}: patch sizes are diameters; {RULES[rule][0]}.")
    return said


def in_full(source: Robustness) -> list[Block]:
    """Curves of every stress at more than one level, what patches do far off, and pictures."""
    study = source.study
    blocks: list[Block] = [Heading(f"In full: {source.name}", 3)]
    for where, groups in study.groups.items():
        curves, charts = curves_of(study, where, METRIC), []
        for stress in dict.fromkeys(curve["stress"] for curve in curves):
            lines = [_line(curve) for curve in curves if curve["stress"] == stress]
            if len({level for line in lines for level in line.x}) < 2:
                continue
            about = study.about["stresses"].get(stress, {"label": stress, "unit": "level"})
            title = f"{where} ({counted(len(groups), 'pair')}): {about['label']}"
            chart = line_chart(
                lines,
                title,
                about["unit"],
                f"{METRICS[METRIC].title}, px",
                log_x=bool(about.get("log")),
                width=500,
                height=250,
            )
            charts.append(ChartBlock(chart, title))
        if charts:
            blocks.append(Beside(tuple(charts)))
    blocks += _versus(source)
    blocks += _harm(source)
    blocks += [_picture(path) for path in source.pictures]
    return blocks


def _line(curve: dict[str, list]) -> Line:
    spans = curve["intervals"]
    whole = all(span is not None for span in spans)
    return Line(
        str(curve["network"]),
        curve["levels"],
        curve["values"],
        [span[0] for span in spans] if whole else (),
        [span[1] for span in spans] if whole else (),
    )


def _versus(source: Robustness) -> list[Block]:
    """Every two networks against each other, a folded table each."""
    found = source.study.about.get("differences", [])
    blocks: list[Block] = []
    for where, first, second in dict.fromkeys(
        (r["source"], r["first"], r["second"]) for r in found
    ):
        here = [
            r for r in found if (r["source"], r["first"], r["second"]) == (where, first, second)
        ]
        rows = [
            Row(
                (
                    "frames as they are"
                    if r["stress"] == NONE
                    else f"{r['stress']} {r['level']:g}",
                    difference_words(r, "difference"),
                    difference_words(r, "added"),
                )
            )
            for r in here
        ]
        caption = f"{where}: {first} less {second}, EPE px [95\u00a0%]; pairs below : above, p"
        head = ("stress", "difference", "added by the stress")
        table = TableBlock(caption, head, tuple(rows))
        without, spans = leave_out_zero(here, "difference")
        summary = f"{where}: {first} against {second}"
        if spans:
            summary += f" ({without} of {spans} differences leave out zero)"
        blocks.append(Folded(summary, (table, Points((about_differences(here),)))))
    return blocks


def _harm(source: Robustness) -> list[Block]:
    """What patches do far from themselves: a table a set."""
    found = source.study.about.get("harm", [])
    if not found:
        return []
    head = (
        "patch, on network",
        "box",
        "diameter px",
        "learned px",
        "random px",
        "learned − random px [95\u00a0%]",
        "sign test p",
        "learned − matched px [95\u00a0%]",
    )
    margin = source.study.settings["margin"]
    blocks: list[Block] = []
    for where in dict.fromkeys(r["source"] for r in found):
        here = [r for r in found if r["source"] == where]
        pairs = sorted({r["pairs"] for r in here})
        counted = f"{pairs[0]}{f' to {pairs[-1]}' * (len(pairs) > 1)} pairs"
        caption = f"{where} ({counted}): increase of EPE further than {margin:g} px outside a patch"
        blocks.append(TableBlock(caption, head, tuple(_harm_row(r) for r in here)))
    said = (
        "Random: random pixels. Matched: a random patch with grey levels and spectrum of the "
        "learned. Intervals are bootstraps over scenes."
    )
    return [*blocks, Points((said,))]


def _harm_row(r: dict[str, Any]) -> Row:
    return Row(
        (
            f"{r['patch']}, {r['network']}",
            r["box"],
            f"{r['size']:g}",
            _minus(f"{r['harm']:.4f}"),
            _minus(f"{r['random_harm']:.4f}"),
            _difference(r["harm_beyond_random"], r["harm_beyond_random_interval"]),
            f"{r['random_sign_test_p']:.2g}",
            _difference(r.get("harm_beyond_matched"), r.get("harm_beyond_matched_interval")),
        )
    )


def _difference(value: float | None, span: Sequence[float] | None) -> str:
    if value is None:
        return "–"
    between = f" [{span[0]:.4f}, {span[1]:.4f}]" if span else ""
    return _minus(f"{value:+.4f}{between}")


def _minus(number: str) -> str:
    return number.replace("-", "−")


def _picture(path: Path) -> Picture:
    """As a JPEG of at most `WIDEST` pixels: a page is to be sent around."""
    from PIL import Image

    image = Image.fromarray(read_image(path))
    if image.width > WIDEST:
        image = image.resize((WIDEST, round(image.height * WIDEST / image.width)))
    memory = io.BytesIO()
    image.save(memory, "JPEG", quality=85)
    caption = f"Stressed frames, flows and their difference ({path.stem.removeprefix('picture-')})"
    return Picture(memory.getvalue(), "image/jpeg", caption)
