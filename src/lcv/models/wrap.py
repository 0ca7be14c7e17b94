"""`wrap`: any network that takes two images, as a `FlowModel` for every part of lcv."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from lcv.errors import ArgumentError
from lcv.models.convention import Convention, known_convention
from lcv.models.types import is_flow_model
from lcv.models.wrapped import Wrapped


def wrap(
    network: Callable[..., Any],
    *,
    range: tuple[float, float] | None = None,
    bgr: bool | None = None,
    multiple: int | None = None,
    fit: str | None = None,
    least: int | None = None,
    stacked: str | None = None,
    flow: str | int | None = None,
    flows: str | int | None = None,
    iters: str | None = None,
    options: Mapping[str, Any] | None = None,
    after: str | None = None,
    channels: int | None = None,
) -> Wrapped:
    """A foreign network as a `FlowModel`, for every part of lcv.

        model = lcv.wrap(network, range=(-1, 1), multiple=8, flow="flow_final")

    network:  an `nn.Module` or a function that takes two images; it is shared, not copied
    range:    what black and white are to it: (0, 255) by default, (0, 1), (-1, 1), …
    bgr:      True if it wants blue first
    multiple: image sides must be multiples of this; other sizes are fitted by `fit`
    fit:      "pad" (the default: borders repeated) or "resize"
    least:    the smallest side it takes
    stacked:  the entry of a dictionary under which it takes both images as (b, 2, 3, h, w), as
              ptlflow's do; without, it takes two arguments
    flow:     the key, attribute or index of the flow (or list of flows) in what it returns, if it
              does not return that itself
    flows:    in training, the key, attribute or index of the list of all its predictions, if another
    iters:    the name of its argument for the number of iterations, if it has one
    options:  further arguments of every call
    after:    the name of its module whose output is the features of both frames: where LCV attaches
    channels: of these features, where the module does not tell

    Networks of torchvision and ptlflow need none of these. The `state_dict` keeps the network's own
    names.
    """
    if is_flow_model(network):
        raise ArgumentError("wrap: this network is a FlowModel already; use it as it is")
    if not callable(network) or isinstance(network, type):
        raise ArgumentError(
            f"wrap: wanted a network, an nn.Module or a function of two images, got {network!r:.80}"
        )
    given: dict[str, Any] = {
        "range": range,
        "bgr": bgr,
        "multiple": multiple,
        "fit": fit,
        "least": least,
        "stacked": stacked,
        "flow": flow,
        "flows": flows,
        "iters": iters,
        "options": options,
        "after": after,
        "channels": channels,
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    wrapped = Wrapped(network, replace(known_convention(network) or Convention(), **chosen))
    if after is not None:
        wrapped.feature_module(after)
    return wrapped


def as_flow_model(network: Any, name: str) -> Any:
    """A network that fulfils the contract, or one whose convention is known, wrapped."""
    if is_flow_model(network):
        return network
    if known_convention(network) is not None:
        return wrap(network)
    raise ArgumentError(
        f"{name} is of class {type(network).__name__}, and how to call it is not known. Wrap it, for "
        f"instance lcv.wrap(network, range=(-1, 1), multiple=8) for a network of two images in "
        f"−1 … 1 whose sides are multiples of 8; `help(lcv.wrap)` lists the options."
    )
