"""The metrics again, slowly: plain loops over pixels, written from the definitions alone.

Shares no code with `metrics`, so that a slip in one is seen by holding it against the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Pair = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None, np.ndarray | None]
"""flow, truth (h, w, 2); valid (h, w); occluded (h, w) or None; objects (h, w) or None"""


def slow_metrics(pairs: Sequence[Pair], wauc_steps: int = 2000) -> dict[str, float]:
    """Every metric by name; one without a pixel is left out.

    WAUC is taken as it is defined, over thresholds in the middle of `wauc_steps` equal steps from
    0 to 5 px. That is at most 200 / wauc_steps from the integral: over whole steps the midpoints
    add up a linear weight exactly, and each pixel's error cuts through one step.
    """
    pixels = [pixel for number, pair in enumerate(pairs) for pixel in _pixels(number, *pair)]
    named = {}

    def mean(name: str, values: list[float], scale: float = 1.0) -> None:
        if values:
            named[name] = scale * sum(values) / len(values)

    def per_image(name: str, key: str, scale: float = 1.0) -> None:
        means = []
        for number in range(len(pairs)):
            values = [p[key] for p in pixels if p["image"] == number]
            if values:
                means.append(sum(values) / len(values))
        mean(name, means, scale)

    mean("epe", [p["error"] for p in pixels])
    per_image("epe_image", "error")
    for limit in (1, 3, 5):
        mean(f"px{limit}", [float(p["error"] < limit) for p in pixels], 100)
    mean("fl", [p["outlier"] for p in pixels], 100)
    per_image("fl_image", "outlier", 100)
    mean("fl_bg", [p["outlier"] for p in pixels if p["object"] == 0], 100)
    mean("fl_fg", [p["outlier"] for p in pixels if p["object"] > 0], 100)
    for names, hidden in ((("noc", "matched"), 0), (("occ", "unmatched"), 1)):
        region = [p for p in pixels if p["hidden"] == hidden]
        mean(f"fl_{names[0]}", [p["outlier"] for p in region], 100)
        for name in names:
            mean(f"epe_{name}", [p["error"] for p in region])
    for name, least, most in (("s0_10", 0, 10), ("s10_40", 10, 40), ("s40", 40, float("inf"))):
        mean(f"epe_{name}", [p["error"] for p in pixels if least <= p["length"] < most])
    if pixels:
        named["wauc"] = _wauc([p["error"] for p in pixels], wauc_steps)
    return named


def _pixels(
    number: int,
    flow: np.ndarray,
    truth: np.ndarray,
    valid: np.ndarray,
    occluded: np.ndarray | None,
    objects: np.ndarray | None,
) -> list[dict[str, float]]:
    """The known pixels of one pair, each as named numbers; −1 where a map is not there."""
    found = []
    for y in range(valid.shape[0]):
        for x in range(valid.shape[1]):
            if not valid[y, x]:
                continue
            du = float(flow[y, x, 0]) - float(truth[y, x, 0])
            dv = float(flow[y, x, 1]) - float(truth[y, x, 1])
            error = (du**2 + dv**2) ** 0.5
            length = (float(truth[y, x, 0]) ** 2 + float(truth[y, x, 1]) ** 2) ** 0.5
            found.append(
                {
                    "image": number,
                    "error": error,
                    "length": length,
                    "outlier": float(error > 3 and error > 0.05 * length),
                    "hidden": -1.0 if occluded is None else float(bool(occluded[y, x])),
                    "object": -1.0 if objects is None else float(objects[y, x]),
                }
            )
    return found


def _wauc(errors: list[float], steps: int) -> float:
    above = below = 0.0
    for step in range(steps):
        threshold = 5 * (step + 0.5) / steps
        weight = 1 - threshold / 5
        above += weight * sum(error <= threshold for error in errors) / len(errors)
        below += weight
    return 100 * above / below
