"""Table 4 of the paper in its three parts with ours beside, curves of every stress, pictures."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

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
from lcv.studies.robustness.plots import curves_of

PARTS = {
    "gamma": ("Illumination, γ", ("gamma",)),
    "noise": ("Noise", ("noise-variance", "noise-deviation")),
    "patch": ("Adversarial patch, size in px", ("patch", "random", "matched")),
}
METRIC = "epe_image"
WIDEST = 1500


def robustness(sources: Sequence[Robustness]) -> list[Block]:
    """The three tables; then what each study has beyond them."""
    blocks: list[Block] = []
    for part, (caption, stresses) in PARTS.items():
        levels = list(paper.ROBUSTNESS[part])
        rows = _paper_rows(part)
        ours = [row for source in sources for row in _our_rows(source, stresses, levels)]
        unit = "method" if part != "noise" else "method (levels as printed)"
        head = (unit, *(f"{level:g}" for level in levels))
        blocks.append(TableBlock(caption, head, (*rows, *ours)))
        blocks.append(Points((f"{caption}: {paper.ROBUSTNESS_NOTES[part]}.",)))
    title = Heading("Table 4: robustness")
    if not sources:
        return [title, Folded("The paper's; none of ours", tuple(blocks))]
    said = [paper.ROBUSTNESS_PROTOCOL, *(words for s in sources for words in _differences(s))]
    blocks = [title, *blocks, Points(tuple(said), "What differs in ours")]
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


def _our_rows(source: Robustness, stresses: Sequence[str], levels: Sequence[float]) -> list[Row]:
    """Fl-all and EPE over all pixels, as in the paper, of every network and source."""
    study = source.study
    rows = []
    keys = [key for key in study.cells if key[2].partition(":")[0] in stresses]
    for where, network, stress in dict.fromkeys(key[:3] for key in keys):
        here = [(where, network, stress, level) for level in levels]
        if not any(key in study.cells for key in here):
            continue
        kind = "" if stress == "gamma" else f", {stress}"
        for metric, decimals in (("fl", 1), ("epe", 3)):
            words = f"{network}, {where}{kind}: {METRICS[metric].title} {METRICS[metric].unit}"
            values = (
                f"{study.metrics(key)[metric]:.{decimals}f}" if key in study.cells else "–"
                for key in here
            )
            rows.append(Row((words, *values), "ours"))
    return rows


def _differences(source: Robustness) -> list[str]:
    study = source.study
    settings = study.settings
    sets = ", ".join(f"{name} ({len(groups)} pairs)" for name, groups in study.groups.items())
    said = [
        f"{source.name}: {sets}; protocol {settings['protocol']['name']}, seed {settings['seed']}."
    ]
    rule = settings["rule"]
    if any(key[2].startswith("patch") for key in study.cells):
        said.append(f"{source.name}: patch sizes are diameters; {RULES[rule][0]}.")
    return said


def in_full(source: Robustness) -> list[Block]:
    """Curves of every stress, what patches do far from themselves, and pictures."""
    study = source.study
    blocks: list[Block] = [Heading(f"In full: {source.name}", 3)]
    for where, groups in study.groups.items():
        curves, charts = curves_of(study, where, METRIC), []
        for stress in dict.fromkeys(curve["stress"] for curve in curves):
            lines = [_line(curve) for curve in curves if curve["stress"] == stress]
            about = study.about["stresses"].get(stress, {"label": stress, "unit": "level"})
            title = f"{where} ({len(groups)} pairs): {about['label']}"
            smallest = min(level for line in lines for level in line.x)
            log = bool(about.get("log")) and smallest > 0
            chart = line_chart(
                lines,
                title,
                about["unit"],
                f"{METRICS[METRIC].title}, px",
                log_x=log,
                width=500,
                height=250,
            )
            charts.append(ChartBlock(chart, title))
        blocks.append(Beside(tuple(charts)))
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


def _harm(source: Robustness) -> list[Block]:
    found = source.study.about.get("harm", [])
    if not found:
        return []
    head = (
        "patch, on network",
        "source",
        "box",
        "diameter px",
        "pairs",
        "learned px",
        "random px",
        "learned − random px",
        "95 % over scenes",
        "sign test p",
        "learned − matched px",
        "95 % over scenes",
    )
    rows = []
    for r in found:
        matched = r.get("harm_beyond_matched")
        rows.append(
            Row(
                (
                    f"{r['patch']}, {r['network']}",
                    r["source"],
                    r["box"],
                    f"{r['size']:g}",
                    str(r["pairs"]),
                    f"{r['harm']:.4f}",
                    f"{r['random_harm']:.4f}",
                    _signed(r["harm_beyond_random"]),
                    _span(r["harm_beyond_random_interval"]),
                    f"{r['random_sign_test_p']:.2g}",
                    "–" if matched is None else _signed(matched),
                    _span(r.get("harm_beyond_matched_interval")),
                )
            )
        )
    margin = source.study.settings["margin"]
    caption = f"Increase of EPE further than {margin:g} px outside a patch"
    said = "Random: random pixels. Matched: a random patch with grey levels and spectrum of the learned."
    return [TableBlock(caption, head, tuple(rows)), Points((said,))]


def _signed(value: float) -> str:
    return f"{value:+.4f}".replace("-", "−")


def _span(span: Sequence[float] | None) -> str:
    return f"{span[0]:.4f} … {span[1]:.4f}".replace("-", "−") if span else "–"


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
