"""How far a verb is: on the standard error only, and only where somebody looks."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from lcv.cli import main, predict_progress, progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def on_terminal(monkeypatch):
    """Called in the test itself: pytest puts streams of its own in place after the fixtures."""
    monkeypatch.setattr(progress.sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    return progress.sys.stderr


@pytest.mark.parametrize("bar", [progress.bars, progress.one_bar])
def test_without_a_terminal_there_is_nobody_to_tell(bar, capsys):
    with bar() as tell:
        assert tell is None
    assert capsys.readouterr() == ("", "")


def test_who_interrupts_is_told_how_to_go_on(monkeypatch, capsys):
    for wanted in (True, False):

        def interrupted(_, wanted=wanted):
            with progress.told_to_go_on(wanted=wanted):
                raise KeyboardInterrupt

        monkeypatch.setattr(main, "_run", interrupted)
        assert main.main(["eval"]) == 130
        more = "; finished work is kept; the same command goes on" if wanted else ""
        assert capsys.readouterr().err == f"lcv: interrupted{more}\n"


def test_a_log_has_no_line_that_says_nothing_is_left(monkeypatch):
    monkeypatch.setattr(predict_progress, "LINE_SECONDS", -1.0)
    terminal = predict_progress.Terminal(console=Console(file=io.StringIO()))
    terminal.begin("walk", 3)
    for _ in range(3):
        terminal.advance()
    lines = terminal.console.file.getvalue().splitlines()
    assert [line.split(", ")[1] for line in lines] == ["2 of 3 pairs left", "1 of 3 pairs left"]


def test_work_of_hours_leaves_lines(capsys):
    with progress.one_bar_or_lines(every=2) as tell:
        for done in range(4):
            tell("steps", done, 3)
    told = capsys.readouterr()
    assert told.out == ""
    assert [line.split()[0] for line in told.err.splitlines()] == ["0/3", "2/3", "3/3"]


@pytest.mark.parametrize("bar", [progress.bars, progress.one_bar, progress.one_bar_or_lines])
def test_on_a_terminal_a_bar_is_drawn_beside_the_results(bar, monkeypatch, capsys):
    terminal = on_terminal(monkeypatch)
    with bar() as tell:
        tell("frames", 1, 7)
        tell("frames", 7, 7)
    assert capsys.readouterr().out == ""
    assert "frames" in terminal.getvalue()
    assert "7/7" in terminal.getvalue()
    assert "\x1b[" in terminal.getvalue()


def test_a_bar_that_is_not_wanted_is_not_drawn(monkeypatch):
    terminal = on_terminal(monkeypatch)
    with progress.bars(wanted=False) as tell:
        assert tell is None
    monkeypatch.setenv("TERM", "dumb")
    with progress.one_bar() as tell:
        assert tell is None
    assert terminal.getvalue() == ""
