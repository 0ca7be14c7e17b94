"""Pieces of a report, each written as HTML or Markdown: headings, texts, tables, pictures.

Texts from files may hold anything, so every text is escaped.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Protocol

from lcv.visual.plots import NO_PLOTS, Bars, Curves, svg

MARKS = {"paper": "paper", "here": "measured here", "muted": ""}
"""Kinds of rows, and the words that tell them apart in Markdown. On a page "paper" and "muted" are
grey, "here" has a coloured ground."""
LONGEST = 30
"""Cells with more characters wrap."""


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
    """A list, with a lead of a few words."""

    points: tuple[str, ...]
    lead: str = ""

    def html(self) -> str:
        lead = f'<p class="lead">{escape(self.lead)}</p>' if self.lead else ""
        items = "".join(f"<li>{escape(point)}</li>" for point in self.points)
        return f'<div class="points">{lead}<ul>{items}</ul></div>'

    def markdown(self) -> str:
        lead = [_plain(self.lead), ""] if self.lead else []
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
            long = (' class="words"' if len(text) > LONGEST else "" for text in rest)
            cells = "".join(
                f"<td{wrap}>{escape(text)}</td>" for wrap, text in zip(long, rest, strict=True)
            )
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
class Picture:
    """A picture in the page; Markdown only names it. kind: image/jpeg, image/svg+xml, …"""

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
        return f"*Figure: {_plain(self.caption)} (on the page).*"


def chart(panels: Sequence[Curves | Bars], caption: str, **options: Any) -> list[Block]:
    """The panels as a picture, see `plots.draw`; a sentence where matplotlib is missing."""
    if not panels:
        return []
    drawn = svg(panels, **options)
    if drawn is None:
        return [Words(f"{caption}: {NO_PLOTS}")]
    return [Picture(drawn.encode(), "image/svg+xml", caption)]


@dataclass(frozen=True)
class Folded:
    """Blocks behind a line to click on."""

    summary: str
    blocks: tuple[Block, ...]

    def html(self) -> str:
        inner = "".join(block.html() for block in self.blocks)
        return f"<details><summary>{escape(self.summary)}</summary>{inner}</details>"

    def markdown(self) -> str:
        return "\n\n".join(block.markdown() for block in self.blocks)


def markdown(title: str, subtitle: str, blocks: Sequence[Block]) -> str:
    """A whole Markdown file."""
    parts = [f"# {title}", subtitle, *(block.markdown() for block in blocks)]
    return "\n\n".join(parts) + "\n"


def _mark(row: Row) -> str:
    """Whose row it is, unless its name begins with that."""
    mark = MARKS.get(row.kind, "")
    return f" ({mark})" if mark and not row.cells[0].startswith(mark) else ""


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_plain(cell).replace('|', chr(92) + '|') for cell in cells)} |"


def _plain(text: str) -> str:
    """One line in which no character is markup."""
    return re.sub(r"([\\`*_\[\]<>#])", r"\\\1", " ".join(text.split()))
