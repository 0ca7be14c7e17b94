"""`lcv bench`: time, memory and exactness of networks beside their peers, in one run."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lcv.cli.parser import Parser, device_name, positive, size, whole
from lcv.cli.progress import one_bar_or_lines
from lcv.errors import ArgumentError
from lcv.models.named import check_name

if TYPE_CHECKING:
    from lcv.bench import Plan

INSTALL = "matplotlib is not installed: pip install 'lcv-flow[report]'"


def run(arguments: list[str]) -> int:
    """Exit codes: 0 all is measured, 1 a row failed and is named, 2 an error, 130 interrupted."""
    chosen = _parser().parse_args(arguments)
    for name in chosen.model or ():
        check_name(name)

    from lcv.bench import bench, bench_tables
    from lcv.bench.run import FORMAT
    from lcv.files import check_output, read_json, write_text

    for path in (chosen.output, chosen.plot):
        if path:
            check_output(path, chosen.overwrite)
    if chosen.plot and not chosen.output and not chosen.source and not _can_plot():
        raise ArgumentError(f"--plot: {INSTALL}; or keep the numbers with -o and plot them later")
    if chosen.source:
        found = read_json(Path(chosen.source), "a file that `lcv bench -o` wrote", FORMAT)
    else:
        plan = _plan(chosen)
        written = False

        def keep(so_far: dict[str, Any]) -> None:
            nonlocal written
            text = json.dumps(so_far, indent=1) + "\n"
            write_text(chosen.output, text, chosen.overwrite or written)
            written = True

        with one_bar_or_lines() as progress:
            found = bench(
                plan,
                repeats=chosen.repeats,
                seconds=chosen.seconds,
                progress=progress,
                keep=keep if chosen.output else None,
            )
        if chosen.output:
            keep(found)
    print("\n".join(table.text() for table in bench_tables(found)))
    if chosen.output and not chosen.source:
        print(f"{chosen.output}: written")
    if chosen.plot:
        _draw(found, chosen.plot, chosen.overwrite, chosen.source or chosen.output)
    if found["interrupted"] and not chosen.source:
        return 130
    return 1 if any("error" in row for row in found["rows"]) else 0


def _parser() -> Parser:
    parser = Parser(
        "lcv bench",
        description="Time, peak memory and distance from float32, in one run: our networks in their "
        "settings (plain, prepared, with LCV and without, each way to hold costs) beside the same "
        "networks of torchvision and ptlflow where these are installed, with the same weights.",
    )
    add = parser.add_argument
    # Defaults come later: "extend" would add to them what is given.
    many: dict[str, Any] = {"nargs": "+", "action": "extend"}
    add("--model", **many, metavar="M", help="networks, or file.py:factory (raft-small)")
    add(
        "--size",
        **many,
        type=size_and_iters,
        metavar="HxW",
        help="of the frames (440x1024); HxW@N for N iterations at this size",
    )
    add("--batch", **many, type=whole, metavar="N", help="pairs at once (1; with --growth 1 8 32)")
    add("--iters", **many, type=whole, metavar="N", help="iterations (12; with --growth 1 12 32)")
    add(
        "--growth",
        action="store_true",
        help="how cost grows: sizes, batches and iterations, one of them at a time, the others at "
        "440x1024, 1 and 12, or the first given (sizes by default 256x256 to 2160x3840)",
    )
    add("--peers", **many, metavar="P", help="torchvision, ptlflow or none (all that import)")
    add("--compiled", action="store_true", help="peers under torch.compile too: minutes a size")
    add("--repeats", type=whole, default=10, metavar="N", help="timed calls a row (%(default)s)")
    add(
        "--seconds",
        type=positive,
        default=2.0,
        metavar="S",
        help="of timed calls a row, after which 3 are enough (%(default)s)",
    )
    add("--device", type=device_name, default="cpu", help="cpu or cuda (%(default)s)")
    add("-o", "--output", metavar="FILE.json", help="every number, written while it goes on")
    add("--plot", metavar="FILE.png", help="a picture of the results; needs matplotlib")
    add("--from", dest="source", metavar="FILE.json", help="show or plot this; measure nothing")
    add("--overwrite", action="store_true", help="replace existing outputs")
    return parser


def size_and_iters(text: str) -> tuple[int, int, int | None]:
    """HxW or HxW@N: height, width, and iterations if they are given."""
    found = re.fullmatch(r"([^@]*)@([0-9]+)", text.strip())
    if found is None:
        return (*size(text), None)
    return (*size(found[1]), whole(found[2]))


def _plan(chosen: argparse.Namespace) -> Plan:
    from lcv.bench import Point, plan_growth, plan_table

    models = chosen.model or ["raft-small"]
    packages = _packages(chosen.peers)
    if chosen.growth:
        if chosen.compiled:
            raise ArgumentError(
                "--compiled does not go together with --growth, where every point would take "
                "minutes; leave one of them out"
            )
        if any(n for _, _, n in chosen.size or ()):
            raise ArgumentError(
                "--size is HxW@N, wanted HxW: with --growth, iterations are --iters"
            )
        axes: dict[str, Any] = {"batches": chosen.batch, "iters": chosen.iters}
        axes["sizes"] = chosen.size and [(h, w) for h, w, _ in chosen.size]
        axes = {name: values for name, values in axes.items() if values}
        return plan_growth(models, **axes, device=chosen.device, peers=packages)
    points = [
        Point(h, w, batch, own or iters)
        for h, w, own in chosen.size or [(440, 1024, None)]
        for batch in chosen.batch or [1]
        for iters in ([own] if own else chosen.iters or [12])
    ]
    return plan_table(
        models, points, device=chosen.device, peers=packages, compiled=chosen.compiled
    )


def _packages(given: list[str] | None) -> list[str] | None:
    """None for all."""
    from lcv.bench.cells import known_peers

    if given is None or given == ["none"]:
        return None if given is None else []
    for name in given:
        if name not in known_peers():
            known = ", ".join(known_peers())
            raise ArgumentError(f"--peers is {name!r}, wanted {known} or none")
    return given


def _can_plot() -> bool:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


def _draw(found: dict[str, Any], path: str, overwrite: bool, source: str | None) -> None:
    from lcv.bench.plot import bench_figure
    from lcv.files import whole_file

    if not _can_plot():
        print(f"{path}: not drawn, {INSTALL}; then `lcv bench --from {source} --plot {path}`")
        return
    with whole_file(path, overwrite) as temporary, temporary.open("wb") as file:
        bench_figure(found).savefig(file, format="png", dpi=130, bbox_inches="tight")
    print(f"{path}: drawn")
