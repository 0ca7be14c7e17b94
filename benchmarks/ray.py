"""A job on one worker of a Ray cluster and on all: pairs a second, start-up excluded.

    python benchmarks/ray.py [--pairs 500] [--size 64 96]

A local cluster is started once. Each job is computed by raft-small (random weights, `--iters`
iterations) into a folder of its own, after a small job that lets the workers start and load the
network. The check exits with 1 if all workers are less than 1.6 times as fast as one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

sys.path.pop(0)  # this folder, in which `import ray` would find this file

import lcv
from lcv.cli.predict_inputs import find_inputs
from lcv.cluster import Cluster
from lcv.data.formats.image import write_image
from lcv.predict.job import Job
from lcv.predict.outputs import wanted_outputs
from lcv.predict.run import Run
from lcv.provenance import provenance

LEAST = 1.6


def frames(folder: Path, count: int, size: tuple[int, int]) -> Path:
    """Noise; the time does not depend on what is seen."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(count):
        image = rng.integers(0, 256, (*size, 3), dtype=np.uint8)
        write_image(folder / f"{number:04d}.png", image)
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--size", type=int, nargs=2, default=(64, 96), metavar=("H", "W"))
    parser.add_argument("--iters", type=int, default=12)
    chosen = parser.parse_args()
    rates = {}
    with tempfile.TemporaryDirectory() as home, Cluster() as cluster:
        root, everyone = Path(home), cluster.workers
        torch.manual_seed(0)
        lcv.save(lcv.build("raft-small"), root / "weights.safetensors")
        options = {
            "model": "raft-small",
            "weights": str(root / "weights.safetensors"),
            "iters": chosen.iters,
            "device": "cpu",
        }
        predictor = lcv.Predictor(**options)
        few = frames(root / "few", 4 * everyone + 1, tuple(chosen.size))
        many = frames(root / "many", chosen.pairs + 1, tuple(chosen.size))

        def seconds(source: Path, out: str) -> float:
            sequences = find_inputs([str(source)]).sequences
            job = Job(sequences, root / out, wanted_outputs(("flo",)))
            start = time.perf_counter()
            assert not Run(predictor, job).go(cluster, options).failures
            return time.perf_counter() - start

        for workers in (1, everyone):
            # Of many cores, a task may ask for so many that fewer tasks run at a time.
            cluster.workers = workers
            total = everyone * cluster.needs["num_cpus"]
            cluster.needs = {**cluster.needs, "num_cpus": total // workers}
            seconds(few, f"few {workers}")
            rates[workers] = chosen.pairs / seconds(many, f"many {workers}")
            print(f"{workers} workers: {rates[workers]:.1f} pairs/s", flush=True)
            cluster.needs = {**cluster.needs, "num_cpus": total // everyone}
    gain = rates[everyone] / rates[1]
    print(f"{gain:.2f} times as fast, wanted {LEAST}; {provenance()}")
    return 0 if gain >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
