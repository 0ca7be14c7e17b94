"""RAFT's feature encoders: residual blocks for the large network, bottlenecks for the small one.

Modules bear the authors' names, so that their checkpoints are read without a map of layers.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

Norm = Callable[[int], nn.Module]
IN_CACHE = 2**18
"""How many numbers are summed at a time, so that they stay in the cache."""


def no_norm(channels: int) -> nn.Module:
    """The small network's context encoder does not normalise."""
    return nn.Identity()


class InstanceNorm(nn.InstanceNorm2d):
    """torch's own, except that it keeps channels last where that is faster.

    torch turns channels first, and the convolutions beside it have to turn them back: without
    gradients on a CPU, and where it is compiled for a GPU, for gradients too. Without gradients on
    a CPU it overwrites its input, as `ReLU(inplace=True)` does: new memory costs more than the norm.
    """

    def forward(self, input: Tensor) -> Tensor:
        if torch.compiler.is_compiling():
            return self.written_out(input) if input.is_cuda else super().forward(input)
        if input.is_cpu and len(input) == 1 and not torch.is_grad_enabled():
            return self.in_place(input)
        return super().forward(input)

    def written_out(self, x: Tensor) -> Tensor:
        """Each channel of each image less its mean, over its deviation; sums in float32."""
        exact = x.to(torch.promote_types(x.dtype, torch.float32))
        variance, mean = torch.var_mean(exact, (2, 3), correction=0, keepdim=True)
        return ((exact - mean) * torch.rsqrt(variance + self.eps)).to(x.dtype)

    def in_place(self, x: Tensor) -> Tensor:
        """The same for one image, (1, c, h, w), with sums over parts that stay in the cache."""
        channels = x.shape[1]
        exact = torch.promote_types(x.dtype, torch.float32)
        pixels = x[0].permute(1, 2, 0).reshape(-1, channels)
        mean = pixels.mean(0, dtype=exact)
        parts = [(part - mean).square_().sum(0) for part in pixels.split(IN_CACHE // channels)]
        variance = torch.stack(parts).sum(0) / len(pixels)
        factor = torch.rsqrt(variance + self.eps)[:, None, None]
        return torch.addcmul(-mean[:, None, None] * factor, x, factor, out=x)


def add(y: Tensor, x: Tensor) -> Tensor:
    """y + x; written over y if gradients do not need it."""
    return y + x if torch.is_grad_enabled() else y.add_(x)


class ResidualBlock(nn.Module):
    """Two 3×3 convolutions beside a shortcut: ReLU(x + y), y itself after a ReLU."""

    def __init__(self, inputs: int, outputs: int, norm: Norm, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.norm1, self.norm2 = norm(outputs), norm(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = shortcut(inputs, outputs, norm, stride)

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.norm1(self.conv1(x)))
        y = self.relu(self.norm2(self.conv2(y)))
        return self.relu(add(y, self.downsample(x)))


class BottleneckBlock(nn.Module):
    """1×1 to a quarter of the channels, 3×3, 1×1 back, beside a shortcut; ReLU after each."""

    def __init__(self, inputs: int, outputs: int, norm: Norm, stride: int) -> None:
        super().__init__()
        inner = outputs // 4
        self.conv1 = nn.Conv2d(inputs, inner, 1)
        self.conv2 = nn.Conv2d(inner, inner, 3, stride, padding=1)
        self.conv3 = nn.Conv2d(inner, outputs, 1)
        self.norm1, self.norm2, self.norm3 = norm(inner), norm(inner), norm(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = shortcut(inputs, outputs, norm, stride)

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.norm1(self.conv1(x)))
        y = self.relu(self.norm2(self.conv2(y)))
        y = self.relu(self.norm3(self.conv3(y)))
        return self.relu(add(y, self.downsample(x)))


def shortcut(inputs: int, outputs: int, norm: Norm, stride: int) -> nn.Module:
    """The identity, or a strided 1×1 convolution where the block changes resolution."""
    if stride == 1:
        return nn.Identity()
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride), norm(outputs))


class Encoder(nn.Module):
    """An image in [−1, 1] to features at an eighth of its size, ending in a bare 1×1 convolution.

    image: (b, 3, h, w) → (b, outputs, h/8, w/8)
    widths: channels of the stem and first stage, of the second and of the third stage
    """

    def __init__(
        self,
        block: type[ResidualBlock] | type[BottleneckBlock],
        widths: tuple[int, int, int],
        outputs: int,
        norm: Norm,
    ) -> None:
        super().__init__()
        stem, middle, last = widths
        self.conv1 = nn.Conv2d(3, stem, 7, stride=2, padding=3)
        self.norm1 = norm(stem)
        self.relu = nn.ReLU(inplace=True)
        self.layer1 = nn.Sequential(block(stem, stem, norm, 1), block(stem, stem, norm, 1))
        self.layer2 = nn.Sequential(block(stem, middle, norm, 2), block(middle, middle, norm, 1))
        self.layer3 = nn.Sequential(block(middle, last, norm, 2), block(last, last, norm, 1))
        self.conv2 = nn.Conv2d(last, outputs, 1)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, image: Tensor) -> Tensor:
        x = self.relu(self.norm1(self.conv1(image)))
        return self.conv2(self.layer3(self.layer2(self.layer1(x))))
