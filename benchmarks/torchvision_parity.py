"""torchvision's raft_small beside ours, where torchvision is installed: one network, two homes.

    python benchmarks/torchvision_parity.py --weights raft-small.pth --data KITTI_FOLDER

Four statements, each measured, exit code 1 if one fails:
 1. with the same weights, wrapped and called through `lcv.Predictor`, it gives our raft-small's flow
    within 1e-3 px mean on the first pair of the data;
 2. `lcv eval` measures the same EPE for both, within 1e-3 px;
 3. attached, it trains 20 steps with `lcv.train`, and ‖W − I‖ / ‖I‖ exceeds 1e-3;
 4. `lcv.fold` takes that W out again within 1e-4 px mean.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

import lcv
from lcv.data.record import Record
from lcv.evaluate.entrants import Entrant, evaluate_entrant
from lcv.evaluate.protocols import PROTOCOLS
from lcv.evaluate.sources import records_in
from lcv.models.raft.names import torchvision_name
from lcv.train import DataConfig, LossConfig, ModelConfig, OptimConfig, TrainConfig
from lcv.train import run as train

OWN = f"{Path(__file__).absolute()}:raft_small"


def raft_small():
    """The factory: torchvision's network with random weights; lcv knows how to call it."""
    from torchvision.models import optical_flow

    return optical_flow.raft_small(weights=None)


def same_flow(record: Record, weights: str, converted: Path, device: str) -> bool:
    sample = record.read()
    ours, theirs = (
        lcv.Predictor(model, file, device=device, iters=20)(sample.image1, sample.image2).flow
        for model, file in (("raft-small", weights), (OWN, converted))
    )
    apart = np.linalg.norm(ours - theirs, axis=2)
    length = np.linalg.norm(ours, axis=2).mean()
    print(f"predict  mean |flow| {length:.2f} px; differ by {apart.mean():.1e} px mean,", end=" ")
    print(f"{apart.max():.1e} at most")
    return bool(apart.mean() <= 1e-3)


def same_score(records: list[Record], weights: str, converted: Path, device: str) -> bool:
    scores = []
    for model, file in (("raft-small", weights), (OWN, str(converted))):
        result = evaluate_entrant(
            Entrant(model, {"": file}), records, PROTOCOLS["raft"], device=device
        )
        (measured,) = result.datasets.values()
        scores.append(measured.metrics["epe"])
    print(f"eval     EPE {scores[0]:.5f} px ours, {scores[1]:.5f} px torchvision's")
    return abs(scores[0] - scores[1]) <= 1e-3


def trains_and_folds(record: Record, converted: Path, folder: Path, device: str) -> bool:
    model = train(
        TrainConfig(
            model=ModelConfig(OWN, "elliptical", weights=str(converted)),
            data=DataConfig(recipe="moderate", size=(128, 192), ahead=1),
            optim=OptimConfig(lr=1e-4, w_lr_factor=10.0),
            loss=LossConfig("sequence", iters=4),
            steps=20,
            batch=2,
            precision="float32",
            folder=str(folder / "run"),
            log_every=10,
            save_every=20,
            validate_every=0,
        ),
        device=device,
    ).eval()
    W = model.inner_product.matrix().detach()
    eye = torch.eye(len(W), device=W.device)
    away = float((W - eye).norm() / eye.norm())
    sample = record.read()
    with_w, without = (
        lcv.Predictor(each, device=device)(sample.image1, sample.image2).flow
        for each in (model, lcv.fold(model))
    )
    distance = np.linalg.norm(with_w - without, axis=2)
    apart = distance.mean()
    print(f"train    20 steps: ‖W − I‖ / ‖I‖ = {away:.1e}")
    print(f"fold     differs by {apart:.1e} px mean, {distance.max():.1e} at most")
    return away > 1e-3 and bool(apart <= 1e-4)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", required=True, help="raft-small.pth of RAFT's authors")
    parser.add_argument("--data", required=True, help="pairs with truth: a folder or a list")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()

    import torchvision

    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    device = torch.cuda.get_device_name() if options.device != "cpu" else "CPU"
    print(f"torch {torch.__version__}, torchvision {torchvision.__version__}, {device}, float32")
    records = list(records_in([options.data]))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours = lcv.load("raft-small", options.weights, inner_product="euclidean").state_dict()
        converted = folder / "raft_small.pth"
        torch.save({torchvision_name(key): value for key, value in ours.items()}, converted)
        held = [
            same_flow(records[0], options.weights, converted, options.device),
            same_score(records, options.weights, converted, options.device),
            trains_and_folds(records[0], converted, folder, options.device),
        ]
    print("all hold" if all(held) else "FAILED")
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
