"""`lcv eval`: metrics under a named protocol, or the difference between results, pair by pair."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lcv.cli.parser import Parser, device_name, whole
from lcv.cli.progress import bars, says_how_to_resume
from lcv.errors import ArgumentError, FileError
from lcv.models.named import check_named

if TYPE_CHECKING:
    from lcv.evaluate.results import Result


def run(arguments: list[str]) -> int:
    chosen = _parser().parse_args(arguments)
    if chosen.explain:
        return _explain()
    if chosen.compare:
        return _compare(chosen)
    return _evaluate(chosen)


_BY_DATASET = re.compile(r"([a-z][a-z0-9-]*)=(.+)")


class _Model(argparse.Action):
    """`--model` opens an entrant; the `--weights` after it are its own."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        entrants = list(namespace.entrants or [])
        if option == "--weights":
            if not entrants:  # a file says its network itself
                entrants.append((None, []))
            entrants[-1] = (entrants[-1][0], [*entrants[-1][1], *values])
        else:
            entrants += [(name, []) for name in values]
        namespace.entrants = entrants


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        "lcv eval",
        description="Measure networks on every dataset with truth that is found in folders, "
        "under a named protocol; or compare results that were measured before.",
        epilog="lcv eval --model raft-large --weights raft-sintel.pth kitti=raft-kitti.pth "
        "--data datasets -o result.json",
    )
    what = parser.add_argument_group("what is measured")
    what.add_argument(
        "--model",
        dest="entrants",
        action=_Model,
        nargs="+",
        metavar="M",
        help="a network's name, a file of weights, or file.py:factory",
    )
    what.add_argument(
        "--weights",
        dest="entrants",
        action=_Model,
        nargs="+",
        metavar="W",
        help="of the --model before, or alone: a file, a published name, or kitti=FILE for the datasets "
        "whose name begins so; without, our own",
    )
    what.add_argument(
        "--data",
        nargs="+",
        default=[],
        metavar="FOLDER",
        help="datasets, folders of datasets, list files, or the word benchmark",
    )
    what.add_argument("--split", help="val, vcn-val or paper-val, of the datasets that have it")
    what.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="PATTERN",
        help="as in kitti2015, sintel or middlebury/Gr*",
    )
    what.add_argument("--limit", type=whole, metavar="N", help="first N pairs of each dataset")
    how = parser.add_argument_group("how")
    how.add_argument(
        "--protocol", default="raft", help="raft, torchvision, vcn, ddflow, kitti or sintel (raft)"
    )
    how.add_argument("--iters", type=whole, help="in place of the protocol's iterations")
    how.add_argument("--pad", help="sintel or kitti, in place of the protocol's padding")
    how.add_argument("--precision", help="float64, float32, tf32, bfloat16 or float16")
    how.add_argument("--validity", help="known, or not-invalid: without Sintel's invalid pixels")
    how.add_argument(
        "--warm-start",
        action="store_true",
        default=None,
        help="within a scene, start from the flow of the pair before",
    )
    how.add_argument("--device", type=device_name, help="cuda or cpu; the GPU where there is one")
    out = parser.add_argument_group("what comes out")
    out.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="the result as JSON, or with --compare the differences",
    )
    out.add_argument("--overwrite", action="store_true", help="replace an existing output")
    out.add_argument(
        "--compare",
        nargs="+",
        metavar="RESULT",
        help="compare results of these files with the first of them, pair by pair",
    )
    out.add_argument("--metric", nargs="+", metavar="NAME", help="to compare (epe fl wauc)")
    out.add_argument(
        "--by-scene", action="store_true", help="the interval of a comparison over whole scenes"
    )
    out.add_argument(
        "--explain", action="store_true", help="what every metric and protocol means, and leave"
    )
    return parser


def parse_weights(words: Iterable[str]) -> dict[str, str]:
    """FILE or NAME for all datasets, kitti=FILE for those whose name begins so."""
    found: dict[str, str] = {}
    for word in words:
        match = None if Path(word).is_file() else _BY_DATASET.fullmatch(word)
        where, file = match.groups() if match else ("", word)
        if where in found:
            raise ArgumentError(
                f"weights: {found[where]!r} and {file!r} are both for "
                f"{where or 'all datasets'}; wanted one"
            )
        found[where] = file
    return found


def _explain() -> int:
    from lcv.evaluate.metrics import explain
    from lcv.evaluate.tables import protocol_text

    print(explain())
    print()
    print(protocol_text())
    return 0


def _evaluate(chosen: argparse.Namespace) -> int:
    if not chosen.entrants or not chosen.data:
        lacks = "--model" if not chosen.entrants else "--data"
        raise ArgumentError(
            f"missing: {lacks}; wanted --model M [--weights W] --data FOLDER…, or "
            f"--compare A.json B.json"
        )
    from lcv.files import check_output

    for word in chosen.data:
        if word != "benchmark" and not Path(word).exists():
            raise FileError(f"{word}: there is no such folder or list; wanted a dataset with truth")
    if chosen.output:
        check_output(chosen.output, chosen.overwrite)
    named = [(name, parse_weights(words)) for name, words in chosen.entrants]
    for name, weights in named:
        for file in weights.values() or (None,):
            check_named(name, file)

    # What can be found wrong without torch, which takes seconds to import, has been.
    from lcv.evaluate.protocols import find_protocol

    protocol = find_protocol(chosen.protocol).changed(
        chosen.iters,
        chosen.pad,
        precision=chosen.precision,
        validity=chosen.validity,
        warm_start=chosen.warm_start,
    )
    from lcv.evaluate.entrants import check_entrants, entrant_of, evaluate_entrant
    from lcv.evaluate.sources import records_in
    from lcv.train.distributed import join, leave

    processes = join(chosen.device)
    try:
        # The benchmark is made on the CPU, so that it is the same to the bit on every machine.
        records = records_in(chosen.data, split=chosen.split, only=chosen.only, limit=chosen.limit)
        entrants = [entrant_of(name, weights) for name, weights in named]
        check_entrants(entrants, records)
        results = []
        for entrant in entrants:
            first = processes.is_first
            resume_hint = says_how_to_resume(wanted=first and bool(chosen.output))
            with bars(entrant.label, wanted=first) as progress, resume_hint:
                results.append(
                    evaluate_entrant(
                        entrant,
                        records,
                        protocol,
                        device=processes.device,
                        processes=processes,
                        progress=progress,
                        output=chosen.output,
                    )
                )
    finally:
        leave()
    if processes.is_first:
        _show(results, chosen.output, chosen.overwrite)
    return 0


def _show(results: Sequence[Result], output: str | None, overwrite: bool) -> None:
    from lcv.evaluate.finished import forget
    from lcv.evaluate.results import write_results
    from lcv.evaluate.tables import dataset_tables

    if output:  # first, so that a terminal that fails loses nothing
        write_results(output, results, overwrite)
        forget(output)
    for table in dataset_tables(results):
        table.show()
    if output:
        print(f"{output}: written; lcv eval --explain says what every metric means")


def _compare(chosen: argparse.Namespace) -> int:
    from lcv.evaluate.compare import DEFAULT_METRICS, compare, write_comparison
    from lcv.evaluate.results import read_results
    from lcv.evaluate.tables import comparison_table
    from lcv.files import check_output

    if chosen.output:
        check_output(chosen.output, chosen.overwrite)
    results: list[Result] = []
    for path in chosen.compare:
        for result in read_results(path):
            # The same network under two protocols, or trained twice, is told apart by its file.
            twin = any(result.label == other.label for other in results)
            label = f"{result.label} ({path})" if twin else result.label
            results.append(replace(result, label=label))
    if len(results) < 2:
        raise ArgumentError(
            f"--compare: there is {len(results)} result in {', '.join(chosen.compare)}, wanted "
            f"two or more"
        )
    metrics = chosen.metric or DEFAULT_METRICS
    differences = []
    for second in results[1:]:
        rows = compare(results[0], second, metrics, by_scene=chosen.by_scene)
        comparison_table(results[0], second, rows, chosen.by_scene).show()
        differences.append((second, rows))
    if chosen.output:
        write_comparison(chosen.output, results[0], differences, chosen.overwrite)
        print(f"{chosen.output}: written")
    return 0
