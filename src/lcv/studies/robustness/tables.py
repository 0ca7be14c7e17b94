"""The numbers of a robustness study as tables, for robustness.md and for the report."""

from __future__ import annotations

from typing import Any

from lcv.studies.blocks import Block, Folded, Heading, Row, TableBlock, Words
from lcv.studies.robustness.results import INTERVALS, NONE, Key, Study
from lcv.studies.robustness.versus import about_differences, difference_words, leave_out_zero
from lcv.words import counted

HARM_HEAD = (
    "patch, on network",
    "box",
    "diameter px",
    "pairs",
    "learned px",
    "random px",
    "matched px",
    "learned − random px [95\u00a0%], p",
    "learned − matched px [95\u00a0%], p",
)


def level_tables(study: Study) -> list[Block]:
    """EPE and Fl of every network at every level, a table for each source and stress."""
    blocks: list[Block] = []
    for source, stress in dict.fromkeys((key[0], key[2]) for key in study.cells):
        keys = [key for key in study.cells if (key[0], key[2]) == (source, stress)]
        networks = list(dict.fromkeys(key[1] for key in keys))
        about = study.about["stresses"].get(stress, {"label": "frames as they are", "unit": ""})
        columns = [f"{n}: {m}" for n in networks for m in ("EPE per image", "Fl per image")]
        rows = []
        for level in sorted({key[3] for key in keys}):
            found = [(source, network, stress, level) for network in networks]
            cells = [_number(study, key, metric) for key in found for metric in INTERVALS]
            rows.append(Row(("–" if stress == NONE else f"{level:g}", *cells)))
        caption = f"{source} ({counted(len(study.groups[source]), 'pair')}): {about['label']}"
        blocks.append(TableBlock(caption, (about["unit"] or "level", *columns), tuple(rows)))
    return blocks


def _number(study: Study, key: Key, metric: str) -> str:
    if key not in study.cells:
        return ""
    cell = study.described(key)
    span = cell["intervals"].get(metric)
    words = f" [{span[0]:.3f}, {span[1]:.3f}]" if span else ""
    return f"{cell['metrics'][metric]:.3f}{words}"


def versus_tables(study: Study, level: int) -> list[Block]:
    """Every two networks compared, a folded table each. level: of the headings"""
    blocks: list[Block] = []
    found = study.about.get("differences", [])
    for source in dict.fromkeys(r["source"] for r in found):
        here = [r for r in found if r["source"] == source]
        blocks.append(Heading(f"{source}: networks against each other", level))
        blocks.append(Words(about_differences(here)))
        for first, second in dict.fromkeys((r["first"], r["second"]) for r in here):
            own = [r for r in here if (r["first"], r["second"]) == (first, second)]
            caption = f"{source}: {first} less {second}, EPE px [95\u00a0%]; pairs below : above, p"
            head = ("stress", "difference", "added by the stress")
            table = TableBlock(caption, head, tuple(_versus_row(r) for r in own))
            without, spans = leave_out_zero(own, "difference")
            counted = f" ({without} of {spans} differences leave out zero)" if spans else ""
            blocks.append(Folded(f"{source}: {first} against {second}{counted}", (table,)))
    return blocks


def _versus_row(r: dict[str, Any]) -> Row:
    stress = "frames as they are" if r["stress"] == NONE else f"{r['stress']} {r['level']:g}"
    return Row((stress, difference_words(r, "difference"), difference_words(r, "added")))


def harm_tables(study: Study, level: int) -> list[Block]:
    """What patches do far from themselves, a table a source. level: of the heading"""
    found = study.about.get("harm", [])
    if not found:
        return []
    far = f"further than {study.settings['margin']:g} px outside a patch"
    words = (
        "Increase of EPE there. Random: random pixels. Matched: a random patch with the grey levels "
        "and the spectrum of the learned one. Differences are pair by pair, with 95 % bootstrap "
        "intervals over scenes and the p of a sign test."
    )
    blocks: list[Block] = [Heading(f"Harm {far}", level), Words(words)]
    for source in dict.fromkeys(r["source"] for r in found):
        rows = tuple(_harm_row(r) for r in found if r["source"] == source)
        blocks.append(TableBlock(f"{source}: increase of EPE {far}", HARM_HEAD, rows))
    return blocks


def _harm_row(r: dict[str, Any]) -> Row:
    matched = r.get("matched_harm")
    cells = (
        f"{r['patch']}, {r['network']}",
        r["box"],
        f"{r['size']:g}",
        str(r["pairs"]),
        f"{r['harm']:.4f}",
        f"{r['random_harm']:.4f}",
        "–" if matched is None else f"{matched:.4f}",
        _beyond(r, "random"),
        _beyond(r, "matched"),
    )
    return Row((cells[0], *(cell.replace("-", "−") for cell in cells[1:])))


def _beyond(r: dict[str, Any], control: str) -> str:
    """How much more harm a patch does than a control: mean, interval, p."""
    value = r.get(f"harm_beyond_{control}")
    if value is None:
        return "–"
    span = r[f"harm_beyond_{control}_interval"]
    between = f"[{span[0]:.4f}, {span[1]:.4f}]" if span else "[too few scenes]"
    return f"{value:+.4f} {between}, p {r[f'{control}_sign_test_p']:.2g}"
