"""Shards: all pairs, each once, whatever the inputs and the number of processes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcv.errors import ArgumentError
from lcv.predict.shards import Part, Shard, device_of, divided_among, parts_of, shard_of

COUNTS = st.lists(st.integers(0, 30), max_size=6)
PROCESSES = st.integers(1, 9)


def pairs_in(part: Part, counts: list[int]) -> list[tuple[int, int]]:
    last = counts[part.sequence] - 1 if part.last is None else part.last
    return [(part.sequence, pair) for pair in range(part.first, last + 1)]


@given(COUNTS, PROCESSES, st.booleans())
def test_shards_are_all_pairs_each_once_in_order(counts, processes, whole):
    shares = [parts_of(counts, Shard(i + 1, processes), whole=whole) for i in range(processes)]
    given_out = [pair for parts in shares for part in parts for pair in pairs_in(part, counts)]
    assert given_out == [(s, pair) for s, count in enumerate(counts) for pair in range(count)]
    if whole:
        assert all(part.is_whole for parts in shares for part in parts)


@given(COUNTS, PROCESSES)
def test_shares_differ_by_one_pair_at_most(counts, processes):
    sizes = [
        sum(len(pairs_in(part, counts)) for part in parts_of(counts, Shard(i + 1, processes)))
        for i in range(processes)
    ]
    assert max(sizes) - min(sizes) <= 1


@given(COUNTS, PROCESSES)
def test_the_last_part_of_a_sequence_is_open(counts, processes):
    """Frames beyond those that a film declares belong to somebody, and to one only."""
    open_ones = [
        part.sequence
        for i in range(processes)
        for part in parts_of(counts, Shard(i + 1, processes))
        if part.last is None
    ]
    with_pairs = [s for s, count in enumerate(counts) if count or processes == 1]
    assert open_ones == with_pairs


@given(COUNTS, st.integers(2, 9))
def test_divided_sequences_are_those_of_several_shards(counts, processes):
    owners = [
        {p.sequence for p in parts_of(counts, Shard(i + 1, processes))} for i in range(processes)
    ]
    wanted = [s for s in range(len(counts)) if sum(s in each for each in owners) > 1]
    assert divided_among(counts, processes) == wanted


def test_what_has_no_known_length_is_one_shards():
    counts = [5, None, 5]
    owners = [
        i for i in range(3) for part in parts_of(counts, Shard(i + 1, 3)) if part.sequence == 1
    ]
    assert len(owners) == 1


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "1/0", "-1/2", "1/2/3", ""])
def test_a_share_that_is_none_is_refused(text):
    with pytest.raises(ArgumentError, match=r"--shard is .*, wanted i/n with i from 1 to n"):
        shard_of(text, {})


def test_torchrun_says_which_share():
    ranked = {"RANK": "2", "WORLD_SIZE": "4", "LOCAL_RANK": "0"}
    assert shard_of(None, ranked) == Shard(3, 4)
    assert shard_of(None, {}) == Shard(1, 1)
    assert shard_of("2/3", {}) == Shard(2, 3)
    with pytest.raises(ArgumentError, match="one of 4 processes of torchrun, which splits"):
        shard_of("1/2", ranked)
    assert device_of("cpu", ranked) == "cpu"
    assert device_of(None, {}) is None
