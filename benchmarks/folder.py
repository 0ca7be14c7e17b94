"""A folder of PNG frames to .flo files on a GPU, end to end: pairs a second, and how busy the GPU is.

    python benchmarks/folder.py [--pairs 1200] [--size 436 1024] [--processes 1 2] [-o folder.json]

The frames are procedural. `lcv predict`'s own loop runs over them, in one process or in several that share one
GPU, each with its shard (`--shard 1/2`). Every process first computes a few other frames, which compiles
kernels; then all begin at once. Each number of processes runs twice: the flows are kept, or each is removed
as soon as it is written. Kept, they fill memory (the system's cache of files) that the machine has not used
yet, and some virtual machines get such memory slowly; the first line says how many files a second a bare loop
can write, kept and removed. Busy is the share of the time in which a kernel ran, by nvidia-smi; cores: how
many were busy, by the processes' own processor time. Exits with 1 if busy is below 85 % in every run.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean

import torch

from lcv.cli.predict_inputs import find_inputs
from lcv.data.formats.image import write_image
from lcv.data.synthetic.recipe import TRAINING
from lcv.data.synthetic.sequence import generate
from lcv.predict.job import Job, Listener
from lcv.predict.outputs import wanted_outputs
from lcv.predict.predictor import Predictor
from lcv.predict.run import Run
from lcv.predict.selection import Shard
from lcv.provenance import provenance

WANTED = 0.85
EVERY = 0.1  # seconds between two readings of how busy the GPU is


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


class Remover(Listener):
    """Removes each flow once it is written and recorded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def advance(self, pairs: int = 1, computed: bool = True) -> None:
        for file in self.folder.glob("*.flo"):
            file.unlink()


def compute(predictor: Predictor, frames: Path, out: Path, shard: Shard, keep: bool) -> None:
    """A shard of the pairs of a folder."""
    sequences = find_inputs([str(frames)]).sequences
    listener = None if keep else Remover(out / "flow")
    Run(predictor, Job(sequences, out, wanted_outputs(["flo"]), shard=shard), listener).go()


def child(settings: dict[str, object], place: Path, number: int, total: int, keep: bool) -> None:
    """One process: says when it is ready, waits for a word, computes its shard, says its processor time."""
    predictor = Predictor(**settings)  # type: ignore[arg-type]
    out = place / f"out-{total}-{keep}-{number}"
    compute(predictor, place / "few", place / f"warm-{out.name}", Shard(1, 1), True)
    print("ready", flush=True)
    sys.stdin.readline()
    before = time.process_time()
    compute(predictor, place / "many", out, Shard(number, total), keep)
    print(time.process_time() - before)


def written_per_second(folder: Path, size: tuple[int, int], keep: bool, count: int = 200) -> float:
    """Files of the size of a .flo file that a bare loop writes in a second."""
    content = bytes(8 * size[0] * size[1] + 12)
    folder.mkdir()
    start = time.perf_counter()
    for i in range(count):
        file = folder / f"{i}.flo"
        file.write_bytes(content)
        if not keep:
            file.unlink()
    taken = time.perf_counter() - start
    shutil.rmtree(folder)
    return count / taken


@contextmanager
def watched(device: str) -> Iterator[list[float]]:
    """Shares of the time in which the GPU was busy, read while the block runs."""
    found: list[float] = []
    if device == "cpu":
        yield found
        return
    query = ["--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
    command = ["nvidia-smi", *query, f"--loop-ms={EVERY * 1000:.0f}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield found
        finally:
            process.terminate()
            said = process.communicate()[0]
    found += [float(line) / 100 for line in said.splitlines() if line.strip().isdecimal()]


def measure(
    settings: dict[str, object], place: Path, pairs: int, total: int, keep: bool
) -> dict[str, float]:
    """Pairs a second and how busy the GPU is, with `total` processes."""
    own = [sys.executable, __file__, "--child", json.dumps(settings), str(place)]
    running = [
        subprocess.Popen(
            [*own, str(number + 1), str(total), "keep" if keep else "remove"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(total)
    ]
    for process in running:
        assert process.stdout is not None
        if process.stdout.readline().strip() != "ready":
            raise RuntimeError("a process ended before it was ready")
    start = time.perf_counter()
    with watched(str(settings["device"])) as busy:
        said = [process.communicate("go\n")[0] for process in running]
    seconds = time.perf_counter() - start
    if any(process.returncode for process in running):
        raise RuntimeError(f"processes ended with {[process.returncode for process in running]}")
    found = {
        "processes": total,
        "kept": keep,
        "seconds": seconds,
        "pairs_per_second": pairs / seconds,
    }
    found["cores"] = sum(map(float, said)) / seconds
    return {**found, "busy": mean(busy)} if busy else found


def main() -> int:
    """1 if the GPU is busy for less than 85 % of the time."""
    if sys.argv[1:2] == ["--child"]:
        _, _, settings, place, number, total, how = sys.argv
        child(json.loads(settings), Path(place), int(number), int(total), how == "keep")
        return 0
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=1200)
    parser.add_argument("--size", type=int, nargs=2, default=(436, 1024))
    parser.add_argument("--model", default="raft-large")
    parser.add_argument("--iters", type=int, default=20)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    settings = {name: getattr(options, name) for name in ("model", "iters", "device")}
    rows = []
    with tempfile.TemporaryDirectory() as place:
        write_frames(Path(place) / "few", 6, options.size, options.device)
        write_frames(Path(place) / "many", options.pairs + 1, options.size, options.device)
        bare = {
            name: written_per_second(Path(place) / "bare", options.size, name == "kept")
            for name in ("kept", "removed")
        }
        print(json.dumps({"written_per_second": bare}), flush=True)
        for total, keep in itertools.product(options.processes, (True, False)):
            rows.append(measure(settings, Path(place), options.pairs, total, keep))
            print(json.dumps(rows[-1]), flush=True)
            for folder in Path(place).glob("out-*"):
                shutil.rmtree(folder)
    if options.output:
        said = {k: v for k, v in vars(options).items() if k != "output"}
        origin = provenance(device=torch.device(options.device))
        found = {"rows": rows, "written_per_second": bare, "settings": said, "provenance": origin}
        options.output.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return 0 if max(row.get("busy", 1.0) for row in rows) >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
