"""The sizes a file takes, and the sizes of images with which it is checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lcv.errors import ArgumentError
from lcv.models.types import ExportRule

MOST = 4096  # pixels a side, where sizes stay open; a square of them would have 370 GB of costs


@dataclass(frozen=True)
class Sizes:
    """Heights and widths from … to, in steps of `stride`; from = to where there is only one."""

    stride: int
    height: tuple[int, int]
    width: tuple[int, int]

    @property
    def is_open(self) -> bool:
        return self.height[0] < self.height[1] or self.width[0] < self.width[1]

    def take(self, height: int, width: int) -> bool:
        """Whether the file takes images of this size."""
        inside = self.height[0] <= height <= self.height[1]
        inside = inside and self.width[0] <= width <= self.width[1]
        return inside and height % self.stride == 0 and width % self.stride == 0

    def as_dict(self) -> dict[str, Any]:
        return {"stride": self.stride, "height": list(self.height), "width": list(self.width)}

    def words(self) -> str:
        if not self.is_open:
            return f"{self.height[0]}×{self.width[0]}"
        (low, high), (left, right) = self.height, self.width
        steps = f", multiples of {self.stride}" if self.stride > 1 else ""
        return f"heights {low} to {high}, widths {left} to {right}{steps}"


def choose_sizes(name: str, rule: ExportRule, size: tuple[int, int] | None) -> Sizes:
    """One size, or all that the network takes with sizes left open."""
    if size is None:
        if rule.least_open is None:
            raise ArgumentError(
                f"export: {name} cannot be written with open sizes: {rule.why_fixed}. Give the one "
                f"size of the file's images: --size HxW."
            )
        span = (rule.least_open, MOST)
        return Sizes(rule.stride, span, span)
    height, width = size
    stride, least = rule.stride, rule.least
    for side in size:
        if isinstance(side, bool) or not isinstance(side, int) or side < least or side % stride:
            up = [max(-(-int(each) // stride) * stride, least) for each in size]
            wanted = f"sides of at least {least}"
            wanted += f" that are multiples of {stride}" if stride > 1 else ""
            raise ArgumentError(
                f"size is {height}×{width}, wanted for {name} {wanted}; the next is {up[0]}×{up[1]}"
            )
    return Sizes(stride, (height, height), (width, width))


def traced_size(sizes: Sizes) -> tuple[int, int]:
    """The size of the images that the program is traced with."""
    height, width = sizes.height[0], sizes.width[0]
    if not sizes.is_open:
        return height, width
    # Two different numbers, neither of them the least: a tracer takes what is equal for the same.
    return height + sizes.stride, width + 2 * sizes.stride


def cases(rule: ExportRule, sizes: Sizes) -> list[tuple[int, int, str | None]]:
    """Three times height, width and mode, most of them not what the file takes, so that the rule is
    checked too.

    Where only one size is possible and nothing may be padded or resized, it is checked three times,
    with three pairs.
    """
    stride, height, width = sizes.stride, sizes.height[0], sizes.width[0]
    ways = (rule.modes[0], rule.modes[0], rule.modes[-1])
    lacks = (
        ((0, 0), (3 % stride, 5 % stride), (stride - 1, 2 % stride))
        if rule.fits_any
        else ((0, 0),) * 3
    )
    if sizes.is_open:
        # The least size, a wide one and a tall one; none is the size that was traced.
        more = ((0, 0), (0, 4 * stride), (6 * stride, stride))
    else:
        more = ((0, 0),) * 3
    return [
        (height + down - less_down, width + across - less_across, mode)
        for (down, across), (less_down, less_across), mode in zip(more, lacks, ways, strict=True)
    ]
