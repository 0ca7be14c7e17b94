"""Pieces of a report: each exactly as it is written, in HTML and in Markdown."""

from __future__ import annotations

import pytest

from lcv.studies.blocks import (
    LONGEST,
    Folded,
    Heading,
    Picture,
    Points,
    Row,
    TableBlock,
    Words,
    chart,
    markdown,
)
from lcv.visual.plots import Curves, Line

TABLE = TableBlock(
    "Cap & tion",
    ("name", "a|b"),
    (
        Row(("one", "1")),
        Row(("two", "w" * LONGEST), "here"),
        Row(("paper, three", "w" * (LONGEST + 1)), "paper"),
        Row(("four", "4"), "muted"),
    ),
)
TABLE_HTML = (
    '<figure class="table"><figcaption>Cap &amp; tion</figcaption><div class="wide"><table><thead><tr>'
    '<th scope="col">name</th><th scope="col">a|b</th></tr></thead><tbody>'
    '<tr><th scope="row">one</th><td>1</td></tr>'
    f'<tr class="here"><th scope="row">two</th><td>{"w" * 30}</td></tr>'
    f'<tr class="paper"><th scope="row">paper, three</th><td class="words">{"w" * 31}</td></tr>'
    '<tr class="muted"><th scope="row">four</th><td>4</td></tr></tbody></table></div></figure>'
)
TABLE_MARKDOWN = f"""**Cap & tion**

| name | a\\|b |
|---|---|
| one | 1 |
| two (measured here) | {"w" * 30} |
| paper, three | {"w" * 31} |
| four | 4 |"""


@pytest.mark.parametrize(
    ("block", "html", "text"),
    [
        (
            Heading("Table 3: <W>"),
            '<h2 id="table-3-w">Table 3: &lt;W&gt;</h2>',
            "## Table 3: \\<W\\>",
        ),
        (Heading("?!", 3), '<h3 id="part">?!</h3>', "### ?!"),
        (Words("a *b*\n& c"), "<p>a *b*\n&amp; c</p>", "a \\*b\\* & c"),
        (
            Points(("one", "two_"), "Lead"),
            '<div class="points"><p class="lead">Lead</p><ul><li>one</li><li>two_</li></ul></div>',
            "Lead\n\n- one\n- two\\_",
        ),
        (Points(("one",)), '<div class="points"><ul><li>one</li></ul></div>', "- one"),
        (TABLE, TABLE_HTML, TABLE_MARKDOWN),
        (
            Picture(b"abc", "image/png", 'a "b"'),
            '<figure class="picture"><img alt="a &quot;b&quot;" src="data:image/png;base64,YWJj">'
            "<figcaption>a &quot;b&quot;</figcaption></figure>",
            '*Figure: a "b" (on the page).*',
        ),
        (
            Folded("More & more", (Words("a"), Words("b"))),
            "<details><summary>More &amp; more</summary><p>a</p><p>b</p></details>",
            "a\n\nb",
        ),
    ],
)
def test_every_piece_is_written_exactly_so(block, html, text):
    assert block.html() == html
    assert block.markdown() == text


def test_a_markdown_file_has_a_title_and_ends_with_a_line():
    assert markdown("T", "sub", [Words("a"), Words("b")]) == "# T\n\nsub\n\na\n\nb\n"


def test_a_chart_is_a_picture_or_a_sentence_or_nothing(monkeypatch):
    assert chart([], "caption") == []
    panels = [Curves("title", "x", "y", [Line("line", [1, 2], [3, 4])])]
    given = []

    def drawn(panels, **options):
        given.append((panels, options))
        return "<svg>é"

    monkeypatch.setattr("lcv.studies.blocks.svg", drawn)
    assert chart(panels, "caption", columns=2) == [
        Picture("<svg>é".encode(), "image/svg+xml", "caption")
    ]
    assert given == [(panels, {"columns": 2})]
    monkeypatch.setattr("lcv.studies.blocks.svg", lambda panels: None)
    (words,) = chart(panels, "caption")
    assert words.text.startswith("caption: no plots")
