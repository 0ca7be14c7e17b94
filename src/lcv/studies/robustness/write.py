"""What a finished study writes next to its JSON: tables in Markdown, curves, pictures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import torch

from lcv.data.formats.image import write_image
from lcv.evaluate.protocols import Protocol
from lcv.files import whole_file, write_text
from lcv.studies import blocks
from lcv.studies.robustness.pairs import Source
from lcv.studies.robustness.pasted import RULES
from lcv.studies.robustness.pictures import stress_picture
from lcv.studies.robustness.plots import curves_figure, curves_of
from lcv.studies.robustness.registry import Stress
from lcv.studies.robustness.results import INTERVALS, Study
from lcv.studies.robustness.run import FILE, Network
from lcv.studies.robustness.tables import harm_tables, level_tables, versus_tables
from lcv.visual.plots import NO_PLOTS


def write_outputs(
    study: Study,
    networks: Sequence[Network],
    sources: Sequence[Source],
    stresses: Sequence[Stress],
    protocol: Protocol,
    folder: Path,
    *,
    pictures: int = 1,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> list[str]:
    """Write all of it, replacing older files, and say what was written."""
    said = [f"{folder / FILE}: {len(study.cells)} cells, pair by pair"]
    curves = {
        source: {metric: curves_of(study, source, metric) for metric in INTERVALS}
        for source in study.groups
    }
    text = json.dumps(curves, indent=1, ensure_ascii=False)
    write_text(folder / "curves.json", text, overwrite=True)
    said.append(f"{folder / 'curves.json'}: the points of all curves, with intervals")
    write_text(folder / "robustness.md", markdown(study), overwrite=True)
    said.append(f"{folder / 'robustness.md'}: tables")
    try:
        said += _plots(study, folder)
    except ModuleNotFoundError:
        said.append(NO_PLOTS)
    shown = [stress for stress in stresses if not stress.control]
    for opened in sources:
        for index in range(min(pictures, len(opened))):
            path = folder / f"picture-{_file(opened.label)}-{index}.png"
            page = stress_picture(
                networks, opened, shown, protocol, index=index, seed=seed, device=device
            )
            write_image(path, page, overwrite=True)
            said.append(f"{path}: stressed frames, flows, differences")
    return said


def _plots(study: Study, folder: Path) -> list[str]:
    said = []
    for source in study.groups:
        for metric in INTERVALS:
            figure = curves_figure(study, source, metric)
            path = folder / f"curves-{_file(source)}-{metric}.png"
            with whole_file(path, overwrite=True) as temporary, temporary.open("wb") as file:
                figure.savefig(file, format="png", dpi=130)
            said.append(f"{path}: curves")
    return said


def markdown(study: Study) -> str:
    """All cells, then networks against each other, then patches."""
    rule = study.settings["rule"]
    intro = (
        f"Protocol `{study.settings['protocol']['name']}`, seed {study.settings['seed']}. Truth under "
        f"a patch by the rule `{rule}`: {RULES[rule][0]}. EPE in px and Fl in %, means over images "
        f"with 95 % bootstrap intervals over scenes."
    )
    tables = [*level_tables(study), *versus_tables(study, 2), *harm_tables(study, 2)]
    return blocks.markdown("Robustness", intro, tables)


def _file(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in name)
