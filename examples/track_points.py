"""Follow points through a video: `python examples/track_points.py VIDEO OUT.png [FRAMES]`.

Points start where the first frame has texture. A point is lost where flow forwards and back does
not lead home, or where it leaves the frame. The picture shows every track on the last frame.
"""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw
from rich import progress

import lcv
from lcv.data.formats.video import read_video

ITERS, SPACING, HOME, SIDE = 12, 24, 1.0, 640  # HOME: px; larger frames than SIDE are made smaller


def starts(frame: np.ndarray) -> np.ndarray:
    """One point (x, y) for each square with texture: where the gradient is largest."""
    strength = np.hypot(*np.gradient(frame.mean(axis=2)))
    found = []
    for top in range(0, strength.shape[0] - SPACING + 1, SPACING):
        for left in range(0, strength.shape[1] - SPACING + 1, SPACING):
            square = strength[top : top + SPACING, left : left + SPACING]
            y, x = np.unravel_index(square.argmax(), square.shape)
            if square[y, x] > 8:
                found.append((left + x, top + y))
    return np.array(found, np.float64).reshape(-1, 2)


def at(field: np.ndarray, points: np.ndarray) -> np.ndarray:
    """A field (H, W, 2) at points between its pixels, linearly."""
    limit = np.array(field.shape[1::-1]) - 2
    low = np.floor(points).astype(int).clip(0, limit)
    (x, y), (fx, fy) = low.T, (points - low).T[..., None]
    above, below = ((1 - fx) * field[row, x] + fx * field[row, x + 1] for row in (y, y + 1))
    return (1 - fy) * above + fy * below


def follow(frames: list[Image.Image]) -> tuple[list[list[np.ndarray]], list[int]]:
    """Where each point is in every frame until it is lost, and which are not lost."""
    tracks = [[point] for point in starts(np.asarray(frames[0]))]
    size, alive = np.array(frames[0].size), list(range(len(tracks)))
    predictor = lcv.Predictor("raft-small", iters=ITERS)
    for result in predictor.stream(progress.track(frames, "frames"), backward=True):
        points = np.array([tracks[k][-1] for k in alive]).reshape(-1, 2)
        moved = points + at(result.flow, points)
        inside = ((moved >= 0) & (moved <= size - 1)).all(axis=1)
        home = moved + at(result.backward, moved.clip(0, size - 1))
        kept = inside & (np.linalg.norm(home - points, axis=1) < HOME)
        for k, point in zip(np.array(alive)[kept], moved[kept], strict=True):
            tracks[k].append(point)
        alive = [k for k, keep in zip(alive, kept, strict=True) if keep]
    return tracks, alive


def main(video: str, out: Path, count: int = 60) -> None:
    frames = [Image.fromarray(frame) for frame in islice(read_video(video), count)]
    for frame in frames:
        frame.thumbnail((SIDE, SIDE))
    tracks, alive = follow(frames)
    lengths = np.array([len(track) - 1 for track in tracks])
    print(f"{len(tracks)} points, {len(alive)} of them followed through all {len(frames)} frames;")
    print(f"a point is followed for {lengths.mean():.1f} frames in the mean")
    picture = frames[-1].point(lambda value: value // 2 + 64)
    pen = ImageDraw.Draw(picture)
    for k, track in enumerate(tracks):
        pen.line([*map(tuple, track)], "#ffd60a" if k in alive else "#e0533d", 2)
    picture.save(out)
    print(f"{out}: yellow to the end, red until they were lost")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:]))
