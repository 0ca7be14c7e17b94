"""The rows of a bench for people."""

from __future__ import annotations

from typing import Any

from lcv.evaluate.tables import Grid

HAS_LCV = {"euclidean": "no", "elliptical": "yes"}


def bench_table(found: dict[str, Any]) -> Grid:
    """One row a cell: the median time of a pair with its range, and the peak of memory."""
    origin = found["provenance"]
    columns = ("network", "LCV", "costs", "height×width", "iters", "ms a pair", "range", "peak MiB")
    where = f"{origin['device']}, {origin['threads']} threads, torch {origin['torch']}"
    caption = f"{where}. Random weights, noise; the median of the timed pairs, and their range."
    rows = tuple(_row(row) for row in found["rows"])
    return Grid("Speed and memory of one pair, float32", columns, rows, caption, words=4)


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    size = f"{row['height']}×{row['width']}"
    who = (row["model"], HAS_LCV[row["inner_product"]], row["strategy"])
    what = (*who, size, str(row["iters"] or "–"))
    if "error" in row:
        return (*what, "failed", row["error"][:40], "–")
    times = [1000 * second for second in row["seconds"]]
    peak = "unknown" if row["peak_bytes"] is None else f"{row['peak_bytes'] / 2**20:.0f}"
    across = f"{min(times):.0f} to {max(times):.0f}"
    return (*what, f"{1000 * row['median_seconds']:.0f}", across, peak)
