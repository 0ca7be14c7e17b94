"""The contract of an inner product: a matrix W, and three equal ways to apply it to features.

    C = f1ᵀ W f2                                                               Eq. (2)

is an ordinary cost volume of transformed features, so an inner product is called as
`g1, g2 = inner_product(f1, f2)` and whatever follows takes g1 and g2 for features. No cost volume
knows of W. The three forms agree once the channels are summed:

    left      (Wᵀ f1) · f2                  one product; any W
    factor    (Q f1) · (Q f2),  QᵀQ = W     Eq. (10), whitening by principal axes
    zca       (R f1) · (R f2),  R = Rᵀ, RR = W     Eq. (11), whitening that turns nothing

Where channels stay apart (VCN) the three are different networks that coincide only at W = I.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from lcv.errors import ArgumentError, ShapeError, WeightsError
from lcv.inner_product.precision import full_precision

FORMS = ("left", "factor", "zca")


class InnerProduct(nn.Module):
    """Features in, transformed features out: `g1, g2 = inner_product(f1, f2)`.

    f1, f2: (b, c, h, w) → the same shapes and dtype; f1 belongs to the frame whose flow is sought.
    `form` says how W is applied; every kind starts at W = I exactly.
    """

    forms: ClassVar[tuple[str, ...]] = FORMS
    why_not: ClassVar[str] = ""

    def __init__(self, channels: int, form: str = "left") -> None:
        super().__init__()
        if not isinstance(channels, int) or channels < 1:
            raise ArgumentError(
                f"{type(self).__name__}: channels must be a whole number of at least 1, "
                f"got {channels!r}"
            )
        if form not in FORMS:
            raise ArgumentError(
                f"{type(self).__name__}: unknown form {form!r}; the forms are {', '.join(FORMS)}"
            )
        if form not in self.forms:
            raise ArgumentError(f"{type(self).__name__} has no form {form!r}: {self.why_not}")
        self.channels = channels
        self.form = form

    def matrix(self) -> Tensor:
        """W, (c, c), in float32 or better."""
        raise NotImplementedError

    def factor_matrix(self) -> Tensor:
        """Q, (c, c), with QᵀQ = W, Eq. (10)."""
        raise ArgumentError(f"{type(self).__name__} has no factor: {self.why_not}")

    def zca_matrix(self) -> Tensor:
        """R, (c, c), symmetric with RR = W, Eq. (11)."""
        raise ArgumentError(f"{type(self).__name__} has no symmetric root: {self.why_not}")

    def left(self, f1: Tensor, f2: Tensor) -> tuple[Tensor, Tensor]:
        """(Wᵀ f1, f2): their product summed over channels is f1ᵀ W f2, for symmetric W or not."""
        return transform(f1, self.matrix().mT), f2

    def factor(self, f1: Tensor, f2: Tensor) -> tuple[Tensor, Tensor]:
        """(Q f1, Q f2), Eq. (10)."""
        Q = self.factor_matrix()
        return transform(f1, Q), transform(f2, Q)

    def zca(self, f1: Tensor, f2: Tensor) -> tuple[Tensor, Tensor]:
        """(R f1, R f2), Eq. (11)."""
        R = self.zca_matrix()
        return transform(f1, R), transform(f2, R)

    def forward(self, f1: Tensor, f2: Tensor) -> tuple[Tensor, Tensor]:
        for name, f in (("f1", f1), ("f2", f2)):
            if not f.is_floating_point():
                raise ShapeError(
                    f"{type(self).__name__}: {name} holds {f.dtype}, wanted floating point features"
                )
            if f.ndim != 4 or f.shape[1] != self.channels:
                raise ShapeError(
                    f"{type(self).__name__}: {name} has shape {tuple(f.shape)}, wanted "
                    f"(b, {self.channels}, h, w). Build the inner product with the channels of "
                    f"the features that enter the cost volume."
                )
        g1, g2 = getattr(self, self.form)(f1, f2)
        return g1, g2

    def extra_repr(self) -> str:
        return f"channels={self.channels}, form={self.form!r}"

    def check_parameters(self, named: dict[str, Tensor]) -> None:
        """Refuse parameters that give no inner product; `named` holds them by full name."""
        for name, value in named.items():
            bad = int((~torch.isfinite(value)).sum())
            if bad:
                raise WeightsError(
                    f"{name}: {bad} of {value.numel()} numbers are NaN or infinite. "
                    f"The file is damaged or training had diverged; use an earlier checkpoint."
                )

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        mine = {prefix + name for name, _ in self.named_parameters(recurse=False)}
        self.check_parameters({name: state_dict[name] for name in sorted(mine & set(state_dict))})
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)


@full_precision
def gram(Q: Tensor) -> Tensor:
    """QᵀQ, symmetric to the last bit. (c, c) → (c, c)"""
    W = Q.mT @ Q
    return (W + W.mT) / 2


def transform(f: Tensor, M: Tensor) -> Tensor:
    """M applied to every feature vector: g = M f, with autocast off, in the features' own dtype.

    f: (b, c, h, w), M: (c, c) → (b, c, h, w)
    Facts: M = I returns f to the last bit on a CPU, and on a GPU with TF32 off.
    """
    with torch.autocast(f.device.type, enabled=False):
        return (M.to(f.dtype) @ f.flatten(2)).view(f.shape)  # (c, c) @ (b, c, h·w)
