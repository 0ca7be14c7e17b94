"""Put LCV into a trained network (`attach`), and take it out again without a trace (`fold`).

In the form (Q f1)·(Q f2), QᵀQ = W, the matrix acts on each frame's features alone, so it can
stand behind any feature encoder that serves both frames. Where that encoder ends in a bare linear
layer, Q is folded into it: W then costs nothing, and has added no capacity either, only another
parametrisation of the training. Networks that normalise features first cannot be folded.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor, nn

from lcv.errors import ArgumentError
from lcv.inner_product import INNER_PRODUCTS, Euclidean, InnerProduct, make_inner_product
from lcv.inner_product.base import transform
from lcv.models.convention import ENCODERS
from lcv.models.types import is_flow_model
from lcv.models.wrap import wrap
from lcv.models.wrapped import Wrapped, copied, level_of


def attach(
    model: nn.Module,
    after: str | None = None,
    channels: int | None = None,
    inner_product: str = "elliptical",
    **convention: Any,
) -> nn.Module:
    """A copy of a network with LCV at W = I, which changes no output until it is trained.

    Our own networks get the inner product in its slot. A foreign one is wrapped, if it is not yet,
    and the inner product stands behind its module named `after`, which must give the features of
    both frames, (b, channels, h, w), one by one or in a list or tuple. RAFT of the authors and of
    torchvision need no `after`. The inner product is then `model.inner_product`, its parameters
    are `inner_products.…` in the state dict, and the network's other names do not change.

    convention: how a foreign network is called, as for `lcv.wrap`
    """
    _check_bare("attach", model)
    twin: Any = copied(model)
    if is_flow_model(model) and not isinstance(model, Wrapped):
        given = {"after": after, "channels": channels, **convention}
        named = [name for name, value in given.items() if value is not None]
        if named:
            raise ArgumentError(
                f"attach: {type(twin).__name__} has a slot for the inner product; "
                f"{', '.join(named)} is for networks that have none. Leave it out."
            )
        _fill_slots(twin, inner_product)
        return twin
    if inner_product == "free":
        raise ArgumentError(
            "attach: a `free` W cannot stand behind an encoder that serves both frames: that "
            "takes a Q with QᵀQ = W, which need not exist. Use 'elliptical' or 'gram'."
        )
    if not isinstance(twin, Wrapped):
        twin = wrap(twin, **convention)
    elif convention:
        raise ArgumentError(
            f"attach: the network is wrapped already; leave {', '.join(convention)} out"
        )
    _attach_behind(twin, after, channels, inner_product)
    _respecify(twin, inner_product)
    return twin


def _attach_behind(
    wrapped: Wrapped, after: str | None, channels: int | None, inner_product: str
) -> None:
    after = after or wrapped.convention.after or _known_encoder(wrapped)
    encoder = wrapped.feature_module(after)
    if level_of(after) in wrapped.inner_products:
        raise ArgumentError(f"attach: {after} already has an inner product")
    channels = channels or wrapped.convention.channels or _output_channels(wrapped, after)
    product = make_inner_product(inner_product, channels, "factor")
    like = next(encoder.parameters(), None)
    product = (product if like is None else product.to(like)).train(encoder.training)
    wrapped.inner_products[level_of(after)] = product
    encoder.register_forward_hook(_Multiply(wrapped, level_of(after)))


def set_inner_product(model: Any, level: str, product: nn.Module) -> None:
    """Put an inner product into the slot of a level; RAFT's one slot has no name."""
    if level:
        model.inner_products[level] = product
    else:
        model.inner_product = product


def _fill_slots(model: nn.Module, inner_product: str) -> None:
    """Exchange the inner products of a network with slots, form and channels kept."""
    for level, old in [*cast(Any, model).inner_products.items()]:
        if list(old.parameters()):
            raise ArgumentError(
                f"attach: this {type(model).__name__} has a W already ({type(old).__name__}), which "
                f"would be thrown away. Fold it first (lcv.fold), or build the network anew."
            )
        new = make_inner_product(inner_product, old.channels, old.form)
        set_inner_product(model, level, new.to(next(model.parameters())).train(model.training))
    _respecify(model, inner_product)


def _respecify(model: nn.Module, inner_product: str) -> None:
    if hasattr(model, "spec"):
        model.spec = replace(cast(Any, model.spec), inner_product=inner_product)


class _Multiply:
    """A forward hook: Q on every map of features. It is copied and saved along with the network."""

    def __init__(self, wrapped: Wrapped, level: str) -> None:
        self.products, self.level = wrapped.inner_products, level

    def __call__(self, module: nn.Module, _: Any, output: Any) -> Any:
        product = cast(InnerProduct, self.products[self.level])
        if isinstance(product, Euclidean):
            return output
        Q = product.factor_matrix()
        if isinstance(output, Tensor):
            return _checked_transform(module, output, Q)
        if isinstance(output, list | tuple) and all(isinstance(f, Tensor) for f in output):
            maps = [_checked_transform(module, f, Q) for f in output]
            # A named tuple takes its fields one by one, the plain kinds all at once.
            return type(output)(*maps) if hasattr(output, "_fields") else type(output)(maps)
        raise ArgumentError(
            f"attach: {type(module).__name__} gives a {type(output).__name__}, wanted a tensor of "
            f"features, or a list or tuple of them"
        )


def _checked_transform(module: nn.Module, f: Tensor, Q: Tensor) -> Tensor:
    if f.ndim != 4 or f.shape[1] != len(Q):
        raise ArgumentError(
            f"attach: {type(module).__name__} gives features of shape {tuple(f.shape)}, but the "
            f"inner product was made for (b, {len(Q)}, h, w); attach it with the right `channels`, "
            f"behind a module that gives maps"
        )
    return transform(f, Q)


def _check_bare(function: str, model: object) -> None:
    """Refuse what is no module, and wrappers that hide one."""
    if not isinstance(model, nn.Module):
        raise ArgumentError(f"{function}: wanted a network, got a {type(model).__name__}")
    wrappers = {"OptimizedModule": "_orig_mod", "DataParallel": "module"}
    wrappers["DistributedDataParallel"] = "module"
    inside = wrappers.get(type(model).__name__)
    if inside is not None:
        raise ArgumentError(
            f"{function}: this is a {type(model).__name__} around a network; pass "
            f"model.{inside} and wrap the result again"
        )


def _known_encoder(wrapped: Wrapped) -> str:
    for name, last in ENCODERS.items():
        encoder = getattr(wrapped.network, name, None)
        if isinstance(encoder, nn.Module) and isinstance(getattr(encoder, last, None), nn.Conv2d):
            return name
    raise ArgumentError(
        f"{wrapped.name}: where W goes is not known. Name the module whose output enters the cost "
        f"volume, lcv.wrap(network, after=MODULE, channels=C), or train without W "
        f"(--model.inner_product euclidean)"
    )


def _output_channels(wrapped: Wrapped, after: str) -> int:
    layer = wrapped.linear_end(after)
    if layer is None:
        raise ArgumentError(f"attach: say how many channels {after} gives: attach(…, channels=…)")
    return int(layer.weight.shape[0])


def fold(model: nn.Module, into: str | None = None) -> nn.Module:
    """A copy that computes the same function without LCV: Q multiplied into the last linear layer.

    For RAFT, and for a foreign network that LCV was attached to. `into` names the layer of a foreign
    network whose bare output is what the inner product stands behind. The features of both are
    compared, and a fold that changes them is refused.
    Facts: equal to rounding; as many parameters as the vanilla network.
    """
    _check_bare("fold", model)
    if not is_flow_model(model):
        raise ArgumentError(f"fold: there is no inner product in this {type(model).__name__}")
    twin: Any = copied(model)
    if isinstance(twin, Wrapped):
        _fold_attached(twin, into)
        _respecify(twin, "euclidean")
        _check_same_features(cast(Wrapped, model), twin)
        return twin
    if into is not None:
        raise ArgumentError("fold: `into` is for foreign networks; ours know their last layer")
    layer = twin.layer_before_w()
    if layer is None:
        raise ArgumentError(
            f"fold: {type(twin).__name__} scales its features to unit length before the cost "
            f"volume, so no linear layer stands before W to take it in: here W adds capacity. "
            f"Keep the model as it is."
        )
    for level, product in twin.inner_products.items():
        product = cast(InnerProduct, product)
        _multiply_into(layer, _factor_of(product))
        set_inner_product(twin, level, Euclidean(product.channels, product.form))
    _respecify(twin, "euclidean")
    return twin


def _fold_attached(wrapped: Wrapped, into: str | None) -> None:
    if not wrapped.inner_products:
        raise ArgumentError(f"fold: there is no inner product in this {wrapped.name}")
    if into is not None and len(wrapped.inner_products) > 1:
        raise ArgumentError(
            f"fold: into names one layer, but {wrapped.name} has {len(wrapped.inner_products)} inner "
            f"products"
        )
    for name, encoder in wrapped.submodules().items():
        if level_of(name) not in wrapped.inner_products:
            continue
        product = cast(InnerProduct, wrapped.inner_products.pop(level_of(name)))
        _multiply_into(_last_layer(wrapped, name, into, product.channels), _factor_of(product))
        hooks = encoder._forward_hooks
        for key in [key for key, hook in hooks.items() if isinstance(hook, _Multiply)]:
            del hooks[key]


@torch.no_grad()
def _check_same_features(attached: Wrapped, folded: Wrapped) -> None:
    """Refuse a fold after which the features that enter the cost volume are others."""
    side = max(64, attached.least_side)
    with torch.random.fork_rng(devices=[]):
        images = (255 * torch.rand(2, 1, 3, side, side)).to(next(attached.parameters()))
    names = [n for n in attached.submodules() if level_of(n) in attached.inner_products]
    found = []
    for model in (attached, folded):
        kept: list[Tensor] = []
        twin = copied(model).eval()
        for name in names:
            twin.feature_module(name).register_forward_hook(
                lambda _, __, out, kept=kept: kept.extend([out] if isinstance(out, Tensor) else out)
            )
        twin(*images)
        found.append(kept)
    for before, after in zip(*found, strict=True):
        apart = float((after - before).norm() / before.norm().clamp(min=1e-12))
        if not apart < 1e-3:  # rounding in float32 stays below 1e-5
            raise ArgumentError(
                f"fold: the features of {', '.join(names)} would change by {100 * apart:.2g} %, so Q "
                f"cannot be folded into that layer: something stands between it and W. Name the "
                f"layer whose output enters W untouched, fold(model, into=…), or keep W"
            )


def _last_layer(
    wrapped: Wrapped, name: str, into: str | None, channels: int
) -> nn.Conv2d | nn.Linear:
    found = wrapped.submodules().get(into or name)
    if found is None:
        raise ArgumentError(f"fold: the model has no module {into!r}")
    layer = found if into else wrapped.linear_end(name)
    if not isinstance(layer, nn.Conv2d | nn.Linear):
        raise ArgumentError(
            f"fold: {into or name} is a {type(found).__name__}, not a bare linear layer. Name the "
            f"convolution whose output leaves {name} untouched: fold(model, into=…); if there is "
            f"none (a norm or an activation comes last), W cannot be folded."
        )
    width = layer.weight.shape[0]
    if width != channels:
        raise ArgumentError(
            f"fold: {into or name} gives {width} channels and the inner product has {channels}; name "
            f"the layer whose output enters it"
        )
    return layer


def _factor_of(product: InnerProduct) -> Tensor:
    if "factor" not in product.forms:
        kind = next(name for name, cls in INNER_PRODUCTS.items() if cls is type(product))
        raise ArgumentError(
            f"fold: one encoder serves both frames, so it can only carry a Q with QᵀQ = W, and a "
            f"`{kind}` W need not have one. Keep it beside the encoder."
        )
    return product.double().factor_matrix().double()


@torch.no_grad()
def _multiply_into(layer: nn.Conv2d | nn.Linear, Q: Tensor) -> None:
    """Q·(Wx + b) = (QW)x + Qb, worked out in float64."""
    Q = Q.to(layer.weight.device)
    exact = torch.einsum("oi,i...->o...", Q, layer.weight.double())
    layer.weight.copy_(exact)
    if layer.bias is not None:
        layer.bias.copy_(Q @ layer.bias.double())
