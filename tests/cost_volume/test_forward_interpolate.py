"""The warm start: nearest kept point for every pixel, with scipy's tree as the oracle."""

from __future__ import annotations

import importlib

import pytest
import torch
from scipy.spatial import cKDTree

from lcv.cost_volume import coords_from_flow, forward_interpolate, pixel_grid
from lcv.errors import ShapeError


@pytest.mark.parametrize(("h", "w", "size"), [(9, 14, 3.0), (23, 17, 12.0), (46, 62, 1.0)])
def test_every_pixel_takes_the_flow_of_a_nearest_point(h: int, w: int, size: float) -> None:
    """Among equally near points any may win, so distances are compared and not choices."""
    torch.manual_seed(h)
    flow = size * torch.randn(2, 2, h, w, dtype=torch.float64)
    out = forward_interpolate(flow).flatten(2)
    for source, landed, got in zip(
        flow.flatten(2), coords_from_flow(flow).flatten(2), out, strict=True
    ):
        x, y = landed
        kept = (x > 0) & (x < w) & (y > 0) & (y < h)
        grid = pixel_grid(h, w, dtype=torch.float64).flatten(1).T
        least, _ = cKDTree(landed.T[kept]).query(grid.numpy())
        # The flow a pixel got tells which point it came from: random flows do not repeat.
        same = (got.T[:, None] == source.T[kept][None]).all(-1)
        assert same.sum(1).eq(1).all()
        distance = (grid - landed.T[kept][same.int().argmax(1)]).norm(dim=1)
        torch.testing.assert_close(distance, torch.from_numpy(least))


def test_when_every_point_leaves_the_result_is_zero() -> None:
    flow = torch.full((2, 2, 4, 5), 100.0)
    flow[1] = 0.5  # the other frame of the batch stays
    out = forward_interpolate(flow)
    assert out[0].eq(0).all()
    assert out[1].eq(0.5).all()


def test_points_on_the_first_row_or_column_are_dropped() -> None:
    """Strictly inside: still pixels of row 0 and column 0 do not carry their flow on."""
    flow = torch.zeros(1, 2, 3, 4)
    flow[0, 0, 1, 1] = 0.25
    out = forward_interpolate(flow)
    assert out[0, 0, 0, 0].item() == 0.25  # its nearest kept point is that of pixel (1, 1)
    assert out[0, 0, 1, 0].item() == 0.25


def test_a_constant_flow_stays_constant() -> None:
    flow = torch.tensor([1.25, -0.5]).view(1, 2, 1, 1).expand(1, 2, 7, 9)
    assert torch.equal(forward_interpolate(flow), flow)


def test_the_chunk_does_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    flow = 3 * torch.randn(2, 2, 9, 11)
    whole = forward_interpolate(flow)
    module = importlib.import_module("lcv.cost_volume.forward_interpolate")
    monkeypatch.setattr(module, "_CHUNK_BYTES", 4000)
    assert torch.equal(forward_interpolate(flow), whole)


def test_refusals() -> None:
    with pytest.raises(ShapeError, match="forward_interpolate: flow has 3 dimensions"):
        forward_interpolate(torch.zeros(2, 4, 5))
