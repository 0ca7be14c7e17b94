"""One self-contained page, and the same in Markdown: the paper's tables next to what was measured."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lcv.errors import ArgumentError
from lcv.files import check_output, write_text
from lcv.studies.blocks import Block, Heading, Row, TableBlock, markdown
from lcv.studies.report_ablation import ablation
from lcv.studies.report_page import page
from lcv.studies.report_robust import robustness
from lcv.studies.report_sources import (
    Ablation,
    Evaluation,
    Robustness,
    Source,
    Training,
    read_sources,
)
from lcv.studies.report_tables import everything, supervised, unsupervised
from lcv.studies.report_training import training

TITLE = "A learnable cost volume: results"
BY_COLOUR = "Rows on a coloured ground were measured here; grey ones are the paper's"
BY_MARK = (
    "Rows that say “measured here” hold what was; rows that say “paper” hold what the paper prints"
)
SUBTITLE = (
    " (“Learnable Cost Volume Using the Cayley Representation”, ECCV 2020). EPE and AEPE are in "
    "pixels, Fl-all in percent; the paper's tables headed “AEPE/Fl-all” hold Fl-all and then AEPE, "
    "and are named here as what they hold."
)


def write_report(
    paths: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    title: str = TITLE,
    overwrite: bool = False,
) -> list[Path]:
    """Read what there is at `paths`, write `output` and the same name with .md; both are returned.

    output: a name that ends in .html
    """
    output = Path(output)
    if output.suffix.lower() not in (".html", ".htm"):
        raise ArgumentError(f"{output}: ends in {output.suffix!r}, wanted the name of a .html file")
    text = output.with_suffix(".md")
    for path in (output, text):
        check_output(path, overwrite)
    sources = read_sources([Path(path) for path in paths])
    blocks = blocks_of(sources)
    for path, content in (
        (output, page(title, BY_COLOUR + SUBTITLE, blocks)),
        (text, markdown(title, BY_MARK + SUBTITLE, blocks)),
    ):
        write_text(path, content, overwrite)
    return [output, text]


def blocks_of(sources: Sequence[Source]) -> list[Block]:
    """Everything there is to say about the sources, in the order of the paper."""
    if not sources:
        raise ArgumentError("a report of nothing; wanted at least one result or folder")
    results = [r for source in sources if isinstance(source, Evaluation) for r in source.results]
    return [
        *supervised(results),
        *unsupervised(results),
        *ablation([s for s in sources if isinstance(s, Ablation)]),
        *robustness([s for s in sources if isinstance(s, Robustness)]),
        *training([s for s in sources if isinstance(s, Training)]),
        *everything(results),
        *origins(sources),
    ]


def origins(sources: Sequence[Source]) -> list[Block]:
    """Where every number comes from: version, commit, machine."""
    rows = []
    for source in sources:
        for kind, what, origin in _origins(source):
            changed = " (changed)" if origin.get("modified") else ""
            commit = f"{str(origin.get('commit') or '–')[:12]}{changed}"
            machine = (str(origin.get(name) or "–") for name in ("torch", "device"))
            rows.append(Row((source.name, kind, what, commit, *machine)))
    head = ("source", "made by", "what", "commit", "torch", "machine")
    unique = tuple(dict.fromkeys(rows))
    return [Heading("Where it comes from"), TableBlock("Sources", head, unique)]


def _origins(source: Source) -> list[tuple[str, str, dict[str, Any]]]:
    if isinstance(source, Evaluation):
        return [
            ("lcv eval", f"{r.label or 'result'}: {', '.join(r.datasets)}", r.provenance)
            for r in source.results
        ]
    if isinstance(source, Ablation):
        study = source.study
        done = [result for cell in study.cells() if (result := study.result(cell)) is not None]
        origin: dict[str, Any] = done[0].get("provenance", {}) if done else {}
        return [("lcv ablate", f"{study.model}, {len(study.columns)} columns", origin)]
    if isinstance(source, Robustness):
        about = source.study.about
        return [("lcv robust", ", ".join(about.get("networks", {})), about.get("provenance", {}))]
    return [("lcv train", str(source.config.get("model", {}).get("name", "network")), {})]
