"""The feature pyramid of VCN: one image in, maps at 1/64 to 1/4 of its size out."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, cat, nn

from lcv.cost_volume.resize import resize

SLOPE = 0.1  # of every leaky ReLU in VCN, including the one on the cost volume

CHANNELS = {6: 128, 5: 128, 4: 128, 3: 64, 2: 64}
"""Channels of the map at level k, that is at 1/2^k of the image."""


def conv_unit(
    inputs: int,
    outputs: int,
    *,
    kernel: int = 3,
    stride: int = 1,
    dilation: int = 1,
    bias: bool = False,
    activate: bool = True,
) -> nn.Sequential:
    """Convolution (index 0), batch normalisation (index 1), leaky ReLU; size kept at stride 1."""
    padding = dilation * (kernel // 2)
    layers: list[nn.Module] = [
        nn.Conv2d(inputs, outputs, kernel, stride, padding, dilation, bias=bias),
        nn.BatchNorm2d(outputs),
    ]
    if activate:
        layers.append(nn.LeakyReLU(SLOPE, inplace=True))
    return nn.Sequential(*layers)


class HalvingBlock(nn.Module):
    """A residual block at stride 2: y = leaky(second(first(x)) + shortcut(x))."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.first = conv_unit(inputs, outputs, stride=2)
        self.second = conv_unit(outputs, outputs, activate=False)
        self.shortcut = conv_unit(inputs, outputs, kernel=1, stride=2, activate=False)

    def forward(self, x: Tensor) -> Tensor:
        return F.leaky_relu(self.second(self.first(x)) + self.shortcut(x), SLOPE)


class PyramidPooling(nn.Module):
    """Context from the whole map: leaky((x + Σᵢ up(pathᵢ(poolᵢ(x))) / n) / 2).

    Pool i averages cells of (h // p, w // p) pixels, where p runs evenly, rounded down, from
    min(h, w) // 2 to 1: finest cells first, the whole map last. Rows and columns that fill no
    cell are left out. x: (b, c, h, w) → (b, c, h, w), h and w at least 2.
    """

    def __init__(self, channels: int, pools: int = 3) -> None:
        super().__init__()
        self.paths = nn.ModuleList(conv_unit(channels, channels, kernel=1) for _ in range(pools))

    def forward(self, x: Tensor) -> Tensor:
        h, w = x.shape[-2:]
        most, gaps = min(h, w) // 2, len(self.paths) - 1
        cuts = [1 + (most - 1) * i // gaps for i in reversed(range(len(self.paths)))]
        total = x
        for path, cut in zip(self.paths, cuts, strict=True):
            pooled = path(F.avg_pool2d(x, (h // cut, w // cut)))
            total = total + resize(pooled, (h, w), align_corners=False) / len(self.paths)
        return F.leaky_relu(total / 2, SLOPE)


class Pyramid(nn.Module):
    """Down to 1/64 by residual blocks, pooled there, and up again beside the maps passed.

    image: (b, 3, h, w), normalised, h and w multiples of 64 and at least 128
    → {6: (b, 128, h/64, w/64), 5: …, finest: …} with the channels of `CHANNELS`, coarse first.
    """

    def __init__(self, finest: int = 2) -> None:
        super().__init__()
        self.stem = nn.Sequential(conv_unit(3, 16, stride=2), conv_unit(16, 16), conv_unit(16, 32))
        passed = {2: 32, 3: 64, 4: 128, 5: 128, 6: 128}
        self.down = nn.ModuleDict(
            {str(k): HalvingBlock(passed[k - 1], passed[k]) for k in (3, 4, 5, 6)}
        )
        self.pooling = PyramidPooling(CHANNELS[6])
        self.up = nn.ModuleDict()
        self.join = nn.ModuleDict()
        for k in range(5, finest - 1, -1):
            lifted = CHANNELS[k + 1] // 2
            self.up[str(k)] = conv_unit(CHANNELS[k + 1], lifted)
            self.join[str(k)] = conv_unit(passed[k] + lifted, CHANNELS[k])

    def forward(self, image: Tensor) -> dict[int, Tensor]:
        passed = {2: F.max_pool2d(self.stem(image), 3, stride=2, padding=1)}
        for name, block in self.down.items():
            passed[int(name)] = block(passed[int(name) - 1])
        maps = {6: self.pooling(passed[6])}
        for name, join in self.join.items():
            k = int(name)
            h, w = passed[k].shape[-2:]
            lifted = self.up[name](resize(maps[k + 1], (h, w), align_corners=False))
            maps[k] = join(cat([passed[k], lifted], dim=1))
        return maps
