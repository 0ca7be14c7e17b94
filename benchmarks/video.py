"""Frames a second: the loop of `lcv predict` over a 1080p video, beside PyAV alone.

    python benchmarks/video.py [--repeats 5]

The loop has a network that does nothing and writes no outputs, so that what is left is reading,
handing over and checking. PyAV alone decodes the same video and converts every frame to RGB, with the
threads of our decoder and with its defaults. The video has 300 frames. Each is measured in a process of
its own, in turn, the second time that it goes through the video. Exits with 1 if the median of the loop
is below 80 % of PyAV's with the same threads.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import av
import numpy as np
import torch
from av.video.reformatter import VideoReformatter
from PIL import Image

import lcv
from lcv.cli.predict_inputs import find_inputs
from lcv.models.types import FlowOutput
from lcv.predict.job import Job
from lcv.predict.run import Run
from lcv.provenance import provenance
from lcv.visual.video import clip

LEAST = 0.80
SIZE = (1080, 1920)
FRAMES = 300


def make_video(path: Path) -> Path:
    """A texture that slides, with grain, so that it takes as many bits as footage does."""
    rng = np.random.default_rng(0)
    small = rng.integers(0, 256, (190, 330, 3), dtype=np.uint8)
    large = np.asarray(Image.fromarray(small).resize((2600, 1500), Image.Resampling.BICUBIC))
    grain = rng.normal(0, 3, (1400, 2400, 1)).astype(np.float32)
    with clip(path, 30) as write:
        for k in range(FRAMES):
            top, left = rng.integers(0, 300, 2)
            frame = large[k : k + SIZE[0], 2 * k : 2 * k + SIZE[1]]
            noisy = frame + grain[top : top + SIZE[0], left : left + SIZE[1]]
            write(noisy.clip(0, 255).astype(np.uint8))
    return path


def pyav(path: Path, as_the_loop: bool) -> float:
    """Frames a second of the library alone, with its defaults or with the threads of our loop."""
    start, count, converter = time.perf_counter(), 0, VideoReformatter()
    with av.open(str(path)) as container:
        if as_the_loop:
            container.streams.video[0].thread_type = "AUTO"
        for frame in container.decode(video=0):
            if as_the_loop:
                converter.reformat(frame, format="rgb24", threads=1).to_ndarray()
            else:
                frame.to_ndarray(format="rgb24")
            count += 1
    return count / (time.perf_counter() - start)


def stub() -> torch.nn.Module:
    """A network without work: its features are the image, and nothing moves."""
    network = lcv.wrap(lambda image1, image2: image1[:, :2])
    flow = torch.zeros(1, 2, *SIZE)
    network.encode = lambda image, role, pad: image
    network.match = lambda first, second, **options: FlowOutput(flow)
    return network


def loop(path: Path) -> float:
    """Frames a second of the loop, once the decoder has started."""
    predictor, times = lcv.Predictor(stub(), device="cpu"), []
    run = Run(predictor, Job(find_inputs([str(path)]).sequences, None, ()))
    match = predictor.match

    def timed(*arguments, **more):
        times.append(time.perf_counter())
        return match(*arguments, **more)

    predictor.match = timed
    assert not run.go().failures
    return (len(times) - 1) / (times[-1] - times[0])


MEASURED = {"PyAV": partial(pyav, as_the_loop=False), "alike": partial(pyav, as_the_loop=True)}
MEASURED["loop"] = loop


def measure(name: str, path: Path) -> float:
    """In a process of its own."""
    command = [sys.executable, __file__, "--child", name, str(path)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        name, path = sys.argv[2], Path(sys.argv[3])
        print([MEASURED[name](path) for _ in range(2)][1])
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = make_video(Path(folder) / "video.mp4")
        megabits = 8e-6 * path.stat().st_size / (FRAMES / 30)
        print(f"{FRAMES} frames of {SIZE[1]}×{SIZE[0]}, {megabits:.1f} Mbit/s at 30 a second")
        rates = []
        for _ in range(chosen.repeats):
            rates.append([measure(name, path) for name in MEASURED])
            print(
                "PyAV {:.0f} frames/s, with the loop's threads {:.0f}, the loop {:.0f}".format(
                    *rates[-1]
                ),
                flush=True,
            )
    default, alike, ours = (statistics.median(column) for column in zip(*rates, strict=True))
    print(
        f"medians: the loop {ours:.0f}, {ours / alike:.0%} of PyAV with the same threads (wanted: "
        f"{LEAST:.0%}), {ours / default:.0%} of PyAV with its defaults"
    )
    print(provenance())
    return 0 if ours >= LEAST * alike else 1


if __name__ == "__main__":
    sys.exit(main())
