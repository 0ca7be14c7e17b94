"""What happens to light between scene and file: fog, blur, sharpening, light, noise, compression.

Each effect takes the frames of n scenes, each (n, 3, h, w) in 0 … 255, and returns them changed; a
scene that an effect does not befall passes through it unchanged. None moves anything, so flow and
occlusion stay what they were. All are continuous in the image, so devices that differ by rounding
stay within a grey level.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from lcv.data.random import Draws
from lcv.data.synthetic.settings import EFFECTS, Recipe
from lcv.data.synthetic.shapes import as_grid

BLUR_TAPS = 3
LONGEST_BLUR = 24.0
LANES = sum(127 << (21 * channel) for channel in range(3))
FIELD = (4, 5)


def apply_effects(
    recipe: Recipe,
    draws: Draws,
    frames: list[Tensor],
    paths: list[Tensor],
    backend: str = "torch",
) -> list[Tensor]:
    """All effects of the recipe in the order of light; paths: each frame's motion (n, 2, h, w).

    backend: "triton" sharpens, lights and adds noise in one kernel; the frames are equal up to rounding.
    """
    if recipe.fog > 0:
        frames = _on_some("fog", recipe.fog, add_fog, recipe, draws, frames)
    if recipe.motion_blur > 0:
        blurred = "motion blur", recipe.motion_blur, blur_along
        frames = _on_some(*blurred, recipe, draws, frames, paths)
    if backend == "triton":
        from lcv.data.synthetic import effects_triton

        frames = effects_triton.on_all(recipe, draws, frames)
    else:
        if recipe.sharpen > 0:
            frames = sharpen(recipe, draws, frames)
        if is_lit(recipe):
            frames = light(recipe, draws, frames)
        if recipe.noise > 0:
            frames = add_noise(recipe, draws, frames)
    if recipe.jpeg > 0:
        frames = _on_some("jpeg", recipe.jpeg, compress, recipe, draws, frames)
    return [frame.clamp(0, 255) for frame in frames]


def _on_some(
    name: str,
    probability: float,
    effect: Callable[..., list[Tensor]],
    recipe: Recipe,
    draws: Draws,
    *given: list[Tensor],
) -> list[Tensor]:
    """An effect on the scenes that it befalls; where they are few, the others are not computed.

    Fog, blur and compression cost most and are rare. given: the frames, and what else it takes
    """
    at = draws.where_it_happens(name, probability)
    if 2 * len(at) > len(draws):
        return effect(recipe, draws, *given)
    if not len(at):
        return given[0]
    here = at.to(draws.device, non_blocking=True)
    changed = effect(recipe, draws.of(at), *([x[here] for x in some] for some in given))
    return [x.index_copy(0, here, new) for x, new in zip(given[0], changed, strict=True)]


def effects_of(recipe: Recipe) -> tuple[object, ...]:
    """Everything that these effects take from a recipe."""
    more = ("shutter", "sharpen_amount", "noise_sigma", "jpeg_quality")
    return tuple(getattr(recipe, name) for name in (*EFFECTS, *more) if name != "shadow")


def add_fog(recipe: Recipe, draws: Draws, frames: list[Tensor]) -> list[Tensor]:
    """A pale veil: frame + thickness·(colour − frame), the thickness smooth and drifting."""
    foggy = draws.happens("fog", (1, 1, 1), recipe.fog).float()
    colour = draws.uniform("fog grey", (1, 1, 1), 150, 235)
    colour = colour + draws.normal("fog tint", (3, 1, 1), std=6)
    base = draws.uniform("fog thickness", (1, *FIELD), 0.05, 0.75)
    drift = draws.uniform("fog drift", (1, *FIELD), -0.12, 0.12)
    out = []
    for time, frame in enumerate(frames):
        # The cubic overshoots its knots.
        thickness = spread(base + time * drift, frame).clamp(0, 0.8) * foggy
        out.append(torch.lerp(frame, colour, thickness))
    return out


def blur_along(
    recipe: Recipe, draws: Draws, frames: list[Tensor], paths: list[Tensor]
) -> list[Tensor]:
    """Each pixel averaged along the mean motion of its neighbourhood, for part of its length.

    The average over 3 × 3 places, evenly spread from −½ to ½ of the exposure, as two passes of 3.
    An approximation: an exact blur would render every layer at many times. The motion is averaged
    over about 16 pixels, so that outlines smear as well.
    """
    blurred = draws.happens("motion blur", (1, 1, 1), recipe.motion_blur).float()
    exposure = draws.uniform("exposure", (1, 1, 1), 0.1 * recipe.shutter, recipe.shutter) * blurred
    out = []
    for frame, path in zip(frames, paths, strict=True):
        h, w = frame.shape[-2:]
        coarse = F.avg_pool2d(path, 16, ceil_mode=True, count_include_pad=False) * exposure
        length = (coarse * coarse).sum(1, keepdim=True).sqrt()
        coarse = coarse * (LONGEST_BLUR / length.clamp(min=LONGEST_BLUR))
        smear = F.interpolate(coarse, (h, w), mode="bilinear", align_corners=False)
        sx = smear[:, 0] * (2 / (w - 1))
        sy = smear[:, 1] * (2 / (h - 1))
        x = torch.linspace(-1, 1, w, dtype=frame.dtype, device=frame.device)
        y = torch.linspace(-1, 1, h, dtype=frame.dtype, device=frame.device)[:, None]
        result = frame
        for spacing in (1 / BLUR_TAPS, 1 / BLUR_TAPS**2):
            total = torch.zeros_like(frame)
            for tap in range(BLUR_TAPS):
                at = (tap - (BLUR_TAPS - 1) / 2) * spacing
                grid = as_grid(x + at * sx, y + at * sy)
                total += F.grid_sample(result, grid, padding_mode="border", align_corners=True)
            result = total / BLUR_TAPS
        # Sampling at rest is the identity only up to rounding; a scene without blur is untouched.
        out.append(torch.lerp(frame, result, blurred))
    return out


def sharpen(recipe: Recipe, draws: Draws, frames: list[Tensor]) -> list[Tensor]:
    """frame + amount·(frame − blurred), as cameras do; the blur is binomial, [1 4 6 4 1]/16 twice.

    Rendered frames are softer than photographs. A filter that is the same everywhere moves
    nothing, and its halos at outlines are those of cameras.
    """
    amount = sharpening(recipe, draws)
    out = []
    for frame in frames:
        padded = F.pad(frame, (2, 2, 2, 2), mode="replicate")
        rows = _binomial(padded[..., k : k + frame.shape[-1]] for k in range(5))
        blurred = _binomial(rows[..., k : k + frame.shape[-2], :] for k in range(5))
        out.append(torch.addcmul(frame, frame - blurred, amount).clamp(0, 255))
    return out


def sharpening(recipe: Recipe, draws: Draws) -> Tensor:
    """How much each scene is sharpened: (n, 1, 1, 1), 0 for some."""
    sharp = draws.happens("sharpen", (1, 1, 1), recipe.sharpen).float()
    return draws.uniform("sharpen amount", (1, 1, 1), *recipe.sharpen_amount) * sharp


class Light(NamedTuple):
    """Of a frame: gamma (n, 1, 1, 1), gain and offset (n, 3, 1, 1), a coarse shade (n, 1, 4, 5), and
    whether there is any, 0 or 1 (n, 1, 1, 1)."""

    gamma: Tensor
    gain: Tensor
    offset: Tensor
    shade: Tensor
    touched: Tensor


def is_lit(recipe: Recipe) -> bool:
    """Whether the light of any scene changes."""
    return recipe.illumination > 0 or recipe.illumination_change > 0


def light(recipe: Recipe, draws: Draws, frames: list[Tensor]) -> list[Tensor]:
    """255·gain·shade·(frame/255)^gamma + offset; partly another one in each frame.

    Common to the frames: gamma e^N(0, 0.15), gain U(0.8, 1.2) with 0.05 a channel, offset
    N(0, 8), a shade that varies smoothly by 10 %. Changing: a third of that, frame by frame.
    """
    out = []
    for frame, here in zip(frames, lights(recipe, draws, len(frames)), strict=True):
        varied = spread(here.shade, frame)
        bright = (frame * (1 / 255)).clamp(min=1e-4).pow(here.gamma)
        bright = torch.addcmul(here.offset, bright * (here.gain * 255), varied)
        out.append(torch.lerp(frame, bright, here.touched))
    return out


def lights(recipe: Recipe, draws: Draws, times: int) -> list[Light]:
    """The light of each frame."""
    lit = draws.happens("illumination", (1, 1, 1), recipe.illumination).float()
    changes = draws.happens("illumination change", (1, 1, 1), recipe.illumination_change).float()
    touched = torch.maximum(lit, changes)
    common = draws.normal("light", (8, 1, 1)) * lit
    later = draws.normal("light, later", (times, 8, 1, 1)) * (changes * 0.35)[:, None]
    shade = draws.normal("shade", (1, *FIELD), std=0.1) * lit
    shade_later = draws.normal("shade, later", (times, 1, *FIELD), std=0.1) * changes[:, None] * 0.5
    out = []
    for time in range(times):
        value = common + later[:, time]
        gamma = (value[:, 0:1] * 0.15).exp()
        gain = (value[:, 1:2] * 0.1 + value[:, 2:5] * 0.04).exp()
        offset = value[:, 5:8] * 3 + value[:, 1:2] * 2
        out.append(Light(gamma, gain, offset, (shade + shade_later[:, time]).exp(), touched))
    return out


def add_noise(recipe: Recipe, draws: Draws, frames: list[Tensor]) -> list[Tensor]:
    """Independent noise a pixel and channel, near normal: the sum of three uniforms.

    One 64-bit word a pixel holds three lanes of 21 bits, a channel each, and a lane three numbers
    of 7 bits; their sum has mean 190.5 and deviation 64.
    """
    sigma = noise_sigma(recipe, draws)
    h, w = frames[0].shape[-2:]
    out = []
    for time, frame in enumerate(frames):
        word = draws.words(noise_name(time), (h, w))
        lanes = (word & LANES) + ((word >> 7) & LANES) + ((word >> 14) & LANES)
        grains = torch.stack([(lanes >> (21 * c)) & 511 for c in range(3)], 1)
        out.append(torch.addcmul(frame, grains.float() - 190.5, sigma * (1 / 64)))
    return out


def noise_sigma(recipe: Recipe, draws: Draws) -> Tensor:
    """The noise of each scene: (n, 1, 1, 1), 0 for some."""
    noisy = draws.happens("noise", (1, 1, 1), recipe.noise).float()
    return draws.uniform("noise sigma", (1, 1, 1), 0, recipe.noise_sigma) * noisy


def noise_name(time: int) -> str:
    """What the noise of a frame is called among the draws."""
    return f"noise, frame {time}"


def compress(recipe: Recipe, draws: Draws, frames: list[Tensor]) -> list[Tensor]:
    """Losses like JPEG's: 8×8 cosine transforms of Y, Cb, Cr, their coefficients pulled to steps.

    A coefficient c becomes step·pull(pull(c/step)) with pull(x) = x − sin(2πx)/2π, a rounding
    without jumps, so that devices agree. Steps are JPEG's standard ones at the drawn quality.
    """
    h, w = frames[0].shape[-2:]
    pressed = draws.happens("jpeg", (1, 1, 1), recipe.jpeg).float()
    quality = draws.uniform("jpeg quality", (1, 1, 1), *recipe.jpeg_quality)
    scale = torch.where(quality < 50, 50 / quality, 2 - quality * 0.02)
    cosines, steps, to_ycc, to_rgb = _jpeg_tables(frames[0].device)
    steps = (steps * scale).clamp(min=1)  # (n, 3, 1, 64)
    rows, columns = -(-h // 8), -(-w // 8)
    out = []
    for frame in frames:
        whole = F.pad(frame, (0, columns * 8 - w, 0, rows * 8 - h), mode="replicate") - 128
        blocks = whole.unflatten(2, (rows, 8)).unflatten(4, (columns, 8))  # n c R 8 C 8
        blocks = blocks.permute(0, 1, 2, 4, 3, 5).flatten(4).flatten(2, 3)  # n c RC 64
        values = _channels(blocks.to(cosines.dtype), to_ycc) @ cosines.T
        scaled = values / steps
        for _ in range(2):
            scaled = torch.sin(scaled * (2 * math.pi)).mul_(-0.5 / math.pi).add_(scaled)
        blocks = _channels((scaled * steps) @ cosines, to_rgb).to(frame.dtype)
        blocks = blocks.unflatten(3, (8, 8)).unflatten(2, (rows, columns))  # n c R C 8 8
        whole = blocks.permute(0, 1, 2, 4, 3, 5).flatten(4).flatten(2, 3)
        out.append(torch.lerp(frame, whole[:, :, :h, :w] + 128, pressed))
    return out


def _binomial(shifted: Iterable[Tensor]) -> Tensor:
    """Five neighbours, a view each, weighted 1 4 6 4 1."""
    a, b, c, d, e = shifted
    return ((a + e) + 4 * (b + d) + 6 * c) / 16


def spread(field: Tensor, frame: Tensor) -> Tensor:
    """A coarse field (n, 1, 4, 5) smooth over the whole frame."""
    return F.interpolate(field, frame.shape[-2:], mode="bicubic", align_corners=True)


def _channels(blocks: Tensor, matrix: list[list[float]]) -> Tensor:
    """Colour channels mixed by a 3×3 matrix of numbers."""
    parts = blocks.unbind(1)
    rows = [row[0] * parts[0] + row[1] * parts[1] + row[2] * parts[2] for row in matrix]
    return torch.stack(rows, 1)


_LUMA_STEPS = (
    "16 11 10 16 24 40 51 61 12 12 14 19 26 58 60 55 14 13 16 24 40 57 69 56 14 17 22 29 51 87 80 "
    "62 18 22 37 56 68 109 103 77 24 35 55 64 81 104 113 92 49 64 78 87 103 121 120 101 72 92 95 "
    "98 112 100 103 99"
)
_CHROMA_STEPS = (
    "17 18 24 47 99 99 99 99 18 21 26 66 99 99 99 99 24 26 56 99 99 99 99 99 47 66 99 99 99 99 99 "
    "99 " + "99 " * 32
)


@functools.lru_cache(maxsize=16)
def _jpeg_tables(device: torch.device):
    """The 64×64 cosine transform, the steps (1, 3, 1, 64) of ITU T.81 annex K, and JFIF's colours."""
    # On a GPU products of float32 may be of TF32, which is off by tenths of a grey level.
    dtype = torch.float64 if device.type == "cuda" else torch.float32
    with torch.inference_mode(False):
        k = torch.arange(8, dtype=torch.float64)
        line = torch.cos((2 * k + 1) * k[:, None] * (math.pi / 16)) * 0.5
        line[0] *= math.sqrt(0.5)
        cosines = torch.kron(line, line).to(dtype).to(device)
        rows = [[float(step) for step in text.split()] for text in (_LUMA_STEPS, _CHROMA_STEPS)]
        steps = torch.tensor([rows[0], rows[1], rows[1]])[None, :, None].to(device)
    ycc = [[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]]
    rgb = [[1.0, 0.0, 1.402], [1.0, -0.344136, -0.714136], [1.0, 1.772, 0.0]]
    return cosines, steps, ycc, rgb
