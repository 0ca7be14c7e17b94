"""Crops of real pairs, of three sizes, none of them multiples of 8."""

from __future__ import annotations

import numpy as np
import torch

import lcv
from lcv.export.check import Pair
from testing.shared import shared

CROPS = {
    "chairs": (("chairs/data/00001_img1.ppm", "chairs/data/00001_img2.ppm"), (187, 245)),
    "sintel": (
        (
            "sintel/training/clean/alley_1/frame_0001.png",
            "sintel/training/clean/alley_1/frame_0002.png",
        ),
        (132, 331),
    ),
    "kitti": (
        (
            "kitti2015/training/image_2/000010_10.png",
            "kitti2015/training/image_2/000010_11.png",
        ),
        (203, 150),
    ),
}


def frames(name: str) -> tuple[np.ndarray, np.ndarray]:
    """The middle of both frames, (h, w, 3) uint8."""
    files, (height, width) = CROPS[name]
    images = [lcv.read_image(shared("data", file)) for file in files]
    top, left = (
        (have - want) // 2 for have, want in zip(images[0].shape[:2], (height, width), strict=True)
    )
    first, second = (image[top : top + height, left : left + width] for image in images)
    return first, second


def pair(name: str, mode: str = "sintel") -> Pair:
    """The same as the network takes them, (1, 3, h, w) float32."""
    first, second = (
        torch.from_numpy(np.ascontiguousarray(frame)).movedim(2, 0)[None].float()
        for frame in frames(name)
    )
    return Pair(name, first, second, mode)
