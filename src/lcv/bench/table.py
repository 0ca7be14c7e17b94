"""The rows of a bench for people: a table a point, what LCV costs, and how cost grows."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

from lcv.bench.cells import LCV
from lcv.evaluate.tables import Grid

Row = dict[str, Any]


def bench_tables(found: dict[str, Any]) -> list[Grid]:
    """All there is to say of the results of `bench`."""
    if found["base"] is not None:
        return [_growth(found, model) for model in dict.fromkeys(r["model"] for r in found["rows"])]
    tables = []
    for rows in groups(found["rows"]):
        tables.append(_point(found, rows))
        tables += _cost_of_lcv(rows)
    return tables


def groups(rows: list[Row]) -> Iterator[list[Row]]:
    """Rows of the same network at the same point."""
    keys = dict.fromkeys((row["model"], point_words(row)) for row in rows)
    for key in keys:
        yield [row for row in rows if (row["model"], point_words(row)) == key]


def point_words(row: Row) -> str:
    """`440×1024, 32 iterations`"""
    words = [f"{row['height']}×{row['width']}"]
    words += [f"batch {row['batch']}"] if row["batch"] > 1 else []
    many = "" if row["iters"] == 1 else "s"
    words += [f"{row['iters']} iteration{many}"] if row["iters"] else []
    return ", ".join(words)


def machine_words(found: dict[str, Any]) -> str:
    """What the numbers are of: device, versions, commit, and who is missing."""
    origin = found["provenance"]
    if origin is None:
        return "Nothing could be measured."
    packages = "".join(f", {name} {version}" for name, version in found["packages"].items())
    threads = f", {origin['threads']} threads" if "cores" in origin["device"] else ""
    commit = f", commit {origin['commit'][:7]}" if origin.get("commit") else ""
    words = f"{origin['device']}{threads}, torch {origin['torch']}{packages}{commit}."
    if found["missing"]:
        words += f" Not installed, so left out: {', '.join(found['missing'])}."
    return words + (" Interrupted: not all rows were measured." if found["interrupted"] else "")


def failed(row: Row) -> str:
    """Why a row has no numbers, in two words or in many."""
    return "out of memory" if row.get("out_of_memory") else str(row["error"])


def baseline(rows: list[Row]) -> Row | None:
    """The row that others are compared with: the first peer's, with TF32 where there is a GPU."""
    theirs = [
        row for row in rows if row["peer"] and row["engine"] == "plain" and "error" not in row
    ]
    for precision in ("tf32", "float32"):
        for row in theirs:
            if row["precision"] == precision:
                return row
    return None


def _point(found: dict[str, Any], rows: list[Row]) -> Grid:
    peer = baseline(rows)
    columns = ["", "ms", "range", "peak MiB", "px mean", "px 99 %", "first call s"]
    caption = f"px: distance from the flow of the first row. {machine_words(found)}"
    if peer is not None:
        columns.append("times as fast")
        caption = f"Times as fast: as {peer['label']}. {caption}"
    lines: list[tuple[str, ...]] = []
    for row in rows:
        if "error" in row:
            lines.append((row["label"], failed(row)[:60], *("–" for _ in columns[2:])))
            continue
        times = [1000 * second for second in row["seconds"]]
        line = [row["label"], ms_words(1000 * row["median_seconds"])]
        line += [f"{ms_words(min(times))} to {ms_words(max(times))}", _mib(row)]
        line += [_px(row.get("px_mean")), _px(row.get("px_p99")), f"{row['first_seconds']:.1f}"]
        if peer is not None:
            line.append(f"{peer['median_seconds'] / row['median_seconds']:.2f}")
        lines.append(tuple(line))
    title = f"{rows[0]['model']}, {point_words(rows[0])}"
    return Grid(title, tuple(columns), tuple(lines), caption, words=1)


def _cost_of_lcv(rows: list[Row]) -> list[Grid]:
    """Rows that differ in LCV alone, against the one without; their calls were timed in turns."""
    lines = []
    ours = [row for row in rows if row["peer"] is None and "error" not in row]
    for without in (row for row in ours if row["lcv"] == "none"):
        same = ("volume", "engine", "precision")
        alike = [row for row in ours if all(row[key] == without[key] for key in same)]
        for row in alike if len(alike) > 1 else ():
            more = [a - b for a, b in zip(row["seconds"], without["seconds"], strict=False)]
            share = median(more) / without["median_seconds"]
            cost = "–" if row is without else f"{1000 * median(more):+.2f}"
            percent = "–" if row is without else f"{100 * share:+.1f}"
            how = f"{row['volume']}, {row['engine']} {row['precision']}"
            lines.append(
                (how, LCV[row["lcv"]], ms_words(1000 * row["median_seconds"]), cost, percent)
            )
    if not lines:
        return []
    title = f"What LCV costs: {rows[0]['model']}, {point_words(rows[0])}"
    caption = "More than without LCV: the median over turns, since these were timed in turns."
    return [Grid(title, ("", "W", "ms", "more, ms", "more, %"), tuple(lines), caption, words=2)]


def _growth(found: dict[str, Any], model: str) -> Grid:
    """A row a point, a column a setting: milliseconds and MiB."""
    own = [row for row in found["rows"] if row["model"] == model]
    labels = list(dict.fromkeys(row["label"] for row in own))
    lines = []
    for rows in groups(own):
        cells = {row["label"]: _time_and_memory(row) for row in rows}
        lines.append((point_words(rows[0]), *(cells.get(label, "–") for label in labels)))
    caption = f"Milliseconds a batch and MiB at the peak. {machine_words(found)}"
    return Grid(f"How cost grows: {model}", ("", *labels), tuple(lines), caption, words=1)


def _time_and_memory(row: Row) -> str:
    if "error" in row:
        return failed(row)[:20]
    return f"{ms_words(1000 * row['median_seconds'])} / {_mib(row)}"


def ms_words(value: float) -> str:
    """Milliseconds to a hundredth, from 100 on whole."""
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def _mib(row: Row) -> str:
    return "unknown" if row["peak_bytes"] is None else f"{row['peak_bytes'] / 2**20:.0f}"


def _px(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"
