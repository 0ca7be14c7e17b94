"""The laws of an inner product, for every kind, at every size: what makes LCV safe to plug in."""

from __future__ import annotations

import pytest
import torch

from lcv.errors import ArgumentError, ShapeError, WeightsError
from lcv.inner_product import (
    FORMS,
    INNER_PRODUCTS,
    InnerProduct,
    StiefelSGD,
    make_inner_product,
)
from lcv.inner_product.variants import Spectral
from testing.closeness import assert_as_exact_as

CHANNELS = (1, 2, 3, 64, 256)
SIZE = (5, 7)
KINDS = tuple(INNER_PRODUCTS)
POSITIVE = ("elliptical", "diagonal", "rotation", "riemannian")


def features(channels, dtype=torch.float64, batch=2, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shape = (2, batch, channels, *SIZE)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).unbind()


def cost(g1, g2):
    return (g1 * g2).sum(1)


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("name", KINDS)
def test_it_starts_at_the_identity_to_the_last_bit(name, channels):
    for dtype in (torch.float32, torch.float64):
        product = make_inner_product(name, channels).to(dtype)
        assert torch.equal(product.matrix().double(), torch.eye(channels).double())


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("name", KINDS)
def test_at_the_start_every_form_returns_its_input_unchanged(name, channels):
    f1, f2 = features(channels, torch.float32)
    for form in INNER_PRODUCTS[name].forms:
        g1, g2 = make_inner_product(name, channels, form)(f1, f2)
        assert torch.equal(g1, f1)
        assert torch.equal(g2, f2)


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("name", [*POSITIVE, "gram"])
def test_w_is_symmetric_to_the_last_bit(name, channels, moved):
    W = moved(name, channels, dtype=torch.float32).matrix()
    assert torch.equal(W, W.mT)


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("name", POSITIVE)
def test_w_is_positive_definite(name, channels, moved):
    product = moved(name, channels, scale=2.0)
    lam = torch.linalg.eigvalsh(product.matrix())
    torch.testing.assert_close(lam, product.eigenvalues().sort().values)
    assert (lam > 0).all()


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("name", KINDS)
def test_the_forms_agree_after_summing_and_are_the_paper_s_formula(name, channels, moved):
    f1, f2 = features(channels)
    product = moved(name, channels)
    truth = torch.einsum("bchw,cd,bdhw->bhw", f1, product.matrix().double(), f2)  # Eq. (2)
    for form in product.forms:
        torch.testing.assert_close(cost(*getattr(product, form)(f1, f2)), truth)


@pytest.mark.parametrize("name", ["elliptical", "riemannian", "gram", "rotation", "diagonal"])
def test_factor_and_symmetric_root_are_roots_of_w(name, moved):
    product = moved(name, 6)
    Q = product.factor_matrix()
    torch.testing.assert_close(Q.mT @ Q, product.matrix())
    if "zca" in product.forms:
        R = product.zca_matrix()
        torch.testing.assert_close(R, R.mT)
        torch.testing.assert_close(R @ R, product.matrix())


@pytest.mark.parametrize("channels", [2, 3, 64])
def test_left_is_right_for_a_matrix_that_is_not_symmetric(channels, moved):
    f1, f2 = features(channels)
    product = moved("free", channels)
    W = product.matrix()
    assert not torch.allclose(W, W.mT)
    wrong_side = torch.einsum("bchw,dc,bdhw->bhw", f1, W, f2)
    right_side = torch.einsum("bchw,cd,bdhw->bhw", f1, W, f2)
    torch.testing.assert_close(cost(*product(f1, f2)), right_side)
    assert not torch.allclose(right_side, wrong_side)


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_rotation_alone_is_the_identity_computed_and_not_short_cut(channels, scale, moved):
    product = moved("rotation", channels, scale=scale, dtype=torch.float32)
    W, eye = product.matrix(), torch.eye(channels)
    in_plain_torch = product.rotation().mT @ product.rotation()
    assert_as_exact_as(W, in_plain_torch, eye.double())
    if channels == 256:
        assert not torch.equal(W, eye), "PᵀP came out exact: it was not computed"


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("name", ["elliptical", "rotation", "diagonal"])
def test_after_100_wild_steps_of_adam_p_is_a_rotation_and_every_eigenvalue_positive(name, channels):
    torch.manual_seed(0)
    f1, f2 = features(channels, torch.float32)
    target = cost(*features(channels, torch.float32, seed=1))
    product = make_inner_product(name, channels, "factor")
    mixing = torch.randn(channels, 1, 1)  # channels kept apart, so that P alone matters too
    optimiser = torch.optim.Adam(product.parameters(), lr=0.5)
    for _ in range(100):
        optimiser.zero_grad()
        g1, g2 = product(f1, f2)
        ((torch.relu(g1 * g2) * mixing).sum(1) - target).square().mean().backward()
        optimiser.step()
    P = product.rotation().detach()
    assert (P.mT @ P - torch.eye(channels)).abs().max() < 1e-5
    assert (torch.linalg.eigvalsh(product.matrix().detach().double()) > 0).all()
    if channels > 1:
        assert not torch.equal(product.factor_matrix(), torch.eye(channels)), "nothing moved"


@pytest.mark.parametrize("channels", [2, 3, 64])
def test_riemannian_steps_keep_p_on_the_manifold(channels):
    f1, f2 = features(channels)
    product = make_inner_product("riemannian", channels).double()
    on_manifold = StiefelSGD([product.P], lr=0.05, momentum=0.9)
    ordinary = torch.optim.Adam([product.t], lr=0.5)
    target = cost(*features(channels, seed=1))
    for _ in range(50):
        product.zero_grad()
        (cost(*product(f1, f2)) - target).square().mean().backward()
        on_manifold.step()
        ordinary.step()
        torch.testing.assert_close(product.P.mT @ product.P, torch.eye(channels).double())
    assert not torch.allclose(product.P, torch.eye(channels).double())


@pytest.mark.parametrize("channels", [2, 64])
def test_at_the_start_s_has_no_gradient_until_the_eigenvalues_move(channels):
    f1, f2 = features(channels)
    product = make_inner_product("elliptical", channels).double()
    cost(*product(f1, f2)).square().sum().backward()
    assert product.t.grad.abs().min() > 0
    assert product.S_upper.grad.abs().max() < 1e-9 * product.t.grad.abs().max()
    with torch.no_grad():
        product.t += torch.linspace(-1, 1, channels)
    product.zero_grad()
    cost(*product(f1, f2)).square().sum().backward()
    assert product.S_upper.grad.abs().min() > 0


@pytest.mark.parametrize("name", KINDS)
def test_gradients(name, moved):
    f1, f2 = (f.requires_grad_() for f in features(3, batch=1))
    for form in INNER_PRODUCTS[name].forms:
        product = moved(name, 3, form)
        names = [name for name, _ in product.named_parameters()]

        def run(f1, f2, *values, product=product, names=names):
            named = dict(zip(names, values, strict=True))
            return torch.func.functional_call(product, named, (f1, f2))

        values = [p.detach().clone().requires_grad_() for p in product.parameters()]
        assert torch.autograd.gradcheck(run, (f1, f2, *values))


@pytest.mark.parametrize("name", KINDS)
def test_autocast_changes_neither_w_nor_the_dtype_it_is_built_in(name, moved):
    product = moved(name, 16, dtype=torch.float32)
    plain = product.matrix()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = product.matrix()
        g1, _ = product(*features(16, torch.float32))
    assert plain.dtype == cast.dtype == torch.float32
    assert torch.equal(plain, cast)
    assert g1.dtype == torch.float32


@pytest.mark.parametrize("name", ["elliptical", "rotation", "gram", "free", "riemannian"])
def test_half_precision_parameters_still_build_w_in_float32(name, moved):
    product = moved(name, 8, dtype=torch.bfloat16)
    assert product.matrix().dtype == torch.float32


@pytest.mark.parametrize("name", KINDS)
def test_the_saved_state_returns_the_same_matrix(name, moved):
    product = moved(name, 9)
    twin = make_inner_product(name, 9).double()
    twin.load_state_dict(product.state_dict())
    assert torch.equal(twin.matrix(), product.matrix())


@pytest.mark.parametrize("key", ["S_upper", "t"])
def test_nan_in_loaded_parameters_is_refused_by_name(key, moved):
    state = moved("elliptical", 4).state_dict()
    state[key][2] = torch.nan
    holder = torch.nn.ModuleDict({"inner_product": make_inner_product("elliptical", 4).double()})
    message = rf"inner_product\.{key}: 1 of \d+ numbers are NaN"
    with pytest.raises(WeightsError, match=message):
        holder.load_state_dict({f"inner_product.{k}": v for k, v in state.items()})


def test_a_loaded_p_off_the_manifold_is_refused():
    product = make_inner_product("riemannian", 4)
    state = product.state_dict()
    state["P"] = 2 * state["P"]
    with pytest.raises(WeightsError, match=r"P: P is not orthogonal, .* by 3\.0e\+00"):
        product.load_state_dict(state)


def test_free_numbers_are_counted_as_documented():
    c = 7
    counts = {
        name: sum(p.numel() for p in make_inner_product(name, c).parameters()) for name in KINDS
    }
    assert counts == {
        "euclidean": 0,
        "elliptical": c * (c - 1) // 2 + c,
        "diagonal": c,
        "rotation": c * (c - 1) // 2,
        "free": c * c,
        "gram": c * c,
        "riemannian": c * c + c,
    }


def test_what_cannot_be_built_says_why():
    with pytest.raises(ArgumentError, match="unknown inner product 'cayley'; there are euclidean"):
        make_inner_product("cayley", 4)
    with pytest.raises(
        ArgumentError, match="unknown form 'right'; the forms are left, factor, zca"
    ):
        make_inner_product("elliptical", 4, "right")
    with pytest.raises(ArgumentError, match="Free has no form 'factor': a free W need be neither"):
        make_inner_product("free", 4, "factor")
    with pytest.raises(ArgumentError, match="Free has no factor: a free W need be neither"):
        make_inner_product("free", 4).factor(*features(4))
    with pytest.raises(ArgumentError, match="Free has no symmetric root: a free W need be"):
        make_inner_product("free", 4).zca(*features(4))
    with pytest.raises(ArgumentError, match="channels must be a whole number of at least 1, got 0"):
        make_inner_product("diagonal", 0)
    with pytest.raises(ShapeError, match=r"f1 has shape \(2, 3, 5, 7\), wanted \(b, 4, h, w\)"):
        make_inner_product("elliptical", 4)(*features(3))


def test_every_form_is_known_to_some_product():
    assert set(FORMS) == {form for kind in INNER_PRODUCTS.values() for form in kind.forms}


def test_integer_features_are_refused_not_truncated():
    with pytest.raises(ShapeError, match=r"f1 holds torch\.int64, wanted floating point features"):
        make_inner_product("elliptical", 3)(*(f.long() for f in features(3)))


def test_the_identity_follows_its_network():
    assert make_inner_product("euclidean", 3).double().matrix().dtype == torch.float64
    assert make_inner_product("euclidean", 3).to("meta").matrix().device.type == "meta"
    assert make_inner_product("euclidean", 3).state_dict() == {}


def test_a_kind_of_one_s_own_says_what_w_is():
    for missing in (InnerProduct(3).matrix, Spectral(3).rotation, Spectral(3).eigenvalues):
        with pytest.raises(NotImplementedError):
            missing()
