"""A network made ready for tracing computes the same flow, and W is no longer computed in it."""

from __future__ import annotations

import pytest
import torch

import lcv
from lcv.cost_volume import OnDemand
from lcv.cost_volume.allpairs.portable import LOOKUPS, GatheredPairs
from lcv.export.prepare import fixed, prepare
from lcv.inner_product import INNER_PRODUCTS, make_inner_product
from testing.painted import painted_pair


def moved(module: torch.nn.Module) -> torch.nn.Module:
    """With a W that is not I: every parameter of every inner product stirred."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if "inner_product" in name or isinstance(module, tuple(INNER_PRODUCTS.values())):
                parameter.add_(0.1 * torch.randn_like(parameter))
    return module.eval()


@pytest.mark.parametrize(
    ("kind", "form"),
    [(kind, form) for kind, each in INNER_PRODUCTS.items() for form in each.forms],
)
def test_a_fixed_product_is_the_product(kind, form):
    product = moved(make_inner_product(kind, 6, form)).double()
    f1, f2 = torch.randn(2, 1, 6, 3, 4, dtype=torch.float64)
    with torch.no_grad():
        # The matrices were rounded to float32 once, and applied in float64.
        for ours, truth in zip(fixed(product)(f1, f2), product(f1, f2), strict=True):
            assert (ours - truth).norm() <= 1e-6 * truth.norm()
    assert list(fixed(product).parameters()) == []


@torch.no_grad()
@pytest.mark.parametrize("lookup", LOOKUPS)
@pytest.mark.parametrize(
    ("kind", "words"), [("elliptical", "folded"), ("free", "a constant"), ("euclidean", "none")]
)
def test_raft_is_folded_where_it_can_be(kind, words, lookup):
    model = moved(lcv.build("raft-small", kind))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    prepared, said = prepare(model, lookup)
    assert said.startswith(words)
    assert not any(
        "S_upper" in name or "inner_product" in name for name, _ in prepared.named_parameters()
    )
    assert not any(parameter.requires_grad for parameter in prepared.parameters())
    pair = painted_pair(64, 72)[:2]
    # The flow of an untrained network spans some pixels; float32 leaves 1e-5 of it or so.
    torch.testing.assert_close(
        prepared(*pair, iters=2).flow, model(*pair, iters=2).flow, atol=1e-4, rtol=1e-4
    )
    after = model.state_dict()
    assert all(torch.equal(value, after[name]) for name, value in before.items())


def test_a_raft_that_saves_memory_is_exported_all_the_same():
    model = lcv.build("raft-small", "euclidean").eval()
    volume = model.cost_volume
    model.cost_volume = OnDemand(levels=volume.levels, radius=volume.radius, scale=volume.scale)
    assert prepare(model, "gather")[0].cost_volume == GatheredPairs(4, 3, 3, volume.scale)


@torch.no_grad()
def test_w_is_constant_where_it_cannot_be_folded():
    model = moved(lcv.build("ddflow", "elliptical"))
    prepared, said = prepare(model, "gather")
    assert said == "constant matrices at levels 6, 5, 4, 3, 2"
    assert not any("S_upper" in name for name in prepared.state_dict())
    pair = painted_pair(64, 72)[:2]
    torch.testing.assert_close(prepared(*pair).flow, model(*pair).flow, atol=1e-4, rtol=1e-4)
    assert prepare(lcv.build("ddflow", "euclidean"), "gather")[1] == "none"
