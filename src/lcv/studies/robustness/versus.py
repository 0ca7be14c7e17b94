"""Is one network more robust than another? Every two of them, pair by pair, under every stress."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from statistics import fmean
from typing import Any

from lcv.evaluate.compare import sign_test
from lcv.studies.robustness.plots import CONTROLS
from lcv.studies.robustness.results import NONE, Study, interval, known, less


def differences(study: Study) -> list[dict[str, Any]]:
    """One row for every source, two networks, stress and level that both were measured at.

    With e the mean error of a pair under the stress and e₀ that without, of the networks 1 and 2:
        difference   mean over pairs of e₁ − e₂; below zero the first is better
        added        mean over pairs of (e₁ − e₁₀) − (e₂ − e₂₀); below zero it suffers less
    in px, with 95 % bootstrap intervals over scenes (None for too few), the number of pairs below
    and above zero, and the p of a sign test of these. The interval is about the mean, which a few
    pairs can decide, the test about most pairs. Controls of patches and neutral levels are left out.
    """
    rows = []
    for source, groups in study.groups.items():
        cells = [key for key in study.cells if key[0] == source]
        networks = dict.fromkeys(key[1] for key in cells)
        levels = [key for key in dict.fromkeys(key[2:] for key in cells) if _asked(study, *key)]
        for first, second in combinations(networks, 2):
            for stress, level in levels:
                if any((source, n, stress, level) not in study.cells for n in (first, second)):
                    continue
                apart, before = (
                    less(*(study.means((source, n, *at), "error") for n in (first, second)))
                    for at in ((stress, level), (NONE, 0.0))
                )
                added = None if stress == NONE else less(apart, before)
                rows.append(
                    {
                        "source": source,
                        "first": first,
                        "second": second,
                        "stress": stress,
                        "level": level,
                        **_said("difference", apart, groups),
                        **_said("added", added, groups),
                    }
                )
    return rows


def about_differences(rows: Sequence[dict[str, Any]]) -> str:
    """What the numbers of these rows are, and how many of their intervals leave out zero."""
    said = (
        "EPE of the first network less that of the second, px: the mean over pairs with its 95 % "
        "interval over scenes; below zero the first is better. Added by the stress: the same less "
        "the difference on frames as they are; below zero the first suffers less. Then in how many "
        "pairs it is below and above zero, and the p of a sign test of these counts. The test is "
        "about most pairs; a few pairs can move the mean to the other side. Under a patch, pixels "
        "count by the rule above."
    )
    counted = [leave_out_zero(rows, name) for name in ("difference", "added")]
    without, spans = (sum(numbers) for numbers in zip(*counted, strict=True))
    if spans:
        said += (
            f" {without} of {spans} intervals leave out zero; were there no difference anywhere, "
            f"about one in twenty would, and more where scenes are few."
        )
    return said


def leave_out_zero(rows: Sequence[dict[str, Any]], name: str) -> tuple[int, int]:
    """How many intervals of `difference` or `added` leave out zero, and how many there are."""
    spans = [row[f"{name}_interval"] for row in rows if row[f"{name}_interval"]]
    return sum(low > 0 or high < 0 for low, high in spans), len(spans)


def difference_words(row: dict[str, Any], name: str) -> str:
    """Mean, interval, counts and p of `difference` or `added`; a dash where it was not measured."""
    if row.get(name) is None:
        return "–"
    span = row[f"{name}_interval"]
    between = f"[{span[0]:.3f}, {span[1]:.3f}]" if span else "[too few scenes]"
    counts = f"{row[f'{name}_below']} : {row[f'{name}_above']}"
    words = f"{row[name]:+.3f} {between}; {counts}, p {row[f'{name}_sign_test_p']:.2g}"
    return words.replace("-", "−")


def _asked(study: Study, stress: str, level: float) -> bool:
    about = study.about["stresses"].get(stress, {})
    return stress.partition(":")[0] not in CONTROLS and about.get("neutral") != level


def _said(name: str, values: list[float | None] | None, groups: Sequence[str]) -> dict[str, Any]:
    measured = known(values or ())
    if values is None or not measured:
        words = ("", "_interval", "_below", "_above", "_sign_test_p")
        return dict.fromkeys(f"{name}{word}" for word in words)
    return {
        name: fmean(measured),
        f"{name}_interval": interval(values, groups),
        f"{name}_below": sum(value < 0 for value in measured),
        f"{name}_above": sum(value > 0 for value in measured),
        f"{name}_sign_test_p": sign_test(measured),
    }
