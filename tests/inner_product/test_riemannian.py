"""Projection and retraction, held against their definitions and against geoopt."""

from __future__ import annotations

from contextlib import nullcontext

import geoopt
import pytest
import torch

from lcv.errors import ArgumentError, WeightsError
from lcv.inner_product import StiefelSGD
from lcv.inner_product.cayley import cayley, free_entries, skew_from_upper
from lcv.inner_product.riemannian import Riemannian, project, retract

CHANNELS = (1, 2, 3, 64)


def point_and_vector(channels: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(channels)
    upper = torch.randn(free_entries(channels), generator=generator).double()
    P = cayley(skew_from_upper(upper, channels))
    return P, torch.randn(channels, channels, generator=generator).double()


@pytest.mark.parametrize("channels", CHANNELS)
def test_projection_is_tangent_and_a_projection(channels):
    P, Z = point_and_vector(channels)
    tangent = project(P, Z)
    torch.testing.assert_close(P.mT @ tangent, -(tangent.mT @ P))
    torch.testing.assert_close(project(P, tangent), tangent)
    # What was taken away is normal: orthogonal to every tangent vector.
    torch.testing.assert_close(((Z - tangent) * tangent).sum(), torch.tensor(0.0).double())


@pytest.mark.parametrize("channels", CHANNELS)
def test_projection_against_geoopt(channels):
    P, Z = point_and_vector(channels)
    torch.testing.assert_close(project(P, Z), geoopt.EuclideanStiefel().proju(P, Z))


@pytest.mark.parametrize("channels", CHANNELS)
def test_retraction_is_equation_6_and_geoopt_s_nearest_point(channels):
    P, Z = point_and_vector(channels)
    Z = project(P, Z)
    eye = torch.eye(channels, dtype=P.dtype)
    lam, V = torch.linalg.eigh(eye + Z.mT @ Z)
    by_formula = (P + Z) @ V @ torch.diag(lam.rsqrt()) @ V.mT
    moved = retract(P, Z)
    torch.testing.assert_close(moved, by_formula)
    torch.testing.assert_close(moved, geoopt.EuclideanStiefel().projx(P + Z))
    torch.testing.assert_close(moved.mT @ moved, eye)


def test_retraction_follows_the_tangent_to_first_order():
    P, Z = point_and_vector(5)
    Z = project(P, Z)
    errors = [(retract(P, eps * Z) - (P + eps * Z)).norm().item() for eps in (1e-2, 1e-3)]
    assert errors[1] < errors[0] / 50, "the remainder is not of second order"
    torch.testing.assert_close(retract(P, 0 * Z), P)


def test_a_step_is_geoopt_s_up_to_the_kind_of_retraction():
    """geoopt retracts by QR, ours by the polar factor; both follow the same tangent."""
    P, Z = point_and_vector(6)
    lr = 1e-5
    ours = torch.nn.Parameter(P.clone())
    theirs = geoopt.ManifoldParameter(P.clone(), manifold=geoopt.EuclideanStiefel())
    for parameter, optimiser in (
        (ours, StiefelSGD([ours], lr=lr)),
        (theirs, geoopt.optim.RiemannianSGD([theirs], lr=lr)),
    ):
        (parameter * Z).sum().backward()
        optimiser.step()
    step = (ours - P).abs().max().item()
    assert step > lr / 10
    assert (ours - theirs).abs().max().item() < 10 * step**2 + 1e-12


def test_momentum_speeds_up_and_stays_on_the_manifold():
    target, _ = point_and_vector(8)
    losses = {}
    for momentum in (0.0, 0.9):
        P = torch.nn.Parameter(torch.eye(8).double())
        optimiser = StiefelSGD([P], lr=0.02, momentum=momentum)
        for _ in range(60):
            optimiser.zero_grad()
            loss = (P - target).square().sum() / 2
            loss.backward()
            optimiser.step()
        losses[momentum] = loss.item()
        torch.testing.assert_close(P.mT @ P, torch.eye(8).double())
    assert losses[0.9] < losses[0.0]


def test_momentum_is_carried_to_the_new_tangent_space_by_projection():
    start, first = point_and_vector(5)
    second = point_and_vector(6)[1][:5, :5]
    P = torch.nn.Parameter(start.clone())
    optimiser = StiefelSGD([P], lr=0.1, momentum=0.5)
    for gradient in (first, second):
        P.grad = gradient.clone()
        optimiser.step()
    momentum = project(start, first)
    between = retract(start, -0.1 * momentum)
    momentum = 0.5 * project(between, momentum) + project(between, second)
    torch.testing.assert_close(P.detach(), retract(between, -0.1 * momentum))


@pytest.mark.parametrize(("off", "refused"), [(9e-3, False), (1.1e-2, True)])
def test_p_is_refused_where_it_is_off_by_more_than_half_precision_makes_it(off, refused):
    P = torch.eye(3, dtype=torch.float64)
    P[1, 1] = (1 + off) ** 0.5  # so that PᵀP is off by this much
    product = Riemannian(3)
    with pytest.raises(WeightsError, match="P is not orthogonal") if refused else nullcontext():
        product.check_parameters({"P": P, "t": torch.zeros(3)})


def test_gradients():
    P, Z = (x.requires_grad_() for x in point_and_vector(3))
    assert torch.autograd.gradcheck(project, (P, Z))


def test_what_it_cannot_move_is_refused():
    with pytest.raises(ArgumentError, match=r"square matrices, got a parameter of shape \(3,\)"):
        StiefelSGD([torch.nn.Parameter(torch.zeros(3))], lr=0.1)
    with pytest.raises(ArgumentError, match="lr must not be negative, got -1"):
        StiefelSGD([torch.nn.Parameter(torch.eye(3))], lr=-1)
    with pytest.raises(ArgumentError, match=r"momentum must lie in \[0, 1\), got 1"):
        StiefelSGD([torch.nn.Parameter(torch.eye(3))], lr=1, momentum=1)


def test_a_closure_is_called_and_its_loss_returned():
    P = torch.nn.Parameter(torch.eye(2))
    optimiser = StiefelSGD([P], lr=0.1)

    def closure():
        optimiser.zero_grad()
        loss = P[0].sum()
        loss.backward()
        return loss.item()

    assert optimiser.step(closure) == 1.0
    assert not torch.equal(P, torch.eye(2))
