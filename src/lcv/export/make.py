"""`export_model`: trace, convert, check, describe, and write, or leave nothing behind."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from lcv.cost_volume.allpairs.portable import LOOKUPS
from lcv.errors import ArgumentError
from lcv.export import onnx_file, torch_file
from lcv.export.check import (
    PairOfFiles,
    difference,
    read_pairs,
    refuse_large,
    second_of_two,
    seeded_pairs,
)
from lcv.export.describe import describe
from lcv.export.half import halved
from lcv.export.prepare import Core, prepare
from lcv.export.sizes import choose_sizes
from lcv.export.trace import trace
from lcv.files import check_output, whole_file
from lcv.models.build import spec_of
from lcv.models.types import Defaults, ExportRule, is_flow_model
from lcv.models.wrapped import copied

FORMATS: dict[str, ModuleType] = {"onnx": onnx_file, "torch": torch_file}


def export_model(
    model: nn.Module,
    path: str | os.PathLike[str],
    *,
    size: tuple[int, int] | None = None,
    iters: int | None = None,
    lookup: str | None = None,
    batch: bool = False,
    half: bool = False,
    weights: str | os.PathLike[str] | None = None,
    pairs: Sequence[PairOfFiles] = (),
    overwrite: bool = False,
    progress: Callable[[str], None] = lambda step: None,
) -> dict[str, Any]:
    """Write a network as a program that needs no lcv; returns the metadata that the file holds.

    path:     its ending says the format: .onnx or .pt2 (torch.export)
    size:     (h, w) of the only images it takes; without it sizes stay open, in multiples of the
              network's stride
    iters:    of a network that iterates; RAFT's is 12 unless given
    lookup:   "gather" or "grid_sample", if the network has it
    batch:    whether the file takes any number of pairs at a time; else one
    half:     whether convolutions compute in float16 (ONNX); images and flow stay float32
    weights:  the file the model was loaded from, whose name and hash the file will hold
    pairs:    files of images to check with, beside the procedural pairs of three sizes
    progress: told each step as it begins
    """
    path = Path(path)
    name = spec_of(model).name
    kind = choose_format(path)
    if not is_flow_model(model):
        raise ArgumentError(f"export: {name} is not a FlowModel; wrap it with lcv.wrap")
    rule = model.export_rule
    lookup = choose_lookup(name, rule, lookup)
    iters = choose_iters(name, model.defaults, iters)
    sizes = choose_sizes(name, rule, size)
    if half and kind != "onnx":
        raise ArgumentError(f"{path}: half precision is for ONNX; leave out --half, or write .onnx")
    FORMATS[kind].check_available()
    check_output(path, overwrite)
    own = read_pairs(rule, sizes, pairs)

    progress(f"tracing {name}, {sizes.words()}")
    prepared, where_w_went = prepare(model, lookup)
    program = trace(name, Core(prepared, iters), sizes, lookup, batch)
    progress(f"writing it as {kind}")
    converted = FORMATS[kind].convert(program)
    converted = halved(converted) if half else converted
    progress("checking it against the model")
    truth = copied(model).to("cpu", torch.float32).eval()
    runner = FORMATS[kind].Runner(FORMATS[kind].content(converted, {}))
    checked = (*seeded_pairs(rule, sizes), *own)
    differences = [difference(truth, runner, rule, pair, iters) for pair in checked]
    if batch:
        both = checked[0]._replace(name=f"{checked[0].name}, second of two")
        differences.append(difference(truth, second_of_two(runner), rule, both, iters))
    refuse_large(path, differences)
    how = {"W": where_w_went, "iters": iters, "lookup": lookup, "format": kind}
    how |= FORMATS[kind].versions()
    metadata = describe(model, rule, sizes, differences, how, batch, half, weights)
    with whole_file(path, overwrite) as temporary:
        temporary.write_bytes(FORMATS[kind].content(converted, metadata))
    return metadata


def choose_lookup(name: str, rule: ExportRule, lookup: str | None) -> str:
    """The way asked for, if the network has it; its default if none was."""
    if lookup is None:
        return rule.lookups[0]
    if lookup not in rule.lookups:
        why = f": {rule.why_not}" if rule.why_not and lookup in LOOKUPS else ""
        raise ArgumentError(
            f"export: {name} has no lookup {lookup!r}{why}. It has {', '.join(rule.lookups)}."
        )
    return lookup


def choose_iters(name: str, defaults: Defaults, iters: int | None) -> int | None:
    """The number of iterations, refused where it is none or where there are none."""
    if iters is None:
        return defaults.training_iters
    if defaults.iters is None:
        raise ArgumentError(f"export: {name} does not iterate, got iters={iters}. Leave it out.")
    if isinstance(iters, bool) or not isinstance(iters, int) or iters < 1:
        raise ArgumentError(f"export: iters is {iters!r}, wanted a whole number of at least 1")
    return iters


def choose_format(path: Path) -> str:
    """The format of the path's ending."""
    by_ending = {module.ENDING: name for name, module in FORMATS.items()}
    if path.suffix not in by_ending:
        raise ArgumentError(
            f"{path}: wanted a name ending in {' or '.join(by_ending)}, which says the format"
        )
    return by_ending[path.suffix]


def read_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What `export_model` wrote into a file about it."""
    path = Path(path)
    module = FORMATS[choose_format(path)]
    module.check_available()
    return dict(module.read_metadata(path))
