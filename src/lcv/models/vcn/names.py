"""Names of weights: the authors' VCN checkpoints to ours and back.

Every module of theirs is one module of ours, so a table of prefixes suffices; what follows the
prefix (`0.weight`, `1.running_mean`, …) is the same on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from lcv.models.types import Family, Named, State

RECOMPUTED = ("flow_reg", "grid")
"""Parts of names of tensors that the authors' code rebuilds from the image's size."""

BLOCKS = {"conva1": "down1", "conva2": "down2", "convb3": "up3", "convb2": "up2", "convb1": "up1"}
"""The blocks of a level's volume filter, in the order of the computation."""


def prefixes() -> Iterator[tuple[str, str]]:
    """Pairs (theirs, ours). No prefix of either side begins another of the same side."""
    pooling = "pspnet.pyramid_pooling.path_module_list"
    for i in range(3):
        yield f"pspnet.convbnrelu1_{i + 1}.cbr_unit.", f"pyramid.stem.{i}."
        yield f"{pooling}.{i}.cbr_unit.", f"pyramid.pooling.paths.{i}."
    for block, k in ((3, 3), (5, 4), (6, 5), (7, 6)):
        theirs, ours = f"pspnet.res_block{block}.0.", f"pyramid.down.{k}."
        yield theirs + "convbnrelu1.cbr_unit.", ours + "first."
        yield theirs + "convbn2.cb_unit.", ours + "second."
        yield theirs + "downsample.", ours + "shortcut."
    for k in (5, 4, 3, 2):
        yield f"pspnet.upconv{k + 1}.1.cbr_unit.", f"pyramid.up.{k}."
        yield f"pspnet.iconv{k}.cbr_unit.", f"pyramid.join.{k}."
    for k in (6, 5, 4, 3, 2):
        yield from level_prefixes(k)


def level_prefixes(k: int) -> Iterator[tuple[str, str]]:
    """The pairs of matching level k. The authors number a layer's second half first."""
    ours = f"levels.{k}."
    halves = (("conv2.", "window."), ("conv1.", "pixels."))
    yield f"f{k}.proj.0.conv1.", ours + "filter.project.conv."
    yield f"f{k}.proj.0.bn.", ours + "filter.project.norm."
    # The strided blocks' shortcut is a projection, but on level 2 a separable convolution.
    shortcut = halves if k == 2 else (("conv1.", "conv."), ("bn.", "norm."))
    for theirs, mine in BLOCKS.items():
        block, my_block = f"f{k}.{theirs}.", f"{ours}filter.{mine}."
        for half, my_half in halves:
            yield f"{block}conv1.{half}", f"{my_block}first.{my_half}"
            yield f"{block}conv2.{half}", f"{my_block}second.{my_half}"
        if mine.startswith("down"):
            for part, my_part in shortcut:
                yield f"{block}downsample.{part}", f"{my_block}shortcut.{my_part}"
    for half, my_half in halves:
        yield f"p{k}.{half}", f"{ours}score.{my_half}"
    for i in range(7):
        yield f"dc{k}_conv{i + 1}.", f"{ours}fuse.{i}."
    yield f"dc{k}_convo.", f"{ours}out_of_range."


def rename(name: str, table: Mapping[str, str]) -> str | None:
    """`name` with the one prefix it has in the table replaced, or None."""
    for old, new in table.items():
        if name.startswith(old):
            return new + name.removeprefix(old)
    return None


def from_authors(state_dict: Mapping[str, Tensor], *, heads: bool = True) -> dict[str, Tensor]:
    """The authors' state_dict, with or without `module.` before its names, under our names.

    Left out: tensors that only restate the image's size or the search range and, with
    heads=False, the out-of-range classifiers that published checkpoints hold. Unknown names are kept,
    and refused when a network is filled. Their state_dict does not have the means: see
    `means_from_authors`.
    """
    table = dict(prefixes())
    names = {name: name.removeprefix("module.") for name in state_dict}
    return {
        rename(theirs, table) or theirs: state_dict[name]
        for name, theirs in names.items()
        if not any(part in theirs for part in RECOMPUTED) and (heads or "_convo." not in theirs)
    }


def to_authors(state_dict: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Our state_dict under the authors' names, without `module.`.

    Left out, since their code has no place for it: the means and the inner products.
    """
    table = {ours: theirs for theirs, ours in prefixes()}
    renamed = ((rename(name, table), tensor) for name, tensor in state_dict.items())
    return {name: tensor for name, tensor in renamed if name is not None}


def means_from_authors(checkpoint: Mapping[str, Any]) -> dict[str, Tensor]:
    """The buffers `mean1` and `mean2` from the lists `mean_L` and `mean_R` of a checkpoint.

    Each list has one (blue, green, red) entry per iteration of early training; we take averages.
    """
    means = {}
    for name, listed in (("mean1", "mean_L"), ("mean2", "mean_R")):
        entries = [torch.as_tensor(entry, dtype=torch.float64) for entry in checkpoint[listed]]
        means[name] = torch.stack(entries).reshape(-1, 3).mean(0).float()
    return means


def _recognise_authors(state: State) -> Named | None:
    if "f6.proj.0.conv1.weight" not in state:
        return None
    return Named("vcn" if "f2.proj.0.conv1.weight" in state else "vcn-small", {})


def _recognise_own(state: State) -> Named | None:
    """Our names in a file without our description, which hides options other than heads."""
    if "levels.6.filter.project.conv.weight" not in state:
        return None
    name = "vcn" if any(key.startswith("levels.2.") for key in state) else "vcn-small"
    options: dict[str, Any] = {}
    if any(".out_of_range." in key for key in state):
        options["heads"] = True
    if "inner_products.6.W" in state:  # a free W has this one form, which is not VCN's default
        options["form"] = "left"
    return Named(name, options)


def _read_authors(
    state: State, extras: Mapping[str, Any], model: nn.Module
) -> tuple[State, list[str]]:
    has_heads = any(".out_of_range." in name for name in model.state_dict())
    ours, notes = from_authors(state, heads=has_heads), []
    if not has_heads and any("_convo." in name for name in state):
        notes.append("the out-of-range heads, used in training only, were left out")
    if "mean_L" in extras:
        ours |= means_from_authors(extras)
    else:
        ours |= {name: getattr(model, name) for name in ("mean1", "mean2")}
        notes.append("no colour means in the file: 0.33 is assumed for every channel")
    return ours, notes


def _read_own(state: State, extras: Mapping[str, Any], model: nn.Module) -> tuple[State, list[str]]:
    note = "names do not say form, md and fac: those asked for, or the defaults, hold"
    return dict(state), [note]


def _write_authors(model: Any) -> dict[str, Any]:
    """As the authors' scripts load it: into DataParallel, the means beside it."""
    prefixed = {f"module.{k}": value for k, value in to_authors(model.state_dict()).items()}
    means = {"mean_L": [model.mean1.tolist()], "mean_R": [model.mean2.tolist()]}
    return {"state_dict": prefixed, **means}


FAMILIES = (
    Family("authors", (".pth", ".tar"), _recognise_authors, _read_authors, _write_authors),
    Family("bare", (), _recognise_own, _read_own),
)
