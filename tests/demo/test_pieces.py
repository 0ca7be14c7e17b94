"""Pieces of HTML: names are only letters, and a piece takes the same room before its result."""

from __future__ import annotations

import re

import numpy as np
import pytest

from lcv.demo import pieces
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
