"""Pieces of HTML: names are only letters, and a piece takes the same room before its result."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from lcv.demo import pieces
from lcv.demo.learned import Learned
from lcv.demo.networks import MODELS
from lcv.demo.work import Shown
from lcv.predict.result import FlowResult

SIZE = (30, 40)


def test_a_name_cannot_write_html(monkeypatch):
    bad = '<img src=x onerror="alert(1)">'
    monkeypatch.setitem(MODELS, bad, "your own")
    made = [
        pieces.results(bad, SIZE, truth=True),
        pieces.figure(bad, bad, SIZE, "/a.png"),
        pieces.compare(SIZE, {"frame 1": "/a.png", bad: "/b.png"}, "/c.png"),
        pieces.status("", bad),
        pieces.clips({bad: "/a.mp4"}),
    ]
    for html in made:
        assert "<img src=x" not in html
        assert 'onerror="' not in html


@pytest.mark.parametrize("truth", [True, False])
def test_results_have_the_lines_and_boxes_that_were_reserved(truth):
    shown = Shown("raft-small", FlowResult(np.zeros((*SIZE, 2))), {}, 0.5, 0.25, 1.0, 2.0)
    urls = {name: f"/{name}" for name in (*pieces.KINDS, "flo")}

    def skeleton(html: str) -> list[str]:
        found = re.findall(r"<(section|h3|p|figure|figcaption)\b|(aspect-ratio: [^\";]*)", html)
        return [tag or ratio for tag, ratio in found]

    before = pieces.results("raft-small", SIZE, truth)
    after = pieces.results("raft-small", SIZE, truth, shown, urls)
    assert skeleton(before) == skeleton(after)
    assert before.count("<figure") == 3 + truth
    assert "raft-small: arrows ×2" in after
    assert 'download="raft-small.flo"' in after


def test_a_figure_before_and_after():
    assert pieces.figure("flow-a", "a & b", SIZE) == (
        '<figure class="picture" id="flow-a">'
        '<div class="box" style="aspect-ratio: 40 / 30"></div>'
        '<figcaption>a &amp; b <span class="waiting">PNG</span></figcaption></figure>'
    )
    assert pieces.figure("flow-a", "a & b", SIZE, "/x.png") == (
        '<figure class="picture" id="flow-a">'
        '<a class="box" style="aspect-ratio: 40 / 30" href="/x.png" target="_blank">'
        '<img src="/x.png" alt="a &amp; b" width="40" height="30"></a>'
        '<figcaption>a &amp; b <a href="/x.png" download="flow-a.png" '
        'aria-label="Download a &amp; b">PNG</a></figcaption></figure>'
    )


def test_the_frames_and_the_truth():
    assert pieces.inputs(SIZE, truth=False).count("<figure") == 2
    html = pieces.inputs(SIZE, truth=True, urls={"second": "/2.png"})
    ids = re.findall(r'id="(\w+)"', html)
    assert ids == ["first", "second", "truth"]
    assert re.findall(r'<img src="([^"]*)" alt="([^"]*)"', html) == [("/2.png", "frame 2")]


def test_the_numbers_of_a_network():
    shown = Shown("raft-small", FlowResult(np.zeros((*SIZE, 2))), {}, 1.257, 0.123, 1.0, 1.0)
    html = pieces.results("raft-small", SIZE, True, shown, {"flo": "/a.flo"})
    numbers = "<strong>EPE 0.12 px</strong> · 1.26 s"
    assert f'<p id="numbers-raft-small">{numbers}</p>' in html
    assert "raft-small: arrows <" in html, "as long as the motion"
    assert 'id="flow-raft-small"' in html
    blind = pieces.results("raft-small", SIZE, False, replace(shown, epe=None), {"flo": "/a.flo"})
    assert '<p id="numbers-raft-small">1.26 s</p>' in blind
    assert '<p id="numbers-raft-small">…</p>' in pieces.results("raft-small", SIZE, True)


@pytest.mark.parametrize(("size", "width"), [((30, 40), 480), ((40, 40), 480), ((40, 30), 360)])
def test_two_pictures_in_one_place(size, width):
    """480 px high at most; frame 1 beside the first flow, where there is one."""
    style = f"aspect-ratio: {size[1]} / {size[0]}; max-width: {width}px"
    empty = pieces.compare(size)
    assert style in empty
    assert empty.count("<select") == 2
    names = {"frame 1": "/1", "frame 2": "/2", "a: flow": "/3", "b: flow": "/4", "a: error": "/5"}
    html = pieces.compare(size, names, "/wheel")
    assert style in html
    images = re.findall(r'<img class="(\w+)" src="([^"]*)"', html)
    assert images == [("left", "/1"), ("right", "/3"), ("key", "/wheel")]
    chosen = re.findall(r'<option value="([^"]*)" selected>', html)
    assert chosen == ["/1", "/3"]
    assert html.count("<option") == 10
    assert re.findall(r"<label>(\w+)<", html) == ["Left", "Right"]
    few = pieces.compare(size, {"frame 1": "/1", "frame 2": "/2"}, "/wheel")
    assert re.findall(r'<option value="([^"]*)" selected>', few) == ["/1", "/2"]


def test_what_the_page_is_doing():
    assert pieces.status("<b>a</b>", "at <work>", 2, 3) == (
        '<p><b>a</b></p><p class="now" role="status">at &lt;work&gt;</p>'
        '<progress value="2" max="3" aria-label="How much is done"></progress>'
    )
    assert pieces.status("", "").endswith(
        '<progress value="0" max="1" aria-label="How much is done" class=waiting></progress>'
    )


def test_names_of_elements_and_files():
    assert pieces.place("flow", "my net/w.pt") == "flow-my-net-w.pt"
    assert 'download="my-net.mp4"' in pieces.clips({"my net": "/a.mp4"})


def test_a_learned_w_has_a_table_charts_and_maps():
    chart, image = np.zeros((4, 6, 3)), np.zeros((5, 7, 3))
    w = Learned({"a & b": "<3"}, {"Spectrum of W": chart}, {"Most 1": image})
    html = pieces.about_w(w, {"Spectrum of W": "/1.png", "Most 1": "/2.png"})
    drawn = [
        pieces.figure("Spectrum-of-W", "Spectrum of W", (4, 6), "/1.png"),
        pieces.figure("Most-1", "Most 1", (5, 7), "/2.png"),
    ]
    table, rest = html.split("</table>")
    assert table == '<table id="table"><tr><th scope="row">a &amp; b</th><td>&lt;3</td></tr>'
    assert rest.startswith(f'<div class="charts">{drawn[0]}</div><p>')
    assert rest.endswith(f'</p><div class="maps" id="features">{drawn[1]}</div>')
