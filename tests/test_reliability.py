"""The docs name tests that exist, and docs/reliability.md has a test for every promise."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = {
    path: path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
}


def test_every_test_that_the_docs_name_exists():
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", "".join(PAGES.values()))
    assert len(named) > 60
    for file, test in named:
        content = (ROOT / file).read_text(encoding="utf-8")
        assert not test or f"\ndef {test}(" in content, f"{file}::{test}"


def test_every_never_exactly_and_any_is_a_promise_with_a_test():
    """Use these words only for what a test holds, and list them in docs/reliability.md."""
    listed = PAGES[ROOT / "docs" / "reliability.md"]
    table = re.search(r"### Never, exactly, any\n.*?(?=\n## )", listed, re.DOTALL)[0]
    promises = re.findall(r"^\| “(.+)” \| (\S+\.md) \| `tests/.+?::\w+`", table, re.MULTILINE)
    assert len(promises) == table.count("\n| “")
    for path, content in PAGES.items():
        text = " ".join(content.replace(table, "").split())
        for words, page in promises:
            if page == path.name:
                assert words in text, f"{page} no longer says: {words}"
                text = text.replace(words, "")
        strong = re.search(r".{0,50}\b(never|exactly|any)\b.{0,50}", text, re.IGNORECASE)
        assert strong is None, f"{path.name}, not in docs/reliability.md: {strong[0]}"


def test_ci_skips_no_test_whose_material_is_missing():
    """With CI set such a test fails; see `testing.shared`."""
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    before = lines[: lines.index("make test")]
    at = before.index("export CI=1")
    # Not within a condition that is still open.
    assert sum(line.startswith(("if ", "case ", "while ")) for line in before[:at]) == sum(
        line in ("fi", "esac", "done") for line in before[:at]
    )
