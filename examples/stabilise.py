"""Take the shake out of a video: `python examples/stabilise.py VIDEO OUT.mp4 [FRAMES]`.

The camera's motion between two frames is the shift, turn and zoom that fit most of the flow. Its
path is smoothed, and every frame is moved onto the smooth path. Run it on the result to measure it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
from rich.progress import track

import lcv
from lcv.data.formats.video import read_video, video_info
from lcv.visual.video import clip

ITERS, SMOOTH, SIDE = 12, 12, 480  # SMOOTH: frames; SIDE: pixels at which frames are matched


def points_of(shape: tuple[int, ...]) -> np.ndarray:
    """Pixels as complex numbers from the middle: a shift is a sum, turn and zoom a product."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    return x - x.mean() + 1j * (y - y.mean())


def camera_motion(flow: np.ndarray) -> tuple[complex, complex]:
    """(a, b) with a·p + b ≈ p + flow(p), fitted so that objects that move otherwise count little."""
    p = points_of(flow.shape)[::8, ::8].ravel()
    q = p + (flow[::8, ::8] @ np.array([1, 1j])).ravel()
    weight = np.ones(len(p))
    for _ in range(10):
        design = np.stack([p, np.ones_like(p)], axis=1) * weight[:, None]
        (a, b), *_ = np.linalg.lstsq(design, q * weight, rcond=None)
        weight = 1 / np.sqrt(1 + np.abs(a * p + b - q) ** 2)
    return complex(a), complex(b)


def camera_path(frames: Iterable[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Where the camera is in every frame: the logarithm of turn and zoom, and the shift."""
    predictor = lcv.Predictor("raft-small", iters=ITERS, max_side=SIDE)
    steps = [camera_motion(result.flow) for result in predictor.stream(track(frames, "frames"))]
    turns, shifts = np.array([(1 + 0j, 0j), *steps]).T
    return np.log(turns).cumsum(), shifts.cumsum()


def smoothed(path: np.ndarray) -> np.ndarray:
    # The mean over a Gaussian window; the ends are continued by reflection through them.
    reach = min(3 * SMOOTH, len(path) - 1)
    window = np.exp(-0.5 * (np.arange(-reach, reach + 1) / SMOOTH) ** 2)
    before, after = 2 * path[0] - path[reach:0:-1], 2 * path[-1] - path[-2 : -reach - 2 : -1]
    return np.convolve(np.concatenate([before, path, after]), window / window.sum(), "valid")


def steady(
    frames: Iterable[np.ndarray], turn: np.ndarray, shift: np.ndarray
) -> Iterator[np.ndarray]:
    """The frames as seen from the smooth path."""
    for frame, a, b in zip(frames, turn - smoothed(turn), shift - smoothed(shift), strict=True):
        p = points_of(frame.shape)
        away = np.exp(a) * p + b - p
        yield lcv.warp(frame, np.stack([away.real, away.imag], axis=-1).astype(np.float32))


def main(video: str, out: Path, count: int = 300) -> None:
    turn, shift = camera_path(islice(read_video(video), count))
    before, after = (np.abs(np.diff(each, 2)).mean() for each in (shift, smoothed(shift)))
    print(f"the motion changes by {before:.2f} px a frame, on the smooth path by {after:.2f}")
    with clip(out, video_info(video).rate or 25, overwrite=True) as write:
        for frame in steady(islice(read_video(video), count), turn, shift):
            write(frame)
    print(f"{out}: written")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:]))
