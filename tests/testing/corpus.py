"""Files that a reader once got wrong, kept for ever: tests/corpus/KIND/FILE.

A fuzz test that fails puts its input here; commit it with the repair.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

CORPUS = Path(__file__).resolve().parents[1] / "corpus"


def keep(kind: str, path: Path) -> Path:
    """A copy of a file that was got wrong, under a name that follows from its content."""
    content = path.read_bytes()
    kept = CORPUS / kind / f"{hashlib.sha256(content).hexdigest()[:12]}{path.suffix}"
    kept.parent.mkdir(exist_ok=True)
    kept.write_bytes(content)
    return kept
