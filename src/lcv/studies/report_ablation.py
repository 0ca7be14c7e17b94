"""Table 3 of the paper with ours beside, then ours in full: intervals, differences, plots."""

from __future__ import annotations

from collections.abc import Sequence

from lcv.studies import ablation_show as show
from lcv.studies import paper
from lcv.studies.ablation_study import Study
from lcv.studies.ablation_summary import Table, summarise
from lcv.studies.charts import interval_chart, line_chart
from lcv.studies.columns import BY_NAME, PAPER, REFERENCE
from lcv.studies.report_blocks import (
    Block,
    ChartBlock,
    Folded,
    Heading,
    Points,
    Row,
    TableBlock,
    Words,
)
from lcv.studies.report_sources import Ablation


def ablation(sources: Sequence[Ablation]) -> list[Block]:
    """The paper's seven columns as columns; ours below them, a row each number."""
    head = ("", *(BY_NAME[name].label for name in PAPER))
    reference = paper.ABLATION[REFERENCE]
    rows = [
        Row(("paper, VCN: Fl-all %", *(f"{paper.ABLATION[n][0]:.1f}" for n in PAPER)), "paper"),
        Row(("paper, VCN: AEPE px", *(f"{paper.ABLATION[n][1]:.3f}" for n in PAPER)), "paper"),
        Row(("paper: Δ AEPE to continued, px", *_paper_differences(reference[1])), "paper"),
    ]
    differs: list[str] = []
    for source in sources:
        for table in summarise(source.study):
            if table.checkpoint == "best" and any(row.values for row in table.rows):
                rows += _rows(source, table)
        differs += _differences(source)
    title = Heading("Table 3: ablation")
    block = TableBlock("The paper's seven columns", head, tuple(rows))
    notes = Points(paper.ABLATION_NOTES)
    if not sources:
        return [title, Folded("The paper's; none measured here", (block, notes))]
    blocks: list[Block] = [title, block, notes, Points(tuple(differs), "What differs here")]
    for source in sources:
        blocks += in_full(source)
    return blocks


def _paper_differences(reference: float) -> list[str]:
    return [
        paper.NOT_GIVEN if n == REFERENCE else show.signed(paper.ABLATION[n][1] - reference, 3)
        for n in PAPER
    ]


def _rows(source: Ablation, table: Table) -> list[Row]:
    """Fl-all, EPE and its difference of one test, in the order of the paper's columns."""
    found = {row.column.name: row for row in table.rows if row.values}
    who = f"{source.study.model}, {table.test}"

    def cells(words: str, values: dict[str, str]) -> Row:
        texts = (values.get(name, paper.NOT_GIVEN) for name in PAPER)
        return Row((f"{who}: {words}", *texts), "here")

    differences = {n: r.difference for n, r in found.items() if r.difference is not None}
    return [
        cells("Fl-all %", {name: f"{row.mean_fl:.2f}" for name, row in found.items()}),
        cells("AEPE px", {name: f"{row.mean:.3f}" for name, row in found.items()}),
        cells("Δ AEPE, px", {name: show.signed(value, 3) for name, value in differences.items()}),
    ]


def _differences(source: Ablation) -> list[str]:
    study = source.study
    seeds = len(study.seeds)
    said = [
        f"{source.name}: {show.heading(study)} Best checkpoints, chosen on pairs that are not "
        f"reported; means over {seeds} seed{'s' * (seeds != 1)}, AEPE averaged over pairs."
    ]
    rows = [row for table in summarise(study) for row in table.rows if row.values]
    nulls = dict.fromkeys(row.column.label for row in rows if row.null_control)
    if nulls:
        said.append(f"{source.name}: null control here: {'; '.join(nulls)}.")
    return said


def in_full(source: Ablation) -> list[Block]:
    """All columns, both checkpoints, with intervals; the differences and the curves drawn."""
    study = source.study
    blocks: list[Block] = [Heading(f"In full: {source.name}", 3)]
    for table in summarise(study):
        rows = tuple(
            Row(show.cells_of(row), "muted" if row.null_control else "") for row in table.rows
        )
        shown: list[Block] = [TableBlock(show.title_of(table), show.HEAD, rows)]
        words = show.spread_words(table)
        shown += [Words(words)] if words else []
        bars = show.bars_of(table)
        if bars:
            title = f"Δ EPE to “{REFERENCE}”: {show.title_of(table)}"
            chart = interval_chart(bars, title, "px; dots are seeds, bars 95 % over seeds")
            shown.append(ChartBlock(chart, title))
        blocks += shown if table.checkpoint == "best" else [Folded("Last checkpoint", tuple(shown))]
    curves = show.validation_curves(study)
    if curves:
        title = f"Validation in {source.name}, mean over seeds"
        blocks.append(ChartBlock(line_chart(curves, title, "steps", "EPE, px"), title))
    return [*blocks, Points(notes_of(study))]


def notes_of(study: Study) -> tuple[str, ...]:
    return tuple(f"{column.label}: {column.note}" for column in study.columns)
