"""The three examples on real videos, in numbers and in one picture each.

    python benchmarks/examples.py cockatoo.mp4 mmflow-demo.mp4 [--frames 50] [--side 448] [-o docs/pictures]

Of each video the first frames, reduced to a longer side of `--side` pixels, by raft-small. Pictures
hold no footage: places of points, the path of the camera, errors frame by frame.
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import islice
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
import interpolate
import stabilise
import track_points

import lcv
from lcv.data.formats.video import read_video
from lcv.provenance import provenance

BLUE, RED, GREY = "#2f6f9f", "#c8503c", "#8a949c"


def frames_of(video: str, count: int, side: int) -> list[Image.Image]:
    frames = [Image.fromarray(frame) for frame in islice(read_video(video), count)]
    for frame in frames:
        frame.thumbnail((side, side))
    return frames


def tracks(frames: list[Image.Image], axes) -> str:
    """Tracks as lines; points that are followed to the end in blue."""
    found, alive = track_points.follow(frames)
    lengths = np.array([len(track) - 1 for track in found])
    for k, track in enumerate(found):
        x, y = np.array(track).T
        axes.plot(x, y, color=BLUE if k in alive else RED, linewidth=0.7)
    width, height = frames[0].size
    axes.set(xlim=(0, width), ylim=(height, 0), aspect="equal", xlabel="x, px", ylabel="y, px")
    return (
        f"{len(found)} points; {len(alive)} followed through all {len(frames)} frames, the median "
        f"for {np.median(lengths):.0f}, the mean for {lengths.mean():.1f}"
    )


def shake(frames: list[Image.Image], axes) -> str:
    """The path of the camera before and after, both measured by flow."""
    shown = [np.asarray(frame) for frame in frames]
    turn, shift = stabilise.camera_path(shown)
    _, again = stabilise.camera_path(list(stabilise.steady(shown, turn, shift)))
    for path, name, colour in ((shift, "video", RED), (again, "stabilised", BLUE)):
        axes.plot(np.diff(path).real, color=colour, label=f"{name}, x")
        axes.plot(np.diff(path).imag, color=colour, label=f"{name}, y", linestyle=":")
    axes.set(xlabel="frame", ylabel="motion of the camera, px a frame")
    axes.legend(fontsize=7, frameon=False)
    before, after = (np.abs(np.diff(path, 2)).mean() for path in (shift, again))
    return f"jitter {before:.2f} px a frame, after {after:.2f}"


def middle(frames: list[Image.Image], axes) -> str:
    """The error of frames made again, beside that of two simple ways."""
    shown = [np.asarray(frame) for frame in frames]
    predictor = lcv.Predictor("raft-small", iters=interpolate.ITERS)
    errors = []
    for one, real, two in zip(shown[::2], shown[1::2], shown[2::2], strict=False):
        made = interpolate.between(predictor, one, two)
        mean = (one.astype(np.float32) + two) / 2
        errors.append([interpolate.apart(each, real) for each in (made, mean, one)])
    names = ("interpolated", "mean of its neighbours", "frame before")
    for name, colour, column in zip(names, (BLUE, RED, GREY), np.transpose(errors), strict=True):
        axes.plot(range(1, 2 * len(errors), 2), column, color=colour, label=name)
    axes.set(xlabel="frame left out", ylabel="difference, grey levels", ylim=(0, None))
    axes.legend(fontsize=7, frameon=False)
    means = np.mean(errors, axis=0)
    said = ", ".join(f"{name} {mean:.2f}" for name, mean in zip(names, means, strict=True))
    return f"{len(errors)} frames made again, grey levels: {said}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("videos", nargs="+")
    parser.add_argument("--frames", type=int, default=50)
    parser.add_argument("--side", type=int, default=448)
    parser.add_argument("-o", "--output", type=Path, help="a folder for the pictures")
    chosen = parser.parse_args()
    start = time.process_time()
    for job in (tracks, shake, middle):
        figure = Figure(figsize=(9, 3.2), layout="constrained")
        for axes, video in zip(
            figure.subplots(1, len(chosen.videos), squeeze=False)[0], chosen.videos, strict=True
        ):
            said = job(frames_of(video, chosen.frames, chosen.side), axes)
            axes.set_title(Path(video).stem, fontsize=9)
            axes.spines[["top", "right"]].set_visible(False)
            print(f"{job.__name__:<7}{Path(video).stem:<14}{said}", flush=True)
        if chosen.output:
            figure.savefig(
                chosen.output / f"example-{job.__name__}.png", dpi=110, metadata={"Software": None}
            )
    print(f"{time.process_time() - start:.0f} s of CPU time; {provenance()['commit']}")


if __name__ == "__main__":
    main()
