"""The weights that come with the package: which there are, for which network, and where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lcv.files import read_json

FOLDER = Path(__file__).resolve().parents[1] / "weights"

EMBEDDED = {
    "raft-large": "raft-large",
    "raft-small": "raft-small",
    "raft-small-vanilla": "raft-small",
}
"""The network of each; `raft-small-vanilla` is the twin of `raft-small` without LCV."""


def embedded_file(name: str) -> Path:
    """The file of embedded weights; `name` is a key of EMBEDDED."""
    return FOLDER / f"{name}.safetensors"


def embedded_card(name: str) -> dict[str, Any]:
    """What the card of embedded weights says: data, recipe, seed, scores, sha256, and perhaps advice."""
    return read_json(embedded_file(name).with_suffix(".json"), "the card of embedded weights")
