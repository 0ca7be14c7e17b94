"""Bytes from texts, in words, where they are free, and how many a block takes."""

from __future__ import annotations

import ctypes
import gc

import pytest
import torch

from lcv import memory
from lcv.errors import ArgumentError
from lcv.memory import (
    free_bytes,
    give_back_freed,
    in_words,
    measured,
    parse_bytes,
    return_freed_memory,
)

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("amount", "wanted"),
    [
        (6_000_000_000, 6 * 10**9),
        (6e9, 6 * 10**9),
        ("6GB", 6 * 10**9),
        (" 6 gb ", 6 * 10**9),
        ("6g", 6 * 10**9),
        ("1.5GiB", 3 * 2**29),
        ("512MB", 512 * 10**6),
        ("512MiB", 512 * 2**20),
        ("800k", 800_000),
        ("2e9", 2 * 10**9),
        ("1000", 1000),
        ("1000B", 1000),
    ],
)
def test_amounts(amount, wanted):
    assert parse_bytes(amount) == wanted


@pytest.mark.parametrize(
    "amount", ["", "GB", "6 GBB", "-1GB", "6XB", "six", 0, -5, True, float("nan"), float("inf")]
)
def test_what_is_no_amount(amount):
    with pytest.raises(ArgumentError, match="max_memory is .*, wanted a number of bytes or a text"):
        parse_bytes(amount)


def test_words_read_back_as_they_were():
    for amount in (1_000, 12_345_678, 312_000_000, 999_960_000, 3_141_592_653, 94 * 10**9, 10**13):
        assert abs(parse_bytes(in_words(amount)) - amount) <= 0.005 * amount
    assert in_words(312_000_000) == "312 MB"
    assert in_words(1) == "1 B"
    assert in_words(1_500) == "1.5 kB"
    assert in_words(3_410_000_000) == "3.41 GB"


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        (999, "999 B"),
        (1_000, "1 kB"),
        (99_949, "99.9 kB"),
        (99_950, "100 kB"),
        (999_999, "1000 kB"),
        (1_000_000, "1 MB"),
        (1_000_000_000, "1 GB"),
        (2_340_000_000_000, "2.34 TB"),
    ],
)
def test_three_digits(amount, words):
    assert in_words(amount) == words


def test_the_least_amount_is_a_byte():
    assert (parse_bytes(1), parse_bytes("1.9"), parse_bytes("1tib")) == (1, 1, 1 << 40)
    with pytest.raises(ArgumentError, match="room is 0.5, wanted a number of bytes or a text such"):
        parse_bytes(0.5, "room")


class Noted:
    """glibc, as far as it is asked."""

    def __init__(self) -> None:
        self.asked = []

    def __getattr__(self, name):
        return lambda *words: self.asked.append((name, *words))


def test_malloc_is_told_when_to_give_back(monkeypatch):
    """mallopt's numbers: −1 is M_TRIM_THRESHOLD, −3 M_MMAP_THRESHOLD, as malloc.h has them."""
    libc, collected = Noted(), []
    monkeypatch.setattr(ctypes, "CDLL", lambda name: libc)
    monkeypatch.setattr(gc, "collect", lambda: collected.append(True))
    return_freed_memory()
    assert libc.asked == [("mallopt", -3, 4 << 20), ("mallopt", -1, 64 << 20)]
    libc.asked.clear()
    give_back_freed(CPU)
    assert (libc.asked, collected) == ([("malloc_trim", 0)], [True])


def test_on_a_gpu_its_own_memory_counts(monkeypatch):
    device, done = torch.device("cuda", 1), []
    numbers = {"memory_allocated": 300, "max_memory_allocated": 1000, "memory_reserved": 450}
    for name, number in numbers.items():
        monkeypatch.setattr(torch.cuda, name, {device: number}.__getitem__)
    monkeypatch.setattr(torch.cuda, "mem_get_info", {device: (5000, 9000)}.__getitem__)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", done.append)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: done.append("emptied"))
    assert free_bytes(device) == 5150
    with measured(device) as peak:
        assert (peak, done) == ([], [device])
    assert peak == [700]
    monkeypatch.setattr(ctypes, "CDLL", lambda name: pytest.fail("malloc was asked"))
    give_back_freed(device)
    assert done[1:] == ["emptied"]


def test_what_linux_says_of_a_block(linux, tmp_path):
    linux("own/clear_refs", "")
    linux("own/status", "VmHWM: 70 kB\nVmRSS: 50 kB\n")
    with measured(CPU) as peak:
        assert (tmp_path / "own" / "clear_refs").read_text() == "5"
        linux("own/status", "VmHWM:\t90 kB\nVmRSS: 60 kB\n")
    assert peak == [40 * 1024]


def test_limits_above_a_group_count_and_those_elsewhere_do_not(linux, tmp_path):
    for group, limit in (("", 900), ("a", 700), ("a/b", 800), ("c", 100), ("memory", 50)):
        linux(f"groups/{group}/memory.max", f"{limit}\n")
        linux(f"groups/{group}/memory.current", "200\n")
        linux(f"groups/{group}/memory.stat", "anon 1\n")
    linux("memory.max", "1")  # above the mount there are no groups
    linux("memory.current", "1")
    linux("memory.stat", "anon 1\n")
    assert sorted(memory._left_in_groups()) == [500, 600, 700]
    linux("own/cgroup", "3:cpu,memory:/a:b\n")
    linux("groups/memory/a:b/memory.limit_in_bytes", "90\n")
    linux("groups/memory/a:b/memory.usage_in_bytes", "40\n")
    linux("groups/memory/a:b/memory.stat", "inactive_file 8\ntotal_inactive_file 2\n")
    assert memory._left_in_groups() == [52]


@pytest.fixture
def linux(tmp_path, monkeypatch):
    """A Linux of files: writes what /proc and /sys would say."""
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "OWN", tmp_path / "own")
    monkeypatch.setattr(memory, "GROUPS", tmp_path / "groups")

    def write(path: str, text: str) -> None:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    write("meminfo", "MemTotal: 9000 kB\nMemAvailable:    5000 kB\n")
    write("own/cgroup", "0::/a/b\n")
    return write


def test_what_is_available(linux):
    assert free_bytes(CPU) == 5000 * 1024


def test_a_container_may_have_less(linux):
    linux("groups/a/b/memory.max", "max\n")
    linux("groups/a/memory.max", "4000000\n")
    linux("groups/a/memory.current", "3000000\n")
    linux("groups/a/memory.stat", "anon 1\ninactive_file 500000\n")
    assert free_bytes(CPU) == 1_500_000
    linux("groups/a/memory.current", "9000000\n")
    assert free_bytes(CPU) == 0


def test_the_older_kind_of_container(linux):
    linux("own/cgroup", "7:cpu:/x\n5:memory:/x\n")
    linux("groups/memory/memory.limit_in_bytes", "2000000\n")
    linux("groups/memory/memory.usage_in_bytes", "1500000\n")
    linux("groups/memory/memory.stat", "total_inactive_file 100000\n")
    assert free_bytes(CPU) == 600_000


def test_a_system_that_says_nothing_sets_no_limit(tmp_path, monkeypatch):
    for name in ("MEMINFO", "OWN", "GROUPS"):
        monkeypatch.setattr(memory, name, tmp_path / "nothing")
    assert free_bytes(CPU) == 2**62


@pytest.mark.skipif(not memory.OWN.exists(), reason="Linux tells what a process takes")
def test_what_a_block_takes_is_measured():
    with measured(CPU) as peak:
        block = torch.ones(40 * 2**20)  # 160 MiB
        del block
    # Linux counts pages in batches, and what was freed meanwhile (some MiB) is not taken again.
    assert 144 * 2**20 < peak[0] < 176 * 2**20


def test_nothing_is_measured_where_the_system_says_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "OWN", tmp_path / "nothing")
    with measured(CPU) as peak:
        pass
    assert peak == []
