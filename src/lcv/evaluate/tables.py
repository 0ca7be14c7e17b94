"""Results as tables for a terminal, every number with its name and its unit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lcv.evaluate.compare import Difference
from lcv.evaluate.metrics import METRICS
from lcv.evaluate.protocols import PROTOCOLS, STORAGE, VALIDITY, Protocol, call_words
from lcv.evaluate.results import DatasetResult, Result
from lcv.words import one_line

if TYPE_CHECKING:
    from rich.table import Table

FEW = 10


@dataclass(frozen=True)
class Grid:
    """A table before it is drawn. words: columns that are set to the left; rule: rows above it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str
    words: int = 2
    rule: int = 0

    def width(self) -> int:
        """How many letters wide it is when it is drawn with frames."""
        return sum(self._widths()) + 3 * len(self.columns) + 1

    def _lines(self) -> list[list[str]]:
        return [[one_line(cell) for cell in line] for line in (self.columns, *self.rows)]

    def _widths(self) -> list[int]:
        lines = self._lines()
        return [max(len(line[i]) for line in lines) for i in range(len(self.columns))]

    def text(self) -> str:
        """In plain letters, for files and where rich is not."""
        lines, widths = self._lines(), self._widths()
        drawn = [
            "  ".join(
                cell.ljust(width) if i < self.words else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        across = "-" * (sum(widths) + 2 * len(widths) - 2)
        if self.rule:
            drawn.insert(1 + self.rule, across)
        return "\n".join(
            [one_line(self.title), drawn[0], across, *drawn[1:], one_line(self.caption), ""]
        )

    def show(self) -> None:
        """Drawn on a terminal that is wide enough; else in plain letters, which are never cut."""
        try:
            from rich.console import Console
        except ImportError:
            print(self.text())
            return
        console = Console()
        if console.is_terminal and self.width() <= console.width:
            console.print(self.rich())
        else:
            print(self.text())

    def rich(self) -> Table:
        """For a terminal."""
        from rich.table import Table

        table = Table(
            title=one_line(self.title),
            caption=one_line(self.caption),
            title_justify="left",
            caption_justify="left",
        )
        columns, *rows = self._lines()
        for i, name in enumerate(columns):
            table.add_column(name, justify="left" if i < self.words else "right")
        for i, row in enumerate(rows, start=1):
            table.add_row(*row, end_section=i == self.rule)
        return table


def number(value: float, unit: str) -> str:
    """Pixels to a thousandth, shares to a hundredth of a percent."""
    return f"{value:.3f}" if unit == "px" else f"{value:.2f}"


def dataset_tables(results: Sequence[Result]) -> list[Grid]:
    """One table a dataset: a row a metric, a column a result; what the protocol quotes first."""
    tables = []
    for dataset in dict.fromkeys(name for result in results for name in result.datasets):
        here = [(r, r.datasets[dataset]) for r in results if dataset in r.datasets]
        protocol, each = here[0][0].protocol, here[0][1]
        quoted, others = _rows(protocol.setting(dataset).headline, [each for _, each in here])
        rows = []
        for name in (*quoted, *others):
            metric = METRICS[name]
            cells = [
                number(each.metrics[name], metric.unit) if name in each.metrics else "–"
                for _, each in here
            ]
            rows.append((metric.title, metric.unit, *cells))
        tables.append(
            Grid(
                f"{dataset}: {len(each.pairs)} pair{'s' if len(each.pairs) > 1 else ''}, "
                f"protocol {protocol.name}",
                ("metric", "unit", *(_who(result, each) for result, each in here)),
                tuple(rows),
                _how(protocol, each),
                rule=len(quoted),
            )
        )
    return tables


def _rows(headline: Sequence[str], here: Sequence[DatasetResult]) -> tuple[list[str], list[str]]:
    """Names of what the protocol quotes, then of the rest; one that says the same is left out."""
    there = {name for each in here for name in each.metrics}
    quoted: list[str] = []
    others: list[str] = []
    seen = set()
    for name in (*headline, *METRICS):
        metric = METRICS[name]
        meaning = metric.measure, metric.region, metric.per_image
        if name in there and meaning not in seen:
            seen.add(meaning)
            (quoted if name in headline else others).append(name)
    return quoted, others


def _who(result: Result, each: DatasetResult) -> str:
    """The network and the weights that it had on this dataset."""
    model = str(each.model.get("name", result.label or "value"))
    return f"{model}, {each.weights['file']}" if each.weights else model


def _how(protocol: Protocol, each: DatasetResult) -> str:
    """How the network was called, in a line."""
    words = [call_words(each.settings), protocol.precision]
    if protocol.storage != "exact":
        words.append(STORAGE[protocol.storage])
    if protocol.limit is not None:
        words.append(f"true flow under {protocol.limit:g} px")
    if protocol.validity != "known":
        words.append(VALIDITY[protocol.validity])
    if protocol.warm_start:
        words.append("warm start")
    return "; ".join(words) + ". Above the line: what the protocol quotes."


def comparison_table(
    first: Result, second: Result, rows: Sequence[Difference], by_scene: bool = False
) -> Grid:
    """Second minus first, a row a dataset and metric."""
    caption = (
        f"Means over pairs of each pair's own value. Interval: bootstrap over "
        f"{'scenes' if by_scene else 'pairs'}. p: sign test, pair by pair."
    )
    if any(row.pairs < FEW for row in rows):
        caption += f" *: fewer than {FEW} pairs, too few for an interval to be relied on."
    return Grid(
        f"{second.label or 'second'} (B) against {first.label or 'first'} (A), "
        f"protocol {first.protocol.name}",
        ("dataset", "metric", "pairs", "A", "B", "B − A", "95 % interval", "B <, =, > A", "p"),
        tuple(map(_difference_row, rows)),
        caption,
    )


def _difference_row(row: Difference) -> tuple[str, ...]:
    known = not math.isinf(row.low)
    interval = f"[{row.low:+.4f}, {row.high:+.4f}]" if known else "unknown"
    return (
        row.dataset,
        f"{METRICS[row.metric].title}, {row.unit}",
        str(row.pairs),
        number(row.first, row.unit),
        number(row.second, row.unit),
        f"{row.mean:+.4f}",
        interval + (" *" if row.pairs < FEW else ""),
        f"{row.smaller}, {row.equal}, {row.larger}",
        f"{row.sign_p:.3g}",
    )


def protocol_text() -> str:
    """Every protocol in a few lines: source, averaging, and how a dataset is called."""
    lines = []
    for protocol in PROTOCOLS.values():
        lines += [f"{protocol.name}: {protocol.source}", f"  averages: {protocol.averaging}"]
        for name, s in protocol.settings.items():
            rest = "any other" if len(protocol.settings) > 1 else "all datasets"
            which = rest if name == "*" else name
            lines.append(f"  {which}: {call_words(vars(s))}; quotes {', '.join(s.headline)}")
        limit = protocol.limit
        small = "" if limit is None else f" and under {limit:g} px in both components"
        lines.append(f"  counts {VALIDITY[protocol.validity]}{small}")
        lines.append(f"  measures {STORAGE[protocol.storage]}; computed in {protocol.precision}")
    return "\n".join(lines)
