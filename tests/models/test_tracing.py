"""compile and export trace RAFT's core, encode and match, without a break."""

from __future__ import annotations

import pytest
import torch

from lcv.export.prepare import Core
from lcv.models.raft import raft_large, raft_small
from testing.painted import painted_pair


@pytest.fixture(params=[raft_large, raft_small], ids=["large", "small"])
def core(request):
    torch.manual_seed(0)
    model = request.param("elliptical").eval()
    with torch.no_grad():
        model.inner_product.t.normal_()
        model.inner_product.S_upper.normal_(std=0.1)
    return Core(model, iters=2)


@torch.no_grad()
def test_compile_in_one_graph(core):
    pair = painted_pair(64, 80)[:2]
    torch._dynamo.reset()
    compiled = torch.compile(core, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*pair), core(*pair))


@torch.no_grad()
def test_export_with_sizes_in_multiples_of_8(core):
    # From 128 pixels on: below, the coarsest costs are one pixel wide, a size tracers treat apart.
    rows, columns = (torch.export.Dim(name, min=16, max=64) for name in ("rows", "columns"))
    sizes = {2: 8 * rows, 3: 8 * columns}
    exported = torch.export.export(core, painted_pair(136, 144)[:2], dynamic_shapes=(sizes, sizes))
    for size in [(136, 144), (128, 160)]:
        pair = painted_pair(*size)[:2]
        torch.testing.assert_close(exported.module()(*pair), core(*pair))
