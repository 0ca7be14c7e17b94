"""A peer that is installed everywhere, and results as `bench` gives them, made up."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from lcv.models.registry import NETWORKS
from lcv.models.types import Peer

ORIGIN = {"device": "NVIDIA X", "threads": 4, "torch": "2.11", "commit": "0123456789"}


def row(label, ms, *, peer=None, lcv="unfolded", precision="float32", **more):
    times = [ms / 1000, ms / 900, ms / 1100]
    numbers = {"seconds": times, "median_seconds": times[0], "first_seconds": 1.5}
    told = {"model": "net", "label": label, "peer": peer, "lcv": lcv, "volume": "all-pairs"}
    told |= {"engine": "plain", "precision": precision, "peak_bytes": 5 * 2**20}
    return {**told, "height": 64, "width": 72, "batch": 1, "iters": 2, **numbers, **more}


def broken(label, **more):
    kept = row(label, 1, **more)
    for name in ("seconds", "median_seconds", "first_seconds", "peak_bytes"):
        del kept[name]
    return {**kept, "error": "OutOfMemoryError: of 90 GiB", "out_of_memory": True}


def results(rows, base=None):
    told = {"packages": {"torchvision": "0.26"}, "missing": ["ptlflow"], "interrupted": False}
    return {"format": "lcv bench 2", "provenance": ORIGIN, "base": base, "rows": rows, **told}


@pytest.fixture
def table_results():
    return results(
        [
            row("ours", 20, px_mean=0.01, px_p99=0.05),
            row("ours, without", 18, lcv="none"),
            row("theirs, float32", 90, peer="torchvision"),
            row("theirs, tf32", 60, peer="torchvision", precision="tf32"),
            broken("theirs, bf16", peer="torchvision", precision="bf16"),
        ]
    )


@pytest.fixture
def growth_results():
    base = {"height": 64, "width": 72, "batch": 1, "iters": 2}
    return results(
        [
            row("ours", 20),
            row("ours", 30, height=128),
            row("ours", 80, batch=4),
            row("ours", 10, iters=1),
            row("theirs", 60, peer="torchvision"),
            broken("theirs", peer="torchvision", height=128),
        ],
        base,
    )


@pytest.fixture
def fake_peer(monkeypatch):
    """A package with a network that moves everything by (1, 0)."""

    class Network(torch.nn.Module):
        def forward(self, image1, image2):
            return torch.ones_like(image1[:, :2]) * torch.tensor([1.0, 0.0]).view(1, 2, 1, 1)

    entry = NETWORKS["raft-small"]
    peer = Peer("elsewhere", lambda ours, iters: Network())
    monkeypatch.setitem(NETWORKS, "raft-small", replace(entry, peers=(peer,)))


@pytest.fixture
def folder(tmp_path):
    """With frames of noise, which are there sooner than procedural ones."""
    for h, w in ((64, 72), (512, 512)):
        pair = torch.randint(0, 256, (2, 3, h, w), dtype=torch.uint8)
        torch.save(pair, tmp_path / f"frames-{h}x{w}.pt")
    return tmp_path
