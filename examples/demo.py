"""The main job, from two frames to a picture: `python examples/demo.py [FOLDER]`.

Flow of a bundled pair by the three networks whose weights come with the package, the error of each
against the truth, and one picture of it all.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from PIL import Image

import lcv
from lcv.visual.error_maps import end_point_error
from lcv.visual.figures import ErrorStyle, Known, methods_figure

PAIR = Path(__file__).parent / "pair"
MODELS = ("raft-small-vanilla", "raft-small", "raft-large")


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    frames = [lcv.read_image(PAIR / f"frame{k}.png") for k in (1, 2)]
    truth = Known(*lcv.read_flow(PAIR / "truth" / "flow.png"))
    height, width = truth.valid.shape
    print(f"{width}×{height} pixels, mean motion {_mean(np.hypot(*truth.flow.T).T, truth):.1f} px")
    flows, numbers = {}, {}
    for name in MODELS:
        predictor = lcv.Predictor(name, iters=20)
        began = time.perf_counter()
        result = predictor(*frames)
        seconds = time.perf_counter() - began
        error, known = end_point_error(result.flow, truth.flow, truth.valid)
        epe = float(error[known].mean())
        flows[name] = Known(result.flow, np.ones_like(truth.valid))
        numbers[name] = f"EPE {epe:.2f} px"
        print(f"{name:<20} EPE {epe:.2f} px   {seconds:.1f} s")
        result.save(folder / f"{name}.flo", overwrite=True)
    figure = methods_figure(
        frames, flows, truth, style=ErrorStyle("sintel", 5.0), numbers=numbers, width=360
    )
    Image.fromarray(figure).save(folder / "demo.png")
    print(f"flow files and the picture {folder / 'demo.png'} are written")


def _mean(values: np.ndarray, truth: Known) -> float:
    return float(values[truth.valid].mean())


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("out"))
