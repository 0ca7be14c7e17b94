"""Pairs that are kept: made once while there is room, and only if they were seen to the end."""

from __future__ import annotations

import torch

from lcv.train.kept import Kept

PAIR = (torch.zeros(1, 3, 4, 4), torch.zeros(1, 3, 4, 4), torch.zeros(1, 2, 4, 4))
PAIR = (*PAIR, torch.ones(1, 1, 4, 4, dtype=torch.bool))
SIZE = 8 * 16 * 4 + 16


def count(kept, name):
    made = []

    def make():
        made.append(name)
        yield from [PAIR] * 3

    assert [len(list(kept.pairs(name, make))) for _ in range(2)] == [3, 3]
    return len(made)


def test_pairs_are_made_once_while_there_is_room():
    kept = Kept(most=6 * SIZE)
    assert count(kept, "a") == 1
    assert count(kept, "b") == 1
    assert count(kept, "c") == 2
    assert kept.bytes == 6 * SIZE


def test_what_was_not_seen_to_its_end_is_not_kept():
    kept = Kept()
    next(kept.pairs("a", lambda: iter([PAIR] * 2)))
    assert kept.bytes == 0


def test_there_is_room_for_four_gibibytes():
    assert (Kept().most, Kept().bytes) == (4 << 30, 0)
