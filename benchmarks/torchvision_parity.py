"""torchvision's raft_small beside ours, where torchvision is installed: one network, two homes.

    python benchmarks/torchvision_parity.py --weights raft-small.pth --data KITTI_FOLDER

Four statements, each measured on the first pair of the data, exit code 1 if one fails:
 1. with the same weights, wrapped and called through `lcv.Predictor`, it gives our raft-small's flow
    within 1e-3 px mean, and in float64 within 1e-3 px at every pixel;
 2. `lcv eval` measures the same EPE for both, within 1e-3 px;
 3. attached, it trains 20 steps with `lcv.train`, and ‖W − I‖ / ‖I‖ exceeds 1e-3;
 4. `lcv.fold` takes that W out again within 1e-4 px mean, and in float64 within 1e-4 px at every
    pixel, although the folded weights are rounded to float32.

The network's iterations enlarge float32's rounding at single pixels. How much is measured beside:
the folded network with the channels of its features in another order, which is the same function.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

import lcv
from lcv.cost_volume.conventions import pixel_grid
from lcv.data.record import Record, Sample
from lcv.evaluate.calling import image_tensor
from lcv.evaluate.entrants import Entrant, evaluate_entrant
from lcv.evaluate.protocols import PROTOCOLS
from lcv.evaluate.sources import records_in
from lcv.models.raft.names import torchvision_name
from lcv.models.wrapped import copied
from lcv.train import DataConfig, LossConfig, ModelConfig, OptimConfig, TrainConfig
from lcv.train import run as train

OWN = f"{Path(__file__).absolute()}:raft_small"


def raft_small():
    """The factory: torchvision's network with random weights; lcv knows how to call it."""
    from torchvision.models import optical_flow

    return optical_flow.raft_small(weights=None)


def double_coordinates() -> Any:
    """Inside this context torchvision's coordinates are float64: the only place where it casts."""
    from torchvision.models.optical_flow import raft

    def grid(batch_size: int, h: int, w: int, device: str = "cpu") -> torch.Tensor:
        return pixel_grid(h, w, dtype=torch.float64, device=device).repeat(batch_size, 1, 1, 1)

    return mock.patch.object(raft, "make_coords_grid", grid)


@torch.no_grad()
def flow_in(dtype: torch.dtype, model: Any, sample: Sample, **options: Any) -> np.ndarray:
    """The flow (h, w, 2) of a network in this precision."""
    twin = copied(model).eval().to(dtype)
    device = next(twin.parameters()).device
    images = (image_tensor(each, device) for each in (sample.image1, sample.image2))
    flow = twin(*images, **options).flow
    assert flow.dtype == dtype
    return flow[0].permute(1, 2, 0).cpu().numpy()


def exact_flow(model: Any, sample: Sample, **options: Any) -> np.ndarray:
    """The same in float64, in which torchvision's network runs once its coordinates are."""
    with double_coordinates():
        return flow_in(torch.float64, model, sample, **options)


def apart(what: str, a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """The mean and the largest distance of two flows, printed."""
    distance = np.linalg.norm(a - b, axis=2)
    print(f"{what:70}{distance.mean():.1e} px mean, {distance.max():.1e} at most")
    return float(distance.mean()), float(distance.max())


def same_flow(record: Record, weights: str, converted: Path, device: str) -> bool:
    sample = record.read()
    both = (("raft-small", weights), (OWN, converted))
    predictors = [lcv.Predictor(model, file, device=device, iters=20) for model, file in both]
    found = [predictor(sample.image1, sample.image2).flow for predictor in predictors]
    exact = [exact_flow(each.model, sample, iters=20) for each in predictors]
    length = np.linalg.norm(exact[0], axis=2).mean()
    print(f"predict  mean |flow| {length:.2f} px")
    mean, _ = apart("         theirs and ours, float32", *found)
    _, most = apart("         theirs and ours, float64", *exact)
    return mean <= 1e-3 and most <= 1e-3


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
    print(f"train    20 steps: ‖W − I‖ / ‖I‖ = {away:.1e}")
    return away > 1e-3 and folds(model, record.read())


def folds(model: Any, sample: Sample) -> bool:
    plain = lcv.fold(model)
    with_w, without, shuffled = (
        flow_in(torch.float32, each, sample) for each in (model, plain, reordered(plain))
    )
    exact_w, exact = (exact_flow(each, sample) for each in (model, plain))
    mean, _ = apart("fold     with W and folded, float32", with_w, without)
    apart("         noise: folded, and its channels in another order", without, shuffled)
    apart("         with W, float32 and float64", with_w, exact_w)
    apart("         folded, float32 and float64", without, exact)
    _, most = apart(
        "         with W and folded, float64, folded weights in float32", exact_w, exact
    )
    with double_coordinates():
        unrounded = exact_flow(lcv.fold(model.double()), sample)
    apart("         with W and folded, float64, folded weights in float64", exact_w, unrounded)
    return mean <= 1e-4 and most <= 1e-4


def reordered(plain: Any) -> Any:
    """The same function: the channels that enter the inner product, in another order."""
    twin = copied(plain)
    layer = twin.network.feature_encoder.conv
    order = torch.randperm(layer.out_channels, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        layer.weight.copy_(layer.weight[order.to(layer.weight.device)])
        layer.bias.copy_(layer.bias[order.to(layer.bias.device)])
    return twin


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
    print(f"torch {torch.__version__}, torchvision {torchvision.__version__}, {device}")
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
