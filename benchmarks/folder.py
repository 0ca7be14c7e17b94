"""A folder of PNG frames to .flo files on a GPU, end to end: pairs a second, and how busy the GPU is.

    python benchmarks/folder.py [--pairs 1200] [--size 436 1024] [--processes 1 2] [-o folder.json]

The frames are procedural. First each part runs alone: frames read by the loop's threads, pairs sent to the
device, computed and copied back, and flows written; no loop is faster than the slowest of them. Then
`lcv predict`'s own loop runs, in one process or in several that share one GPU, each with its shard
(`--shard 1/2`), begun at once when all have compiled their kernels. Flows are kept, or each is removed as soon
as it is written: kept, they fill memory (the system's cache of files) that the machine has not used yet, and
some virtual machines get such memory slowly. Busy is the share of the time in which a kernel ran, by
nvidia-smi; cores: how many were busy, by the processes' own processor time. Exits with 1 if busy is below 85 %
in every run.
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
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import mean

import torch

from lcv.cli.predict_inputs import find_inputs
from lcv.data.formats.image import write_image
from lcv.data.synthetic.recipe import TRAINING
from lcv.data.synthetic.sequence import generate
from lcv.predict.frames import as_frame
from lcv.predict.job import Job, Listener
from lcv.predict.outputs import wanted_outputs
from lcv.predict.pending import Pending
from lcv.predict.predictor import NOTHING_ELSE, Predictor
from lcv.predict.run import Run
from lcv.predict.selection import Shard
from lcv.predict.sources import RawFrame
from lcv.predict.worker import READERS
from lcv.provenance import provenance
from lcv.threads import prepared

WANTED = 0.85
EVERY = 0.5  # seconds between two readings of how busy the GPU is


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
        for file in self.folder.rglob("*.flo"):
            file.unlink()


def compute(predictor: Predictor, frames: Path, out: Path, shard: Shard, keep: bool) -> None:
    """A shard of the pairs of a folder."""
    sequences = find_inputs([str(frames)]).sequences
    listener = None if keep else Remover(out / "flow")
    Run(predictor, Job(sequences, out, wanted_outputs(["flo"]), shard=shard), listener).go()


def child(settings: dict[str, object], place: Path, number: int, total: int, keep: bool) -> None:
    """One process: says when it is ready, waits for a word, computes its shard, says how long it took."""
    predictor = Predictor(**settings)  # type: ignore[arg-type]
    out = place / f"out-{total}-{keep}-{number}"
    compute(predictor, place / "few", place / f"warm-{out.name}", Shard(1, 1), True)
    print("ready", flush=True)
    sys.stdin.readline()
    cores, start = time.process_time(), time.perf_counter()
    compute(predictor, place / "many", out, Shard(number, total), keep)
    print(time.perf_counter() - start, time.process_time() - cores, flush=True)


def alone(settings: dict[str, object], place: Path) -> dict[str, float]:
    """How many a second each part of the loop does by itself, in one process."""
    predictor = Predictor(**settings)  # type: ignore[arg-type]
    sequence = find_inputs([str(place / "many")]).sequences[0]
    frames = list(sequence.frames())
    count = len(frames) - 1

    def read(pool: ThreadPoolExecutor, frame: RawFrame) -> RawFrame:
        return replace(frame, read=pool.submit(frame.read).result)

    def reading() -> None:
        for frame in prepared(iter(frames), read, READERS):
            frame.image  # noqa: B018

    first, second = (as_frame(frame.image, frame.label) for frame in frames[:2])

    def computed() -> Pending:
        return predictor.match(predictor.take(first), predictor.take(second), NOTHING_ELSE)

    flow = computed().result()

    def computing() -> None:
        for _ in range(count):
            pending = computed()
        pending.result()

    def writing(keep: bool) -> None:
        (folder := place / f"written-{keep}").mkdir()
        for i in range(count):
            flow.save(folder / f"{i}.flo")
            if not keep:
                (folder / f"{i}.flo").unlink()
        shutil.rmtree(folder)

    found = {}
    for name, job in {
        "read": reading,
        "computed": computing,
        "written and kept": partial(writing, True),
        "written and removed": partial(writing, False),
    }.items():
        start = time.perf_counter()
        job()
        found[name] = count / (time.perf_counter() - start)
    return found


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
        assert process.stdin is not None
        assert process.stdout is not None
        if process.stdout.readline().strip() != "ready":
            raise RuntimeError("a process ended before it was ready")
    with watched(str(settings["device"])) as busy:
        for process in running:
            process.stdin.write("go\n")
            process.stdin.flush()
        said = [process.stdout.readline().split() for process in running]
    codes = [process.wait() for process in running]
    if any(codes):
        raise RuntimeError(f"processes ended with {codes}")
    seconds, cores = max(float(own) for own, _ in said), sum(float(used) for _, used in said)
    found = {
        "processes": total,
        "kept": keep,
        "seconds": seconds,
        "pairs_per_second": pairs / seconds,
    }
    found["cores"] = cores / seconds
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
        parts = alone(settings, Path(place))
        print(json.dumps({"alone": parts}), flush=True)
        for total, keep in itertools.product(options.processes, (True, False)):
            rows.append(measure(settings, Path(place), options.pairs, total, keep))
            print(json.dumps(rows[-1]), flush=True)
            for folder in Path(place).glob("out-*"):
                shutil.rmtree(folder)
    if options.output:
        said = {k: v for k, v in vars(options).items() if k != "output"}
        origin = provenance(device=torch.device(options.device))
        found = {"rows": rows, "alone": parts, "settings": said, "provenance": origin}
        options.output.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return 0 if max(row.get("busy", 1.0) for row in rows) >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
