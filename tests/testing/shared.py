"""The way to material that lies beside the repository and is not part of it.

Tests that need it skip with a reason where it is absent. In CI it must be there, so its absence
is a failure and not a skip.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2].parent / "shared"


def shared(*parts: str) -> Path:
    """The path `shared/parts…`; skips the running test if it is missing, fails it in CI."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        reason = f"{path} is not here; it holds material we may not ship"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return path
