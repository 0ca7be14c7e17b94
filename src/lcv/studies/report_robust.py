"""Table 4 of the paper in its three parts next to ours, curves of every stress, pictures."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from lcv.data.formats.image import read_image
from lcv.evaluate.metrics import METRICS
from lcv.studies import paper
from lcv.studies.blocks import Block, Folded, Heading, Picture, Points, Row, TableBlock, chart
from lcv.studies.report_sources import Robustness
from lcv.studies.robustness.pasted import RULES
from lcv.studies.robustness.plots import CONTROLS, PLAIN, panels
from lcv.studies.robustness.results import Key
from lcv.studies.robustness.tables import harm_tables, versus_tables
from lcv.words import counted

PARTS = {
    "gamma": ("Illumination, γ", ("gamma",)),
    "noise": ("Noise", ("noise-variance", "noise-deviation")),
    "patch": ("Adversarial patch, size in px", ("patch", *CONTROLS)),
}
WIDEST = 1500


def robustness(sources: Sequence[Robustness]) -> list[Block]:
    """The three tables; then what each study has beyond them."""
    blocks: list[Block] = []
    for part, (caption, stresses) in PARTS.items():
        levels = list(paper.ROBUSTNESS[part])
        unit = "method" if part != "noise" else "method (levels as printed)"
        head = (unit, *(f"{level:g}" for level in levels))
        ours: list[Row] = []
        more: list[Row] = []
        for source in sources:
            for curve in _curves(source, stresses, levels):
                rows = ours if _is_in_paper(source, curve) else more
                rows += _our_rows(source, curve)
        blocks.append(TableBlock(caption, head, (*_paper_rows(part), *ours)))
        if more:
            table = TableBlock(f"{caption}: controls, and single levels", head, tuple(more))
            blocks.append(Folded(f"{table.caption} ({len(more)} rows)", (table,)))
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


def _is_in_paper(source: Robustness, keys: Sequence[Key]) -> bool:
    """Whether the paper has such a row: not of a control, and not of a single level."""
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
    study, settings = source.study, source.study.settings
    sets = ", ".join(
        f"{name} ({counted(len(groups), 'pair')})" for name, groups in study.groups.items()
    )
    said = [
        f"{source.name}: {sets}; protocol {settings['protocol']['name']}, seed {settings['seed']}."
    ]
    if any(key[2].startswith("patch") for key in study.cells):
        said.append(f"{source.name}: patch sizes are diameters; {RULES[settings['rule']][0]}.")
    return said


def in_full(source: Robustness) -> list[Block]:
    """Curves of every stress at more than one level, networks against each other, patches, pictures."""
    study = source.study
    blocks: list[Block] = [Heading(f"In full: {source.name}", 3)]
    for where, groups in study.groups.items():
        drawn = [
            panel
            for panel in panels(study, where)
            if len({x for line in panel.lines if line.label != PLAIN for x in line.x}) > 1
        ]
        titles = "; ".join(panel.title for panel in drawn)
        caption = f"{where} ({counted(len(groups), 'pair')}): {titles}"
        blocks += chart(drawn, caption, columns=2)
    blocks += [*versus_tables(study, 3), *harm_tables(study, 3)]
    return blocks + [_picture(path) for path in source.pictures]


def _picture(path: Path) -> Picture:
    """As a JPEG of at most `WIDEST` pixels, to keep the page small."""
    from PIL import Image

    image = Image.fromarray(read_image(path))
    if image.width > WIDEST:
        image = image.resize((WIDEST, round(image.height * WIDEST / image.width)))
    memory = io.BytesIO()
    image.save(memory, "JPEG", quality=85)
    caption = f"Stressed frames, flows and their difference ({path.stem.removeprefix('picture-')})"
    return Picture(memory.getvalue(), "image/jpeg", caption)
