"""Small footage in motion, and weights that compute flow of it in an instant."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image

import lcv
from data.formats.samples import save_clip
from lcv.data.formats.image import write_image

SIZE = (64, 72)


def moving(count: int, size: tuple[int, int] = SIZE, seed: int = 0) -> list[np.ndarray]:
    """A texture that slides by 3 right and 1 down a frame, (H, W, 3) uint8 each."""
    height, width = size
    # Coarse beside the motion, as the world is: finer, and every frame would be another scene.
    coarse = np.random.default_rng(seed).integers(0, 256, (20, 20, 3), dtype=np.uint8)
    smooth = np.asarray(Image.fromarray(np.tile(coarse, (2, 2, 1))).resize((640, 640)))
    tiled = np.tile(smooth[160:480, 160:480], (-(-height // 320) + 1, -(-width // 320) + 1, 1))
    return [
        np.ascontiguousarray(tiled[-k % 320 :, -3 * k % 320 :][:height, :width])
        for k in range(count)
    ]


def save_frames(folder: Path, count: int, size: tuple[int, int] = SIZE, seed: int = 0) -> Path:
    """frame_1.png, frame_2.png …: their natural order is not that of their letters."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, frame in enumerate(moving(count, size, seed), start=1):
        write_image(folder / f"frame_{number}.png", frame)
    return folder


def save_film(path: Path, count: int, size: tuple[int, int] = SIZE, seed: int = 0) -> Path:
    """The same as a film that declares its number of frames (.mp4) or does not (.mkv)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    frames = moving(count, size, seed)
    if path.suffix == ".mkv":
        save_clip(path, frames)
    else:
        save_clip(path, frames, codec="mpeg4", pixels="yuv420p")
    return path


def save_weights(path: Path, model: str = "raft-small") -> Path:
    """Random ones, always the same."""
    torch.manual_seed(7)
    lcv.save(lcv.build(model), path)
    return path


def files_of(root: Path) -> dict[str, bytes]:
    """Everything in a folder, hidden files and empty folders too, with its content."""
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else b""
        for path in sorted(root.rglob("*"))
    }
