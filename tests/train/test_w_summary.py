"""W in the numbers of a log entry."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from lcv.inner_product import INNER_PRODUCTS
from lcv.train.w_summary import w_summary


def test_a_w_that_is_known():
    """W of eigenvalues 1/2, 1, 3; P turns by an angle whose Cayley transform is tan of its half."""
    model = nn.Module()
    model.inner_product = product = INNER_PRODUCTS["elliptical"](3)
    wanted = torch.tensor([0.5, 1.0, 3.0])
    with torch.no_grad():
        product.S_upper.copy_(torch.tensor([math.tan(0.2), 0.0, 0.0]))
        product.t.copy_((math.pi / 2 * (wanted - 1) / (wanted + 1)).tan())
    found = w_summary(model)
    assert list(found) == ["w_smallest", "w_largest", "w_distance", "p_angle", "w_spectrum"]
    assert found["w_spectrum"] == pytest.approx([0.5, 1.0, 3.0], rel=1e-6)
    assert (found["w_smallest"], found["w_largest"]) == tuple(found["w_spectrum"][::2])
    assert found["w_distance"] == pytest.approx(math.sqrt(4.25 / 3), rel=1e-6)
    assert found["p_angle"] == pytest.approx(0.4, rel=1e-6)


@pytest.mark.parametrize("kind", ["euclidean", "free"])
def test_a_w_without_eigenvalues_says_nothing(kind):
    model = nn.Module()
    assert w_summary(model) == {}
    model.inner_product = INNER_PRODUCTS[kind](3)
    assert w_summary(model) == {}
