"""Table 3 of the paper next to ours, then ours in full: intervals, differences, plots."""

from __future__ import annotations

from collections.abc import Sequence

from lcv.studies import ablation_show as show
from lcv.studies import paper
from lcv.studies.ablation_summary import Table, summarise
from lcv.studies.blocks import Block, Folded, Heading, Points, Row, TableBlock, chart
from lcv.studies.columns import BY_NAME, PAPER, REFERENCE
from lcv.studies.report_sources import Ablation


def ablation(sources: Sequence[Ablation]) -> list[Block]:
    """The paper's seven columns as columns; ours below them, three rows for every test."""
    head = ("", *(BY_NAME[name].label for name in PAPER))
    printed = [paper.ABLATION[name] for name in PAPER]
    reference = paper.ABLATION[REFERENCE][1]
    apart = [
        paper.NOT_GIVEN if name == REFERENCE else show.signed(epe - reference, 3)
        for name, (_, epe) in zip(PAPER, printed, strict=True)
    ]
    rows = [
        Row(("paper, VCN: Fl-all %", *(f"{fl:.1f}" for fl, _ in printed)), "paper"),
        Row(("paper, VCN: AEPE px", *(f"{epe:.3f}" for _, epe in printed)), "paper"),
        Row(("paper: Δ AEPE to continued, px", *apart), "paper"),
    ]
    differs: list[str] = []
    full: list[Block] = []
    for source in sources:
        tables = summarise(source.study)
        for table in tables:
            if table.checkpoint == "best" and any(row.values for row in table.rows):
                rows += _rows(source, table)
        differs += _differences(source, tables)
        full += _in_full(source, tables)
    title = Heading("Table 3: ablation")
    block = TableBlock("The paper's seven columns", head, tuple(rows))
    notes = Points(paper.ABLATION_NOTES)
    if not sources:
        return [title, Folded("The paper's; none measured here", (block, notes))]
    return [title, block, notes, Points(tuple(differs), "What differs here"), *full]


def _rows(source: Ablation, table: Table) -> list[Row]:
    """Fl-all, EPE and its difference of one test, in the order of the paper's columns."""
    found = {row.column.name: row for row in table.rows if row.values}

    def cells(words: str, values: dict[str, str]) -> Row:
        texts = (values.get(name, paper.NOT_GIVEN) for name in PAPER)
        return Row((f"{source.study.model}, {table.test}: {words}", *texts), "here")

    differences = {n: r.difference for n, r in found.items() if r.difference is not None}
    return [
        cells("Fl-all %", {name: f"{row.mean_fl:.2f}" for name, row in found.items()}),
        cells("AEPE px", {name: f"{row.mean:.3f}" for name, row in found.items()}),
        cells("Δ AEPE, px", {name: show.signed(value, 3) for name, value in differences.items()}),
    ]


def _differences(source: Ablation, tables: Sequence[Table]) -> list[str]:
    seeds = len(source.study.seeds)
    said = [
        f"{source.name}: {show.heading(source.study)} Best checkpoints, chosen on pairs that are not "
        f"reported; means over {seeds} seed{'s' * (seeds != 1)}, AEPE averaged over pairs."
    ]
    rows = [row for table in tables for row in table.rows if row.values]
    nulls = dict.fromkeys(row.column.label for row in rows if row.null_control)
    if nulls:
        said.append(f"{source.name}: null control here: {'; '.join(nulls)}.")
    return said


def _in_full(source: Ablation, tables: Sequence[Table]) -> list[Block]:
    """All columns at both checkpoints, with intervals; the differences and curves drawn."""
    found: list[Block] = [Heading(f"In full: {source.name}", 3)]
    for table in tables:
        shown = show.table_blocks(table)
        found += shown if table.checkpoint == "best" else [Folded("Last checkpoint", tuple(shown))]
    drawn = show.panels(source.study)
    caption = f"{source.name}: {'; '.join(panel.title for panel in drawn)}"
    return [*found, *chart(drawn, caption), show.notes_of(source.study)]
