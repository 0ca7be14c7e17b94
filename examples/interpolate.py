"""Twice the frames: `python examples/interpolate.py VIDEO OUT.mp4 [FRAMES]`.

The frame between two others is made of both, each moved half of the way. To measure how good that
is, every second frame is left out, made again, and compared.
"""

from __future__ import annotations

import sys
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from rich.progress import track

import lcv
from lcv.cost_volume.forward_interpolate import forward_interpolate
from lcv.data.formats.video import read_video, video_info
from lcv.visual.layout import side_by_side
from lcv.visual.video import clip

ITERS = 12


def shrunk(frame: np.ndarray) -> np.ndarray:
    image = Image.fromarray(frame)
    image.thumbnail((480, 480))  # for speed
    return np.asarray(image)


def halfway(flow: np.ndarray) -> np.ndarray:
    """Half of the flow, carried to the pixels halfway."""
    half = torch.from_numpy(flow / 2).permute(2, 0, 1)[None]
    small = torch.nn.functional.avg_pool2d(half, 4)  # the nearest moved point, at a quarter
    carried = 4 * forward_interpolate(small / 4)
    full = torch.nn.functional.interpolate(carried, size=flow.shape[:2], mode="bilinear")
    return full[0].permute(1, 2, 0).numpy()


def between(predictor: lcv.Predictor, one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """The frame halfway from one to two."""
    result = predictor(one, two, backward=True)
    to_two, to_one = halfway(result.flow), halfway(result.backward)
    seen = np.stack([lcv.warp(one, to_one), lcv.warp(two, to_two)]).astype(np.float32)
    known = np.stack([lcv.warp(np.ones(one.shape[:2], np.float32), f) for f in (to_one, to_two)])
    weight = known[..., None] + 1e-3
    return ((weight * seen).sum(0) / weight.sum(0)).round().clip(0, 255).astype(np.uint8)


def apart(made: np.ndarray, real: np.ndarray) -> float:
    return float(np.abs(made.astype(np.float32) - real).mean())  # in grey levels


def main(video: str, out: Path, count: int = 21) -> None:
    frames = [shrunk(frame) for frame in islice(read_video(video), count)]
    predictor, errors, picture = lcv.Predictor("raft-small", iters=ITERS), [], None
    for one, real, two in zip(frames[::2], frames[1::2], frames[2::2], strict=False):
        made = between(predictor, one, two)
        mean = (one.astype(np.float32) + two) / 2
        errors.append((apart(made, real), apart(mean, real), apart(one, real)))
        if picture is None or errors[-1][1] > max(error[1] for error in errors[:-1]):
            shown = [real, made, mean.astype(np.uint8)]
            picture = side_by_side(shown, ["left out", "made again", "mean of its neighbours"])
    ours, mean, repeated = np.mean(errors, axis=0)
    print(f"{len(errors)} frames left out and made again, mean difference in grey levels:")
    print(f"interpolated {ours:.2f}, mean of both {mean:.2f}, frame before {repeated:.2f}")
    Image.fromarray(picture).save(out.with_suffix(".png"))
    with clip(out, 2 * (video_info(video).rate or 25), overwrite=True) as write:
        for one, two in track([*pairwise(frames)], "frames between"):
            write(one)
            write(between(predictor, one, two))
        write(frames[-1])
    print(f"{out}: {2 * len(frames) - 1} frames; {out.with_suffix('.png')}: the hardest")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:]))
