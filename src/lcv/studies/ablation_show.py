"""An ablation to look at, at any moment: tables in Markdown or on a terminal, and one picture."""

from __future__ import annotations

from lcv.files import whole_file
from lcv.studies.ablation_study import Study
from lcv.studies.ablation_summary import Interval, Row, Table, summarise
from lcv.studies.charts import Bar, Line, interval_chart, line_chart, stacked
from lcv.studies.columns import REFERENCE
from lcv.train.log import read_log
from lcv.words import counted, printable

NULL = "null control"
HEAD = (
    "column",
    "seeds",
    "EPE, px",
    "Fl-all, %",
    "Δ EPE to continued, px",
    "95 % over seeds",
    "95 % over pairs",
)
NOTHING = "–"


def cells_of(row: Row) -> tuple[str, ...]:
    """A row of the table as texts, in the order of HEAD."""
    label = row.column.label + (f" ({NULL})" if row.null_control else "")
    failed = f", {row.failed} failed" if row.failed else ""
    if not row.values:
        return (label, f"0{failed}", *[NOTHING] * (len(HEAD) - 2))
    known = len(row.values) if row.column.trained else 1
    return (
        label,
        f"{len(row.seeds) if row.column.trained else 'all'}{failed}",
        _with_reach(row.mean, row.interval if known > 1 else None),
        f"{row.mean_fl:.2f}",
        NOTHING if row.difference is None else signed(row.difference),
        between(row.over_seeds),
        between(row.over_pairs),
    )


def _with_reach(mean: float, interval: Interval | None) -> str:
    return (
        f"{mean:.3f}" if interval is None else f"{mean:.3f} ± {(interval[1] - interval[0]) / 2:.3f}"
    )


def signed(value: float, decimals: int = 4) -> str:
    """+0.0120, −0.0030, 0.0000: a minus sign that is one, and no sign of nothing."""
    text = f"{value:+.{decimals}f}"
    return text[1:] if not text.strip("+-0.") else text.replace("-", "−")


def between(interval: Interval | None) -> str:
    if interval is None or not all(abs(end) < float("inf") for end in interval):
        return NOTHING
    return f"{signed(interval[0])} … {signed(interval[1])}"


def title_of(table: Table) -> str:
    return f"{table.test}, {table.checkpoint} checkpoint ({counted(table.pairs, 'pair')})"


def spread_words(table: Table) -> str:
    """What the differences are to be seen beside: seeds of one column, and the null control."""
    words = []
    if table.spread is not None:
        words.append(
            f"Seeds of “{REFERENCE}” lie apart by {table.spread:.4f} px (standard deviation)."
        )
    for row in table.rows:
        if row.null_control and row.difference is not None:
            apart = ", ".join(signed(value) for value in row.differences)
            words.append(
                f"“{row.column.label}” computes the same function: its difference, "
                f"{signed(row.difference)} px (by seed: {apart}), is what rounding grows to."
            )
    return " ".join(words)


def heading(study: Study) -> str:
    """What was done, in a few lines."""
    base, data = study.base, study.base.data
    source = (
        f"procedural pairs ({data.recipe}), validation and test with textures never trained on"
        if data.source == "procedural"
        else f"{' + '.join(part.dataset for part in data.parts)}, whole scenes held out"
    )
    height, width = data.size
    faster = base.optim.w_lr_factor
    of_w = "" if faster == 1 else f", of W {faster:g} times that"
    cells = list(study.cells())
    missing = [str(cell) for cell in cells if study.result(cell) is None]
    return (
        f"{study.model}, {base.steps} steps of {base.batch} at {height}×{width}, "
        f"{base.precision}, peak rate {base.optim.lr:g}{of_w}; {source}; seeds "
        f"{', '.join(map(str, study.seeds))}. {len(cells) - len(missing)} of {len(cells)} cells are done"
        + (f"; missing: {'; '.join(missing)}." if missing else ".")
    )


def markdown(study: Study) -> str:
    """Every table of the study."""
    blocks = [f"# Ablation\n\n{heading(study)}\n\nEPE is averaged over pairs; lower is better."]
    for table in summarise(study):
        lines = [f"## {title_of(table)}", "", f"| {' | '.join(HEAD)} |"]
        lines.append("|---" * len(HEAD) + "|")
        lines += [f"| {' | '.join(cells_of(row))} |" for row in table.rows]
        words = spread_words(table)
        blocks.append("\n".join([*lines, *(["", words] if words else [])]))
    notes = [f"- {c.label}: {c.note}" for c in study.columns if c.note]
    return "\n\n".join([*blocks, "\n".join(notes)]) + "\n"


def print_tables(study: Study) -> None:
    """Drawn on a terminal where rich is installed; elsewhere the Markdown."""
    try:
        from rich.console import Console
        from rich.table import Table as RichTable

        console = Console()
    except ImportError:
        print(markdown(study))
        return
    if not console.is_terminal:
        print(markdown(study))
        return
    console.print(printable(heading(study)), markup=False, highlight=False)
    for table in summarise(study):
        shown = RichTable(title=printable(title_of(table)), title_justify="left")
        for i, head in enumerate(HEAD):
            shown.add_column(head, justify="left" if i == 0 else "right")
        for row in table.rows:
            shown.add_row(*map(printable, cells_of(row)), style="dim" if row.null_control else "")
        console.print(shown)
        console.print(printable(spread_words(table)), markup=False, highlight=False)


def bars_of(table: Table) -> list[Bar]:
    """The differences of a table, to draw."""
    return [
        Bar(
            row.column.label,
            row.difference,
            row.over_seeds,
            row.differences,
            muted=row.null_control,
        )
        for row in table.rows
        if row.difference is not None and row.column.trained
    ]


def validation_curves(study: Study) -> list[Line]:
    """Validation EPE against steps, a line a column, averaged over the seeds that got there."""
    lines = []
    for column in study.columns:
        by_step: dict[int, list[float]] = {}
        for seed in study.seeds:
            path = study.folder_of(study.cell(column.name, seed)) / "log.jsonl"
            for entry in read_log(path) if path.exists() else []:
                if entry["kind"] == "validation":
                    by_step.setdefault(entry["step"], []).append(entry["validation/epe"])
        if by_step:
            steps = sorted(by_step)
            means = [sum(by_step[step]) / len(by_step[step]) for step in steps]
            lines.append(Line(column.label, [float(step) for step in steps], means))
    return lines


def plot(study: Study) -> str | None:
    """Differences at the best and at the last checkpoint, and validation over steps, as SVG."""
    pictures = []
    for table in summarise(study):
        bars = bars_of(table)
        if bars:
            title = f"Δ EPE to “{REFERENCE}”: {title_of(table)}"
            pictures.append(interval_chart(bars, title, "px; dots are seeds, bars 95 % over seeds"))
    curves = validation_curves(study)
    if curves:
        pictures.append(line_chart(curves, "Validation", "steps", "EPE, px"))
    return stacked(pictures).svg() if pictures else None


def write(study: Study) -> list[str]:
    """table.md and plot.svg into the study's folder; their names."""
    written = ["table.md"]
    with whole_file(study.folder / "table.md", overwrite=True) as temporary:
        temporary.write_text(markdown(study), encoding="utf-8")
    picture = plot(study)
    if picture is not None:
        with whole_file(study.folder / "plot.svg", overwrite=True) as temporary:
            temporary.write_text(picture, encoding="utf-8")
        written.append("plot.svg")
    return written
