"""The miniature of malloc keeps its rules."""

from __future__ import annotations

import random
from itertools import pairwise

from lcv.predict.heap import LEAST_THRESHOLD, MIB, MOST_THRESHOLD, Heap


def test_a_large_block_is_mapped_and_gone_when_freed():
    heap = Heap()
    block = heap.take(100 * MIB)
    assert 100 * MIB <= heap.resident < 101 * MIB
    heap.give(block)
    assert heap.resident == 0
    assert heap.peak >= 100 * MIB
    assert heap.threshold == LEAST_THRESHOLD  # beyond 32 MiB it does not follow


def test_a_freed_middling_block_brings_its_like_onto_the_heap():
    heap = Heap()
    heap.give(heap.take(8 * MIB))
    assert heap.resident == 0
    first, second = heap.take(6 * MIB), heap.take(6 * MIB)
    heap.give(first)
    # A hole: still resident, and filled by what comes next.
    assert heap.resident >= 12 * MIB
    before = heap.resident
    third = heap.take(5 * MIB)
    assert heap.resident == before
    heap.give(second)
    heap.give(third)
    assert heap.resident == before
    heap.take(11 * MIB)  # the joined holes hold it
    assert heap.resident == before


def test_the_tightest_hole_is_taken():
    heap = Heap()
    heap.give(heap.take(MOST_THRESHOLD - MIB))
    blocks = [heap.take(size * MIB) for size in (8, 1, 4, 1)]
    heap.give(blocks[0])
    heap.give(blocks[2])
    before = heap.resident
    heap.take(3 * MIB)
    heap.take(7 * MIB)
    assert heap.resident == before


def test_blocks_never_overlap_and_all_is_accounted_for():
    rng = random.Random(0)
    heap, held, live = Heap(), [], 0
    for _ in range(2000):
        if held and rng.random() < 0.5:
            block = held.pop(rng.randrange(len(held)))
            heap.give(block)
        else:
            held.append(heap.take(rng.randrange(1, 40 * MIB)))
        live = sum(size for _, size in held)
        on_heap = sorted(block for block in held if block[0] >= 0)
        for (start, size), (following, _) in pairwise(on_heap):
            assert start + size <= following
        assert live <= heap.resident <= heap.peak
