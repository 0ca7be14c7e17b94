"""What the page says about a learned W."""

from __future__ import annotations

from types import SimpleNamespace

import torch

import lcv
from lcv.demo import learned as module
from testing.footage import moving


def test_the_numbers_of_a_w():
    summary = SimpleNamespace(
        eigenvalues=torch.tensor([0.51234, 1.0, 2.0]),
        condition=3.9036,
        distance=0.12345,
        angles=torch.tensor([0.0, torch.pi / 6]),
    )
    numbers = {
        "Channels": "3",
        "Eigenvalues": "0.512 to 2",
        "Condition number": "3.9",
        "‖W − I‖ / ‖I‖": "0.123",
    }
    assert module._numbers(SimpleNamespace(summary=summary, angles=False)) == numbers
    turned = module._numbers(SimpleNamespace(summary=summary, angles=True))
    assert turned == {**numbers, "Largest angle of P": "30°"}


def test_charts_and_maps_have_the_sizes_of_the_page(monkeypatch):
    """Maps are 240 px wide, in the frame's proportion, for the directions at both ends of W."""
    torch.manual_seed(0)
    model = lcv.build("raft-small").eval()
    for parameter in model.inner_product.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    monkeypatch.setattr(module, "loaded", lambda name: model)
    found = module.learned("raft-small", moving(1, (64, 96))[0])
    assert [*found.charts] == [
        "Eigenvalues of W",
        "Angles by which P turns",
        "W − I, one square an entry",
    ]
    assert [chart.shape for chart in found.charts.values()][:2] == [(260, 360, 3)] * 2
    assert len(found.maps) >= 4
    assert {each.shape for each in found.maps.values()} == {(160, 240, 3)}
    assert found.numbers["Channels"] == "128"
