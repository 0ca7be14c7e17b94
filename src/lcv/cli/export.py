"""`lcv export`: a network as a file that runs without lcv, checked before it is written."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lcv.cli.parser import Parser, size, whole
from lcv.models.named import check_named


def run(arguments: list[str]) -> int:
    chosen = _parser().parse_args(arguments)

    check_named(chosen.model, chosen.weights)

    from lcv.export import export_model, table
    from lcv.export.make import choose_format
    from lcv.files import check_output
    from lcv.models.build import find, load, network_and_weights
    from lcv.models.embedded import EMBEDDED, embedded_file

    # What is wrong with the output is said before minutes are spent on it.
    choose_format(chosen.output)
    check_output(chosen.output, chosen.overwrite)
    name, given = network_and_weights(chosen.model, chosen.weights)
    weights = None if given is None else find(given)
    model = load(name, weights=weights)
    if weights is None and name in EMBEDDED:
        weights = embedded_file(name)
    metadata = export_model(
        model,
        chosen.output,
        size=chosen.size,
        iters=chosen.iters,
        lookup=chosen.lookup,
        batch=chosen.batch,
        half=chosen.half,
        weights=weights,
        pairs=chosen.check,
        overwrite=chosen.overwrite,
        progress=lambda step: print(f"{step} …", file=sys.stderr, flush=True),
    )
    print(table(metadata))
    print(f"\n{chosen.output}: written")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        "lcv export",
        description="Write a network as a program of torch.export (.pt2) or as ONNX (.onnx). W is "
        "folded into RAFT's encoder and a constant elsewhere. The file is run on three sizes and "
        "compared with the model; if it differs by more than 1e-3 px in the mean or 1e-2 px at 99.9 "
        "% of the pixels, it is not written. What was measured, and how to pad, stands in the file.",
    )
    parser.add_argument(
        "model",
        nargs="?",
        help="a network whose weights come with lcv (raft-small, raft-small-vanilla, raft-large), "
        "a file of weights, or file.py:factory",
    )
    parser.add_argument("--weights", help="a checkpoint of any family, or a published name")
    parser.add_argument("-o", "--output", required=True, help="FILE.onnx or FILE.pt2", type=Path)
    parser.add_argument(
        "--size",
        type=size,
        metavar="HxW",
        help="for images of this size alone (all multiples of the network's stride from 128 on)",
    )
    parser.add_argument("--iters", type=whole, help="iterations of RAFT (12)")
    parser.add_argument(
        "--lookup",
        choices=("gather", "grid_sample"),
        help="how costs are read and features warped: gather for RAFT and DDFlow, grid_sample for "
        "VCN, if absent",
    )
    parser.add_argument(
        "--batch", action="store_true", help="for any number of pairs at a time, not one"
    )
    parser.add_argument(
        "--half", action="store_true", help="ONNX: convolutions in float16; the rest in float32"
    )
    parser.add_argument(
        "--check",
        nargs=2,
        action="append",
        default=[],
        metavar=("IMAGE1", "IMAGE2"),
        help="check with this pair too; may be given many times",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an existing output")
    return parser
