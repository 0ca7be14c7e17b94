"""EPE of weights on real pairs with truth, after several numbers of iterations.

    python benchmarks/real_pairs.py DATA WEIGHTS … [-o real.json] [--half fp16]

DATA has the folders middlebury, kitti2015, chairs, stereo and sintel in their datasets' own layout;
WEIGHTS are files or names. A line for each: the mean of Middlebury's pairs, KITTI 000010, the mean of the
Chairs, cones and alley_1, at 20 iterations. The drift is the error after 32 iterations over the best of 4, 8,
12 and 20, for the mean of these five numbers. With --half fp16 (or bf16) also the mean distance in px of the
prepared network's flow from float32 on the pair where it is largest.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

import lcv
from lcv.data.formats.kitti import read_kitti
from lcv.models.build import network_and_weights
from lcv.models.fast import Prepared
from lcv.provenance import provenance

ITERATIONS = (4, 8, 12, 20, 32)

Pair = tuple[str, np.ndarray, np.ndarray, np.ndarray, np.ndarray, str]


def pairs(data: Path) -> list[Pair]:
    """(column, image1, image2, flow, known, padding) of every pair."""
    found: list[Pair] = []
    for folder in sorted((data / "middlebury").iterdir()):
        images = [lcv.read_image(folder / f"frame{n}.png") for n in (10, 11)]
        found.append(("middlebury", *images, *lcv.read_flow(folder / "flow10.flo"), "sintel"))
    root = data / "kitti2015" / "training"
    images = [lcv.read_image(root / "image_2" / f"000010_{n}.png") for n in (10, 11)]
    flow, valid = read_kitti(root / "flow_occ" / "000010_10.png")
    found.append(("kitti", *images, flow, np.asarray(valid, bool), "kitti"))
    for number in (1, 2):
        stem = data / "chairs" / "data" / f"{number:05d}"
        images = [lcv.read_image(Path(f"{stem}_img{n}.ppm")) for n in (1, 2)]
        flow, _ = lcv.read_flow(Path(f"{stem}_flow.flo"))
        found.append(("chairs", *images, flow, np.ones(flow.shape[:2], bool), "sintel"))
    cones = data / "stereo" / "cones"
    disparity = lcv.read_image(cones / "disp2.png")[:, :, 0].astype(np.float32) / 4
    flow = np.stack((-disparity, np.zeros_like(disparity)), -1)
    images = [lcv.read_image(cones / name) for name in ("im2.png", "im6.png")]
    found.append(("cones", *images, flow, disparity > 0, "sintel"))
    root = data / "sintel" / "training"
    images = [lcv.read_image(root / "clean" / "alley_1" / f"frame_000{n}.png") for n in (1, 2)]
    flow, _ = lcv.read_flow(root / "flow" / "alley_1" / "frame_0001.flo")
    found.append(("alley_1", *images, flow, np.ones(flow.shape[:2], bool), "sintel"))
    return found


@torch.no_grad()
def errors(
    weights: str, every: list[Pair], device: str, half: str | None
) -> tuple[dict[str, dict[int, float]], list[float]]:
    """Column → iterations → mean EPE of its pairs; and each pair's distance from half precision."""
    name, file = network_and_weights(None, weights)
    model = lcv.load(name, file).eval().to(device)
    sums: dict[str, dict[int, list[float]]] = {}
    fast, apart = Prepared(model, half) if half else None, []
    for column, image1, image2, flow, known, pad in every:
        frames = [torch.from_numpy(x).permute(2, 0, 1)[None].to(device) for x in (image1, image2)]
        flows = model(*frames, iters=max(ITERATIONS), pad=pad, all_flows=True).flows
        if fast is not None:
            prepared = fast(*frames, iters=20, pad=pad).flow
            apart.append(float((prepared - flows[19]).norm(dim=1).mean()))
        for n in ITERATIONS:
            off = flows[n - 1][0].permute(1, 2, 0).cpu().numpy() - flow
            epe = float(np.linalg.norm(off, axis=-1)[known].mean())
            sums.setdefault(column, {}).setdefault(n, []).append(epe)
    means = {
        column: {n: float(np.mean(values)) for n, values in by.items()}
        for column, by in sums.items()
    }
    return means, apart


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("weights", nargs="+")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--half", choices=["fp16", "bf16"])
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    every = pairs(options.data)
    columns = list(dict.fromkeys(pair[0] for pair in every))
    print(
        f"{'':<40}"
        + "".join(f"{column:>12}" for column in columns)
        + f"{'drift':>9}"
        + f"{options.half or '':>12}"
    )
    found: dict[str, Any] = {}
    for weights in options.weights:
        table, apart = errors(weights, every, options.device, options.half)
        found[weights] = {"epe": table, "apart": apart}
        means = {n: float(np.mean([table[c][n] for c in columns])) for n in ITERATIONS}
        drift = means[32] / min(means[n] for n in (4, 8, 12, 20)) - 1
        numbers = "".join(f"{table[column][20]:12.3f}" for column in columns)
        worst = f"{max(apart):12.4f}" if apart else ""
        print(f"{weights[-40:]:<40}{numbers}{100 * drift:+8.1f}%{worst}", flush=True)
    if options.output:
        origin = provenance(device=torch.device(options.device))
        text = json.dumps({"provenance": origin, "weights": found}, indent=1)
        options.output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
