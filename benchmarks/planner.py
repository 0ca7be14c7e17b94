"""The memory of a pair: measured, fitted to the table that plans are made from, and checked.

    python benchmarks/planner.py            # predicted and measured at sizes not used for the table
    python benchmarks/planner.py --write    # measure the table anew: src/lcv/predict/memory.json
    python benchmarks/planner.py --models vcn --device cuda …

A measurement builds the network with random weights and a limit on memory, notes its size, matches a
pair of noise with two iterations (more take no more memory), and takes the high-water mark above that
size. On a CPU each is a process of its own, and the numbers are Linux's; on CUDA they are those of torch's
allocator, and the pair is matched twice, since the second time a graph is recorded. The check exits with
1 if a prediction is more than 20 % off.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

import numpy as np

from lcv.predict.memory import TABLE

MIB = 2**20
MOST_OFF = 0.20
MODELS = ("raft-small", "raft-large", "vcn-small", "vcn", "ddflow")
# Height, width; of tiles also their side.
TABLE_SIZES = ((240, 320), (384, 512), (436, 1024), (600, 800), (720, 1280), (1000, 1400))
CHECKED_SIZES = (
    *((256, 384), (288, 512), (320, 448), (375, 1242), (480, 640), (480, 854)),
    *((540, 960), (576, 1024), (640, 640), (768, 1024), (800, 1200), (900, 1600)),
)
TABLE_TILES = tuple(
    (h, w, side) for h, w in ((600, 800), (1000, 1400), (1440, 2000)) for side in (256, 384, 512)
)
CHECKED_TILES = (
    *((480, 640, 320), (540, 960, 256), (640, 640, 320), (720, 1280, 448), (720, 1280, 256)),
    *((768, 1024, 640), (800, 1200, 320), (900, 1600, 448), (1080, 1920, 256), (1080, 1920, 512)),
    *((1200, 1800, 640), (2160, 3840, 448)),
)
WANTED = ({}, {"backward": True, "occlusion": True}, {"warp_error": True})


def measure(model: str, strategy: str, size: tuple[int, ...], device: str, wanted: int = 0) -> dict:
    """Predicted and measured bytes of one pair; on a CPU in a process of its own."""
    if device == "cuda":
        return one_pair(model, strategy, size, device, wanted)
    words = [model, strategy, json.dumps(size), device, str(wanted)]
    command = [sys.executable, __file__, "--child", *words]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def one_pair(
    model: str, strategy: str, size: tuple[int, ...], device: str, wanted: int
) -> dict[str, object]:
    """The numbers for `measure`."""
    import torch

    import lcv
    from lcv.memory import give_back_freed, measured
    from lcv.predict.matching import Wanted
    from lcv.predict.memory import Plan, volume_bytes
    from lcv.predict.tiles import make_tiling

    torch.manual_seed(0)
    network = lcv.build(model)
    iters = None if network.defaults.iters is None else 2
    # With a limit, malloc gives memory back when it is freed, as in runs with --max-memory.
    predictor = lcv.Predictor(
        network, device=device, iters=iters, strategy=strategy, max_memory="1TB"
    )
    height, width, *side = size
    tiling = make_tiling(height, width, side[0], network.least_side) if side else None
    matcher = predictor.matcher.with_strategy(strategy)
    tile = (tiling.height, tiling.width) if tiling else (height, width)
    predictor.planner.keep(Plan(strategy, height, width, 0, None, tiling))
    noise = np.random.default_rng(0).integers(0, 256, (2, height, width, 3), dtype=np.uint8)
    give_back_freed(torch.device(device))
    with measured(torch.device(device)) as peak:
        for _ in range(2 if device == "cuda" else 1):
            predictor(noise[0], noise[1], **WANTED[wanted])
    asked = Wanted(**WANTED[wanted])
    found: dict[str, object] = {
        "measured": peak[0],
        "volume": volume_bytes(matcher, *tile),
        "pixels": tile[0] * tile[1],
        "image_pixels": height * width,
        "compiler": "torch._dynamo" in sys.modules,
    }
    if predictor.planner.costs is not None and strategy in predictor.planner.costs:
        found["predicted"] = predictor.planner.peak(strategy, (height, width), asked, tiling)
    return found


def strategies_of(model: str) -> tuple[str, ...]:
    import lcv
    from lcv.predict.matching import matcher_for

    return matcher_for(lcv.build(model), model, None, None).strategies


def fit(model: str, strategy: str, device: str) -> dict[str, int]:
    """A row of the table, with the least relative error over its sizes."""
    tiles = strategy == "tiles"
    rows = [measure(model, strategy, s, device) for s in (TABLE_TILES if tiles else TABLE_SIZES)]
    seen = np.array([row["measured"] for row in rows], float)
    columns = [np.ones(len(rows)), np.array([row["pixels"] for row in rows], float)]
    if tiles:
        columns.append(np.array([row["image_pixels"] for row in rows], float))
    matrix = np.stack(columns, 1)
    rest = seen - np.array([row["volume"] for row in rows])
    found = np.linalg.lstsq(matrix / seen[:, None], rest / seen, rcond=None)[0]
    entry = {"constant": round(found[0]), "per_pixel": round(found[1])}
    if tiles:
        entry["per_image_pixel"] = round(found[2])
    for name, wanted in (("both_ways", 1), ("warp_error", 2)):
        sizes = ((720, 1280, 384), (1000, 1400, 384)) if tiles else ((384, 512), (720, 1280))
        more = []
        for size in sizes:
            plain, asked = (measure(model, strategy, size, device, w) for w in (0, wanted))
            more.append((asked["measured"] - plain["measured"]) / asked["image_pixels"])
        entry[name] = max(0, round(max(more)))
    off = (matrix @ found + seen - rest) / seen - 1
    print(model, strategy, entry, "fitted within", f"{np.abs(off).max():.1%}", flush=True)
    return entry


def check(model: str, strategy: str, device: str) -> float:
    """Print predicted and measured; returns by how much the worst is off."""
    worst = 0.0
    for size in CHECKED_TILES if strategy == "tiles" else CHECKED_SIZES:
        found = measure(model, strategy, size, device)
        ratio = found["predicted"] / found["measured"]
        worst = max(worst, abs(ratio - 1))
        numbers = "".join(f"{found[key] / MIB:10.0f} MiB" for key in ("predicted", "measured"))
        name = "×".join(map(str, size))
        print(f"{model:<12}{strategy:<10}{name:>14}{numbers}{ratio:7.3f}", flush=True)
    return worst


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--strategies", nargs="+", help="all of a network's unless given")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--write", action="store_true", help="measure the table anew")
    options = parser.parse_args()
    worst = 0.0
    for model in options.models:
        for strategy in options.strategies or strategies_of(model):
            if options.write:
                row = fit(model, strategy, options.device)
                table = json.loads(TABLE.read_text())
                table.setdefault(options.device, {}).setdefault(model, {})[strategy] = row
                TABLE.write_text(json.dumps(table, indent=1) + "\n")
            else:
                worst = max(worst, check(model, strategy, options.device))
    if not options.write:
        print(f"the worst is {worst:.1%} off; {MOST_OFF:.0%} are allowed")
    return 0 if worst <= MOST_OFF else 1


if __name__ == "__main__":
    if "--child" in sys.argv:
        model, strategy, size, device, wanted = sys.argv[2:]
        found = one_pair(model, strategy, tuple(json.loads(size)), device, int(wanted))
        print(json.dumps(found))
    else:
        sys.exit(main())
