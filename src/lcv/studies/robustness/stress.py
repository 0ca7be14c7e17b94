"""What is done to frames: light, noise, a pasted disc, blur, JPEG, fog; images in, images out.

Images are float tensors (b, 3, h, w) in 0 … 255 and are clipped to that range, not rounded: rounding
would undo noise of 0.03 grey levels. All draws are counter-based (`lcv.data.random.Draws`), so every
network, batch size and device gets the same frames (to rounding).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from lcv.cost_volume.expect import expect
from lcv.data.random import Draws
from lcv.data.synthetic.effects import add_fog, compress
from lcv.data.synthetic.recipe import TRAINING
from lcv.data.synthetic.textures import soften
from lcv.errors import ArgumentError

_PLAIN = TRAINING.without_effects()

Place = Sequence[float] | Tensor
"""A point (x, y) in pixels for all images, or (b, 2), one for each."""


def gamma(images: Tensor, g: float) -> Tensor:
    """Illumination as in the paper: 255·(image/255)^(1/g); g < 1 darkens, g > 1 brightens.

    Facts: g = 1 changes nothing; black and white stay; gamma(gamma(x, a), b) = gamma(x, a·b).
    """
    expect("gamma", images, "images: b 3 h w")
    _check("gamma", "g", g, g > 0, "a positive number")
    if g == 1:
        return images
    return 255 * (images.clamp(0, 255) / 255).pow(1 / g)


def noise(
    images: Tensor,
    variance: float,
    seed: int,
    *,
    indices: Sequence[int] | Tensor | None = None,
    frame: int = 0,
) -> Tensor:
    """Independent normal noise of this variance, for images in 0 … 1: deviation 255·√variance here.

    indices: image k is drawn for indices[k], by default k; frame: each frame has its own noise
    Facts: variance 0 changes nothing; mean 0 before clipping; no draw beyond 4.5 deviations.
    """
    b, h, w = expect("noise", images, "images: b 3 h w")
    _check("noise", "variance", variance, variance >= 0, "a number that is not negative")
    if variance == 0:
        return images
    draws = Draws(seed, range(b) if indices is None else indices, images.device)
    if len(draws) != b:
        raise ArgumentError(f"noise: {len(draws)} indices for {b} images, wanted one an image")
    grain = draws.normal(f"noise of {variance:g}, frame {frame}", (3, h, w))
    return (images + (255 * math.sqrt(variance)) * grain.to(images.dtype)).clamp(0, 255)


def apply_patch(
    images: Tensor,
    patch: Tensor,
    centre: Place,
    size: float | Tensor,
    *,
    angle: float | Tensor = 0.0,
    largest: float | None = None,
) -> Tensor:
    """The images with a round patch pasted on them: opaque inside the disc, nothing outside.

    patch:  (3, s, s) in 0 … 255; what shows is its inscribed disc. (b, 3, s, s): one an image
    centre: (x, y) in pixels, the top left pixel being (0, 0), or (b, 2), one an image
    size:   diameter of the disc in pixels, or (b,); it may reach beyond the image
    angle:  the patch is turned by this many radians, from x towards y, or (b,)
    largest: sizes are above 0 and at most this; given, nothing waits for the device

    The patch is sampled bilinearly, after an antialiased reduction where it is larger than the disc.
    Facts: pixels further than size/2 from the centre are untouched, to the bit; applying it twice is
    applying it once.
    """
    patches = patch[None] if patch.ndim == 3 else patch
    b = expect("apply_patch", images, "images: b 3 h w")[0]
    n, s = expect("apply_patch", patches, "patch: n 3 s s")
    if n not in (1, b):
        raise ArgumentError(f"apply_patch: {n} patches for {b} images, wanted one, or one an image")
    offset = _offsets(images, centre)  # (b, 2, h, w)
    diameter = _each("apply_patch", "size", size, images)
    if largest is None:
        if not bool((diameter > 0).all()):
            raise ArgumentError(f"apply_patch: size is {size}, wanted a positive number of pixels")
        largest = float(diameter.max())
    side = math.ceil(largest)
    if side < s:
        patches = F.interpolate(patches, (side, side), mode="bilinear", antialias=True)
    turn = _each("apply_patch", "angle", angle, images)
    cos, sin = turn.cos()[:, None, None], turn.sin()[:, None, None]
    x, y = offset.unbind(1)
    grid = (
        torch.stack((cos * x + sin * y, cos * y - sin * x), -1)
        * (2 / diameter)[:, None, None, None]
    )
    pasted = F.grid_sample(
        patches.to(images.dtype).expand(b, -1, -1, -1),
        grid,
        padding_mode="border",
        align_corners=False,
    )
    return torch.where(disc(images, centre, size), pasted, images)


def disc(images: Tensor, centre: Place, size: float | Tensor) -> Tensor:
    """Where a patch of this diameter covers the images: (b, 1, h, w) bool, the rim included."""
    diameter = _each("disc", "size", size, images)
    distance = _offsets(images, centre).norm(dim=1, keepdim=True)
    return distance <= (diameter / 2)[:, None, None, None]


def places_at(shares: Tensor, images: Tensor, size: float | Tensor) -> Tensor:
    """Centres (b, 2) for patches, from draws (b, 2) in 0 … 1.

    A patch lies wholly inside the image where it fits, else in its middle. size: its diameter
    """
    h, w = images.shape[-2:]
    diameter = _each("places", "size", size, images)
    found = []
    for share, room in zip(shares.to(images).unbind(1), (w - 1.0, h - 1.0), strict=True):
        free = (room - diameter).clamp(min=0)
        found.append((room - free) / 2 + free * share)
    return torch.stack(found, 1)


def blur(images: Tensor, sigma: float) -> Tensor:
    """Gaussian blur of `sigma` pixels, with reflecting borders."""
    h, w = expect("blur", images, "images: b 3 h w")[1:]
    widest = (min(h, w) - 1) // 3
    _check("blur", "sigma", sigma, 0 <= sigma <= widest, f"0 to {widest} for {h}×{w} pixels")
    return images if sigma == 0 else soften(images, sigma)


def jpeg(images: Tensor, quality: float) -> Tensor:
    """Losses like JPEG's at this quality, 1 … 100, as the procedural source makes them.

    A little milder than a JPEG file of that quality, and the same on every device.
    """
    expect("jpeg", images, "images: b 3 h w")
    _check("jpeg", "quality", quality, 0 < quality <= 100, "a quality from 1 to 100")
    recipe = replace(_PLAIN, jpeg=1.0, jpeg_quality=(float(quality), float(quality)))
    draws = Draws(0, range(len(images)), images.device)  # nothing is drawn: the quality is fixed
    return compress(recipe, draws, [images])[0].clamp(0, 255)


def fog(image1: Tensor, image2: Tensor, thickness: float, draws: Draws) -> tuple[Tensor, Tensor]:
    """The procedural source's fog, that drifts between the frames, at a share of its thickness.

    image + thickness·t·(colour − image) with t smooth in 0 … 0.8, drawn by `draws`; thickness 0 … 1
    """
    expect("fog", image1, "image1: b 3 h w", image2, "image2: b 3 h w")
    _check("fog", "thickness", thickness, 0 <= thickness <= 1, "a share from 0 to 1")
    veiled = add_fog(replace(_PLAIN, fog=1.0), draws, [image1, image2])
    first, second = (
        torch.lerp(frame, foggy, thickness).clamp(0, 255)
        for frame, foggy in zip((image1, image2), veiled, strict=True)
    )
    return first, second


def exposure(images: Tensor, stops: float) -> Tensor:
    """The light doubled `stops` times, image·2^stops, and clipped at white as a sensor would."""
    expect("exposure", images, "images: b 3 h w")
    _check("exposure", "stops", stops, abs(stops) <= 16, "−16 to 16")
    return (images * 2.0**stops).clamp(0, 255)


def _offsets(images: Tensor, centre: Place) -> Tensor:
    """Pixel minus centre, (b, 2, h, w), x first."""
    b, _, h, w = images.shape
    middle = torch.as_tensor(centre, dtype=images.dtype, device=images.device)
    if middle.shape not in ((2,), (b, 2)):
        raise ArgumentError(
            f"a patch's centre has shape {tuple(middle.shape)}, wanted (x, y) or one for each of "
            f"{b} images"
        )
    middle = middle.expand(b, 2)
    x = torch.arange(w, dtype=images.dtype, device=images.device) - middle[:, 0, None]  # (b, w)
    y = torch.arange(h, dtype=images.dtype, device=images.device) - middle[:, 1, None]
    return torch.stack((x[:, None, :].expand(b, h, w), y[:, :, None].expand(b, h, w)), 1)


def _each(function: str, name: str, value: float | Tensor, images: Tensor) -> Tensor:
    """A number, or one an image, as (b,) on the images' device."""
    number = torch.as_tensor(value, dtype=images.dtype, device=images.device)
    if number.shape not in ((), (len(images),)):
        raise ArgumentError(
            f"{function}: {name} has shape {tuple(number.shape)}, wanted a number or one for each of "
            f"{len(images)} images"
        )
    return number.expand(len(images))


def _check(function: str, name: str, value: float, fine: bool, wanted: str) -> None:
    if not fine:
        raise ArgumentError(f"{function}: {name} is {value}, wanted {wanted}")
