"""The GPU kernels against their references: in Triton's interpreter, and on CUDA."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from benchmarks import kernel_checks

from lcv.errors import ShapeError
from testing.extras import needs
from testing.interpreter import interpreted

HERE = Path(__file__)


def test_interpreted_kernels_answer_to_their_references():
    found = interpreted(str(HERE.parents[1] / "testing" / "interpreted.py"))
    assert len(found) == len(list(kernel_checks.cases(small=True)))
    assert kernel_checks.bad(found) == []


@pytest.mark.gpu
def test_kernels_answer_to_their_references_on_cuda():
    assert kernel_checks.bad(kernel_checks.check("cuda")) == []


@pytest.mark.gpu
def test_whole_numbers_are_divided_exactly_on_cuda():
    from testing.division import divided  # needs Triton

    divided("cuda")


def test_maps_too_large_for_the_kernels_are_refused():
    needs("triton")
    from lcv.cost_volume.ondemand import triton_impl

    coords = torch.empty(1, 2, 2049, 2048, device="meta")
    points = packed = torch.empty(1, 2049 * 2048, 16, device="meta")
    with pytest.raises(
        ShapeError, match=r"maps are 2048×2049, wanted at most 4,194,304 pixels; use"
    ):
        triton_impl.window_costs(points, packed, coords, levels=1, rx=1, ry=1)


def test_a_wrong_kernel_would_be_found():
    row = {"case": "x", "dtype": "float32", "results": [[1e-3, 1e-6], [0.0, 1e-6]]}
    assert kernel_checks.bad([row]) == ["x, float32, result 0: error 1.00e-03, allowed 1.00e-06"]
    assert kernel_checks.bad([{**row, "results": [[float("nan"), 1.0]]}]) != []
