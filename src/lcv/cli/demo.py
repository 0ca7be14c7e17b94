"""`lcv demo`: the web page, on this machine only."""

from __future__ import annotations

from lcv.cli.parser import Parser, whole
from lcv.models.named import check_named


def run(arguments: list[str]) -> int:
    parser = Parser(
        "lcv demo",
        description="A page in the browser: choose or drop two images or a video, and see the flow of "
        "raft-small, its twin without LCV and raft-large side by side, also under the paper's three "
        "stresses. It answers this machine only, and leaves nothing behind when it ends.",
    )
    parser.add_argument("--port", type=int, help="by default the first free one from 7860 on")
    parser.add_argument("--host", default="127.0.0.1", help="127.0.0.1, and no other")
    parser.add_argument("--no-browser", action="store_true", help="print the address only")
    parser.add_argument(
        "--models",
        metavar="LIST",
        help="those ticked at first, with commas; a file of weights, the name of published ones, or "
        "file.py:factory adds your own (the three that come with the package)",
    )
    parser.add_argument(
        "--iters", type=whole, default=12, metavar="N", help="iterations at first (%(default)s)"
    )
    chosen = parser.parse_args(arguments)
    models = None if chosen.models is None else tuple(chosen.models.split(","))
    for name in models or ():
        check_named(name)

    from lcv.demo.serve import serve

    serve(
        chosen.host,
        chosen.port,
        browser=not chosen.no_browser,
        models=models,
        iters=chosen.iters,
    )
    return 0
