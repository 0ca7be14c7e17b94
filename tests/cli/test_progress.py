"""How far a verb is: on the standard error only, and only where somebody looks."""

from __future__ import annotations

import contextlib
import io
import sys

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
            with progress.says_how_to_resume(wanted=wanted):
                raise KeyboardInterrupt

        monkeypatch.setattr(main, "_run", interrupted)
        assert main.main(["eval"]) == 130
        more = "; finished work is kept; to continue, run the same command" if wanted else ""
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


class Clock:
    """Seconds that pass only when they are told to."""

    now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(predict_progress, "time", made)
    monkeypatch.setattr(progress, "time", made)
    return made


def plain_terminal(**options):
    return predict_progress.Terminal(console=Console(file=io.StringIO(), width=200), **options)


def test_the_speed_of_what_is_going_on_now(clock):
    terminal = plain_terminal()
    terminal.begin("walk", 100)
    assert terminal.speed() == ""
    terminal.advance()
    assert terminal.speed() == "", "one moment is no speed"
    clock.now += 2
    terminal.advance(3)
    assert terminal.speed() == "1.5 pairs/s, 64 s left", "2 s for 3 pairs, and 96 to come"
    clock.now += 9
    terminal.advance(computed=False)
    assert terminal.speed() == "1.5 pairs/s, 63 s left", "an impossible pair takes no time"
    for _ in range(20):
        clock.now += 3
        terminal.advance()
    assert terminal.speed() == "3.0 s a pair, 4 min left", "of the last twenty, and 75 to come"
    clock.now += 3
    terminal.advance(200)
    assert terminal.left == 0
    assert terminal.speed().endswith("pairs/s")
    terminal.begin("run", None)
    terminal.advance(0)
    terminal.advance()
    terminal.advance()
    assert terminal.speed() == "", "two pairs at one moment are no speed, and none is none"
    terminal.begin("run", None)
    assert (terminal.left, terminal.speed()) == (None, "")
    for _ in range(2):
        clock.now += 1
        terminal.advance()
    assert terminal.speed() == "1.0 s a pair"


def test_a_log_has_a_line_every_half_minute(clock):
    terminal = plain_terminal()
    terminal.begin("walk", 9)
    told = terminal.console.file
    for seconds, line in (
        (30.0, ""),
        (0.5, "walk, 7 of 9 pairs left, 2.0 pairs/s, 4 s left\n"),
        (30.0, ""),
        (0.5, "walk, 5 of 9 pairs left, 10.3 s a pair, 52 s left\n"),
    ):
        clock.now += seconds
        terminal.advance()
        assert told.getvalue() == line, seconds
        told.truncate(0)
        told.seek(0)
    terminal.begin("camera", None)
    clock.now += 31
    terminal.advance()
    assert told.getvalue() == "camera\n"


def test_notes_are_said_before_the_first_pair_unless_quiet(clock):
    for quiet in (False, True):
        terminal = plain_terminal(quiet=quiet)
        terminal.notes += ["[bold] is a name", "two"]
        with terminal:
            terminal.begin("walk", 3)
            terminal.begin("run", 4)
        wanted = "" if quiet else "[bold] is a name\ntwo\n"
        assert terminal.console.file.getvalue() == wanted


@pytest.mark.parametrize("quiet", [False, True])
def test_a_bar_runs_on_a_terminal_only_and_ends(quiet):
    console = Console(file=io.StringIO(), force_terminal=True, width=200)
    terminal = predict_progress.Terminal(quiet, console)
    with terminal:
        assert terminal.progress.live.is_started is not quiet
        terminal.begin("walk", 3)
        terminal.advance(2)
        terminal.begin("run", 4)
        terminal.advance()
        (task,) = terminal.progress.tasks
        assert (task.description, task.completed, task.total) == ("run", 1, 4)
    assert not terminal.progress.live.is_started
    with plain_terminal() as other:
        assert not other.progress.live.is_started


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.4, "0 s"),
        (99.4, "99 s"),
        (100, "2 min"),
        (99 * 60, "99 min"),
        (100 * 60, "1 h 40 min"),
        (125 * 60, "2 h 5 min"),
    ],
)
def test_durations_as_people_say_them(seconds, words):
    assert predict_progress.duration(seconds) == words


def test_lines_say_how_long_it_has_taken(clock, capsys):
    with progress.one_bar_or_lines() as tell:
        clock.now += 75.4
        tell("steps", 1, 3)
        tell("steps", 2, 3)
    assert capsys.readouterr().err == "1/3  75 s  steps\n2/3  75 s  steps\n"


def test_bars_are_labelled(monkeypatch):
    drawn = []

    class Bar:
        def add_task(self, name, total):
            drawn.append((name, total))
            return len(drawn)

        def update(self, task, **what):
            drawn.append((task, what))

    monkeypatch.setattr(progress, "_is_terminal", lambda: True)
    monkeypatch.setattr(progress, "_drawn", lambda: contextlib.nullcontext(Bar()))
    with progress.bars("raft") as tell:
        tell("kitti", 1, 7)
        tell("kitti", 2, 7)
    assert drawn == [
        ("raft: kitti", 7),
        (1, {"completed": 1, "total": 7}),
        (1, {"completed": 2, "total": 7}),
    ]
    drawn.clear()
    with progress.one_bar() as tell:
        tell("kitti", 1, 7)
    assert drawn == [("", None), (1, {"description": "kitti", "completed": 1, "total": 7})]


def test_without_rich_there_is_no_bar(monkeypatch):
    on_terminal(monkeypatch)
    assert progress._is_terminal()
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    assert not progress._is_terminal()


def test_ctrl_c_says_how_to_go_on_unless_nothing_is_kept():
    def interrupted(**options):
        with pytest.raises(KeyboardInterrupt) as caught, progress.says_how_to_resume(**options):
            raise KeyboardInterrupt
        return str(caught.value)

    assert interrupted() == "finished work is kept; to continue, run the same command"
    assert interrupted(wanted=False) == ""
    over = "finished work is kept; to continue, run the same command without --overwrite"
    assert interrupted(overwrite=True) == over


def test_a_long_line_stays_one_line_where_nobody_looks():
    file, text = io.StringIO(), "a note of more than forty characters, [in] one line"
    predict_progress.Terminal(console=Console(file=file, width=40)).say(text)
    assert file.getvalue() == f"{text}\n"
