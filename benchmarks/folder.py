"""A folder of PNG frames to .flo files on a GPU, end to end: pairs a second, and how busy the GPU is.

    python benchmarks/folder.py [--pairs 400] [--size 436 1024] [--model raft-large] [-o folder.json]

The frames are procedural. `lcv predict`'s own loop runs over them; a first run over a few frames
compiles kernels and is not counted. Busy is the share of the time in which a kernel ran, by torch's profiler.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from lcv.cli.predict_inputs import find_inputs
from lcv.data.formats.image import write_image
from lcv.data.synthetic.recipe import TRAINING
from lcv.data.synthetic.sequence import generate
from lcv.predict.job import Job
from lcv.predict.outputs import wanted_outputs
from lcv.predict.predictor import Predictor
from lcv.predict.run import Run
from lcv.provenance import provenance


def write_frames(folder: Path, count: int, size: tuple[int, int], device: str) -> None:
    """Frames of procedural scenes, a few scenes over and over."""
    folder.mkdir()
    batch = generate(TRAINING, 0, range(8), size, device)
    pictures = torch.cat((batch.image1, batch.image2)).round().clamp(0, 255).byte().cpu()
    for i in range(count):
        first = i % len(pictures)
        if i == first:
            write_image(folder / f"{i:05d}.png", pictures[i].permute(1, 2, 0).numpy())
        else:
            shutil.copy(folder / f"{first:05d}.png", folder / f"{i:05d}.png")


def run(predictor: Predictor, frames: Path, out: Path) -> float:
    """Seconds for all pairs of a folder."""
    job = Job(find_inputs([str(frames)]).sequences, out, wanted_outputs(["flo"]))
    start = time.perf_counter()
    Run(predictor, job).go()
    return time.perf_counter() - start


def busy_seconds(profiler: profile) -> float:
    """The time in which at least one kernel ran."""
    spans = sorted(
        (e.time_range.start, e.time_range.end)
        for e in profiler.events()
        if e.device_type == torch.autograd.DeviceType.CUDA and "Mem" not in e.name
    )
    total, reached = 0.0, 0.0
    for start, end in spans:
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total * 1e-6


def main() -> int:
    """1 if the GPU is busy for less than 85 % of the time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=400)
    parser.add_argument("--size", type=int, nargs=2, default=(436, 1024))
    parser.add_argument("--model", default="raft-large")
    parser.add_argument("--iters", type=int, default=20)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    predictor = Predictor(options.model, iters=options.iters, device=options.device)
    with tempfile.TemporaryDirectory() as place:
        few, many = Path(place) / "few", Path(place) / "many"
        write_frames(few, 6, options.size, options.device)
        write_frames(many, options.pairs + 1, options.size, options.device)
        run(predictor, few, Path(place) / "warm")
        seconds = run(predictor, many, Path(place) / "plain")
        found = {"pairs_per_second": options.pairs / seconds, "seconds": seconds}
        if options.device != "cpu":
            with profile(activities=[ProfilerActivity.CUDA]) as profiler:
                watched = run(predictor, many, Path(place) / "watched")
            found |= {"busy": busy_seconds(profiler) / watched, "watched_seconds": watched}
    settings = {k: v for k, v in vars(options).items() if k != "output"}
    found |= {"settings": settings, "provenance": provenance(device=predictor.device)}
    print(json.dumps(found, indent=1))
    if options.output:
        options.output.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return 0 if found.get("busy", 1.0) >= 0.85 else 1


if __name__ == "__main__":
    sys.exit(main())
