"""Bytes from texts, in words, where they are free, and how many a block takes."""

from __future__ import annotations

import pytest
import torch

from lcv import memory
from lcv.errors import ArgumentError
from lcv.memory import free_bytes, in_words, measured, parse_bytes

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
