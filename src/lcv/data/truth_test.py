"""Does the truth explain the frames better than zero flow, and than each of its own corruptions?

A flow can be damaged without any file being damaged: u and v exchanged, a sign lost, the frames
in the wrong order, the truth of the neighbouring pair. Every such corruption is its own inverse
or nearly so, hence applying it to a damaged truth repairs it, and the repaired flow then explains
the frames better than the file does. That is what is measured: at pixels drawn from each pair,
the patch around p in frame 1 is compared with the patch around p + flow(p) in frame 2, and the
truth must win against each rival at more than half of the pixels of the whole dataset.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

RADIUS = 3
PIXELS_PER_PAIR = 2000
# A rival counts where it differs from the truth by half a pixel, and a patch where its grey
# levels spread by two: below, noise decides.
APART = 0.5
TEXTURE = 2.0
ENOUGH_PIXELS = 100
# Pixels of one pair agree with each other, so the win of one is no evidence; over a dataset half
# is the limit. Without its own truth a neighbouring pair with the same motion is a coin toss.
LIMIT = 0.5
LIMIT_BLIND = 0.4

ZERO = "zero flow"
REVERSED = "frames in reverse order"
NEXT = "frames of the next pair"
PREVIOUS = "frames of the previous pair"
CORRUPTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    ZERO: np.zeros_like,
    "u and v swapped": lambda flow: flow[..., ::-1],
    "u negated": lambda flow: flow * np.array([-1, 1], flow.dtype),
    "v negated": lambda flow: flow * np.array([1, -1], flow.dtype),
    "u and v negated": lambda flow: -flow,
}


@dataclass(frozen=True)
class Neighbour:
    """The frames of the pair after or before, and its own flow if it is known."""

    image1: np.ndarray
    image2: np.ndarray
    flow: np.ndarray | None = None
    valid: np.ndarray | None = None


@dataclass(frozen=True)
class Duel:
    """Truth against one rival, over the pixels where the two differ.

    wins: pixels at which the truth has the smaller error, a draw counting half.
    """

    pixels: int = 0
    wins: float = 0.0
    blind: bool = False

    def __add__(self, other: Duel) -> Duel:
        return Duel(self.pixels + other.pixels, self.wins + other.wins, self.blind or other.blind)

    @property
    def share(self) -> float:
        """The fraction of pixels that the truth wins."""
        return self.wins / self.pixels if self.pixels else float("nan")

    @property
    def decided(self) -> bool:
        """Whether there were pixels enough to tell the two apart."""
        return self.pixels >= ENOUGH_PIXELS

    @property
    def lost(self) -> bool:
        """Whether the rival explains the frames better."""
        return self.decided and self.share <= (LIMIT_BLIND if self.blind else LIMIT)


def duels(
    name: str,
    image1: np.ndarray,
    image2: np.ndarray,
    flow: np.ndarray,
    usable: np.ndarray,
    after: Neighbour | None = None,
    before: Neighbour | None = None,
) -> dict[str, Duel]:
    """The truth of one pair against every rival.

    name: seeds the choice of pixels, so that the same pair always gives the same result.
    image1, image2: (H, W, 3) uint8;  flow: (H, W, 2);  usable: (H, W), known and not occluded.
    """
    grey1, grey2 = grey(image1), grey(image2)
    x, y = _choose_pixels(name, usable, grey1.shape)
    if not len(x):
        return {}
    f = flow[y, x].astype(np.float64)
    template = patches(grey1, x, y)
    truth = census_distance(template, patches(grey2, x + f[:, 0], y + f[:, 1]))
    clear = np.isfinite(truth) & (template.std(1) > TEXTURE)
    results = {}
    for rival, corrupt in CORRUPTIONS.items():
        g = corrupt(f)
        apart = clear & (np.hypot(*(g - f).T) > APART)
        error = census_distance(template, patches(grey2, x + g[:, 0], y + g[:, 1]))
        results[rival] = _duel(truth, error, apart)
    moving = clear & (np.hypot(f[:, 0], f[:, 1]) > APART)
    results[REVERSED] = _duel(truth, *_elsewhere(grey2, grey1, x, y, f, moving))
    for rival, other in ((NEXT, after), (PREVIOUS, before)):
        if other is None or other.image1.shape != image1.shape:
            continue
        apart = clear
        if other.flow is not None and other.valid is not None:
            change = other.flow[y, x].astype(np.float64) - f
            apart = clear & other.valid[y, x] & (np.hypot(*change.T) > APART)
        error, counted = _elsewhere(grey(other.image1), grey(other.image2), x, y, f, apart)
        results[rival] = _duel(truth, error, counted, blind=other.flow is None)
    return results


def pool(results: Iterable[dict[str, Duel]]) -> dict[str, Duel]:
    """The duels of many pairs as one."""
    total: dict[str, Duel] = {}
    for result in results:
        for rival, duel in result.items():
            total[rival] = total.get(rival, Duel()) + duel
    return total


def grey(image: np.ndarray) -> np.ndarray:
    """(H, W, 3) uint8 → (H, W) float64, the mean of the three channels."""
    return image.astype(np.float64).mean(2)


def patches(picture: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The (2·RADIUS+1)² values around each point, bilinear; NaN where a patch leaves the picture.

    picture: (H, W);  x, y: (n,) → (n, 49)
    """
    h, w = picture.shape
    inside = (x >= RADIUS) & (x <= w - 1 - RADIUS) & (y >= RADIUS) & (y <= h - 1 - RADIUS)
    px, py = np.where(inside, x, RADIUS), np.where(inside, y, RADIUS)
    x0, y0 = np.floor(px).astype(np.int64), np.floor(py).astype(np.int64)
    a, b = (px - x0)[:, None, None], (py - y0)[:, None, None]
    reach = np.arange(-RADIUS, RADIUS + 2)
    # The last row and column of the window carry weight 0 where they would leave the picture.
    rows = np.minimum(y0[:, None] + reach, h - 1)[:, :, None]
    columns = np.minimum(x0[:, None] + reach, w - 1)[:, None, :]
    window = picture[rows, columns]  # (n, 8, 8)
    window = (1 - b) * window[:, :-1] + b * window[:, 1:]
    window = (1 - a) * window[:, :, :-1] + a * window[:, :, 1:]
    window[~inside] = np.nan
    return window.reshape(len(x), -1)


def census_distance(template: np.ndarray, other: np.ndarray) -> np.ndarray:
    """How many comparisons with the centre differ between two patches, softly; (n, 49)² → (n,).

        t = d / √(0.81 + d²),  d = patch − its centre;    Σ (t1 − t2)² / (0.1 + (t1 − t2)²)

    DDFlow's measure: blind to a change of brightness, and bounded, so no pixel outweighs another.
    """
    squared = np.square(_ternary(template) - _ternary(other))
    return (squared / (0.1 + squared)).sum(1)


def _ternary(patch: np.ndarray) -> np.ndarray:
    d = patch - patch[:, [patch.shape[1] // 2]]
    return d / np.sqrt(0.81 + np.square(d))


def _choose_pixels(
    name: str, usable: np.ndarray, size: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    inner = np.zeros(size, bool)
    inner[RADIUS : size[0] - RADIUS, RADIUS : size[1] - RADIUS] = True
    places = np.flatnonzero(usable & inner)
    if len(places) > PIXELS_PER_PAIR:
        generator = np.random.default_rng(zlib.crc32(name.encode()))
        places = np.sort(generator.choice(places, PIXELS_PER_PAIR, replace=False))
    y, x = np.divmod(places, size[1])
    return x, y


def _elsewhere(
    first: np.ndarray,
    second: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    f: np.ndarray,
    apart: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The error of the same flow between two other frames, and where it may be compared.

    A flat patch matches anything, so only patches with texture in their own frame count.
    """
    template = patches(first, x, y)
    error = census_distance(template, patches(second, x + f[:, 0], y + f[:, 1]))
    return error, apart & (template.std(1) > TEXTURE)


def _duel(truth: np.ndarray, rival: np.ndarray, apart: np.ndarray, blind: bool = False) -> Duel:
    counted = apart & np.isfinite(rival)
    t, r = truth[counted], rival[counted]
    wins = float((t < r).sum() + 0.5 * (t == r).sum())
    return Duel(int(counted.sum()), wins, blind)
