"""The harm that a patch does far from itself, compared with random patches.

Far is further than the study's margin outside the rim. Harm in a pair is the mean error of its far
pixels with the patch less that without. Controls at the same place are random pixels and a random
patch with the statistics of the learned one.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from lcv.evaluate.compare import sign_test
from lcv.studies.robustness.results import Key, Study, interval, known, less


def harms(study: Study) -> list[dict[str, Any]]:
    """One row for every source, network, patch and size that has been measured with random pixels.

    A patch is white-box for the network whose parameters its card names, black-box for all others.
    Numbers are means over pairs in px and 95 % intervals; None where a control was not measured.
    """
    rows = []
    for source, network, stress, level in study.cells:
        kind, _, name = stress.partition(":")
        key: Key = (source, network, stress, level)
        if kind != "patch" or (source, network, f"random:{name}", level) not in study.cells:
            continue
        learned = harm_of(study, key)
        if not known(learned):
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
                "pairs": len(known(learned)),
                "harm": fmean(known(learned)),
                "harm_interval": interval(learned, study.groups[source]),
                **_against(study, learned, (source, network, f"random:{name}", level)),
                **_against(study, learned, (source, network, f"matched:{name}", level)),
            }
        )
    return rows


def _against(study: Study, learned: Sequence[float | None], key: Key) -> dict[str, Any]:
    """The harm of a control, and what the learned patch does beyond it in the same pairs."""
    source, _, stress, _ = key
    name = stress.partition(":")[0]
    words = (
        f"{name}_harm",
        f"{name}_harm_interval",
        f"harm_beyond_{name}",
        f"harm_beyond_{name}_interval",
        f"{name}_sign_test_p",
    )
    if key not in study.cells:
        return dict.fromkeys(words)
    groups = study.groups[source]
    control = harm_of(study, key)
    more = less(learned, control)
    spans = interval(control, groups), interval(more, groups)
    values = (fmean(known(control)), spans[0], fmean(known(more)), spans[1], sign_test(known(more)))
    return dict(zip(words, values, strict=True))


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
