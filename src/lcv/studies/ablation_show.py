"""Show an ablation at any time: tables in Markdown or on a terminal, and one plot."""

from __future__ import annotations

from lcv.evaluate.tables import Grid
from lcv.files import write_text
from lcv.studies import blocks
from lcv.studies.ablation_study import Study
from lcv.studies.ablation_summary import Interval, Row, Table, summarise
from lcv.studies.columns import REFERENCE
from lcv.train.log import read_log
from lcv.visual.plots import NO_PLOTS, Bar, Bars, Curves, Line, svg
from lcv.words import counted

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
    label = row.column.label + (" (null control)" if row.null_control else "")
    failed = f", {row.failed} failed" if row.failed else ""
    if not row.values:
        return (label, f"0{failed}", *[NOTHING] * (len(HEAD) - 2))
    reach = "" if row.interval is None else f" ± {(row.interval[1] - row.interval[0]) / 2:.3f}"
    return (
        label,
        f"{len(row.seeds) if row.column.trained else 'all'}{failed}",
        f"{row.mean:.3f}{reach if row.column.trained else ''}",
        f"{row.mean_fl:.2f}",
        NOTHING if row.difference is None else signed(row.difference),
        between(row.over_seeds),
        between(row.over_pairs),
    )


def signed(value: float, decimals: int = 4) -> str:
    """+0.0120, −0.0030, 0.0000: with a real minus sign, and no sign for zero."""
    text = f"{value:+.{decimals}f}"
    return text[1:] if not text.strip("+-0.") else text.replace("-", "−")


def between(interval: Interval | None) -> str:
    if interval is None or not all(abs(end) < float("inf") for end in interval):
        return NOTHING
    return f"{signed(interval[0])} … {signed(interval[1])}"


def title_of(table: Table) -> str:
    return f"{table.test}, {table.checkpoint} checkpoint ({counted(table.pairs, 'pair')})"


def spread_words(table: Table) -> str:
    """What to compare the differences with: the spread of seeds, and the null control."""
    words = []
    if table.spread is not None:
        words.append(
            f"The standard deviation of “{REFERENCE}” over seeds is {table.spread:.4f} px."
        )
    for row in table.rows:
        if row.null_control and row.difference is not None:
            apart = ", ".join(signed(value) for value in row.differences)
            words.append(
                f"“{row.column.label}” computes the same function: its difference, "
                f"{signed(row.difference)} px (by seed: {apart}), is what rounding errors grow to."
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


def table_blocks(table: Table) -> list[blocks.Block]:
    """The table and what to compare its differences with."""
    rows = (blocks.Row(cells_of(row), "muted" if row.null_control else "") for row in table.rows)
    words = spread_words(table)
    shown = blocks.TableBlock(title_of(table), HEAD, tuple(rows))
    return [shown, *([blocks.Words(words)] if words else [])]


def notes_of(study: Study) -> blocks.Points:
    return blocks.Points(tuple(f"{c.label}: {c.note}" for c in study.columns if c.note))


def markdown(study: Study) -> str:
    """Every table of the study."""
    shown = [block for table in summarise(study) for block in table_blocks(table)]
    intro = f"{heading(study)}\n\nEPE is averaged over pairs; lower is better."
    return blocks.markdown("Ablation", intro, [*shown, notes_of(study)])


def print_tables(study: Study) -> None:
    """The tables, for a terminal or a pipe."""
    print(heading(study))
    for table in summarise(study):
        rows = tuple(map(cells_of, table.rows))
        Grid(title_of(table), HEAD, rows, spread_words(table), words=1).show()


def panels(study: Study) -> list[Bars | Curves]:
    """The differences of every table, and validation EPE over the steps."""
    found: list[Bars | Curves] = []
    for table in summarise(study):
        bars = [
            Bar(row.column.label, row.difference, row.over_seeds, row.differences, row.null_control)
            for row in table.rows
            if row.difference is not None and row.column.trained
        ]
        if bars:
            title = f"Δ EPE to “{REFERENCE}”: {title_of(table)}"
            found.append(Bars(title, "px; dots are seeds, bars 95 % over seeds", bars))
    lines = _validation(study)
    if lines:
        found.append(Curves("Validation, mean over seeds", "steps", "EPE, px", lines))
    return found


def _validation(study: Study) -> list[Line]:
    """A line a column, averaged over the seeds that have been validated at a step."""
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
            lines.append(Line(column.label, steps, means))
    return lines


def write(study: Study) -> list[str]:
    """Write table.md and plot.svg into the study's folder; what was written, or why not."""
    files = {"table.md": markdown(study)}
    drawn = panels(study)
    plot = svg(drawn) if drawn else None
    if plot is not None:
        files["plot.svg"] = plot
    for name, text in files.items():
        write_text(study.folder / name, text, overwrite=True)
    return [*files, *([NO_PLOTS] if drawn and plot is None else [])]
