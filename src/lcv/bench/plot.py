"""Pictures of a bench, drawn from its JSON: dots for the settings at a point, lines for growth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lcv.bench.table import failed, groups, machine_words, ms_words, point_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, OURS, THEIRS = "#22303c", "#2f6f9f", "#c8503c"
COLOURS = ("#2f6f9f", "#5f8f3e", "#4aa3a2", "#8a5fa8")
PEERS = ("#c8503c", "#b98a1e", "#7a4b3a", "#4f5b66")
AXES = ("size", "batch", "iters")
WORDS = {"size": "pixels", "batch": "pairs in a batch", "iters": "iterations"}
MOST = 8
"""Missing points that are named one by one."""
Row = dict[str, Any]


def bench_figure(found: dict[str, Any]) -> Figure:
    """The figure of a table or of a growth chart. Needs matplotlib."""
    return _points(found) if found["base"] is None else _growth(found)


def _points(found: dict[str, Any]) -> Figure:
    """A panel a point: the median with its range, ours and the peers', on a logarithmic axis."""
    from matplotlib.figure import Figure

    panels = list(groups(found["rows"]))
    heights = [0.9 + 0.27 * len(rows) for rows in panels]
    figure = Figure(figsize=(9, sum(heights) + 0.5), layout="constrained")
    axes = figure.subplots(len(panels), squeeze=False, height_ratios=heights).ravel()
    for axis, rows in zip(axes, panels, strict=True):
        good = [row for row in rows if "error" not in row]
        for place, row in enumerate(rows):
            if "error" in row:
                words = f" {failed(row)[:50]}"
                axis.text(0.01, place, words, va="center", transform=axis.get_yaxis_transform())
                continue
            times = [1000 * second for second in row["seconds"]]
            middle = 1000 * row["median_seconds"]
            colour = THEIRS if row["peer"] else OURS
            axis.plot([min(times), max(times)], [place, place], color=colour, linewidth=2)
            axis.plot(middle, place, "s" if row["peer"] else "o", color=colour, markersize=6)
            axis.text(max(times), place, f"  {_numbers(row)}", va="center", fontsize=8, color=INK)
        axis.set_yticks(range(len(rows)), [row["label"] for row in rows], fontsize=8)
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter("{x:g}")
        if good:
            values = [1000 * row["median_seconds"] for row in good]
            axis.set_xlim(min(values) / 2, max(values) * 4)
        title = f"{rows[0]['model']}, {point_words(rows[0])}"
        axis.set_title(title, loc="left", fontsize=10, color=INK)
        axis.set_ylim(len(rows) - 0.5, -0.5)
        axis.grid(axis="x", alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    axes[-1].set_xlabel("milliseconds: the median, and the quickest to the slowest", color=INK)
    figure.text(0.01, -0.02, machine_words(found), fontsize=8, color=INK)
    return figure


def _numbers(row: Row) -> str:
    words = f"{ms_words(1000 * row['median_seconds'])} ms"
    if row["peak_bytes"] is not None:
        words += f", {row['peak_bytes'] / 2**20:.0f} MiB"
    return words + (f", {row['px_mean']:.1g} px" if "px_mean" in row else "")


def _growth(found: dict[str, Any]) -> Figure:
    """Time above, memory below; size, batch and iterations beside each other; a line a setting."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 7.6), layout="constrained")
    axes = figure.subplots(2, len(AXES), sharey="row")
    names = dict.fromkeys((row["model"], row["label"]) for row in found["rows"])
    several = len({model for model, _ in names}) > 1
    styles, counts = {}, {"ours": 0, "theirs": 0}
    for model, label in names:
        theirs = any(r["peer"] for r in found["rows"] if (r["model"], r["label"]) == (model, label))
        which, colours = ("theirs", PEERS) if theirs else ("ours", COLOURS)
        colour = colours[counts[which] % len(colours)]
        styles[model, label] = {"color": colour, "marker": "s" if theirs else "o"}
        counts[which] += 1
    for column, axis_name in enumerate(AXES):
        for name, style in styles.items():
            rows = axis_rows(found, axis_name, *name)
            label = ": ".join(name) if several else name[1]
            good = [row for row in rows if "error" not in row]
            at = [_place(row, axis_name) for row in good]
            times = [1000 * row["median_seconds"] for row in good]
            axes[0, column].plot(at, times, label=label, markersize=4, **style)
            known = [row for row in good if row["peak_bytes"]]
            at = [_place(row, axis_name) for row in known]
            memory = [row["peak_bytes"] / 2**20 for row in known]
            axes[1, column].plot(at, memory, markersize=4, **style)
        for axis in axes[:, column]:
            _dress(axis, found, axis_name)
    axes[0, 0].set_ylabel("milliseconds", color=INK)
    axes[1, 0].set_ylabel("peak MiB", color=INK)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    words = [machine_words(found), *_absent(found)]
    figure.suptitle("\n".join(words), x=0.01, ha="left", fontsize=8, color=INK)
    return figure


def axis_rows(found: dict[str, Any], axis: str, model: str, label: str) -> list[Row]:
    """The rows of one line: those that differ from the base in this axis alone, in its order."""
    base = found["base"]
    others = [key for name in AXES if name != axis for key in _keys(name)]
    rows = [
        row
        for row in found["rows"]
        if (row["model"], row["label"]) == (model, label)
        and all(row[key] in (base[key], None) for key in others)
    ]
    return sorted((row for row in rows if _place(row, axis)), key=lambda row: _place(row, axis))


def _keys(axis: str) -> tuple[str, ...]:
    return ("height", "width") if axis == "size" else (axis,)


def _place(row: Row, axis: str) -> int:
    if axis == "size":
        return int(row["height"]) * int(row["width"])
    return int(row[axis] or 0)


def _dress(axis: Axes, found: dict[str, Any], name: str) -> None:
    from matplotlib.ticker import LogLocator

    every = [row for row in found["rows"] if _place(row, name)]
    marks = {_place(row, name): row for row in every}
    words = [f"{r['height']}×{r['width']}" if name == "size" else str(k) for k, r in marks.items()]
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks([*marks], words, fontsize=8)
    axis.minorticks_off()
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.yaxis.set_major_formatter("{x:g}")
    axis.set_xlabel(WORDS[name], color=INK)
    axis.grid(alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)


def _absent(found: dict[str, Any]) -> list[str]:
    """Points that are missing, and why."""
    absent = [row for row in found["rows"] if "error" in row]
    words = [f"missing: {r['label']} at {point_words(r)}: {failed(r)[:60]}" for r in absent[:MOST]]
    more = len(absent) - MOST
    return words + ([f"and {more} more"] if more > 0 else [])
