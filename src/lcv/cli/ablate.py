"""`lcv ablate`: the paper's ablation and ours, several seeds, resumable, shown at any moment."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from lcv.cli.parser import Parser, device_name, positive, whole
from lcv.errors import ArgumentError
from lcv.models.named import check_named
from lcv.studies.columns import COLUMNS
from lcv.train.config import TrainConfig

INTERRUPTED = 130
RANDOM = "random"
SPLITS = ("hash", "every-fifth")


def run(arguments: list[str]) -> int:
    """Exit codes: 0 every cell is done, 130 stopped and saved, 2 an error or a cell that failed."""
    options = make_parser().parse_args(arguments)
    if options.show is not None:
        return _show(options)
    if options.output is None:
        raise ArgumentError("-o is missing, wanted the study's folder; or --show FOLDER")
    weights = None if options.weights == RANDOM else options.weights
    if options.model or weights:
        check_named(options.model, weights, trained=False)

    from lcv.studies import ablation_show
    from lcv.studies.ablation import run as run_study
    from lcv.studies.ablation_base import network_for
    from lcv.studies.ablation_study import prepare
    from lcv.studies.columns import choose
    from lcv.train.distributed import join

    base = base_from(options)
    if base.graph and join(options.device).device.type != "cuda":
        raise ArgumentError("a step is captured on CUDA alone, and there is none; use --no-graph")
    study = prepare(
        options.output,
        base,
        choose(network_for(base.model), options.columns),
        options.seeds,
        tests_from(options.test),
        options.pairs,
        options.split,
        not options.no_weights,
    )
    outcome = run_study(study, options.device, options.minutes, _say, (_watch,), options.together)
    written = ablation_show.write(study)
    ablation_show.print_tables(study)
    print(f"{options.output}: {', '.join(written)}")
    if outcome.failed:
        print(
            f"lcv: cells that failed: {len(outcome.failed)}; the same command tries them again",
            file=sys.stderr,
        )
        return 2
    left = len(outcome.left)
    if left:
        print(f"stopped with {left} cell{'s' * (left != 1)} to do; the same command continues")
        return INTERRUPTED
    return 0


def make_parser() -> argparse.ArgumentParser:
    columns = "\n".join(f"  {c.name:<17}{c.label:<18}{c.note}" for c in COLUMNS)
    parser = Parser(
        "lcv ablate",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Train from the same weights with different kinds of W, on the same batches in\n"
        "the same order, and compare with training on without W. The same command\n"
        "continues a stopped study.",
        epilog=f"columns:\n{columns}\n\nexamples:\n"
        "  lcv ablate --model raft-small --weights raft-small.pth --seeds 0 1 2 -o out\n"
        "  lcv ablate --recipe vcn_kitti --data-root datasets --weights vcn.pth "
        "--split every-fifth -o out\n"
        "  lcv ablate --show out",
    )
    add = parser.add_argument
    add("-o", "--output", help="the study's folder")
    add("--show", metavar="FOLDER", help="tables and plot of a study as it stands; runs nothing")
    add("--model", help="a network, or file.py:factory (raft-small)")
    add("--weights", help=f"a checkpoint or a published one's name; {RANDOM}: start untrained")
    add("--columns", nargs="+", default=["paper"], help="names, or paper, ours, all (paper)")
    add("--seeds", nargs="+", type=int, default=[0, 1, 2], help="of the data (0 1 2)")
    add("--recipe", help="a training recipe to start from, in place of procedural pairs")
    add("--data-root", help="for a recipe on files: the folder of the datasets")
    add("--textures", help="for procedural pairs: a folder of pictures to paint scenes with")
    add("--steps", type=whole, help="optimiser steps of each cell (1500)")
    add("--batch", type=whole, help="pairs a step (6)")
    add(
        "--size", nargs=2, type=whole, metavar=("H", "W"), help="of what the network sees (256 320)"
    )
    add("--iters", type=whole, help="iterations of a recurrent network in training (8)")
    add("--lr", type=positive, help="peak learning rate (1e-4)")
    add("--w-rate", type=positive, metavar="TIMES", help="W's rate as a multiple of --lr (1)")
    add("--precision", choices=["bf16", "float32", "float64"], help="of training (bf16)")
    add(
        "--graph",
        action=argparse.BooleanOptionalAction,
        help="capture the step in a CUDA graph (as the recipe says, else not)",
    )
    add("--validate-every", type=whole, help="steps between validations (a sixth of them)")
    add("--test", action="append", default=[], metavar="[NAME=]FOLDER", help="report this dataset")
    add("--pairs", type=whole, default=200, help="procedural pairs to report on (200)")
    add(
        "--split",
        choices=SPLITS,
        default=SPLITS[0],
        help="which scenes of files are held out (hash)",
    )
    add("--together", action="store_true", help="train all columns of a seed at once")
    add("--minutes", type=positive, help="stop and save after these")
    add("--no-weights", action="store_true", help="keep no weights of finished cells")
    add("--device", type=device_name, help="cuda or cpu; the GPU where there is one")
    return parser


def base_from(options: argparse.Namespace) -> TrainConfig:
    """What all columns share: the recipe's or the ready base, with what was said changed."""
    from lcv.models.build import network_and_weights
    from lcv.studies.ablation_base import paced, procedural_base

    weights, named = (None if options.weights == RANDOM else options.weights), options.model
    if options.recipe is None and (named or weights):
        named, weights = network_and_weights(named, weights)
    if options.recipe is not None:
        from lcv.recipes import load_recipe

        base = load_recipe(options.recipe)
        model = {"name": named} if named is not None else {}
        model |= {"weights": weights} if options.weights is not None else {}
        base = replace(base, model=replace(base.model, **model))
    else:
        from lcv.models.named import check_name

        check_name(named or "raft-small")
        base = procedural_base(named or "raft-small", weights)
    if base.model.weights is None and options.weights is None:
        raise ArgumentError(
            f"--weights is missing, wanted a checkpoint to start from, or the word {RANDOM}"
        )
    data: dict[str, Any] = {"textures": options.textures, "root": options.data_root}
    data["size"] = None if options.size is None else tuple(options.size)
    whole = {"steps": options.steps, "batch": options.batch, "precision": options.precision}
    base = replace(
        base,
        data=replace(base.data, **_said(data)),
        optim=replace(base.optim, **_said({"lr": options.lr, "w_lr_factor": options.w_rate})),
        loss=replace(base.loss, **_said({"iters": options.iters})),
        **_said({**whole, "graph": options.graph}),
    )
    return paced(base, options.validate_every)


def tests_from(words: list[str]) -> dict[str, str]:
    """`real=datasets/real` or `datasets/real`: folders to report on, by name."""
    tests = {}
    for word in words:
        name, separator, where = word.partition("=")
        where = where if separator else word
        name = name if separator else Path(word).name
        if not Path(where).exists():
            raise ArgumentError(f"--test {word}: there is no {where}, wanted a dataset")
        if name in tests:
            raise ArgumentError(f"--test {word}: two tests are called {name!r}; use NAME=FOLDER")
        tests[name] = where
    return tests


def _show(options: argparse.Namespace) -> int:
    from lcv.studies import ablation_show
    from lcv.studies.ablation_study import read_study

    study = read_study(options.show)
    ablation_show.print_tables(study)
    print(f"{options.show}: {', '.join(ablation_show.write(study))}")
    return 0


def _say(words: str) -> None:
    print(words, flush=True)


def _watch(entry: dict[str, Any]) -> None:
    """A line a validation, where cells run one by one."""
    if entry["kind"] == "validation":
        _say(f"  step {entry['step']}: validation EPE {entry['validation/epe']:.3f} px")


def _said(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
