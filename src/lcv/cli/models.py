"""`lcv models`: the networks, embedded and published weights there are, and fetching the last."""

from __future__ import annotations

import json
from typing import Any

from lcv.cli.parser import Parser
from lcv.cli.progress import says_how_to_resume


def run(arguments: list[str]) -> int:
    parser = Parser(
        "lcv models",
        description="List networks, the weights that come with the package, and published ones.",
    )
    parser.add_argument(
        "--fetch", metavar="NAME", help="fetch a published checkpoint, hash-checked"
    )
    parser.add_argument("--json", action="store_true", help="print the list as JSON")
    options = parser.parse_args(arguments)
    if options.fetch:
        print(_fetch(options.fetch))
        return 0
    listed = _listing()
    if options.json:
        print(json.dumps(listed, indent=2))
        return 0
    print(f"{'network':<12}{'parameters':>12}{'W adds':>9}")
    for row in listed["networks"]:
        print(f"{row['name']:<12}{row['parameters']:>12,}{row['w_adds']:>9,}")
    print("\nweights that come with the package (lcv predict --model NAME, lcv.load(NAME))")
    for row in listed["embedded"]:
        print(f"  {row['name']:<20} {row['model']}, {row['inner_product']}, {row['licence']}")
        for conditions, numbers in row["scores"].items():
            print(f"  {'':<20} {conditions}:")
            for what, value in numbers.items():
                print(f"  {'':<20}   {value:.3f}  {what}")
        if row["advice"]:
            print(f"  {'':<20} {row['advice']}")
        print(f"  {'':<20} sha256 {row['sha256']}")
    print("\npublished weights (lcv models --fetch NAME, which prints their path)")
    for row in listed["published"]:
        where = row["file"] or "not fetched"
        print(f"  {row['name']:<12} {row['model']}, {row['licence']}, {where}")
        print(f"  {'':<12} {row['data']}")
        print(f"  {'':<12} sha256 {row['sha256']}")
    return 0


def _listing() -> dict[str, Any]:
    import torch

    from lcv.models.build import NETWORKS, build
    from lcv.models.embedded import EMBEDDED, embedded_card
    from lcv.models.published import PUBLISHED, cache_folder

    networks = []
    for name in NETWORKS:
        with torch.device("meta"):
            counts = {
                kind: sum(p.numel() for p in build(name, kind).parameters())
                for kind in ("euclidean", "elliptical")
            }
        added = counts["elliptical"] - counts["euclidean"]
        networks.append({"name": name, "parameters": counts["euclidean"], "w_adds": added})
    embedded = []
    for name in EMBEDDED:
        card = embedded_card(name)
        said = {key: card[key] for key in ("data", "recipe", "licence", "scores", "sha256")}
        embedded.append({"name": name, **_network_of(card), **said, "advice": card.get("advice")})
    published = []
    for name, entry in PUBLISHED.items():
        path = cache_folder() / entry.member.rpartition("/")[2]
        published.append(
            {
                "name": name,
                "model": entry.model,
                "data": entry.data,
                "licence": entry.licence,
                "sha256": entry.sha256,
                "file": str(path) if path.exists() else None,
            }
        )
    return {"networks": networks, "embedded": embedded, "published": published}


def _network_of(card: dict[str, Any]) -> dict[str, str]:
    return {"model": card["model"]["name"], "inner_product": card["model"]["inner_product"]}


def _fetch(name: str) -> str:
    from lcv.models.published import PUBLISHED, fetch

    if name not in PUBLISHED:
        return str(fetch(name))  # which says what there is
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    columns = ("{task.description}", BarColumn(), DownloadColumn(), TimeRemainingColumn())
    # On the standard error, so that the path can be taken from the standard output.
    with (
        says_how_to_resume(),
        Progress(*columns, console=Console(stderr=True), transient=True) as bar,
    ):
        task = bar.add_task(name, total=None)
        path = fetch(
            name, progress=lambda done, total: bar.update(task, completed=done, total=total)
        )
    return str(path)
