"""glibc's malloc in miniature: how much of a process is resident, holes between tensors included.

What a program frees is not always given back. A block of at least the threshold is mapped on its
own, and unmapped when it is freed. Smaller ones lie side by side on the heap, where a freed block
is a hole that later blocks may fill. The threshold starts at 128 KiB and follows the largest mapped
block that was freed, up to 32 MiB: most tensors of a middling image lie on the heap, and the holes
among them come to a hundred MB. The heap could shrink at its end, but small things of others lie
there, so that in practice it does not.
"""

from __future__ import annotations

from bisect import bisect_left, insort

KIB, MIB = 2**10, 2**20
PAGE = 4 * KIB
LEAST_THRESHOLD, MOST_THRESHOLD = 128 * KIB, 32 * MIB
SLACK = 112  # a block's header, and the room to start it at a multiple of 64

Block = tuple[int, int]  # where it begins on the heap, or −1 if it is mapped; its size


class Heap:
    """Blocks come and go; `resident` is what the process holds for them, `peak` at most."""

    def __init__(self) -> None:
        self.threshold = LEAST_THRESHOLD
        self.mapped = self.peak = 0
        self._top = self._end = 0  # all from _top on is free; the heap reaches to _end
        self._holes: list[Block] = []  # by where they begin

    @property
    def resident(self) -> int:
        return self._end + self.mapped

    def take(self, size: int) -> Block:
        """A block of `size` bytes: the tightest hole, else free space at the end, else new."""
        size = _up(size + SLACK, 16)
        fitting = [hole for hole in self._holes if hole[1] >= size]
        if fitting:
            start, length = min(fitting, key=lambda hole: hole[1])
            self._holes.remove((start, length))
            if length > size:
                insort(self._holes, (start + size, length - size))
            return start, size
        if self._top + size > self._end and size >= self.threshold:
            size = _up(size, PAGE)
            self.mapped += size
            start = -1
        else:
            start, self._top = self._top, self._top + size
            self._end = max(self._end, self._top)
        self.peak = max(self.peak, self.resident)
        return start, size

    def give(self, block: Block) -> None:
        """Free a block: unmap it, or leave a hole, joined with those beside it."""
        start, size = block
        if start < 0:
            self.mapped -= size
            if self.threshold < size <= MOST_THRESHOLD:
                self.threshold = size
            return
        at = bisect_left(self._holes, (start, 0))
        if at < len(self._holes) and self._holes[at][0] == start + size:
            size += self._holes.pop(at)[1]
        if at > 0 and sum(self._holes[at - 1]) == start:
            start, before = self._holes.pop(at - 1)
            size += before
        if start + size == self._top:
            self._top = start
        else:
            insort(self._holes, (start, size))


def _up(size: int, step: int) -> int:
    return -(-size // step) * step
