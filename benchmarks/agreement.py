"""How far weights are from others on videos without truth, where the others agree with themselves.

    python benchmarks/agreement.py VIDEO … --weights FILE … --reference raft-sintel.pth [--pairs 30]

Neighbouring frames, evenly spread over each video. Pixels count where the reference's flow forwards and
backwards cancel within 0.5 px: elsewhere it is no measure. Printed are the share of such pixels, and over
these the mean distance in px of each file's flow from the reference's, 20 iterations. It tells how alike
two networks are, not which one is right.
"""

from __future__ import annotations

import argparse
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np

import lcv
from lcv.data.formats.video import read_video
from lcv.errors import LcvError
from lcv.models.build import network_and_weights
from lcv.provenance import provenance

LIMIT = 0.5


def spread_pairs(path: Path, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Neighbouring frames from all over the video."""
    every = list(pairwise(read_video(path)))
    chosen = np.linspace(0, len(every) - 1, min(count, len(every))).round().astype(int)
    return [every[k] for k in chosen]


def consistent(forward: np.ndarray, backward: np.ndarray) -> np.ndarray:
    """Where going there and back ends within LIMIT px of the start, (H, W) bool."""
    back = lcv.warp(backward, forward)
    return np.linalg.norm(forward + back, axis=2) < LIMIT


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("videos", type=Path, nargs="+")
    parser.add_argument("--weights", nargs="+", required=True, help="files or names")
    parser.add_argument("--reference", required=True, help="a file or name")
    parser.add_argument("--pairs", type=int, default=30, help="of each video (30)")
    parser.add_argument("--max-side", type=int, default=512, help="frames are reduced to (512)")
    chosen = parser.parse_args()
    options = {"iters": 20, "max_side": chosen.max_side, "precision": "float32"}
    try:
        reference, *others = (
            lcv.Predictor(*network_and_weights(None, file), **options)
            for file in (chosen.reference, *chosen.weights)
        )
        sums = {video: np.zeros(2 + len(others)) for video in chosen.videos}
        for video in chosen.videos:
            for first, second in spread_pairs(video, chosen.pairs):
                forward = reference(first, second).flow
                sure = consistent(forward, reference(second, first).flow)
                apart = [
                    np.linalg.norm(net(first, second).flow - forward, axis=2) for net in others
                ]
                sums[video] += sure.size, sure.sum(), *(each[sure].sum() for each in apart)
                print(".", end="", flush=True, file=sys.stderr)
    except LcvError as error:
        print(error, file=sys.stderr)
        return 2
    print(file=sys.stderr)
    for name, (pixels, sure, *apart) in (*((v.name, s) for v, s in sums.items()),
                                         ("all", sum(sums.values()))):  # fmt: skip
        far = ", ".join(
            f"{w} {d / sure:.3f} px" for w, d in zip(chosen.weights, apart, strict=True)
        )
        print(f"{name}: {sure / pixels:.0%} of the pixels count; {far}")
    print(provenance())
    return 0


if __name__ == "__main__":
    sys.exit(main())
