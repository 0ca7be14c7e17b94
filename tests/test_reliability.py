"""docs/reliability.md names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_test_that_the_page_names_exists():
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", page)
    assert len(named) > 40
    for file, test in named:
        content = (ROOT / file).read_text(encoding="utf-8")
        assert not test or f"\ndef {test}(" in content, f"{file}::{test}"
