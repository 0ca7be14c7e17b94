"""What a report is made of, and how each piece is written in HTML and in Markdown.

Whatever comes from a file may hold anything, so every text is escaped on its way out.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Protocol

from lcv.studies.charts import Chart

MARKS = {"paper": "paper", "here": "measured here", "muted": ""}
"""Kinds of rows, and how Markdown, which has no colours, tells them apart: grey on a page are those
of the paper and what is not to draw the eye; on a coloured ground those of ours."""
LONGEST = 30
"""Characters that a cell has in one line."""


class Block(Protocol):
    """A piece of a report."""

    def html(self) -> str: ...

    def markdown(self) -> str: ...


@dataclass(frozen=True)
class Heading:
    text: str
    level: int = 2

    @property
    def anchor(self) -> str:
        return re.sub(r"[^a-z0-9]+", "-", self.text.lower()).strip("-") or "part"

    def html(self) -> str:
        return f'<h{self.level} id="{self.anchor}">{escape(self.text)}</h{self.level}>'

    def markdown(self) -> str:
        return f"{'#' * self.level} {_plain(self.text)}"


@dataclass(frozen=True)
class Words:
    """A paragraph."""

    text: str

    def html(self) -> str:
        return f"<p>{escape(self.text)}</p>"

    def markdown(self) -> str:
        return _plain(self.text)


@dataclass(frozen=True)
class Points:
    """A list; with a heading of a few words, what differs between the paper's protocol and ours."""

    points: tuple[str, ...]
    lead: str = ""

    def html(self) -> str:
        lead = f'<p class="lead">{escape(self.lead)}</p>' if self.lead else ""
        items = "".join(f"<li>{escape(point)}</li>" for point in self.points)
        return f'<div class="points">{lead}<ul>{items}</ul></div>'

    def markdown(self) -> str:
        lead = [f"{_plain(self.lead)}", ""] if self.lead else []
        return "\n".join([*lead, *(f"- {_plain(point)}" for point in self.points)])


@dataclass(frozen=True)
class Row:
    """kind: a key of MARKS, or "" where there is nothing to tell apart."""

    cells: tuple[str, ...]
    kind: str = ""


@dataclass(frozen=True)
class TableBlock:
    """A table whose first column names its rows; numbers stand right, longer words wrap."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[Row, ...]

    def html(self) -> str:
        head = "".join(f'<th scope="col">{escape(text)}</th>' for text in self.head)
        body = []
        for row in self.rows:
            first, *rest = row.cells
            cells = "".join(f"<td{_wrapped(text)}>{escape(text)}</td>" for text in rest)
            named = f' class="{row.kind}"' if row.kind else ""
            body.append(f'<tr{named}><th scope="row">{escape(first)}</th>{cells}</tr>')
        return (
            f'<figure class="table"><figcaption>{escape(self.caption)}</figcaption>'
            f'<div class="wide"><table><thead><tr>{head}</tr></thead>'
            f"<tbody>{''.join(body)}</tbody></table></div></figure>"
        )

    def markdown(self) -> str:
        lines = [f"**{_plain(self.caption)}**", "", _line(self.head)]
        lines.append("|---" * len(self.head) + "|")
        for row in self.rows:
            first, *rest = row.cells
            lines.append(_line((f"{first}{_mark(row)}", *rest)))
        return "\n".join(lines)


@dataclass(frozen=True)
class ChartBlock:
    chart: Chart
    title: str

    def html(self) -> str:
        return f'<figure class="chart">{self.chart.inline(self.title)}</figure>'

    def markdown(self) -> str:
        return f"*Figure: {_plain(self.title)} (on the page).*"


@dataclass(frozen=True)
class Picture:
    """A picture of so many bytes, of the kind image/png or image/jpeg."""

    content: bytes
    kind: str
    caption: str

    def html(self) -> str:
        data = base64.b64encode(self.content).decode("ascii")
        caption = escape(self.caption)
        return (
            f'<figure class="picture"><img alt="{caption}" src="data:{self.kind};base64,{data}">'
            f"<figcaption>{caption}</figcaption></figure>"
        )

    def markdown(self) -> str:
        return f"*Picture: {_plain(self.caption)} (on the page).*"


@dataclass(frozen=True)
class Beside:
    """Charts next to each other where the page is wide enough."""

    blocks: tuple[ChartBlock, ...]

    def html(self) -> str:
        return f'<div class="beside">{"".join(block.html() for block in self.blocks)}</div>'

    def markdown(self) -> str:
        return "\n\n".join(block.markdown() for block in self.blocks)


@dataclass(frozen=True)
class Folded:
    """Blocks that are shown when asked for."""

    summary: str
    blocks: tuple[Block, ...]

    def html(self) -> str:
        inner = "".join(block.html() for block in self.blocks)
        return f"<details><summary>{escape(self.summary)}</summary>{inner}</details>"

    def markdown(self) -> str:
        return "\n\n".join(block.markdown() for block in self.blocks)


def contents(blocks: Sequence[Block]) -> list[tuple[str, str]]:
    """Anchors and texts of the headings of the second level."""
    return [(b.anchor, b.text) for b in blocks if isinstance(b, Heading) and b.level == 2]


def _mark(row: Row) -> str:
    """Whose a row is, unless its name begins with that."""
    mark = MARKS.get(row.kind, "")
    return f" ({mark})" if mark and not row.cells[0].startswith(mark) else ""


def _wrapped(cell: str) -> str:
    """The class of a cell too long for one line; numbers with their intervals are not."""
    return ' class="words"' if len(cell) > LONGEST else ""


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_plain(cell).replace('|', chr(92) + '|') for cell in cells)} |"


def _plain(text: str) -> str:
    """A text in which nothing is markup: no HTML, no line of its own, no links."""
    text = " ".join(text.split())
    return re.sub(r"([\\`*_\[\]<>#])", r"\\\1", text)
