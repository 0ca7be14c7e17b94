"""`check_flow_model`: does a network fulfil the contract that every part of lcv relies on?

    from lcv.testing import check_flow_model

    check_flow_model(lcv.wrap(MyNetwork(), multiple=8))

Our own networks are tested by it. Weights may be random. The network is copied, not changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from lcv.errors import LcvError
from lcv.inner_product import FORMS
from lcv.models.types import MEMBERS, FlowOutput, tensor_of
from lcv.models.wrapped import copied

CLOSE = 1e-3
"""The share of a flow's norm by which rounding may change it: a batch, another volume."""
SEED = 2020


def check_flow_model(model: Any) -> None:
    """Raise an AssertionError that lists every way in which a network breaks the contract."""
    missing = sorted(name for name in MEMBERS if not hasattr(model, name))
    if missing:
        raise AssertionError(
            f"{type(model).__name__} is not a FlowModel: it has no {', '.join(missing)}. See "
            f"lcv.models.types.FlowModel, or wrap the network with lcv.wrap."
        )
    faults = []
    with torch.random.fork_rng():
        for check in CHECKS:
            torch.manual_seed(SEED)
            name = check.__name__.removeprefix("_")
            try:
                faults += [f"{name}: {fault}" for fault in check(_Copy(model))]
            # Whatever it raises is a fault of the network, to be listed with the others.
            except Exception as error:
                faults.append(f"{name}: {type(error).__name__}: {error}")
    if faults:
        lines = "\n".join(f"- {fault}" for fault in faults)
        raise AssertionError(f"{type(model).__name__} breaks the contract:\n{lines}")


class _Copy:
    """A copy of the network in evaluation mode, and images for it."""

    def __init__(self, model: Any) -> None:
        self.model: Any = copied(model).eval()
        self.home = tensor_of(self.model)
        # Neither square nor a multiple of anything; large enough for any pyramid.
        side = max(self.model.least_side, 64)
        self.size = (side + 5, side + 10)

    def images(self, batch: int = 1, number: int = 2) -> list[Tensor]:
        """Smooth patterns that move, (b, 3, h, w) in whole numbers 0 … 255."""
        h, w = self.size
        coarse = torch.rand(batch, 3, h // 8 + 2, w // 8 + 4)
        large = nn.functional.interpolate(coarse, size=(h, w + 3 * number), mode="bicubic")
        large = (255 * large.clamp(0, 1)).round().to(self.home.device)
        return [large[..., 3 * k : 3 * k + w].contiguous() for k in range(number)]

    @torch.no_grad()
    def flow(self, *images: Tensor, **options: Any) -> Tensor:
        output: FlowOutput = self.model(*images, **options)
        return output.flow


def _members(own: _Copy) -> Iterator[str]:
    model = own.model
    for name in ("stride", "least_side"):
        if not isinstance(getattr(model, name), int) or getattr(model, name) < 1:
            yield f"{name} is {getattr(model, name)!r}, wanted a whole number, 1 or more"
    if not model.volumes:
        yield "volumes is empty, wanted the name of at least one way to hold the costs"
    if not set(model.forms) <= set(FORMS) or not model.forms:
        yield f"forms is {model.forms}, wanted some of {', '.join(FORMS)}"
    if not model.defaults.losses:
        yield "defaults.losses is empty, wanted the name of at least one loss"


def _sizes(own: _Copy) -> Iterator[str]:
    least = own.model.least_side
    for size in (own.size, (least, least + 1)):
        own.size = size
        flow = own.flow(*own.images())
        if flow.shape != (1, 2, *own.size):
            yield f"images of {own.size} give a flow of {tuple(flow.shape)}, wanted their own size"
        elif not flow.isfinite().all():
            yield f"images of {own.size} give a flow that is not finite"
    if least > 1:
        own.size = (least - 1, least + 8)
        try:
            own.flow(*own.images())
        except LcvError:
            return
        yield f"images below least_side ({least}) are accepted, wanted an lcv.LcvError"


def _number_types(own: _Copy) -> Iterator[str]:
    images = own.images()
    if not torch.equal(own.flow(*images), own.flow(*(image.byte() for image in images))):
        yield "bytes and floats of the same value give different flow"
    kept = [image.clone() for image in images]
    own.flow(*images)
    if not all(torch.equal(*pair) for pair in zip(images, kept, strict=True)):
        yield "the images given were changed in place"


def _determinism(own: _Copy) -> Iterator[str]:
    images = own.images()
    before = {name: set(vars(module)) for name, module in own.model.named_modules()}
    if not torch.equal(own.flow(*images), own.flow(*images)):
        yield "two calls with the same images give different flow in evaluation mode"
    for name, module in own.model.named_modules():
        kept = {key for key in set(vars(module)) - before[name] if _is_tensor(module, key)}
        if kept:
            yield f"a call leaves tensors behind on {name or 'the network'}: {', '.join(kept)}"


def _batch(own: _Copy) -> Iterator[str]:
    images = own.images(batch=2)
    together = own.flow(*images)
    alone = torch.cat([own.flow(*(image[k : k + 1] for image in images)) for k in (0, 1)])
    yield from _differ(together, alone, "a batch of two pairs, and each pair alone")


def _streaming(own: _Copy) -> Iterator[str]:
    """Each frame encoded once, as the first of a pair, where the network allows it."""
    model, frames = own.model, own.images(number=3)
    role = "second" if model.encodes_by_role() else "first"
    with torch.no_grad():
        first = [model.encode(frame, "first") for frame in frames]
        second = [model.encode(frame, role) for frame in frames]
        for k in (0, 1):
            streamed = model.match(first[k], second[k + 1], size=own.size).flow
            if not torch.equal(streamed, own.flow(frames[k], frames[k + 1])):
                yield f"encode and match differ from calling the network (frames {k}, {k + 1})"


def _options(own: _Copy) -> Iterator[str]:
    images, defaults = own.images(), own.model.defaults
    for pad in defaults.pads:
        if own.flow(*images, pad=pad).shape[2:] != own.size:
            yield f"pad={pad!r} gives a flow of another size"
    if defaults.iters is not None and torch.equal(
        own.flow(*images, iters=1), own.flow(*images, iters=2)
    ):
        yield "one iteration and two give the same flow"
    with torch.no_grad():
        output = own.model(*images, all_flows=True)
    if not output.flows:
        yield "all_flows=True gives no flows"
    if own.model.takes_flow_init:
        low = output.low
        if low is None:
            yield "takes_flow_init, but `low` of the output is None"
        elif torch.equal(output.flow, own.flow(*images, flow_init=low + 1)):
            yield "flow_init changes nothing"


def _volumes(own: _Copy) -> Iterator[str]:
    images = own.images()
    flow = own.flow(*images)
    for name in own.model.volumes:
        with torch.no_grad():
            other = own.model.with_volume(name)(*images).flow
        yield from _differ(other, flow, f"the volume {name!r}, and the default")


def _state_dict(own: _Copy) -> Iterator[str]:
    images = own.images()
    flow = own.flow(*images)
    state = {name: value.clone() for name, value in own.model.state_dict().items()}
    with torch.no_grad():
        for parameter in own.model.parameters():
            parameter.add_(1)
    own.model.load_state_dict(state)
    if not torch.equal(own.flow(*images), flow):
        yield "after load_state_dict of its own state_dict the flow is another"


def _training(own: _Copy) -> Iterator[str]:
    parameters = [each for each in own.model.parameters() if each.requires_grad]
    if not parameters:
        return
    _move(parameters)
    own.model.train()
    output: FlowOutput = own.model(*own.images(batch=2))
    flows = output.flows or (output.flow,)
    if any(flow.shape != (2, 2, *own.size) for flow in flows):
        yield f"in training, flows are {[tuple(f.shape) for f in flows]}, wanted (2, 2, h, w)"
    torch.stack([flow.sum() for flow in flows]).sum().backward()
    if not any(each.grad is not None and each.grad.any() for each in parameters):
        yield "no gradient reaches any parameter"


def _gradient_to_w(own: _Copy) -> Iterator[str]:
    """Away from I, where every parameter of W matters."""
    of_w = {
        f"{name} of W{f' at {level}' if level else ''}": parameter
        for level, product in own.model.inner_products.items()
        for name, parameter in product.named_parameters()
    }
    if not of_w:
        return
    _move(list(own.model.parameters()))
    _move(list(of_w.values()), 0.1)
    own.model(*own.images()).flow.sum().backward()
    for name, parameter in of_w.items():
        if parameter.grad is None or not parameter.grad.any():
            yield f"no gradient reaches {name}"


def _export_rule(own: _Copy) -> Iterator[str]:
    rule = own.model.export_rule
    if not rule.fits_any:
        return
    for mode in rule.modes:
        fitted = rule.fit(*own.images(), mode)
        h, w = fitted.image1.shape[2:]
        if h % rule.stride or w % rule.stride:
            yield f"export_rule.fit gives {h}×{w}, wanted multiples of {rule.stride}"
        if fitted.undo(torch.zeros(1, 2, h, w)).shape[2:] != own.size:
            yield "export_rule.fit does not undo its own change of size"


CHECKS: tuple[Callable[[_Copy], Iterator[str]], ...] = (
    _members,
    _sizes,
    _number_types,
    _determinism,
    _batch,
    _streaming,
    _options,
    _volumes,
    _state_dict,
    _training,
    _gradient_to_w,
    _export_rule,
)


@torch.no_grad()
def _move(parameters: list[nn.Parameter], by: float = 0.02) -> None:
    """Away from where they begin: a last layer of zeros would let no gradient through."""
    for parameter in parameters:
        parameter.add_(by * torch.randn_like(parameter))


def _is_tensor(module: nn.Module, key: str) -> bool:
    return isinstance(getattr(module, key), Tensor)


def _differ(one: Tensor, other: Tensor, what: str) -> Iterator[str]:
    apart = float((one - other).norm() / other.norm().clamp(min=1e-6))
    if not apart <= CLOSE:
        yield f"{what} differ by {apart:.2g} of the flow, wanted at most {CLOSE}"
