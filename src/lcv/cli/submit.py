"""`lcv submit`: the files a benchmark's server wants, checked and zipped; or a check of such files."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lcv.cli.parser import Parser, device_name, whole
from lcv.cli.progress import one_bar, says_how_to_resume
from lcv.errors import ArgumentError
from lcv.models.named import check_named
from lcv.words import counted, one_line

if TYPE_CHECKING:
    from lcv.evaluate.submission_check import Fault

TOLD = 5
"""Faults of one kind that are told file by file."""


def run(arguments: list[str]) -> int:
    """Exit codes: 0 done or fine, 1 a checked submission has faults, 2 an error."""
    chosen = _parser().parse_args(arguments)
    return int(chosen.job(chosen))


def _parser() -> argparse.ArgumentParser:
    parser = Parser("lcv submit", description=__doc__)
    jobs = parser.add_subparsers(required=True, metavar="sintel | kitti | check")
    about = {
        "sintel": "both passes of Sintel's test scenes as .flo, each scene with warm start",
        "kitti": "KITTI 2015's test pairs as 16-bit PNGs",
    }
    for kind, words in about.items():
        job = jobs.add_parser(kind, help=words, description=f"Write {words}.")
        job.add_argument(
            "--model", metavar="M", help="a network, a file of weights, or file.py:factory"
        )
        job.add_argument(
            "--weights", metavar="W", help="a file or a published name; without, our own"
        )
        job.add_argument("--data", required=True, metavar="FOLDER", help="the dataset")
        job.add_argument(
            "-o", "--output", required=True, metavar="OUT", help="writes the folder OUT and OUT.zip"
        )
        job.add_argument("--iters", type=whole, help="in place of RAFT's 32 (Sintel) or 24 (KITTI)")
        job.add_argument("--precision", help="float32 (default), tf32, bfloat16 or float16")
        if kind == "sintel":
            job.add_argument(
                "--no-warm-start",
                dest="warm_start",
                action="store_false",
                default=None,
                help="start every pair from zero flow",
            )
        job.add_argument("--clip", action="store_true", help="clip flow that is out of range")
        job.add_argument("--partial", action="store_true", help="a trial on part of the test set")
        job.add_argument(
            "--device", type=device_name, help="cuda or cpu; the GPU where there is one"
        )
        job.add_argument("--overwrite", action="store_true", help="replace an old submission")
        job.set_defaults(job=_submit, kind=kind, warm_start=None)

    check = jobs.add_parser(
        "check",
        help="find what is wrong with a submission",
        description="Decode every file of a folder or zip archive and tell every fault. Exit code "
        "0: it may be sent; 1: it has faults.",
    )
    check.add_argument("path", help="a folder or a .zip")
    check.add_argument("--kind", required=True, choices=("sintel", "kitti"), help="the benchmark")
    check.add_argument(
        "--data", metavar="FOLDER", help="the dataset: names and sizes are held against its frames"
    )
    check.add_argument("--partial", action="store_true", help="do not ask for the official numbers")
    check.set_defaults(job=_check)
    return parser


def _submit(chosen: argparse.Namespace) -> int:
    check_named(chosen.model, chosen.weights)

    from lcv.evaluate.protocols import PROTOCOLS
    from lcv.evaluate.submit import write_submission
    from lcv.models.build import load
    from lcv.train.distributed import join

    if os.environ.get("WORLD_SIZE", "1") != "1":
        raise ArgumentError("lcv submit: works in one process; call it without torchrun")
    with one_bar() as progress, says_how_to_resume():
        done = write_submission(
            chosen.kind,
            load(chosen.model, chosen.weights),
            chosen.data,
            chosen.output,
            protocol=PROTOCOLS["raft"].changed(chosen.iters, precision=chosen.precision),
            warm_start=chosen.warm_start,
            device=join(chosen.device).device,
            partial=chosen.partial,
            clip=chosen.clip,
            overwrite=chosen.overwrite,
            progress=progress,
        )
    how = "with warm start" if done.warm_start else "every pair from zero flow"
    files = counted(done.files, "file")
    print(f"{done.folder} and {done.archive}: {files}, {how}; checked, no fault found")
    if done.clipped:
        print(f"clipped {counted(done.clipped, 'pixel')} that would be out of range")
    if chosen.partial:
        print("this is part of the test set, for trial only: no server accepts it")
    elif chosen.kind == "sintel":
        print(f"Sintel's server wants what its own bundler makes of the folder {done.folder}")
    return 0


def _told(faults: Sequence[Fault]) -> Iterator[str]:
    """A line a fault; of those that say the same of many files the first few, and how many more."""
    alike: dict[str, list[Fault]] = {}
    for fault in faults:
        alike.setdefault(fault.message, []).append(fault)
    for same in alike.values():
        # One more is not worth a line that hides it.
        shown = same if len(same) <= TOLD + 1 else same[:TOLD]
        yield from map(str, shown)
        if len(shown) < len(same):
            yield f"… and {len(same) - len(shown)} more files: {same[0].message}"


def _check(chosen: argparse.Namespace) -> int:
    from lcv.evaluate.submission_check import check_submission

    faults = check_submission(
        chosen.path, chosen.kind, data=chosen.data, official=not chosen.partial
    )
    for line in _told(faults):
        print(one_line(line))
    if faults:
        print(one_line(f"{chosen.path}: {counted(len(faults), 'fault')} found"))
        return 1
    blind = chosen.kind == "kitti" and chosen.data is None
    more = "; sizes need --data to be checked" if blind else ""
    print(one_line(f"{chosen.path}: no fault found{more}"))
    return 0
