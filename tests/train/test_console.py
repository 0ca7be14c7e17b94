"""The terminal's bar and lines, fed with log entries."""

from __future__ import annotations

import io

from rich.console import Console

from lcv.train import TrainConfig
from lcv.train.console import Terminal, resident_gib, train_line

ENTRY = {"kind": "train", "step": 50, "loss": 1.23456, "epe": 0.5, "pairs_per_second": 61.25}


def shown(*entries, terminal: bool) -> str:
    buffer = io.StringIO()
    console = Console(file=buffer, force_terminal=terminal, width=160, color_system=None)
    with Terminal(TrainConfig(steps=200, folder="runs/x"), console) as show:
        for entry in entries:
            show(entry)
    return buffer.getvalue()


def test_one_line_of_numbers():
    assert train_line({**ENTRY, "memory_gib": 7.5}) == (
        "loss 1.235  EPE 0.500  61.2 pairs/s  7.50 GiB"
    )


def test_without_a_gpu_memory_is_the_process_own():
    assert 0.01 < resident_gib() < 64
    assert train_line(ENTRY).endswith(f"{resident_gib():.2f} GiB")


def test_a_file_gets_a_line_an_entry():
    validation = {"kind": "validation", "step": 100, "sintel/epe": 2.0, "sintel/fl": 9.25}
    note = {"kind": "note", "step": 0, "text": "a [name] in brackets"}
    lines = shown(note, {**ENTRY, "memory_gib": 1.0}, validation, terminal=False).splitlines()
    assert lines == [
        "a [name] in brackets",
        "step 50/200  loss 1.235  EPE 0.500  61.2 pairs/s  1.00 GiB",
        "step 100  validation  sintel/epe 2.000  sintel/fl 9.250",
    ]


def test_a_terminal_gets_a_bar():
    text = shown({**ENTRY, "memory_gib": 1.0}, terminal=True)
    assert "50/200" in text
    assert "runs/x" in text
    assert "EPE 0.500" in text
