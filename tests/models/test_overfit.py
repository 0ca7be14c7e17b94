"""Every network learns one painted pair: EPE below 10 % of its start. All kinds on a GPU: docs."""

from __future__ import annotations

import pytest
import torch

from lcv.inner_product import INNER_PRODUCTS
from testing.overfit import overfit

SHORT = [(name, "elliptical") for name in ("raft-small", "vcn-small", "ddflow")]
LONG = [("raft-small", kind) for kind in INNER_PRODUCTS if kind != "elliptical"]
LONG += [("raft-large", "elliptical"), ("vcn", "elliptical")]


@pytest.mark.parametrize(
    ("name", "kind"), [*SHORT, *(pytest.param(*case, marks=pytest.mark.slow) for case in LONG)]
)
def test_one_pair_is_learned(name, kind):
    result = overfit(name, kind)
    assert result.last < 0.1 * result.first, f"EPE {result.first:.2f} → {result.last:.2f}"
    if kind not in ("euclidean", "rotation"):
        eye = torch.eye(len(result.matrix))
        assert (result.matrix - eye).abs().max() > 1e-3, "W did not move"
