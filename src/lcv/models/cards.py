"""Write weights as safetensors, with a card beside them that says what they are."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lcv.errors import FileError, WeightsError
from lcv.files import SMALL, check_output, read_json, whole_file, write_text
from lcv.models.build import spec_of
from lcv.models.published import PUBLISHED, sha256_of
from lcv.models.types import tensor_of
from lcv.models.weights import OWN_KEY
from lcv.version import __version__


@dataclass(frozen=True)
class Card:
    """Where weights come from and how good they are; `scores` name every number.

    source: {"file": its name, "sha256": its hash}, where they were made from another file
    progress: {"stage", "step", "steps"}, how far the training was that wrote them
    """

    data: str = ""
    recipe: str = ""
    commit: str = ""
    seed: int | None = None
    licence: str = ""
    scores: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    source: dict[str, str] | None = None
    progress: dict[str, Any] | None = None


def card_path(weights: str | os.PathLike[str]) -> Path:
    """`raft.safetensors` → `raft.json`, beside it; of any other file, `raft.pth.json`."""
    path = Path(weights)
    if path.suffix == ".safetensors":
        return path.with_suffix(".json")
    return path.with_name(path.name + ".json")


def card_from(source: Path, notes: list[str], half: bool = False) -> Card:
    """The card of weights made from a file without changing what they compute.

    Data, licence and the rest come from the card beside the file, if that is of this file, or from
    the table of published checkpoints. Scores were measured on the source, so `half` drops them.
    """
    sha256 = sha256_of(source)
    published = next((each for each in PUBLISHED.values() if each.sha256 == sha256), None)
    card = _card_beside(source, sha256)
    if card is None:
        card = Card(data=published.data, licence=published.licence) if published else Card()
    return replace(
        card,
        scores={} if half else card.scores,
        notes=[*card.notes, *notes],
        source={"file": source.name, "sha256": sha256},
    )


def _card_beside(weights: Path, sha256: str) -> Card | None:
    """The card of a file, or None where there is none or it is not this file's."""
    try:
        said = read_json(card_path(weights), "the card of weights", most=SMALL)
    except FileError:
        return None
    if said.get("sha256") != sha256:
        return None
    fields = asdict(Card())
    known = {
        name: said[name]
        for name, empty in fields.items()
        # A card is a text that people edit: what is not of the kind it should be is left out.
        if name in said and (empty is None or isinstance(said[name], type(empty)))
    }
    return Card(**known)


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
    # Copies, since a network may hold one tensor under two names, which safetensors refuses.
    state = {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}
    state = {name: value.contiguous() for name, value in state.items()}
    if half:
        state = in_half(state)
    content = save(state, metadata={OWN_KEY: json.dumps(spec_of(model).as_dict())})
    with whole_file(path, overwrite) as temporary:
        temporary.write_bytes(content)
    return write_card(model, path, card, half, overwrite)


def write_card(
    model: nn.Module, path: Path, card: Card | None, half: bool = False, overwrite: bool = False
) -> str:
    """Describe weights that have just been written; returns their sha256."""
    sha256 = sha256_of(path)
    described = {
        "file": path.name,
        "sha256": sha256,
        "lcv": __version__,
        "model": spec_of(model).as_dict(),
        "parameters": sum(p.numel() for p in model.parameters()),
        "stored_as": str(torch.float16 if half else tensor_of(model).dtype),
        **asdict(card or Card()),
    }
    write_text(card_path(path), json.dumps(described, indent=2) + "\n", overwrite)
    return sha256


def in_half(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """The floating point numbers in float16; refused where one is beyond its largest, 65504."""
    halves = {name: v.half() if v.is_floating_point() else v for name, v in state.items()}
    lost = [
        f"{name} reaches {float(state[name].abs().max()):.6g}"
        for name, value in halves.items()
        if value.is_floating_point() and not bool(torch.isfinite(value).all())
    ]
    if lost:
        raise WeightsError(
            f"these weights cannot be stored in float16, whose largest number is 65504: "
            f"{'; '.join(lost[:8])}. Store them in full (without half)."
        )
    return halves
