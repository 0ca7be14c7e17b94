"""`lcv data`: check a dataset, or write procedural pairs to disk."""

from __future__ import annotations

import argparse

from lcv.cli.parser import Parser, count, device_name, frames, whole
from lcv.cli.progress import bars
from lcv.errors import ArgumentError
from lcv.words import counted


def run(arguments: list[str]) -> int:
    """Exit codes: 0 fine or done, 1 something is wrong with the dataset, 2 it cannot be checked."""
    chosen = _parser().parse_args(arguments)
    return int(chosen.job(chosen))


def _parser() -> argparse.ArgumentParser:
    parser = Parser("lcv data", description=__doc__)
    jobs = parser.add_subparsers(required=True, metavar="check | make")

    check = jobs.add_parser(
        "check",
        help="decode every file, count, and test the truth against its own corruptions",
        description="Find what is wrong with a dataset. Exit code 0: fine; 1: something is wrong, "
        "and the file or dataset is named with the reason. A partial copy is not wrong.",
    )
    check.add_argument("dir", help="a dataset, a folder of datasets, a list file, or a video")
    check.add_argument("--json", action="store_true", help="the whole report as JSON")
    check.add_argument("--workers", type=whole, help="threads that decode (default: cores)")
    check.add_argument(
        "--pairs",
        type=whole,
        default=200,
        help="pairs a part to test the truth of (%(default)s)",
    )
    check.set_defaults(job=_check)

    make = jobs.add_parser(
        "make",
        help="write procedural sequences with exact flow and occlusion, in Sintel's layout",
        description="Write procedural sequences to OUT/training/{clean,final,flow,occlusions}.",
    )
    make.add_argument("out", help="the folder to write to")
    make.add_argument(
        "--recipe", default="training", help="the kind of scenes, or a mixture (%(default)s)"
    )
    make.add_argument("--count", type=whole, default=100, help="sequences (%(default)s)")
    make.add_argument("--frames", type=frames, default=2, help="frames of each (%(default)s)")
    make.add_argument(
        "--size",
        type=whole,
        nargs=2,
        default=(368, 496),
        metavar=("HEIGHT", "WIDTH"),
        help="in pixels (368 496)",
    )
    make.add_argument("--seed", type=int, default=0, help="of all draws (%(default)s)")
    make.add_argument("--first", type=count, default=0, help="index of the first (%(default)s)")
    make.add_argument("--textures", help="a folder of pictures to use as textures")
    make.add_argument(
        "--device", type=device_name, default="cpu", help="where to make them (%(default)s)"
    )
    make.add_argument("--overwrite", action="store_true", help="replace files that are there")
    make.set_defaults(job=_make)
    return parser


def _check(chosen: argparse.Namespace) -> int:
    import json

    from lcv.data.check import check

    with bars(wanted=not chosen.json) as progress:
        report = check(
            chosen.dir, workers=chosen.workers, max_pairs=chosen.pairs, progress=progress
        )
    if chosen.json:
        print(json.dumps(report.as_dict(), indent=2, ensure_ascii=False))
    else:
        print(report.text())
    return 0 if report.fine else 1


def _make(chosen: argparse.Namespace) -> int:
    from lcv.data.synthetic import RECIPES, load_bank, write_dataset

    if chosen.recipe not in RECIPES:
        raise ArgumentError(f"there is no recipe {chosen.recipe!r}; there are {', '.join(RECIPES)}")
    textures = None
    if chosen.textures is not None:
        textures = load_bank(chosen.textures, device=chosen.device)
    write_dataset(
        chosen.out,
        RECIPES[chosen.recipe],
        chosen.seed,
        chosen.count,
        tuple(chosen.size),
        frames=chosen.frames,
        first=chosen.first,
        device=chosen.device,
        textures=textures,
        overwrite=chosen.overwrite,
    )
    pairs = chosen.count * (chosen.frames - 1)
    print(
        f"wrote {counted(pairs, 'pair')} to {chosen.out}; look at them with `lcv data check {chosen.out}`"
    )
    return 0
