"""What the page says about a learned W."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
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


@pytest.mark.parametrize(("size", "height"), [((100, 200), 120), ((1, 1000), 1), ((3, 2), 360)])
def test_a_map_has_the_proportions_of_its_frame_and_a_row_at_least(size, height, monkeypatch):
    asked = []

    def maps(*words):
        asked.append(words)
        return [("most", "a")], [("least", "b")]

    def features_of(model, image):
        asked.append((model, image.shape, image.dtype))
        return {"4": "features"}

    level = SimpleNamespace()
    monkeypatch.setattr(module, "loaded", lambda name: name)
    monkeypatch.setattr(module, "inspect_model", lambda model: {"4": level, "5": None})
    monkeypatch.setattr(module, "features_of", features_of)
    monkeypatch.setattr(module, "eigen_feature_maps", maps)
    monkeypatch.setattr(module, "spectrum_chart", lambda levels, size: ([*levels], size))
    monkeypatch.setattr(module, "angles_chart", lambda levels, size: None)
    monkeypatch.setattr(module, "matrix_picture", lambda level: level)
    monkeypatch.setattr(module, "_numbers", lambda level: {"of": level})
    found = module.learned("mine", np.zeros((*size, 3), np.uint8))
    assert asked == [("mine", (1, 3, *size), torch.float32), ("features", level, (240, height))]
    assert found.numbers == {"of": level}
    assert found.charts == {
        "Eigenvalues of W": (["4", "5"], (260, 360)),
        "W − I, one square an entry": level,
    }
    assert found.maps == {"most": "a", "least": "b"}
