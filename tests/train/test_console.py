"""The terminal's bar and lines, fed with log entries."""

from __future__ import annotations

import io
import resource
import sys
from types import SimpleNamespace

import pytest
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


@pytest.mark.parametrize(("platform", "unit"), [("linux", 1 << 20), ("darwin", 1 << 30)])
def test_memory_is_counted_in_kibibytes_but_on_a_mac_in_bytes(monkeypatch, platform, unit):
    monkeypatch.setattr(sys, "platform", platform)
    usage = SimpleNamespace(ru_maxrss=3 * unit)
    monkeypatch.setattr(resource, "getrusage", lambda _: usage)
    assert resident_gib() == 3


def test_by_default_it_speaks_on_the_error_stream():
    assert Terminal(TrainConfig()).console.stderr


def test_a_line_is_neither_wrapped_nor_coloured():
    buffer = io.StringIO()
    console = Console(file=buffer, force_terminal=True, width=20, color_system="standard")
    line = "sintel/epe 2.000 of 'a file' and https://x.org [b]more[/b]"
    Terminal(TrainConfig(), console)({"kind": "note", "step": 0, "text": line})
    assert buffer.getvalue() == line + "\n"


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
    assert "step 50" not in text, "numbers are in the bar"
    assert "\x1b[?25h" in text, "the cursor is not shown again"
    order = ["runs/x", "━", "50/200", "EPE 0.500"]
    assert sorted(order, key=text.index) == order
