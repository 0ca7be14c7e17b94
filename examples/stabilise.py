"""Take the shake out of a video: `python examples/stabilise.py VIDEO OUT.mp4 [FRAMES]`.

The camera's motion between two frames is the shift, turn and zoom that fit most of the flow. Its
path is smoothed, and every frame is moved onto the smooth path. Run it on the result to measure it.
"""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path

import numpy as np
from PIL import Image

import lcv
from lcv.data.formats.video import read_video, video_info
from lcv.visual.video import clip

ITERS, SMOOTH = 12, 12  # SMOOTH: frames, the deviation of the window that smooths the path


def shrunk(frame: np.ndarray) -> np.ndarray:
    image = Image.fromarray(frame)
    image.thumbnail((640, 640))  # for speed
    return np.asarray(image)


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


def smoothed(path: np.ndarray) -> np.ndarray:
    # The mean over a Gaussian window; the ends are continued by reflection through them.
    reach = min(3 * SMOOTH, len(path) - 1)
    window = np.exp(-0.5 * (np.arange(-reach, reach + 1) / SMOOTH) ** 2)
    before, after = 2 * path[0] - path[reach:0:-1], 2 * path[-1] - path[-2 : -reach - 2 : -1]
    return np.convolve(np.concatenate([before, path, after]), window / window.sum(), "valid")


def main(video: str, out: Path, count: int = 300) -> None:
    frames = [shrunk(frame) for frame in islice(read_video(video), count)]
    turn, shift = (
        [0j],
        [0j],
    )  # the path of the camera: the logarithm of turn and zoom, and the shift
    for result in lcv.Predictor("raft-small", iters=ITERS).stream(frames):
        a, b = camera_motion(result.flow)
        turn.append(turn[-1] + np.log(a))
        shift.append(shift[-1] + b)
    path, angle = np.array(shift), np.array(turn)
    smooth, level = smoothed(path), smoothed(angle)
    before, after = (np.abs(np.diff(each, 2)).mean() for each in (path, smooth))
    print(f"the shift changes by {before:.2f} px a frame, on the smooth path by {after:.2f}")
    p = points_of(frames[0].shape)
    with clip(out, video_info(video).rate or 25, overwrite=True) as write:
        for frame, moved, turned in zip(frames, path - smooth, angle - level, strict=True):
            away = np.exp(turned) * p + moved - p
            write(lcv.warp(frame, np.stack([away.real, away.imag], axis=-1).astype(np.float32)))
    print(f"{out}: written")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:]))
