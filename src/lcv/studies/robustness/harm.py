"""The harm that a patch does far from itself, and how much of it is the patch's own.

Far is further than the study's margin outside the rim. Harm in a pair is the mean error of its far
pixels with the patch less that without. A random patch of the same statistics, at the same place,
does some harm too; what a learned patch does beyond it is compared pair by pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lcv.evaluate.compare import sign_test
from lcv.studies.robustness.results import Key, Study, interval


def harms(study: Study) -> list[dict[str, Any]]:
    """One row for every source, network, patch and size that has been measured with its control.

    A patch is white-box for the network whose parameters its card names, black-box for all others.
    Every row names its numbers: means over pairs, in px, and 95 % intervals.
    """
    rows = []
    for source, network, stress, level in study.cells:
        kind, _, name = stress.partition(":")
        key: Key = (source, network, stress, level)
        control: Key = (source, network, f"random:{name}", level)
        if kind != "patch" or control not in study.cells:
            continue
        groups = study.groups[source]
        learned, random = harm_of(study, key), harm_of(study, control)
        more = [
            None if a is None or b is None else a - b for a, b in zip(learned, random, strict=True)
        ]
        known = [value for value in more if value is not None]
        if not known:
            continue
        card = study.about["stresses"][stress].get("patch") or {}
        target = (card.get("network") or {}).get("state_sha256")
        white = target is not None and target == study.about["networks"][network]["state_sha256"]
        rows.append(
            {
                "source": source,
                "network": network,
                "patch": name,
                "size": level,
                "box": "white" if white else "black",
                "pairs": len(known),
                "harm": _mean(learned),
                "harm_interval": interval(learned, groups),
                "random_harm": _mean(random),
                "random_harm_interval": interval(random, groups),
                "harm_beyond_random": _mean(more),
                "harm_beyond_random_interval": interval(more, groups),
                "sign_test_p": sign_test(known),
            }
        )
    return rows


def harm_of(study: Study, key: Key) -> list[float | None]:
    """The increase of the mean far error in each pair; None where a pair has no far pixel."""
    columns = study.cells[key]
    counts = columns["pixels/far"]
    return [
        (with_patch - without) / count if count else None
        for with_patch, without, count in zip(
            columns["error/far"], columns["untouched/far"], counts, strict=True
        )
    ]


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return sum(known) / len(known)
