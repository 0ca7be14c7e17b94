"""A patch as a PNG with a card that says how it was learned; and random patches like it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lcv.cost_volume.expect import expect
from lcv.data.formats.image import read_image, write_image
from lcv.data.random import Draws
from lcv.errors import FileError
from lcv.files import SMALL, check_output, read_json, write_text

FORMAT = "lcv patch 1"
GREY = 127
"""What a patch's file shows outside its disc."""


@dataclass(frozen=True, eq=False)
class Patch:
    """A square picture whose inscribed disc is pasted.

    pixels: (3, s, s) float in 0 … 255, whole grey levels;  card: what is known about it
    """

    name: str
    pixels: Tensor
    card: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sha256(self) -> str:
        """Of its shape and grey levels, so that the same picture in another file is the same."""
        levels = self.pixels.round().to(torch.uint8)
        return hashlib.sha256(
            f"{tuple(levels.shape)}".encode() + levels.numpy().tobytes()
        ).hexdigest()


def inscribed(side: int) -> Tensor:
    """The disc of a patch of this side: (side, side) bool."""
    reach = torch.arange(side) - (side - 1) / 2
    return reach.square() + reach[:, None].square() <= (side / 2) ** 2


def card_path(path: str | os.PathLike[str]) -> Path:
    """`patch.png` → `patch.json`, in the same folder."""
    return Path(path).with_suffix(".json")


def check_patch_output(path: str | os.PathLike[str], overwrite: bool = False) -> None:
    """Refuse a place where a patch cannot be saved; ask before learning one."""
    if Path(path).suffix.lower() != ".png":
        raise FileError(f"{path}: a patch is written without loss, wanted a name ending in .png")
    check_output(path, overwrite)
    check_output(card_path(path), overwrite)


def save_patch(
    path: str | os.PathLike[str], pixels: Tensor, card: Mapping[str, Any], overwrite: bool = False
) -> Patch:
    """Write pixels (3, s, s) as a PNG and their card as JSON; returns what `load_patch` would."""
    path = Path(path)
    side, _ = expect("save_patch", pixels, "pixels: 3 s t")
    check_patch_output(path, overwrite)
    levels = pixels.detach().cpu().clamp(0, 255).round()
    levels = torch.where(inscribed(side), levels, GREY).to(torch.uint8)
    patch = Patch(path.stem, levels.float())
    described = {"format": FORMAT, "file": path.name, "pixels_sha256": patch.sha256, **card}
    write_image(path, np.ascontiguousarray(levels.permute(1, 2, 0).numpy()), overwrite)
    text = json.dumps(described, indent=2, ensure_ascii=False, allow_nan=False)
    write_text(card_path(path), text + "\n", overwrite)
    return replace(patch, card=described)


def load_patch(path: str | os.PathLike[str]) -> Patch:
    """Any picture as a patch: its middle square. Its card is read if the hash matches."""
    path = Path(path)
    picture = read_image(path)
    height, width = picture.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    square = np.array(picture[top : top + side, left : left + side])
    patch = Patch(path.stem, torch.from_numpy(square).permute(2, 0, 1).float().contiguous())
    try:
        card = read_json(card_path(path), "the card of a patch", most=SMALL)
    except FileError:
        return patch
    return replace(patch, card=card) if card.get("pixels_sha256") == patch.sha256 else patch


def random_patches(side: int, seed: int, indices: Sequence[int]) -> Tensor:
    """A random patch for every index: (n, 3, side, side), every pixel and channel uniform in 0 … 255."""
    return Draws(seed, indices).uniform("random patch", (3, side, side), 0, 255)


def matched_patches(patch: Patch, seed: int, indices: Sequence[int]) -> Tensor:
    """A random patch for every index, with the statistics of a given one: (n, 3, s, s).

    White noise gets the power spectrum of the patch inside its disc, with one random phase for all
    channels, which keeps their correlation; then the values of each channel are replaced, rank by
    rank, by those of the patch. Fact: every channel has exactly the patch's grey levels.
    """
    side = patch.pixels.shape[-1]
    inside = inscribed(side)
    pixels = patch.pixels.double()
    values = pixels[:, inside]  # (3, m)
    centred = torch.where(inside, pixels - values.mean(1)[:, None, None], 0)
    spectrum = torch.fft.rfft2(centred)
    white = Draws(seed, indices).normal("control patch", (side, side)).double()
    phase = torch.fft.rfft2(white)
    phase = phase / phase.abs().clamp(min=1e-12)
    fields = torch.fft.irfft2(spectrum * phase[:, None], (side, side))  # (n, 3, s, s)
    ranked = values.sort(dim=1).values
    out = torch.full_like(fields, GREY)
    order = fields[..., inside].argsort(dim=-1)  # (n, 3, m)
    placed = torch.empty_like(fields[..., inside])
    placed.scatter_(-1, order, ranked.expand(len(fields), -1, -1))
    out[..., inside] = placed
    return out.float()
