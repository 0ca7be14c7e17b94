"""Compile and export go through the operators without a break, with sizes left open."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from lcv.cost_volume import AllPairs, OnDemand, coords_from_flow, local_cost_volume, warp


class Lookup(nn.Module):
    """Features of its own, so that the volume asks for gradients, and one lookup."""

    def __init__(self, operator: AllPairs | OnDemand) -> None:
        super().__init__()
        self.features = nn.Conv2d(3, 4, 1)
        self.operator = operator

    def forward(self, image1: Tensor, image2: Tensor, flow: Tensor) -> Tensor:
        state = self.operator.build(self.features(image1), self.features(image2))
        return self.operator.lookup(state, coords_from_flow(flow))  # type: ignore[arg-type]


class Local(nn.Module):
    """A warp and a window volume."""

    def __init__(self, keep_channels: bool) -> None:
        super().__init__()
        self.features = nn.Conv2d(3, 4, 1)
        self.keep_channels = keep_channels

    def forward(self, image1: Tensor, image2: Tensor, flow: Tensor) -> Tensor:
        there = warp(self.features(image2), flow)
        return local_cost_volume(
            self.features(image1), there, (5, 3), keep_channels=self.keep_channels
        )


def _inputs(h: int, w: int) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(h)
    return torch.randn(2, 3, h, w), torch.randn(2, 3, h, w), 2 * torch.randn(2, 2, h, w)


MODULES = {
    "allpairs": lambda: Lookup(AllPairs(3, (2, 1))),
    "ondemand": lambda: Lookup(OnDemand(3, (2, 1))),
    "local": lambda: Local(False),
    "local, channels kept": lambda: Local(True),
}


@pytest.mark.parametrize("name", MODULES)
def test_compiles_as_one_graph(name: str) -> None:
    torch._dynamo.reset()
    module = MODULES[name]()
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
    inputs = _inputs(9, 13)
    out, expected = compiled(*inputs), module(*inputs)
    torch.testing.assert_close(out, expected)
    weights = list(module.parameters())
    for got, want in zip(
        torch.autograd.grad(out.square().sum(), weights),
        torch.autograd.grad(expected.square().sum(), weights),
        strict=True,
    ):
        torch.testing.assert_close(got, want)


def test_a_lookup_compiles_apart_from_its_build() -> None:
    torch._dynamo.reset()
    operator = AllPairs(2, (2, 1))
    f1, f2 = torch.randn(2, 1, 3, 6, 9)
    coords = 8 * torch.rand(1, 2, 6, 9)
    state = operator.build(f1, f2)
    compiled = torch.compile(operator.lookup, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(state, coords), operator.lookup(state, coords))


@pytest.mark.parametrize("name", ["allpairs", "local", "local, channels kept"])
def test_exports_with_open_sizes(name: str) -> None:
    module = MODULES[name]()
    open_sizes = {
        2: torch.export.Dim("h", min=8, max=512),
        3: torch.export.Dim("w", min=8, max=512),
    }
    program = torch.export.export(module, _inputs(9, 13), dynamic_shapes=(open_sizes,) * 3)
    for h, w in ((9, 13), (16, 40)):
        inputs = _inputs(h, w)
        torch.testing.assert_close(program.module()(*inputs), module(*inputs))


def test_on_demand_exports_at_a_fixed_size() -> None:
    """The number of chunks depends on the size, so the size cannot stay open."""
    module = MODULES["ondemand"]()
    inputs = _inputs(9, 13)
    program = torch.export.export(module, inputs)
    torch.testing.assert_close(program.module()(*inputs), module(*inputs))
