"""Work beside the caller's stays in order, and its errors are not lost."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import Future

import pytest

from lcv.threads import Behind, cores, prepared


@pytest.mark.parametrize("count", [0, 1, 3, 20])
def test_items_come_in_order_and_are_prepared_a_few_places_ahead(count):
    begun: list[int] = []

    def prepare(pool, item: int) -> Future[int]:
        begun.append(item)
        return pool.submit(lambda: time.sleep(0.01 * (item % 3)) or item)

    for turn, item in enumerate(prepared(range(count), prepare, 4)):
        assert item.result() == turn
        assert len(begun) == min(turn + 5, count)


def test_items_that_nobody_asks_for_are_not_prepared():
    done = []
    items = prepared(range(100), lambda pool, item: pool.submit(done.append, item), 2)
    next(items)
    items.close()
    assert len(done) <= 3


def test_work_is_done_in_order_in_another_thread():
    done = []
    with Behind(2) as behind:
        for number in range(10):
            behind.do(lambda number=number: done.append((number, threading.get_ident())))
    assert [number for number, _ in done] == list(range(10))
    assert {thread for _, thread in done}.isdisjoint({threading.get_ident()})


def test_no_more_than_so_much_is_waiting():
    begun, gate = [], threading.Event()
    with Behind(2) as behind:
        behind.do(lambda: begun.append(0) or gate.wait(10))
        behind.do(lambda: begun.append(1))
        threading.Timer(0.05, gate.set).start()
        behind.do(lambda: begun.append(2))  # waits for the first
        assert gate.is_set()
    assert begun == [0, 1, 2]


def fail():
    raise KeyError("here")


def test_an_error_comes_up_at_the_next_call_or_at_the_end():
    with pytest.raises(KeyError, match="here"), Behind(2) as behind:
        behind.do(fail)
    behind = Behind(1)
    behind.do(fail)
    with pytest.raises(KeyError, match="here"):
        behind.do(lambda: None)


def test_what_was_given_is_done_even_if_the_block_fails():
    done = []

    def block():
        with Behind(3) as behind:
            behind.do(lambda: time.sleep(0.05))
            behind.do(lambda: done.append(1))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        block()
    assert done == [1]


def test_an_error_of_the_work_is_raised_before_one_of_the_block():
    def block():
        with Behind(2) as behind:
            behind.do(fail)
            raise ValueError("later")

    with pytest.raises(KeyError, match="here"):
        block()


def test_nothing_is_done_after_the_first_error():
    done, gate = [], threading.Event()

    def late():
        gate.wait(10)
        fail()

    def block():
        with Behind(3) as behind:
            behind.do(late)
            behind.do(lambda: done.append(1))
            gate.set()

    with pytest.raises(KeyError, match="here"):
        block()
    assert done == []


def test_waiting_until_so_much_is_left():
    gate, done = threading.Event(), []
    with Behind(5) as behind:
        behind.do(lambda: done.append(0))
        behind.do(lambda: gate.wait(10))
        behind.do(lambda: done.append(2))
        behind.join(2)
        assert done == [0]
        gate.set()
        behind.join()
        assert done == [0, 2]


def test_there_are_as_many_threads_as_places_ahead():
    """Three items wait for each other, so that each needs a thread of its own."""
    meeting = threading.Barrier(3, timeout=10)
    items = prepared(range(3), lambda pool, item: pool.submit(meeting.wait), 3)
    assert sorted(item.result() for item in items) == [0, 1, 2]


def test_only_cores_that_the_process_may_use_are_counted(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3, 5}, raising=False)
    assert cores() == 2
    monkeypatch.delattr(os, "sched_getaffinity")
    assert cores() == 64
