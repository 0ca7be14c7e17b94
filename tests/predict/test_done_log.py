"""The done log: the union of all lines, whatever state they are in."""

from __future__ import annotations

import hashlib
import json
import os
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcv.errors import FileError
from lcv.predict.done_log import DoneLog, Entry, Files, Identity, size_of

SOURCE = Identity(3, 4, "ab")


def log_of(folder) -> DoneLog:
    log = DoneLog(folder)
    log.read()
    return log


def test_what_one_worker_writes_another_reads(tmp_path):
    one, two = DoneLog(tmp_path), DoneLog(tmp_path)
    one.append({"flow/a.flo": 5}, "walk", "a", [SOURCE])
    two.append({"flow/b.flo": 6}, "walk", "b", [SOURCE], notes=["out of memory"])
    two.append({"clip/walk.mp4": 7}, "walk", clip="stamp")
    one.read()
    assert one.entries == log_of(tmp_path).entries
    assert one.entries["flow/b.flo"].made_from == (SOURCE,)
    assert one.entries["clip/walk.mp4"].stamp == "stamp"
    assert one.pairs["walk", "a"] == (SOURCE,)
    assert len(list(tmp_path.iterdir())) == 2, "each has a file of its own"


def test_a_line_of_a_later_run_counts(tmp_path):
    for run in (2, 1):
        log = DoneLog(tmp_path)
        log.run = run
        log.append({"flow/a.flo": run}, "", "a")
    assert log_of(tmp_path).entries["flow/a.flo"].size == 2


@given(st.integers(0, 400))
@settings(max_examples=40, deadline=None)
def test_a_torn_last_line_is_ignored(tmp_path_factory, length):
    folder = tmp_path_factory.mktemp("done")
    log = DoneLog(folder)
    for name in ("a", "b", "c"):
        log.append({f"flow/{name}.flo": 5}, "walk", name, [SOURCE])
    whole = log.own.read_bytes()
    log.own.write_bytes(whole[:length])
    found = log_of(folder)
    lines = whole[:length].count(b"\n")
    assert [*found.entries] == ["flow/a.flo", "flow/b.flo", "flow/c.flo"][:lines]
    # When the rest arrives, it is read too.
    log.own.write_bytes(whole)
    found.read()
    assert len(found.entries) == 3


@pytest.mark.parametrize("change", [{"run": float("inf")}, {"outputs": []}, {"made_from": [[1]]}])
def test_a_line_that_makes_no_sense_is_ignored(tmp_path, change):
    log = DoneLog(tmp_path)
    log.append({"flow/a.flo": 5}, "walk", "a", [SOURCE])
    line = {**json.loads(log.own.read_bytes()), **change}
    (tmp_path / "other.jsonl").write_text(json.dumps(line) + "\n")
    assert log_of(tmp_path).entries == log.entries


def test_a_file_is_known_by_size_and_time_and_then_by_content(tmp_path, monkeypatch):
    path = tmp_path / "frame.png"
    path.write_bytes(b"frame")
    known = Files().identity(path)
    monkeypatch.setattr(Files, "_hash", lambda *_: known.sha256)
    assert Files().is_unchanged(path, known)
    monkeypatch.undo()
    os.utime(path, ns=(1, 1))
    assert Files().is_unchanged(path, known), "the same content at another time"
    path.write_bytes(b"other")
    assert not Files().is_unchanged(path, known), "the same size"
    path.unlink()
    assert not Files().is_unchanged(path, known)
    assert Files().identity(path) == (0, 0, "")


def test_a_link_has_no_size(tmp_path):
    (tmp_path / "a").write_bytes(b"12")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert [size_of(tmp_path / name) for name in ("a", "b", "c")] == [2, None, None]


def test_what_a_log_holds(tmp_path, monkeypatch):
    monkeypatch.setattr("platform.node", lambda: 60 * "h")
    log = DoneLog(tmp_path)
    assert re.fullmatch(rf"h{{40}}-{os.getpid()}-[0-9a-f]{{8}}\.jsonl", log.own.name)
    log.append({"flow/a.flo": 5, "low/a.npy": 6}, "walk", "a", [SOURCE], notes=["tiles"])
    log.append({"clip/walk.mp4": 7}, "walk", clip="stamp")
    entries = {
        "flow/a.flo": Entry(1, 5, (SOURCE,), None),
        "low/a.npy": Entry(1, 6, (SOURCE,), None),
        "clip/walk.mp4": Entry(1, 7, (), "stamp"),
    }
    assert log.entries == log_of(tmp_path).entries == entries
    assert log.pairs == {("walk", "a"): (SOURCE,), ("walk", ""): ()}
    one, two = map(json.loads, log.own.read_text().splitlines())
    assert one == {
        "run": 1,
        "sequence": "walk",
        "pair": "a",
        "made_from": [[3, 4, "ab"]],
        "notes": ["tiles"],
        "outputs": {"flow/a.flo": 5, "low/a.npy": 6},
    }
    assert two["clip"] == "stamp"


def test_a_line_of_an_earlier_run_changes_nothing(tmp_path):
    later, earlier = Identity(1, 1, "later"), Identity(2, 2, "earlier")
    log = DoneLog(tmp_path)
    for log.run, made_from in ((5, later), (4, earlier)):
        log.append({"flow/a.flo": 100 - log.run}, "walk", "a", [made_from])
    assert log.entries == {"flow/a.flo": Entry(5, 95, (later,), None)}
    assert log.pairs == {("walk", "a"): (later,)}
    log.run = 5
    log.append({"flow/a.flo": 1}, "walk", "a", [earlier])
    assert log.entries["flow/a.flo"].size == 1, "of the same run the last line counts"


def test_a_line_that_cannot_be_written_is_an_error(tmp_path):
    log = DoneLog(tmp_path / "nowhere")
    with pytest.raises(FileError, match=r"\.jsonl: writing failed: .*No such file"):
        log.append({"flow/a.flo": 5}, "walk")
    assert not log.entries


def test_a_link_among_the_logs_is_not_read(tmp_path):
    DoneLog(tmp_path / "a").folder.mkdir()
    log = DoneLog(tmp_path / "a")
    log.append({"flow/a.flo": 5}, "walk")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "x.jsonl").symlink_to(log.own)
    assert not log_of(tmp_path / "b").entries


def test_a_file_is_looked_at_once_until_it_is_forgotten(tmp_path):
    path, files = tmp_path / "frame.png", Files()
    path.write_bytes(b"one")
    before = files.identity(path)
    assert before == (3, path.stat().st_mtime_ns, hashlib.sha256(b"one").hexdigest())
    path.write_bytes(b"three")
    assert files.identity(path) == before
    files.forget(path)
    after = files.identity(path)
    assert (after.size, after.sha256) == (5, hashlib.sha256(b"three").hexdigest())
    files.forget(tmp_path / "unknown")
