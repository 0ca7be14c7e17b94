"""`lcv bench`: how long networks take and how much memory, with LCV and without."""

from __future__ import annotations

import json

from lcv.cli.parser import Parser, device_name, size, whole
from lcv.cli.progress import one_bar_or_lines


def run(arguments: list[str]) -> int:
    """Exit codes: 0 all is measured, 1 some of it could not be and is named, 2 an error."""
    parser = Parser(
        "lcv bench",
        description="Time and peak memory of one pair: each network with LCV and without, for RAFT "
        "with all costs held at once (all-pairs) and computed when looked up (on-demand). Every row "
        "is a process of its own. Weights are random, which changes neither.",
    )
    add = parser.add_argument
    # Defaults come later: "extend" would add to them what is given.
    add(
        "--model",
        nargs="+",
        action="extend",
        metavar="M",
        help="networks, or file.py:factory (raft-small)",
    )
    add(
        "--size",
        nargs="+",
        action="extend",
        type=size,
        metavar="HxW",
        help="of the frames (440x1024)",
    )
    add("--iters", type=whole, default=12, metavar="N", help="iterations of RAFT (%(default)s)")
    add("--repeats", type=whole, default=5, metavar="N", help="timed pairs a row (%(default)s)")
    add("--device", type=device_name, default="cpu", help="cpu or cuda (%(default)s)")
    add("-o", "--output", metavar="FILE.json", help="every number, with where it comes from")
    add("--overwrite", action="store_true", help="replace an existing output")
    chosen = parser.parse_args(arguments)

    from lcv.bench import bench, bench_table
    from lcv.files import check_output, whole_file

    if chosen.output:
        check_output(chosen.output, chosen.overwrite)
    with one_bar_or_lines() as progress:
        found = bench(
            chosen.model or ["raft-small"],
            chosen.size or [(440, 1024)],
            iters=chosen.iters,
            repeats=chosen.repeats,
            device=chosen.device,
            progress=progress,
        )
    if chosen.output:
        with whole_file(chosen.output, chosen.overwrite) as temporary:
            temporary.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(bench_table(found).text())
    if chosen.output:
        print(f"{chosen.output}: written")
    return 1 if any("error" in row for row in found["rows"]) else 0
