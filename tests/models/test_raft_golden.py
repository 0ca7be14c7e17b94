"""RAFT against flows that the authors' own code computed, published weights, CPU, float32."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
import torch

import lcv
from testing.shared import shared

CASES = [
    ("raft-sintel__frame_0016__20", "raft-large", "raft-sintel"),
    ("raft-sintel__rubberwhale1__32", "raft-large", "raft-sintel"),
    ("raft-sintel__sintel_0010__32", "raft-large", "raft-sintel"),
    ("raft-kitti__kitti_000000_10__24", "raft-large", "raft-kitti"),
    ("raft-kitti__kitti_000042_10__24", "raft-large", "raft-kitti"),
    ("raft-small__sintel_0010__12", "raft-small", "raft-small"),
    ("lcv-raft-sintel__rubberwhale1__12", "raft-large", "raft-sintel"),
    ("lcv-raft-small__sintel_0010__8", "raft-small", "raft-small"),
]


def frame(name: str) -> torch.Tensor:
    rgb = lcv.read_image(shared("golden", "frames", name))
    return torch.from_numpy(rgb).movedim(2, 0)[None].float()


def authors_parameters(model: torch.nn.Module) -> None:
    """The raw_P and raw_D of the golden runs, in the file's naming, into our W."""
    from lcv.inner_product.convert import from_authors

    c = model.inner_product.channels
    raw = {}
    for name, shape, scale in (("raw_P", (c, c), 0.2), ("raw_D", (c,), 0.1)):
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        raw[name] = torch.from_numpy((rng.standard_normal(shape) * scale).astype(np.float32))
    S_upper, t = from_authors(**raw)
    model.inner_product.load_state_dict({"S_upper": S_upper, "t": t})


@pytest.mark.parametrize(("name", "model", "weights"), CASES, ids=[case[0] for case in CASES])
def test_the_authors_flow(name, model, weights):
    with np.load(shared("golden", f"{name}.npz")) as golden:
        truth = torch.from_numpy(golden["flow"])
        images = frame(str(golden["frame1"])), frame(str(golden["frame2"]))
        iters, pad, stride = int(golden["iters"]), str(golden["pad"]), int(golden["stride"])
    network = lcv.load(model, weights=shared("weights", f"{weights}.pth"))
    if name.startswith("lcv"):
        authors_parameters(network)
    with torch.no_grad():
        flow = network(*images, iters=iters, pad=pad).flow[0, :, ::stride, ::stride]
    difference = (flow - truth).norm(dim=0)
    assert difference.mean() <= 2e-4
    assert (difference <= 5e-3).float().mean() >= 0.999
