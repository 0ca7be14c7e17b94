"""A name may hold line breaks and escape sequences: they are shown, wherever names are printed."""

from __future__ import annotations

import io
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from rich.progress import Progress

import lcv
from lcv.cli import main as cli
from lcv.cli import predict, predict_progress, progress
from lcv.cli.predict_inputs import Inputs
from lcv.data.check_report import Problem, Report
from lcv.evaluate.tables import Grid
from lcv.predict.job import Summary
from lcv.train.config import TrainConfig
from lcv.train.console import Terminal

NAME = "\x1b[2Ja\nlcv: fine"
SHOWN = "\\u001b[2Ja\\nlcv: fine"


def error() -> None:
    cli.main(["view", f"{NAME}.flo", "-o", "a.png"])


def picture() -> None:
    lcv.write_flow(f"{NAME}.flo", np.zeros((4, 6, 2), np.float32))
    cli.main(["view", f"{NAME}.flo", "-o", f"{NAME}.png"])


def failures() -> None:
    print(predict._failures(Namespace(), Inputs(()), Summary(failures={f"{NAME}: cut": 1})))


def prediction() -> None:
    console = Console(file=sys.stdout, width=200)
    predict_progress.Terminal(console=console).say(f"{NAME}: small")


def prediction_on_a_terminal() -> None:
    terminal = predict_progress.Terminal(console=Console(file=io.StringIO(), force_terminal=True))
    terminal.begin(NAME, 3)
    print(terminal.progress.tasks[0].description)


def training() -> None:
    console = Console(file=sys.stdout, width=200)
    Terminal(TrainConfig(), console)({"kind": "note", "step": 1, "text": NAME})


def lines() -> None:
    with progress.one_bar_or_lines() as tell:
        tell(NAME, 1, 2)


def bars() -> None:
    bar = Progress(console=Console(file=io.StringIO()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(progress, "_is_terminal", lambda: True)
        patch.setattr(progress, "_drawn", lambda: bar)
        with progress.bars() as several, progress.one_bar() as one:
            several(NAME, 1, 2)
            one(NAME, 1, 2)
    first, second = (task.description for task in bar.tasks)
    assert first == second
    print(first)


def table() -> None:
    print(Grid(NAME, (NAME, "b"), ((NAME, "1"),), NAME).text())


def drawn_table() -> None:
    grid = Grid(NAME, (NAME, "b"), ((NAME, "1"),), NAME)
    Console(file=sys.stdout, width=200).print(grid.rich())


def check() -> None:
    print(Report(NAME, [], [Problem(NAME, "cut")]).text())


def submission() -> None:
    folder = Path("wrong")
    folder.mkdir()
    (folder / f"{NAME}.txt").touch()
    cli.main(["submit", "check", str(folder), "--kind", "kitti"])


PLACES = [
    error,
    picture,
    failures,
    prediction,
    prediction_on_a_terminal,
    training,
    lines,
    bars,
    table,
    drawn_table,
    check,
    submission,
]


@pytest.mark.parametrize("say", PLACES, ids=lambda say: say.__name__)
def test_line_breaks_in_names_are_shown_and_not_sent(say, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    say()
    printed = "".join(capsys.readouterr())
    assert SHOWN in printed
    assert "\x1b" not in printed
    assert not any(line.startswith("lcv: fine") for line in printed.splitlines())
