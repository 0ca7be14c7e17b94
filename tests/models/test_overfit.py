"""Every network learns one painted pair: EPE below 10 % of its start. All kinds on a GPU: docs."""

from __future__ import annotations

import pytest
import torch

from lcv.inner_product import INNER_PRODUCTS
from testing.overfit import overfit

CASES = [("raft-small", kind) for kind in INNER_PRODUCTS]
CASES += [(name, "elliptical") for name in ("raft-large", "vcn", "vcn-small", "ddflow")]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_one_pair_is_learned(name, kind):
    result = overfit(name, kind)
    assert result.last < 0.1 * result.first, f"EPE {result.first:.2f} → {result.last:.2f}"
    if kind not in ("euclidean", "rotation"):
        eye = torch.eye(len(result.matrix))
        assert (result.matrix - eye).abs().max() > 1e-3, "W did not move"
