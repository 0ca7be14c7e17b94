"""The contract of a network: what every other part of lcv may ask of it, and what it returns.

A protocol: each network implements it beside its own code, and `lcv.testing.check_flow_model`
checks that it does. `OneVolume` has default answers for networks with one cost volume.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, Self, TypeGuard

import torch
from torch import Tensor, nn

from lcv.errors import ArgumentError

Role = Literal["first", "second"]
"""A frame is the first or the second of a pair."""
State = dict[str, Tensor]
OWN_VOLUME = "own"
"""The cost volume of a foreign network: one way to hold it, of whose memory nothing is known."""


@dataclass(frozen=True)
class FlowOutput:
    """What a network returns, in training and in evaluation alike.

    flow:     (b, 2, h, w), pixels of the input; channel 0 = x to the right, 1 = y down
    flows:    all predictions at the input's size, finest (last) last; empty unless asked for
    low:      (b, 2, h', w') at the network's inner resolution and in its pixels, for a warm start
    backward: the same for the pair taken in reverse, where the network computes both at once
    entropy:  (b, 1, h', w') of the matching distribution, where the network has one
    extra:    what only this network's loss reads
    """

    flow: Tensor
    flows: tuple[Tensor, ...] = ()
    low: Tensor | None = None
    backward: FlowOutput | None = None
    entropy: Tensor | None = None
    extra: dict[str, Any] | None = None


@dataclass(frozen=True)
class Defaults:
    """How a network is called and trained unless the caller decides otherwise.

    iters:          iterations in evaluation; None for a network that does not iterate
    training_iters: iterations in training and in exported files
    pads:           names of padding modes, the default first; empty where it takes no `pad`
    losses:         names of losses it can be trained with, the usual one first
    finetuning:     settings of a short fine-tuning that differ from `TrainConfig`'s, by dotted name
    """

    iters: int | None = None
    training_iters: int | None = None
    pads: tuple[str, ...] = ()
    losses: tuple[str, ...] = ("sequence",)
    finetuning: Mapping[str, Any] = field(default_factory=dict)


class Named(NamedTuple):
    """Which network a checkpoint's tensor names belong to, and options that they reveal."""

    network: str
    options: dict[str, Any]


@dataclass(frozen=True)
class Family:
    """One way to name a network's weights: its authors', torchvision's, ….

    name:      "authors", "torchvision", …
    endings:   of the files it is written to
    recognise: a checkpoint's tensors → the network they are of, or None if not of this family
    read:      (tensors, the file's other entries, the model to fill) → tensors under our names, and
               notes for the user
    write:     a model → the content of a file: tensors, or whatever its readers expect
    holds_w:   kinds of inner product that a file of this family can hold
    """

    name: str
    endings: tuple[str, ...]
    recognise: Callable[[State], Named | None]
    read: Callable[[State, Mapping[str, Any], nn.Module], tuple[State, list[str]]]
    write: Callable[[Any], dict[str, Any]] | None = None
    holds_w: tuple[str, ...] = ("euclidean",)


@dataclass(frozen=True)
class Peer:
    """The same network in another package, to be measured beside ours.

    package: its name
    build:   (our network without W, iterations or None) → theirs with the same weights, for
             `lcv.wrap`; imports the package
    """

    package: str
    build: Callable[[nn.Module, int | None], nn.Module]


class Fitted(NamedTuple):
    """Two images at a size that an exported file takes, and the way back for their flow."""

    image1: Tensor
    image2: Tensor
    undo: Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class ExportRule:
    """Which image sizes an exported file takes, and how images of other sizes get there.

    stride:    sides are multiples of it
    least:     the smallest side of a file of one size
    least_open: the smallest side where sizes stay open; None if they cannot, and `why_fixed` says why
    lookups:   ways to read costs or to warp features, the default first; `why_not` the others
    fit:       (image1, image2, mode) → both at a size that the file takes
    modes:     names of the variants of `fit`
    fits_any:  whether `fit` takes images of every size, or only those that are right already
    rule:      `fit` in words, stored in the file
    """

    stride: int
    least: int
    fit: Callable[[Tensor, Tensor, str | None], Fitted]
    rule: str
    least_open: int | None = None
    why_fixed: str = ""
    lookups: tuple[str, ...] = ("gather",)
    why_not: str = ""
    modes: tuple[str | None, ...] = (None,)
    fits_any: bool = True


class FlowModel(Protocol):
    """A network: features → inner product → cost volume → head.

    forms:           how W can enter (`lcv.inner_product.FORMS`), the default first
    stride:          padded sides are multiples of it, and `low` has 1/stride of them
    least_side:      the least height and width of an image
    volumes:         names of the ways to hold the cost volume, most memory first
    takes_flow_init: whether `match` can start from a given flow
    defaults:        see `Defaults`
    names:           the families of checkpoints it reads and writes, beside our own
    export_rule:     see `ExportRule`
    """

    forms: tuple[str, ...]
    stride: int
    least_side: int
    volumes: tuple[str, ...]
    takes_flow_init: bool
    defaults: Defaults
    names: tuple[Family, ...]
    export_rule: ExportRule

    @property
    def inner_product(self) -> nn.Module:
        """The inner product of the finest cost volume."""

    @property
    def inner_products(self) -> Mapping[str, nn.Module]:
        """All of them, by level, finest last."""

    def encodes_by_role(self) -> bool:
        """Whether a frame's features as the first of a pair cannot serve as those of the second."""

    def encode(self, image: Tensor, role: Role = "first", pad: str | None = None) -> Any:
        """Features of a frame (b, 3, h, w), RGB in 0 … 255, of any size."""

    def match(
        self,
        features1: Any,
        features2: Any,
        *,
        size: tuple[int, int] | None = None,
        iters: int | None = None,
        flow_init: Tensor | None = None,
        all_flows: bool | None = None,
    ) -> FlowOutput:
        """Flow between two encoded frames, at their images' `size` (h, w)."""

    def __call__(self, image1: Tensor, image2: Tensor, **options: Any) -> FlowOutput:
        """`match` of both frames' `encode`."""

    def with_volume(self, name: str) -> Self:
        """The same network, weights shared, with its cost volume held in another way."""

    def layer_before_w(self) -> nn.Conv2d | nn.Linear | None:
        """The bare linear layer whose output enters the inner product, into which W can be folded."""

    def parts_to_compile(self) -> list[tuple[nn.Module, str]]:
        """Modules and the names of their methods that are worth compiling for training."""

    def core_for_export(self, lookup: str) -> nn.Module:
        """A copy that a tracer can follow, costs read by the named operator."""


class OneVolume(nn.Module):
    """Default answers for networks with one cost volume, whose W cannot be folded."""

    def encodes_by_role(self) -> bool:
        """No: features of a first frame serve as a second's."""
        return False

    def with_volume(self, name: str) -> Self:
        """The network itself."""
        check_volume(self, name)
        return self

    def layer_before_w(self) -> nn.Conv2d | nn.Linear | None:
        """None: features are scaled to unit length before W, so here W adds capacity."""
        return None

    def parts_to_compile(self) -> list[tuple[nn.Module, str]]:
        """None: compiling has not been shown to help."""
        return []

    def core_for_export(self, lookup: str) -> nn.Module:
        """A copy."""
        return copy.deepcopy(self)


MEMBERS = frozenset(
    name for name in {**FlowModel.__annotations__, **vars(FlowModel)} if not name.startswith("_")
)
"""The names that a FlowModel has."""


def is_flow_model(model: object) -> TypeGuard[Any]:
    """Whether a network has all that the contract asks for.

    `isinstance` would not see members that are submodules, from Python 3.12 on.
    """
    return callable(model) and all(hasattr(model, name) for name in MEMBERS)


def tensor_of(model: nn.Module) -> Tensor:
    """A parameter or buffer of a network, which tells its device and dtype; empty if it has none."""
    own = (*model.parameters(), *model.buffers())
    return next((each for each in own if each.is_floating_point()), torch.empty(0))


@contextmanager
def in_evaluation(model: nn.Module) -> Iterator[None]:
    """The network in evaluation mode; every module is put back into its own after."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, training in modes.items():
            module.training = training


def check_volume(model: Any, name: str) -> None:
    """Refuse a way to hold the cost volume that the network does not have."""
    if name not in model.volumes:
        raise ArgumentError(
            f"volume is {name!r}, but {type(model).__name__} has {', '.join(model.volumes)}"
        )


def refuse_options(network: str, reasons: Mapping[str, str], **options: Any) -> None:
    """Refuse arguments that other networks take and this one does not."""
    for name, value in options.items():
        if value is not None:
            raise ArgumentError(f"{network} takes no `{name}`: {reasons[name]}. Leave it out.")
