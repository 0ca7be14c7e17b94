"""A foreign network behind the contract: called its own way, with W beside it if LCV is attached."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from lcv.errors import ArgumentError, ShapeError
from lcv.layers.images import as_input
from lcv.layers.padding import MODES, Padding, padding_for
from lcv.layers.resizing import fit, fit_flow, next_multiples
from lcv.models.convention import ENCODERS, Convention, described
from lcv.models.registry import Spec
from lcv.models.types import (
    OWN_VOLUME,
    Defaults,
    ExportRule,
    Fitted,
    FlowOutput,
    OneVolume,
    Role,
    refuse_options,
    tensor_of,
)


class Features(NamedTuple):
    """A frame as the network takes it, (b, 3, h, w), and how it was padded, if it was."""

    image: Tensor
    padding: Padding | None
    size: tuple[int, int]


class Wrapped(OneVolume):
    """A foreign network behind the contract; `wrap` makes one."""

    forms = ("factor",)
    volumes = (OWN_VOLUME,)
    takes_flow_init = False
    names = ()

    def __init__(self, network: Callable[..., Any], convention: Convention) -> None:
        super().__init__()
        self.network = network
        self.convention = convention
        self.inner_products = nn.ModuleDict()  # what `lcv.attach` put in, by `level_of` its module
        kind = type(network) if isinstance(network, nn.Module) else network
        self.name = getattr(kind, "__name__", type(network).__name__)
        self.spec = Spec(f"{kind.__module__}:{self.name}", "euclidean")
        self.defaults = self._defaults()
        self.register_state_dict_post_hook(_without_prefix)
        self.register_load_state_dict_pre_hook(_with_prefix)
        self.train(getattr(network, "training", True))

    @property
    def stride(self) -> int:
        return self.convention.multiple

    @property
    def least_side(self) -> int:
        return self.convention.least

    def _defaults(self) -> Defaults:
        iters = self._default_iters()
        pads = MODES if self.convention.fit == "pad" and self.stride > 1 else ()
        return Defaults(iters=iters, training_iters=iters, pads=pads)

    def _default_iters(self) -> int | None:
        name = self.convention.iters
        if name is None:
            return None
        call = self.network.forward if isinstance(self.network, nn.Module) else self.network
        found = inspect.signature(call).parameters.get(name)
        if found is None or not isinstance(found.default, int):
            raise ArgumentError(
                f"wrap: iters is {name!r}, but {self.name} has no argument of that name with a "
                f"number as its default"
            )
        return found.default

    @property
    def inner_product(self) -> nn.Module | None:
        """The last of them; None where there is none."""
        return next(reversed([*self.inner_products.values()]), None)

    def forward(
        self,
        image1: Tensor,
        image2: Tensor,
        iters: int | None = None,
        flow_init: None = None,
        pad: str | None = None,
        all_flows: bool | None = None,
    ) -> FlowOutput:
        """Flow from image1 to image2, RGB (b, 3, h, w) in 0 … 255, of any size."""
        as_input(self.name, self._like(image1), image1=image1, image2=image2)
        features = self.encode(image1, "first", pad), self.encode(image2, "second", pad)
        return self.match(*features, iters=iters, flow_init=flow_init, all_flows=all_flows)

    def encode(self, image: Tensor, role: Role = "first", pad: str | None = None) -> Features:
        """The image as the network takes it: range, channel order, size."""
        (image,) = as_input(self.name, self._like(image), image=image)
        size = image.shape[2], image.shape[3]
        if min(size) < self.least_side:
            raise ShapeError(
                f"{self.name}: the image is {size[0]}×{size[1]}, wanted at least "
                f"{self.least_side} pixels both ways. Enlarge it first."
            )
        if not self.defaults.pads:
            refuse_options(self.name, {"pad": "it has a rule of its own"}, pad=pad)
        image = self.convention.scaled(image)
        if self.convention.fit == "resize":
            return Features(fit(image, next_multiples(size, self.stride)), None, size)
        padding = padding_for(*size, self.stride, MODES[0] if pad is None else pad)
        return Features(padding.apply(image), padding, size)

    def match(
        self,
        features1: Features,
        features2: Features,
        *,
        size: tuple[int, int] | None = None,
        iters: int | None = None,
        flow_init: None = None,
        all_flows: bool | None = None,
    ) -> FlowOutput:
        """The network's flow, at the size of the images."""
        reasons = {"flow_init": "it is called with two images alone"}
        refuse_options(self.name, reasons, flow_init=flow_init)
        if not torch.is_grad_enabled():  # features serve again, and a network may change its input
            features1 = features1._replace(image=features1.image.clone())
            features2 = features2._replace(image=features2.image.clone())
        return self.output(self.call_network(features1, features2, iters), features1, all_flows)

    def call_network(self, features1: Features, features2: Features, iters: int | None) -> Any:
        """The network's own call and nothing else: what a measurement of the network times."""
        reasons = {"iters": "wrap it with iters=NAME if one of its arguments is their number"}
        options = dict(self.convention.options)
        if self.convention.iters is None:
            refuse_options(self.name, reasons, iters=iters)
        elif iters is not None:
            options[self.convention.iters] = iters
        images = features1.image, features2.image
        if self.convention.stacked is None:
            return self.network(*images, **options)
        return self.network({self.convention.stacked: torch.stack(images, 1)}, **options)

    def output(
        self, returned: Any, features1: Features, all_flows: bool | None = None
    ) -> FlowOutput:
        """What the network returned, as everything else wants it."""
        found = self.convention.flows_in(returned, self.name)
        flows = [self._checked(flow, features1) for flow in found]
        every = self.training if all_flows is None else all_flows
        if not torch.is_grad_enabled():  # a network may return the same memory every time
            flows[-1] = flows[-1].clone()
        return FlowOutput(flows[-1], tuple(flows) if every else ())

    def _checked(self, flow: Any, features: Features) -> Tensor:
        """A flow at the size of the images; (b, 1, 2, h, w) is taken as (b, 2, h, w)."""
        if isinstance(flow, Tensor) and flow.dim() == 5 and flow.shape[1] == 1:
            flow = flow[:, 0]
        b, _, h, w = features.image.shape
        if not isinstance(flow, Tensor) or flow.shape != (b, 2, h, w):
            found = tuple(flow.shape) if isinstance(flow, Tensor) else described(flow)
            raise ShapeError(
                f"{self.name}: its flow is {found}, wanted ({b}, 2, {h}, {w}), the size of the "
                f"images it was given"
            )
        if features.padding is None:
            return fit_flow(flow, features.size)
        return features.padding.undo(flow)

    def _like(self, image: Tensor) -> Tensor:
        """What images must match in dtype and device: a parameter, if there is one."""
        own = tensor_of(self)
        return own if own.numel() else own.to(image.device)

    def layer_before_w(self) -> nn.Conv2d | nn.Linear | None:
        """The layer that the module before W is or ends in, if it is a bare linear one."""
        levels = [name for name in self.submodules() if level_of(name) in self.inner_products]
        return self.linear_end(levels[0]) if len(levels) == 1 else None

    def linear_end(self, name: str) -> nn.Conv2d | nn.Linear | None:
        """The bare linear layer that a feature encoder of this name is known to end in."""
        encoder = cast(nn.Module, self.network).get_submodule(name)
        last = getattr(encoder, ENCODERS.get(name.rpartition(".")[2], ""), encoder)
        return last if isinstance(last, nn.Conv2d | nn.Linear) else None

    def feature_module(self, name: str) -> nn.Module:
        """The network's module of this name, behind which W can stand."""
        own = self.submodules()
        if name in own:
            return own[name]
        children = [each for each in own if each and "." not in each]
        it_has = f"it has {', '.join(children)}" if children else "it has none"
        raise ArgumentError(f"after: {self.name} has no module {name!r}; {it_has}")

    def submodules(self) -> dict[str, nn.Module]:
        """The network's own modules by name."""
        return dict(self.network.named_modules()) if isinstance(self.network, nn.Module) else {}

    def parts_to_compile(self) -> list[tuple[nn.Module, str]]:
        """The whole network."""
        return [(self.network, "forward")] if isinstance(self.network, nn.Module) else []

    @property
    def export_rule(self) -> ExportRule:
        """One size a file: whether a foreign network can be traced with open sizes is not known."""
        how = "Pad" if self.convention.fit == "pad" else "Resize"
        return ExportRule(
            stride=self.stride,
            least=-(-self.least_side // self.stride) * self.stride,
            fit=self._fit_both,
            rule=f"{how} both images to multiples of {self.stride}, and undo that for the flow.",
            why_fixed="it is not a network of lcv, and may depend on the size of its images",
            lookups=("grid_sample",),
            modes=self.defaults.pads or (None,),
        )

    def _fit_both(self, image1: Tensor, image2: Tensor, mode: str | None) -> Fitted:
        size = image1.shape[2], image1.shape[3]
        if self.convention.fit == "pad":
            padding = padding_for(*size, self.stride, mode or MODES[0])
            return Fitted(padding.apply(image1), padding.apply(image2), padding.undo)
        larger = next_multiples(size, self.stride)
        return Fitted(fit(image1, larger), fit(image2, larger), lambda flow: fit_flow(flow, size))

    def core_for_export(self, lookup: str) -> nn.Module:
        """A copy."""
        return copied(self)


def level_of(after: str) -> str:
    """The key of the inner product behind a module: keys may have no dots."""
    return after.replace(".", "_")


def copied(network: Any) -> Any:
    """A deep copy, also of a network that keeps tensors of its last call, as torchvision's RAFT does."""
    memo: dict[int, Any] = {}
    for module in network.modules() if isinstance(network, nn.Module) else ():
        for value in vars(module).values():
            for each in value if isinstance(value, list | tuple) else [value]:
                if isinstance(each, Tensor) and not each.is_leaf:
                    memo[id(each)] = each.detach()
    return copy.deepcopy(network, memo)


def _without_prefix(module: nn.Module, state: dict[str, Any], prefix: str, metadata: Any) -> None:
    """`network.fnet.weight` → `fnet.weight`: the names that the network itself has."""
    inside = f"{prefix}network."
    for name in [name for name in state if name.startswith(inside)]:
        state[prefix + name.removeprefix(inside)] = state.pop(name)


def _with_prefix(module: nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    products = tuple(
        f"{prefix}inner_products.{level}." for level in cast(Any, module).inner_products
    )
    for name in [name for name in state if name.startswith(prefix)]:
        if not name.startswith(products):
            state[f"{prefix}network.{name.removeprefix(prefix)}"] = state.pop(name)
