"""Signals as words to a run: noted, answered once, and as before when it is over."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from lcv.train.interrupts import interrupts

SIGNALS = (signal.SIGTERM, signal.SIGINT)


def press(number: int) -> None:
    os.kill(os.getpid(), number)


def test_a_first_ctrl_c_is_answered_and_a_second_one_stops_at_once(capfd, monkeypatch):
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    before = [signal.getsignal(number) for number in SIGNALS]
    with interrupts() as arrived:
        assert arrived == []
        press(signal.SIGINT)
        assert arrived == [signal.SIGINT]
        press(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            press(signal.SIGINT)
    assert arrived == [signal.SIGINT, signal.SIGTERM]
    assert [signal.getsignal(number) for number in SIGNALS] == before
    said = capfd.readouterr()
    assert said.err == "stopping as soon as all is saved; Ctrl-C again stops at once\n"
    assert said.out == ""


def test_torchrun_passes_on_what_the_terminal_has_sent_already(capfd, monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "x")
    with interrupts() as arrived:
        press(signal.SIGINT)
        press(signal.SIGINT)
    assert arrived == [signal.SIGINT] * 2
    assert capfd.readouterr().err.count("stopping") == 1


def test_sigterm_is_noted_in_silence(capfd):
    with interrupts() as arrived:
        press(signal.SIGTERM)
    assert arrived == [signal.SIGTERM]
    assert capfd.readouterr().err == ""


def test_in_a_thread_nothing_is_listened_to():
    before = [signal.getsignal(number) for number in SIGNALS]

    def inside():
        with interrupts() as arrived:
            return arrived, [signal.getsignal(number) for number in SIGNALS]

    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(inside).result() == ([], before)
