"""What an augmentation may do and how often, as frozen records, and the authors' own numbers.

U(a, b) is a uniform draw. Probabilities are per pair. Lengths are pixels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from lcv.errors import ArgumentError


@dataclass(frozen=True)
class Geometry:
    """Resize, then flip, then crop: `lcv.data.augment.spatial` says how."""

    crop: tuple[int, int]
    """(h, w) of what comes out."""
    log2_scale: tuple[float, float] | None = None
    """Both axes are scaled by 2^U of this; None never resizes."""
    stretch: float = 0.0
    """Where a pair is stretched, each axis is scaled by another 2^U(−this, this)."""
    stretch_probability: float = 0.8
    """How often a pair is stretched."""
    resize_probability: float = 0.8
    """How often scale and stretch are applied at all."""
    slack: int = 8
    """No scale falls below the one at which the image is this much larger than the crop."""
    flip_x: float = 0.0
    """Probability of left and right changing places."""
    flip_y: float = 0.0
    """Probability of top and bottom changing places."""
    margin_y: tuple[int, int] = (0, 0)
    """(before, after): the crop's first row is drawn from −before ≤ k < room + after, then clamped
    to 0 … room, where room is by how much the image exceeds the crop."""
    margin_x: tuple[int, int] = (0, 0)
    """The same for its first column."""

    def __post_init__(self) -> None:
        if len(self.crop) != 2 or min(self.crop) < 1:
            raise ArgumentError(f"Geometry: crop is {self.crop}, wanted (h, w) of at least 1 each")
        low, high = self.log2_scale or (0.0, 0.0)
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            raise ArgumentError(
                f"Geometry: log2_scale is {self.log2_scale}, wanted finite (low, high), low ≤ high"
            )
        if self.stretch < 0:
            raise ArgumentError(f"Geometry: stretch is {self.stretch}, wanted 0 or more")
        if self.slack < 0:
            raise ArgumentError(f"Geometry: slack is {self.slack}, wanted 0 or more")
        for name in ("margin_y", "margin_x"):
            if min(getattr(self, name)) < 0:
                raise ArgumentError(
                    f"Geometry: {name} is {getattr(self, name)}, wanted (before, after), 0 or more"
                )
        for name in ("stretch_probability", "resize_probability", "flip_x", "flip_y"):
            _check_probability(f"Geometry: {name}", getattr(self, name))


@dataclass(frozen=True)
class Jitter:
    """Colour changes in a random order: `lcv.data.augment.photometric` says how."""

    brightness: float
    """Factor U(max(0, 1 − this), 1 + this)."""
    contrast: float
    """Likewise."""
    saturation: float
    """Likewise."""
    hue: float
    """Turn of the colour circle U(−this, this), at most ½."""
    asymmetric: float = 0.0
    """Probability that the two frames are changed independently."""

    def __post_init__(self) -> None:
        for name in ("brightness", "contrast", "saturation"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ArgumentError(f"Jitter: {name} is {getattr(self, name)}, wanted 0 or more")
        if not 0 <= self.hue <= 0.5:
            raise ArgumentError(f"Jitter: hue is {self.hue}, wanted 0 to 0.5 of a turn")
        _check_probability("Jitter: asymmetric", self.asymmetric)


@dataclass(frozen=True)
class Eraser:
    """Rectangles of frame 2 painted over: `lcv.data.augment.occlusion` says how."""

    probability: float = 0.5
    """How often anything is erased."""
    most: int = 2
    """1 … this many rectangles, each number as likely."""
    side: tuple[int, int] = (50, 100)
    """Sides from the first number to below the second, each as likely."""

    def __post_init__(self) -> None:
        _check_probability("Eraser: probability", self.probability)
        if self.most < 1:
            raise ArgumentError(f"Eraser: most is {self.most}, wanted 1 or more")
        if not 1 <= self.side[0] < self.side[1]:
            raise ArgumentError(f"Eraser: side is {self.side}, wanted 1 ≤ least < bound")


@dataclass(frozen=True)
class Augmentation:
    """Everything that is done to a pair, in the order colour, eraser, channels, geometry."""

    geometry: Geometry
    jitter: Jitter | None = None
    eraser: Eraser | None = None
    swap_channels: bool = False
    """The colour channels change places at random, in both frames alike."""
    sparse: bool = False
    """The truth has holes: its vectors are moved one by one and never interpolated."""
    largest_flow: float | None = None
    """A vector with a component of this many pixels or more becomes invalid, after all else."""

    def with_crop(self, crop: tuple[int, int]) -> Augmentation:
        """The same at another crop size."""
        return replace(self, geometry=replace(self.geometry, crop=crop))


def _check_probability(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise ArgumentError(f"{name} is {value}, wanted a probability from 0 to 1")


def raft_dense(
    crop: tuple[int, int], log2_scale: tuple[float, float], flip: bool = True
) -> Augmentation:
    """RAFT's for truth without holes. Its offsets never reach the last place: margins (0, 0)."""
    return Augmentation(
        geometry=Geometry(
            crop,
            log2_scale,
            stretch=0.2,
            slack=8,
            flip_x=0.5 if flip else 0.0,
            flip_y=0.1 if flip else 0.0,
        ),
        jitter=Jitter(0.4, 0.4, 0.4, 0.5 / 3.14, asymmetric=0.2),
        eraser=Eraser(),
        largest_flow=1000.0,
    )


def raft_sparse(
    crop: tuple[int, int], log2_scale: tuple[float, float], flip: bool = False
) -> Augmentation:
    """RAFT's for KITTI and HD1K: no stretch, no vertical flip, crops that favour the borders."""
    return Augmentation(
        geometry=Geometry(
            crop,
            log2_scale,
            slack=1,
            flip_x=0.5 if flip else 0.0,
            margin_y=(0, 20),
            margin_x=(50, 50),
        ),
        jitter=Jitter(0.3, 0.3, 0.3, 0.3 / 3.14),
        eraser=Eraser(),
        sparse=True,
    )


RAFT_CHAIRS = raft_dense((368, 496), (-0.1, 1.0))
RAFT_THINGS = raft_dense((400, 720), (-0.4, 0.8))
RAFT_SINTEL = raft_dense((368, 768), (-0.2, 0.6))
"""The sintel stage's Sintel and Things; the next two are for the rest of its mix."""
RAFT_SINTEL_KITTI = raft_sparse((368, 768), (-0.3, 0.5), flip=True)
RAFT_SINTEL_HD1K = raft_sparse((368, 768), (-0.5, 0.2), flip=True)
RAFT_KITTI = raft_sparse((288, 960), (-0.2, 0.4))
DDFLOW = Augmentation(
    # Every place is as likely, the last one too: margins (0, 1).
    geometry=Geometry((320, 896), flip_x=0.5, flip_y=0.5, margin_y=(0, 1), margin_x=(0, 1)),
    swap_channels=True,
)

AUGMENTATIONS = {
    "raft-chairs": RAFT_CHAIRS,
    "raft-things": RAFT_THINGS,
    "raft-sintel": RAFT_SINTEL,
    "raft-sintel-kitti": RAFT_SINTEL_KITTI,
    "raft-sintel-hd1k": RAFT_SINTEL_HD1K,
    "raft-kitti": RAFT_KITTI,
    "ddflow": DDFLOW,
}
