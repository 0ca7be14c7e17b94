"""Pairs that are made or read once and looked at many times, as long as they are not too many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from torch import Tensor

MOST = 4 * 2**30
"""Bytes; 200 pairs of 256×320 take half a gigabyte."""

Pair = tuple[Tensor, Tensor, Tensor, Tensor]
"""Images (b, 3, h, w) twice, truth (b, 2, h, w), valid (b, 1, h, w) bool."""


class Kept:
    """Pairs by name, where they are: on the device. Whoever looks at them leaves them as they are."""

    def __init__(self, most: int = MOST) -> None:
        self.most, self.bytes = most, 0
        self._kept: dict[str, list[Pair]] = {}

    def pairs(self, name: str, make: Callable[[], Iterable[Pair]]) -> Iterator[Pair]:
        """The pairs of this name: kept ones, or else what `make` gives, kept if there is room.

        Facts: a name means the same pairs always; what was not seen to its end is not kept.
        """
        if name in self._kept:
            yield from self._kept[name]
            return
        new: list[Pair] | None = []
        size = 0
        for pair in make():
            size += sum(x.element_size() * x.nelement() for x in pair)
            if self.bytes + size > self.most:
                new = None
            if new is not None:
                new.append(pair)
            yield pair
        if new is not None:
            self._kept[name] = new
            self.bytes += size
