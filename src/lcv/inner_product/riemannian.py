"""The seventh inner product: P kept orthogonal by moving it on the Stiefel manifold, Eq. (4)-(6).

The paper names this route and leaves it for its cost: every step projects the gradient on the
tangent space and pulls the result back, where the Cayley map needs one solve and any optimiser.
It is here so that the remark can be measured (`benchmarks/inner_product.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, overload

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from lcv.errors import ArgumentError, WeightsError
from lcv.inner_product.precision import at_least_float32, full_precision
from lcv.inner_product.spectrum import eigenvalues
from lcv.inner_product.variants import Spectral


@full_precision
def project(P: Tensor, Z: Tensor) -> Tensor:
    """The part of Z tangent to the manifold of orthogonal matrices at P, Eq. (5).

        π(Z) = Z − P (PᵀZ + ZᵀP)/2

    P, Z: (c, c) → (c, c)
    Facts: Pᵀπ + πᵀP = 0; a projection: π(π(Z)) = π(Z).
    """
    PtZ = P.mT @ Z
    return Z - P @ ((PtZ + PtZ.mT) / 2)


@full_precision
def retract(P: Tensor, Z: Tensor) -> Tensor:
    """The orthogonal matrix nearest to P + Z, for Z tangent at P, Eq. (6).

        r(P, Z) = (P + Z)(I + ZᵀZ)^(−½)

    which is the polar factor UVᵀ of P + Z = UΣVᵀ. Taken from the singular value decomposition:
    also right, unlike the root, when rounding has left P not quite orthogonal.

    P, Z: (c, c) → (c, c)
    Facts: orthogonal; r(P, 0) = P; r(P, εZ) = P + εZ + O(ε²).
    """
    U, _, Vh = torch.linalg.svd(P + Z)
    nearest: Tensor = U @ Vh
    return nearest


class Riemannian(Spectral):
    """W = PᵀΛP with P itself stored, to be moved by `StiefelSGD` and by nothing else.

    P: (c, c) orthogonal, at I;  t: (c,), Eq. (9), at 0 and free for any optimiser.
    Fact: unlike the Cayley map this reaches every orthogonal P, reflections included.
    """

    def __init__(self, channels: int, form: str = "left") -> None:
        super().__init__(channels, form)
        self.P = nn.Parameter(torch.eye(channels))
        self.t = nn.Parameter(torch.zeros(channels))

    def rotation(self) -> Tensor:
        return at_least_float32(self.P)

    def eigenvalues(self) -> Tensor:
        return eigenvalues(self.t)

    def check_parameters(self, named: dict[str, Tensor]) -> None:
        super().check_parameters(named)
        for name, P in named.items():
            if name.rpartition(".")[2] == "P":
                exact = P.double()
                off = (exact.mT @ exact - torch.eye(len(P)).to(exact)).abs().max()
                # Half-precision storage alone moves PᵀP by about 1e-3.
                if off > 1e-2:
                    raise WeightsError(
                        f"{name}: P is not orthogonal, PᵀP is off the identity by {off:.1e}. "
                        f"It must be moved by StiefelSGD, not by an ordinary optimiser."
                    )


class StiefelSGD(Optimizer):
    """Gradient descent with momentum for orthogonal matrices: project, step, retract.

        m ← μ π(m) + π(∇),    P ← r(P, −lr m)                                 Eq. (5), (6)

    The momentum of the last step is carried to the new tangent space by projection.
    """

    def __init__(self, params: Iterable[nn.Parameter], lr: float, momentum: float = 0.0) -> None:
        if lr < 0:
            raise ArgumentError(f"StiefelSGD: lr must not be negative, got {lr}")
        if not 0 <= momentum < 1:
            raise ArgumentError(f"StiefelSGD: momentum must lie in [0, 1), got {momentum}")
        super().__init__(params, {"lr": lr, "momentum": momentum})
        for group in self.param_groups:
            for P in group["params"]:
                if P.ndim != 2 or P.shape[0] != P.shape[1]:
                    raise ArgumentError(
                        f"StiefelSGD moves square matrices, got a parameter of shape "
                        f"{tuple(P.shape)}; give the others to another optimiser"
                    )

    @overload
    def step(self, closure: None = ...) -> None: ...
    @overload
    def step(self, closure: Callable[[], float]) -> float: ...
    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for P in group["params"]:
                if P.grad is not None:
                    self._move(P, P.grad, group)
        return loss

    def _move(self, P: nn.Parameter, gradient: Tensor, group: dict[str, Any]) -> None:
        tangent = project(P, gradient)
        if group["momentum"]:
            state = self.state[P]
            if "momentum" in state:
                tangent += group["momentum"] * project(P, state["momentum"])
            state["momentum"] = tangent
        P.copy_(retract(P, -group["lr"] * tangent))
