"""`lcv report`: one self-contained page, and the same in Markdown, from any results."""

from __future__ import annotations

from lcv.cli.parser import Parser


def run(arguments: list[str]) -> int:
    parser = Parser(
        "lcv report",
        description="Put results next to the paper's numbers: one HTML page that needs nothing "
        "else, and a Markdown file of the same name.",
        epilog="lcv report eval.json out/ablation out/robustness runs/mine -o report.html",
    )
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="results of lcv eval (JSON), folders of lcv ablate, lcv robust or lcv train",
    )
    parser.add_argument("-o", "--output", required=True, metavar="PAGE.html")
    parser.add_argument("--title", help="of the page")
    parser.add_argument("--overwrite", action="store_true", help="replace existing outputs")
    options = parser.parse_args(arguments)

    from lcv.studies.report import TITLE, write_report

    written = write_report(options.runs, options.output, options.title or TITLE, options.overwrite)
    for path in written:
        print(f"{path}: {_size(path.stat().st_size)}")
    return 0


def _size(count: int) -> str:
    return f"{count / 2**20:.1f} MiB" if count >= 2**20 else f"{count / 2**10:.1f} KiB"
