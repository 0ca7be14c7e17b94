"""What a finished study leaves beside its JSON: a Markdown table, curves, pictures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from lcv.data.formats.image import write_image
from lcv.evaluate.protocols import Protocol
from lcv.files import whole_file
from lcv.studies.robustness.pairs import Source
from lcv.studies.robustness.pasted import RULES
from lcv.studies.robustness.pictures import stress_picture
from lcv.studies.robustness.plots import curves_figure, curves_of
from lcv.studies.robustness.registry import Stress
from lcv.studies.robustness.results import INTERVALS, NONE, Study
from lcv.studies.robustness.run import FILE, Network
from lcv.studies.robustness.versus import about_differences, difference_words
from lcv.words import counted


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
    """Write them all, in place of older ones of the same study, and say what was written."""
    said = [f"{folder / FILE}: {len(study.cells)} cells, pair by pair"]
    curves = {
        source: {metric: curves_of(study, source, metric) for metric in INTERVALS}
        for source in study.groups
    }
    _text(folder / "curves.json", json.dumps(curves, indent=1, ensure_ascii=False))
    said.append(f"{folder / 'curves.json'}: the points of all curves, with intervals")
    _text(folder / "robustness.md", markdown(study))
    said.append(f"{folder / 'robustness.md'}: tables")
    for source in study.groups:
        for metric in INTERVALS:
            path = folder / f"curves-{_file(source)}-{metric}.png"
            try:
                figure = curves_figure(study, source, metric)
            except ModuleNotFoundError:
                said.append(
                    "no plots: matplotlib is not installed (pip install 'lcv-flow[report]')"
                )
                break
            with whole_file(path, overwrite=True) as temporary, temporary.open("wb") as file:
                figure.savefig(file, format="png", dpi=130)
            said.append(f"{path}: curves")
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


def markdown(study: Study) -> str:
    """All cells as tables, a source and a stress each, then networks against each other, then patches."""
    rule = study.settings["rule"]
    lines = ["# Robustness", ""]
    lines += [f"Protocol `{study.settings['protocol']['name']}`, seed {study.settings['seed']}. "]
    lines[-1] += f"Truth under a patch by the rule `{rule}`: {RULES[rule][0]}. "
    lines[-1] += (
        "EPE in px and Fl in %, means over images with 95 % bootstrap intervals over scenes."
    )
    for source, groups in study.groups.items():
        stresses = dict.fromkeys(key[2] for key in study.cells if key[0] == source)
        for stress in stresses:
            keys = [key for key in study.cells if key[0] == source and key[2] == stress]
            networks = list(dict.fromkeys(key[1] for key in keys))
            about = study.about["stresses"].get(stress, {"label": "frames as they are", "unit": ""})
            lines += ["", f"## {source} ({counted(len(groups), 'pair')}): {about['label']}", ""]
            unit = about["unit"] or "level"
            columns = [f"{n}: {m}" for n in networks for m in ("EPE per image", "Fl per image")]
            lines += [f"| {unit} | {' | '.join(columns)} |", "|---" * (1 + len(columns)) + "|"]
            for level in sorted({key[3] for key in keys}):
                row = []
                for network in networks:
                    key = (source, network, stress, level)
                    row += [_number(study, key, m) for m in INTERVALS] if key in keys else ["", ""]
                name = "–" if stress == NONE else f"{level:g}"
                lines.append(f"| {name} | {' | '.join(row)} |")
    return "\n".join([*lines, *_differences(study), *_harm(study)]) + "\n"


def _differences(study: Study) -> list[str]:
    """A table a source: rows of stress and level, two columns for every two networks."""
    lines = []
    found = study.about.get("differences", [])
    for source in dict.fromkeys(r["source"] for r in found):
        here = [r for r in found if r["source"] == source]
        couples = list(dict.fromkeys((r["first"], r["second"]) for r in here))
        lines += ["", f"## {source}: networks against each other", "", about_differences(here), ""]
        heads = [
            f"{a} − {b}: {what}" for a, b in couples for what in ("EPE", "added by the stress")
        ]
        lines += [f"| stress | level | {' | '.join(heads)} |", "|---" * (2 + len(heads)) + "|"]
        rows = {(r["stress"], r["level"], r["first"], r["second"]): r for r in here}
        for stress, level in dict.fromkeys((r["stress"], r["level"]) for r in here):
            cells = []
            for couple in couples:
                row = rows.get((stress, level, *couple), {})
                cells += [difference_words(row, name) for name in ("difference", "added")]
            name = "–" if stress == NONE else f"{level:g}"
            lines.append(f"| {stress} | {name} | {' | '.join(cells)} |")
    return lines


def _harm(study: Study) -> list[str]:
    """One table: what patches do far from themselves."""
    rows = study.about.get("harm", [])
    if not rows:
        return []
    lines = [
        "",
        f"## Harm further than {study.settings['margin']:g} px outside a patch",
        "",
        "Increase of EPE there, px. Differences are pair by pair, with 95 % intervals and the p of "
        "a sign test: to random pixels, and to random patches of the learned one's statistics.",
        "",
        "| source | network | patch | box | diameter | pairs | learned | random | matched "
        "| learned − random | learned − matched |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        matched = r.get("matched_harm")
        lines.append(
            f"| {r['source']} | {r['network']} | {r['patch']} | {r['box']} | {r['size']:g} | "
            f"{r['pairs']} | {r['harm']:.4f} | {r['random_harm']:.4f} | "
            f"{'–' if matched is None else f'{matched:.4f}'} | "
            f"{_beyond(r, 'random')} | {_beyond(r, 'matched')} |"
        )
    return lines


def _beyond(row: dict[str, Any], control: str) -> str:
    """What a patch does beyond a control: mean, interval, p."""
    value = row.get(f"harm_beyond_{control}")
    if value is None:
        return "–"
    span = row[f"harm_beyond_{control}_interval"]
    words = f"[{span[0]:.4f}, {span[1]:.4f}]" if span else "[too few pairs]"
    return f"{value:.4f} {words}, p {row[f'{control}_sign_test_p']:.2g}"


def _number(study: Study, key: tuple[str, str, str, float], metric: str) -> str:
    cell = study.described(key)
    span = cell["intervals"].get(metric)
    words = f" [{span[0]:.3f}, {span[1]:.3f}]" if span else ""
    return f"{cell['metrics'][metric]:.3f}{words}"


def _text(path: Path, text: str) -> None:
    with whole_file(path, overwrite=True) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _file(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in name)
