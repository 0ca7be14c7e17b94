"""Write weights as safetensors, with a card beside them that says what they are."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from lcv.errors import WeightsError
from lcv.files import check_output, whole_file
from lcv.models.build import spec_of
from lcv.models.weights import OWN_KEY
from lcv.version import __version__


@dataclass(frozen=True)
class Card:
    """Where weights come from and how good they are; `scores` name every number."""

    data: str = ""
    recipe: str = ""
    commit: str = ""
    seed: int | None = None
    licence: str = ""
    scores: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def card_path(weights: str | os.PathLike[str]) -> Path:
    """`raft.safetensors` → `raft.json`, beside it."""
    return Path(weights).with_suffix(".json")


def save_weights(
    model: nn.Module,
    path: str | os.PathLike[str],
    card: Card | None = None,
    half: bool = False,
    overwrite: bool = False,
) -> str:
    """Write the model's weights and their card; returns the sha256 of the weights.

    half: store floating point numbers in float16, half the size
    """
    from safetensors.torch import save

    path = Path(path)
    if path.suffix != ".safetensors":
        raise WeightsError(f"{path}: weights are written as .safetensors, got {path.suffix!r}")
    check_output(path, overwrite)
    check_output(card_path(path), overwrite)
    state = {name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()}
    if half:
        state = {k: v.half() if v.is_floating_point() else v for k, v in state.items()}
    spec = spec_of(model).as_dict()
    content = save(state, metadata={OWN_KEY: json.dumps(spec)})
    sha256 = hashlib.sha256(content).hexdigest()
    numbers = sum(p.numel() for p in model.parameters())
    described = {
        "file": path.name,
        "sha256": sha256,
        "lcv": __version__,
        "model": spec,
        "parameters": numbers,
        "stored_as": str(torch.float16 if half else next(model.parameters()).dtype),
        **asdict(card or Card()),
    }
    with whole_file(path, overwrite) as temporary:
        temporary.write_bytes(content)
    with whole_file(card_path(path), overwrite) as temporary:
        temporary.write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")
    return sha256
