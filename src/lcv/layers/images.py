"""What a network is given: images, checked once and brought to its own precision."""

from __future__ import annotations

import torch
from torch import Tensor

from lcv.cost_volume.expect import expect
from lcv.errors import ArgumentError, ShapeError


def as_input(network: str, like: Tensor, **images: Tensor) -> tuple[Tensor, ...]:
    """The images in the dtype of the network's parameters, or an error that says what is wrong.

    like: a parameter of the network; images: by the names of the arguments, (b, 3, h, w) RGB in
    0 … 255 of any number type, all of one size, on the parameters' device
    """
    named: list[Tensor | str] = []
    for name, image in images.items():
        named += [image, f"{name}: b 3 h w"]
    b, *_ = expect(network, *named, hint="Images are RGB, and both of one batch and size.")
    if b == 0:
        raise ShapeError(f"{network}: the batch is empty, wanted at least one pair of images")
    for name, image in images.items():
        if image.device != like.device:
            raise ArgumentError(
                f"{network}: {name} is on {image.device} and the network on {like.device}; move "
                f"one to the other with .to(…)"
            )
        if image.is_complex() or image.dtype == torch.bool:
            raise ArgumentError(f"{network}: {name} is {image.dtype}, wanted numbers in 0 … 255")
    # Planes one after another, also of images that lie in memory pixel by pixel.
    plain = torch.contiguous_format
    return tuple(image.to(like.dtype, memory_format=plain) for image in images.values())


def refuse_half(network: str, like: Tensor) -> None:
    """Refuse parameters in half precision where the network cannot compute in it."""
    if like.dtype in (torch.float16, torch.bfloat16):
        raise ArgumentError(
            f"{network}: its parameters are {like.dtype}, wanted float32 or float64. For half "
            f"precision keep them in float32 and run under torch.autocast."
        )
