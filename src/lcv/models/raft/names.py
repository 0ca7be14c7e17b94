"""RAFT's parameter names in the families that publish weights.

Ours are the authors' own, less one alias: they register a block's last norm twice, as `norm3` and
as `downsample.1`. torchvision's are a renaming without loss. ptlflow keeps the authors' and adds
the three of LCV under `corr_block.`; its `lcv_raft` was trained on BGR images.
"""

from __future__ import annotations

import re

from torch import nn

from lcv.errors import WeightsError
from lcv.inner_product.convert import AUTHORS_KEYS, AUTHORS_UNREAD, read_authors
from lcv.models.types import Family, Named, State

PTLFLOW = "corr_block."
_ALIAS = re.compile(r"(.*\.layer[23]\.0\.)norm([34])(\..*)")
_TORCHVISION = [
    (r"fnet\.(.*)", r"feature_encoder.\1"),
    (r"cnet\.(.*)", r"context_encoder.\1"),
    (r"(\w+_encoder)\.conv1\.(.*)", r"\1.convnormrelu.0.\2"),
    (r"(\w+_encoder)\.norm1\.(.*)", r"\1.convnormrelu.1.\2"),
    (r"(\w+_encoder)\.conv2\.(.*)", r"\1.conv.\2"),
    (r"(.*\.layer\d\.\d)\.conv(\d)\.(.*)", r"\1.convnormrelu\2.0.\3"),
    (r"(.*\.layer\d\.\d)\.norm(\d)\.(.*)", r"\1.convnormrelu\2.1.\3"),
    (r"update_block\.encoder\.convc(\d)\.(.*)", r"update_block.motion_encoder.convcorr\1.0.\2"),
    (r"update_block\.encoder\.convf(\d)\.(.*)", r"update_block.motion_encoder.convflow\1.0.\2"),
    (r"update_block\.encoder\.conv\.(.*)", r"update_block.motion_encoder.conv.0.\1"),
    (r"update_block\.gru\.conv([zrq])\.(.*)", r"update_block.gru.conv\g<1>1.\2"),
    (
        r"update_block\.gru\.conv([zrq])(\d)\.(.*)",
        r"update_block.recurrent_block.convgru\2.conv\1.\3",
    ),
    (r"update_block\.mask\.0\.(.*)", r"mask_predictor.convrelu.0.\1"),
    (r"update_block\.mask\.2\.(.*)", r"mask_predictor.conv.\1"),
]


def torchvision_name(name: str) -> str:
    """torchvision's name of a parameter of ours."""
    for pattern, template in _TORCHVISION:
        name = re.sub(f"^{pattern}$", template, name)
    return name


def from_authors_names(state: State) -> tuple[State, list[str]]:
    """Our names, and what there is to say about the conversion."""
    ours = {name: value for name, value in state.items() if not _is_alias(name, state)}
    notes = []
    if PTLFLOW + AUTHORS_KEYS[0] in ours:
        upper, t = read_authors(ours, PTLFLOW)
        for key in (*AUTHORS_KEYS, AUTHORS_UNREAD):
            ours.pop(PTLFLOW + key, None)
        ours |= {"inner_product.S_upper": upper, "inner_product.t": t}
        for encoder in ("fnet", "cnet"):
            name = f"{encoder}.conv1.weight"
            ours[name] = ours[name].flip(1)
        notes.append("trained on BGR images: the first convolutions were turned round for RGB")
    return ours, notes


def _is_alias(name: str, state: State) -> bool:
    """Whether this is the authors' second name of a block's last norm."""
    match = _ALIAS.fullmatch(name)
    return bool(match) and match[1] + "downsample.1" + match[3] in state  # type: ignore[index]


def to_authors_names(state: State) -> State:
    """The authors' names, the alias included, for a RAFT without W."""
    theirs = dict(state)
    for name, value in state.items():
        if name.startswith("cnet.") and ".downsample.1." in name:
            theirs[name.replace("downsample.1", "norm3")] = value
    return theirs


def from_torchvision_names(state: State, own_names: list[str]) -> State:
    """Our names; `own_names` are those of the model to be filled."""
    back = {torchvision_name(name): name for name in own_names}
    return {back.get(name, name): value for name, value in state.items()}


def _recognise_authors(state: State) -> Named | None:
    """The authors' names, ptlflow's and our own among them."""
    mark = "update_block.encoder.convc1.weight"
    return _named(state, "fnet.conv2.weight") if mark in state else None


def _recognise_torchvision(state: State) -> Named | None:
    mark = "update_block.motion_encoder.convcorr1.0.weight"
    return _named(state, "feature_encoder.conv.weight") if mark in state else None


def _named(state: State, last_convolution: str) -> Named:
    if last_convolution not in state:
        raise WeightsError(f"RAFT's names, but no {last_convolution} among them")
    small = state[last_convolution].shape[:1] == (128,)
    return Named("raft-small" if small else "raft-large", {})


def _write_authors(model: nn.Module) -> State:
    """As the authors' scripts load it, into DataParallel."""
    names = to_authors_names(model.state_dict())
    return {f"module.{name}": value for name, value in names.items()}


FAMILIES = (
    Family(
        "authors",
        (".pth", ".tar"),
        _recognise_authors,
        lambda state, extras, model: from_authors_names(state),
        _write_authors,
    ),
    Family(
        "torchvision",
        (".pth",),
        _recognise_torchvision,
        lambda state, extras, model: (from_torchvision_names(state, [*model.state_dict()]), []),
        lambda model: {torchvision_name(name): v for name, v in model.state_dict().items()},
    ),
)
