"""Texture banks, procedural or from a folder of images.

A bank is a tensor (k, 3, s, s) uint8 on the device that renders; what layers take from it is in
`skins.py`.

Textures are softened by a Gaussian of `SOFTNESS` texels when the bank is made. Cubic sampling of
what is left above half a cycle a texel would depend on the phase, and frame 2 would not be a moved
frame 1 to within a grey level.
"""

from __future__ import annotations

import functools
import hashlib
import math
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from lcv.data.random import Draws
from lcv.errors import ArgumentError, FileError

TILE = 512
COUNT = 40
SOFTNESS = 0.75
HELD_OUT = frozenset({0, 9, 10, 20, 30, 40, 50, 60, 70, 80, 90})
"""A file is held out if the hash of its content modulo 100 is one of these: eleven in a hundred."""
IMAGES = (".png", ".jpg", ".jpeg", ".ppm", ".pgm", ".bmp", ".webp")


@functools.lru_cache(maxsize=8)
def procedural_bank(
    part: str = "train", *, count: int = COUNT, size: int = TILE, device: str = "cpu"
) -> Tensor:
    """Textures from formulas: (count, 3, size, size) uint8, part "train" or "held-out".

    Multi-scale noise of various roughness, stripes, checks, ramps, patches with hard edges, and
    mixtures of them. Made on the CPU, so it is the same everywhere, and kept.
    """
    check_part("procedural_bank", part, ("train", "held-out"))
    if size < 32 or size % 4:
        raise ArgumentError(f"procedural_bank: size is {size}, wanted a multiple of 4 from 32 on")
    with torch.inference_mode(False), torch.no_grad():
        draws = Draws(0 if part == "train" else 1, torch.arange(count))
        chunks = [_paint(Draws(draws.seed, c), size) for c in draws.indices.split(8)]
        return torch.cat(chunks).to(device)


def load_bank(
    folder: str | PathLike[str],
    part: str = "train",
    *,
    size: int = TILE,
    halved: bool = True,
    detailed: bool = False,
    device: torch.device | str = "cpu",
) -> Tensor:
    """The images of a folder as a bank: (k, 3, size, size) uint8, part "train", "held-out", "all".

    Each image is cut to its middle square and resized; with `halved` there are as many tiles again,
    mosaics of four images of the part at half the size, so that small objects too show more than a
    smooth spot of a photograph; with `detailed` the smooth spots of most tiles are overlaid with
    procedural structure and grain (`add_detail`). Which part an image belongs to depends on the
    hash of its bytes alone, not on its name or on what lies beside it: eleven in a hundred are held
    out.
    """
    from lcv.data.formats.image import read_image

    check_part("load_bank", part, ("train", "held-out", "all"))
    if size < 32 or size % 4:
        raise ArgumentError(f"load_bank: size is {size}, wanted a multiple of 4 from 32 on")
    folder = Path(folder)
    if not folder.is_dir():
        raise FileError(f"{folder}: not a folder; wanted one with images to use as textures")
    files = [p for p in sorted(folder.iterdir()) if p.suffix.lower() in IMAGES]
    chosen = [p for p in files if part == "all" or is_held_out(p) == (part == "held-out")]
    if not files:
        raise FileError(
            f"{folder}: no images in this folder; wanted some to use as textures "
            f"({', '.join(sorted(IMAGES))})"
        )
    if not chosen:
        raise FileError(
            f"{folder}: no image of the part {part!r} among {len(files)} images; {len(HELD_OUT)} in "
            'a hundred are held out, so use a larger folder or part="all"'
        )

    def cut(path: Path) -> tuple[Tensor, Tensor]:
        image = torch.from_numpy(read_image(path).copy()).permute(2, 0, 1)[None].float()
        side = min(image.shape[-2:])
        top, left = (image.shape[-2] - side) // 2, (image.shape[-1] - side) // 2
        square = image[..., top : top + side, left : left + side]
        return _finished(_resized(square, size)), _resized(square, size // 2)

    def mosaic(k: int) -> Tensor:
        a, b, c, d = (halves[(k + j) % len(halves)] for j in range(4))
        return _finished(torch.cat((torch.cat((a, b), -1), torch.cat((c, d), -1)), -2))

    with (
        ThreadPoolExecutor() as pool
    ):  # hundreds of photographs; torch's operators run side by side
        tiles, halves = (list(each) for each in zip(*pool.map(cut, chosen), strict=True))
        tiles += pool.map(mosaic, range(len(halves) if halved else 0))
    bank = torch.cat(tiles).to(device)
    return add_detail(bank, part) if detailed else bank


def add_detail(bank: Tensor, part: str = "train") -> Tensor:
    """Structure and grain for photographs, of which large parts are smooth and say little of motion.

    tile + a·(T − 128) + g·noise, T a texture of `procedural_bank`, noise white, softened, of unit
    deviation; a is 0 for a third of the tiles and U(0.1, 0.5) for the rest, g is 25·U² grey levels.
    """
    count, _, size, _ = bank.shape
    held_out = "held-out" if part == "held-out" else "train"
    structure = procedural_bank(held_out, size=size, device=str(bank.device))
    numbers = torch.arange(count, device=bank.device)
    draws = Draws(2, numbers)
    amount = draws.uniform("detail", (1, 1, 1), 0.1, 0.5)
    amount = amount * draws.happens("detailed", (1, 1, 1), 2 / 3).float()
    grain = 25 * draws.uniform("grain", (1, 1, 1)).square()
    which = draws.integers("structure", (), 0, len(structure))
    out = torch.empty_like(bank)
    for k in range(count):  # one by one, since together they would fill the memory
        white = _white(Draws(2, numbers[k : k + 1]), "grain", size)[:, :1]
        white = soften(white)
        white = white / white.std()
        tile = bank[k : k + 1] + amount[k] * (structure[which[k]].float() - 128)
        out[k] = (tile + grain[k] * white)[0].round().clamp(0, 255).to(torch.uint8)
    return out


def _resized(image: Tensor, side: int) -> Tensor:
    same = image.shape[-2:] == (side, side)
    return image if same else F.interpolate(image, (side, side), mode="bicubic", antialias=True)


def _finished(tile: Tensor) -> Tensor:
    return soften(tile).round().clamp(0, 255).to(torch.uint8)


def is_held_out(path: Path) -> bool:
    """Whether this file belongs to the held-out part, by the SHA-256 of its bytes modulo 100."""
    return int(hashlib.sha256(path.read_bytes()).hexdigest(), 16) % 100 in HELD_OUT


def check_part(function: str, part: str, known: tuple[str, ...]) -> None:
    if part not in known:
        raise ArgumentError(f"{function}: part is {part!r}, wanted one of {', '.join(known)}")


def soften(images: Tensor, sigma: float = SOFTNESS) -> Tensor:
    """Gaussian blur with reflecting borders, (n, c, h, w) → (n, c, h, w)."""
    reach = math.ceil(3 * sigma)
    weights = [math.exp(-0.5 * (i / sigma) ** 2) for i in range(-reach, reach + 1)]
    h, w = images.shape[-2:]
    wide = F.pad(images, (reach,) * 4, mode="reflect")
    # Sums of shifted copies: a convolution of one channel is far slower on a CPU.
    rows = torch.zeros_like(wide[..., :h, :])
    for i, weight in enumerate(weights):
        rows += weight * wide[..., i : i + h, :]
    both = torch.zeros_like(images)
    for i, weight in enumerate(weights):
        both += weight * rows[..., i : i + w]
    return both / sum(weights) ** 2


def _paint(draws: Draws, size: int) -> Tensor:
    """Procedural textures for these draws: (n, 3, size, size) uint8."""
    n = len(draws)
    rough = draws.uniform("roughness", (1, 1, 1), 0.4, 0.8)
    fields = _fractal_noise(draws, "noise", rough, size)  # (n, 2, size, size)
    smooth = _fractal_noise(draws, "patches", 0.4 * rough, size)
    line = torch.arange(size, dtype=torch.float32) / size
    angle = draws.uniform("texture angle", (2, 1, 1), 0, 2 * math.pi)
    along = angle.cos() * line + angle.sin() * line[:, None]  # (n, 2, size, size)
    number = draws.uniform("texture frequency", (2, 1, 1), 3, 36)
    wobble = draws.uniform("texture wobble", (2, 1, 1), 0, 0.05)
    phase = (along + wobble * smooth) * (2 * math.pi * number)
    sharp = draws.uniform("texture sharpness", (2, 1, 1), 0.7, 5)
    stripes = (sharp * phase.sin()).tanh()
    checks = stripes[:, :1] * stripes[:, 1:]
    ramp = along[:, :1] * 2 - 0.5
    level = draws.uniform("patch levels", (1, 1, 1), 1.5, 6)
    # Regions where both quantised fields are constant, each with a value of its own: hard edges
    # of all shapes, which photographs are full of and noise has none of.
    region = (smooth * level).floor()
    patches = (region[:, :1] * 2.4 + region[:, 1:] * 5.3).sin() + 0.25 * fields[:, :1]
    kind = draws.choice("texture kind", (1, 1, 1), (0.3, 0.1, 0.1, 0.05, 0.3, 0.15))
    parts = (fields[:, :1], stripes[:, :1], checks, ramp, patches)
    share = draws.uniform("texture shares", (5, 1, 1), 0.1, 1).split(1, dim=1)
    value = torch.zeros_like(ramp)
    for k, part in enumerate(parts):
        mixed_in = torch.where(kind == 5, 0.6 * share[k], 0.15 * share[k])
        value = value + torch.where(kind == k, 0.9 + 0 * share[k], mixed_in) * part
    colours = draws.normal("texture colours", (2, 3, 1, 1), std=35)
    first = draws.uniform("dark grey", (1, 1, 1), 10, 110) + colours[:, 0]
    second = draws.uniform("light grey", (1, 1, 1), 130, 245) + colours[:, 1]
    third = draws.normal("third colour", (3, 1, 1), std=12)
    mixed = (value * 0.5 + 0.5).clamp(-0.2, 1.2)
    image = first + (second - first) * mixed + third * fields[:, 1:]
    return soften(image.reshape(n, 3, size, size)).round().clamp(0, 255).to(torch.uint8)


def _fractal_noise(draws: Draws, name: str, roughness: Tensor, size: int) -> Tensor:
    """Two noise fields of about unit deviation, coarse to fine: (n, 2, size, size).

    Each octave doubles the last and adds `roughness` to a power times fresh noise.
    """
    side, octave = 4, 0
    field = _white(draws, f"{name} 0", side)
    weight = torch.ones_like(roughness)
    total = weight
    while side < size:
        side, octave = min(2 * side, size), octave + 1
        field = F.interpolate(field, (side, side), mode="bicubic", align_corners=False)
        weight = weight * roughness
        field = field + weight * _white(draws, f"{name} {octave}", side)
        total = total + weight * weight
    return field / total.sqrt()


def _white(draws: Draws, name: str, side: int) -> Tensor:
    """Uniform white noise of unit deviation, (n, 2, side, side): four numbers a word of 64 bits."""
    words = draws.words(name, (2, side, side // 4))
    return words.view(torch.int16).float() * (math.sqrt(3) / 32768)
