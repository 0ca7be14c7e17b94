"""The GPU kernels against their references: in Triton's interpreter, and on CUDA."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import kernel_checks

from testing.interpreter import interpreted

HERE = Path(__file__)


def test_interpreted_kernels_answer_to_their_references():
    found = interpreted(str(HERE.parents[1] / "testing" / "interpreted.py"))
    assert len(found) == len(list(kernel_checks.cases(small=True)))
    assert kernel_checks.bad(found) == []


@pytest.mark.gpu
def test_kernels_answer_to_their_references_on_cuda():
    assert kernel_checks.bad(kernel_checks.check("cuda")) == []


def test_a_wrong_kernel_would_be_found():
    row = {"case": "x", "dtype": "float32", "results": [[1e-3, 1e-6], [0.0, 1e-6]]}
    assert kernel_checks.bad([row]) == ["x, float32, result 0: error 1.00e-03, allowed 1.00e-06"]
    assert kernel_checks.bad([{**row, "results": [[float("nan"), 1.0]]}]) != []
