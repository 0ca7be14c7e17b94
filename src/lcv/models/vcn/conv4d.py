"""Separable 4D convolutions over a cost volume whose channels are kept apart.

A volume is (b, c, u, v, h, w): for every pixel (h, w) a window (u, v) of displacements. A 4D
convolution is split into one over the window and one over the pixels. Both are 3D convolutions in
disguise: the pair of axes that the kernel does not see is flattened into one axis, on which the
kernel has length 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch.nn.functional as F
from torch import Tensor, nn

Layer = Callable[[Tensor], Tensor]


def over_window(layer: Layer, volume: Tensor) -> Tensor:
    """Apply a 3D layer with kernel (·, ·, 1) to the axes (u, v); the pixels are left alone."""
    h, w = volume.shape[-2:]
    return layer(volume.flatten(-2)).unflatten(-1, (h, w))  # (b, c, u, v, h·w) inside


def over_pixels(layer: Layer, volume: Tensor) -> Tensor:
    """Apply a 3D layer with kernel (1, ·, ·) to the axes (h, w); the window is left alone."""
    u, v = volume.shape[2:4]
    return layer(volume.flatten(2, 3)).unflatten(2, (u, v))  # (b, c, u·v, h, w) inside


def resize_volume(volume: Tensor, size: Sequence[int]) -> Tensor:
    """To the size (u, v, h, w): bilinear in (u, v), then in (h, w), neither with corners aligned.

    Written as trilinear interpolation whose flattened axis keeps its length.
    """
    u, v, h, w = size
    pixels = volume.shape[-2] * volume.shape[-1]
    if volume.shape[2:4] != (u, v):
        flat = F.interpolate(volume.flatten(-2), size=(u, v, pixels), mode="trilinear")
        volume = flat.unflatten(-1, volume.shape[-2:])
    if volume.shape[-2:] != (h, w):
        flat = F.interpolate(volume.flatten(2, 3), size=(u * v, h, w), mode="trilinear")
        volume = flat.unflatten(2, (u, v))
    return volume


class Project4d(nn.Module):
    """1×1×1×1 convolution of the channels and batch normalisation, strided in the window alone."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv3d(inputs, outputs, 1, stride=(stride, stride, 1), bias=False)
        self.norm = nn.BatchNorm3d(outputs)

    def forward(self, volume: Tensor) -> Tensor:
        return over_window(lambda flat: self.norm(self.conv(flat)), volume)


class SeparableConv4d(nn.Module):
    """k×k over the window, ReLU, then k×k over the pixels; no activation at the end.

    strides: (in the window, among the pixels). With `norm`, each half is a convolution without
    bias and a batch normalisation; without, a convolution with bias.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        *,
        kernel: int = 3,
        strides: tuple[int, int] = (1, 1),
        norm: bool = True,
    ) -> None:
        super().__init__()
        k, pad, (s, t) = kernel, kernel // 2, strides
        window = nn.Conv3d(inputs, outputs, (k, k, 1), (s, s, 1), (pad, pad, 0), bias=not norm)
        pixels = nn.Conv3d(outputs, outputs, (1, k, k), (1, t, t), (0, pad, pad), bias=not norm)
        self.window = nn.Sequential(window, nn.BatchNorm3d(outputs)) if norm else window
        self.pixels = nn.Sequential(pixels, nn.BatchNorm3d(outputs)) if norm else pixels

    def forward(self, volume: Tensor) -> Tensor:
        return over_pixels(self.pixels, F.relu(over_window(self.window, volume)))


class Block4d(nn.Module):
    """A residual block: relu(shortcut(x) + second(relu(first(x)))).

    The shortcut is the identity at stride 1; a projection where only the window is strided; and a
    separable convolution with k = 1, which has a ReLU inside, where the pixels are strided too.
    """

    def __init__(self, channels: int, strides: tuple[int, int] = (1, 1)) -> None:
        super().__init__()
        self.first = SeparableConv4d(channels, channels, strides=strides)
        self.second = SeparableConv4d(channels, channels)
        if strides == (1, 1):
            self.shortcut: nn.Module = nn.Identity()
        elif strides[1] == 1:
            self.shortcut = Project4d(channels, channels, strides[0])
        else:
            self.shortcut = SeparableConv4d(channels, channels, kernel=1, strides=strides)

    def forward(self, volume: Tensor) -> Tensor:
        return F.relu(self.shortcut(volume) + self.second(F.relu(self.first(volume))))


class VolumeFilter(nn.Module):
    """Project C channels to B and filter the volume on three scales, an hourglass with skips.

    volume: (b, C, u, v, h, w) → (b, B, u, v, h, w). The window halves twice (9 → 5 → 3); the
    pixels do so only with `full`.
    """

    def __init__(self, inputs: int, channels: int, *, full: bool) -> None:
        super().__init__()
        halve = (2, 2) if full else (2, 1)
        self.project = Project4d(inputs, channels)
        self.down1 = Block4d(channels, halve)
        self.down2 = Block4d(channels, halve)
        self.up3 = Block4d(channels)
        self.up2 = Block4d(channels)
        self.up1 = Block4d(channels)

    def forward(self, volume: Tensor) -> Tensor:
        return self.filter(over_window(self.project.conv, volume))

    def filter(self, projected: Tensor) -> Tensor:
        """The same for a volume whose channels `project.conv` has mixed: (b, B, u, v, h, w)."""
        full = F.relu(over_window(self.project.norm, projected))
        half = self.down1(full)
        quarter = self.up3(self.down2(half))
        half = self.up2(half + resize_volume(quarter, half.shape[2:]))
        return self.up1(full + resize_volume(half, full.shape[2:]))
