"""RAFT's encoders prepared for inference: one layout, one dtype, norms folded or fused."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lcv.models.raft.encoder import Encoder


class Unit(NamedTuple):
    """A convolution with its norm: batch norm is part of the weights, instance norm a flag."""

    weight: Tensor
    bias: Tensor | None
    stride: int
    padding: int
    norm: bool


class FastEncoder:
    """What an `Encoder` computes up to its last convolution, (b, c, h, w) channels-last."""

    def __init__(self, encoder: Encoder, dtype: torch.dtype, kernels: bool) -> None:
        self.kernels = kernels
        self.stem = _unit(encoder.conv1, encoder.norm1, dtype)
        self.blocks: list[tuple[list[Unit], Unit | None]] = []
        for block in (*encoder.layer1, *encoder.layer2, *encoder.layer3):
            names = [name for name in ("1", "2", "3") if hasattr(block, f"conv{name}")]
            units = [
                _unit(getattr(block, f"conv{name}"), getattr(block, f"norm{name}"), dtype)
                for name in names
            ]
            short = cast(Any, block).downsample
            beside = None if isinstance(short, nn.Identity) else _unit(short[0], short[1], dtype)
            self.blocks.append((units, beside))

    def __call__(self, image: Tensor) -> Tensor:
        x = self._run(self.stem, image)
        for units, beside in self.blocks:
            y = x
            for unit in units[:-1]:
                y = self._run(unit, y)
            rest = x if beside is None else self._run(beside, x, relu=False)
            x = self._run(units[-1], y, rest=rest)
        return x

    def _run(
        self, unit: Unit, x: Tensor, *, relu: bool = True, rest: Tensor | None = None
    ) -> Tensor:
        """relu(rest + relu(norm(conv(x)))), each part if asked for."""
        if self.kernels:
            from lcv.models.raft.triton_norm import normalise

            # cuDNN's fused kernels want channels in eights; the first convolution has three.
            if relu and not unit.norm and unit.weight.shape[1] % 8 == 0:
                sides = (unit.padding,) * 2
                y = torch.cudnn_convolution_relu(
                    x, unit.weight, unit.bias, (unit.stride,) * 2, sides, (1, 1), 1
                )
                return y if rest is None else normalise(y, norm=False, relu=False, rest=rest)
            y = F.conv2d(x, unit.weight, unit.bias, unit.stride, unit.padding)
            if not unit.norm and rest is None:
                return F.relu_(y) if relu else y
            return normalise(y, norm=unit.norm, relu=relu, rest=rest)
        y = F.conv2d(x, unit.weight, unit.bias, unit.stride, unit.padding)
        y = F.instance_norm(y) if unit.norm else y
        y = F.relu(y) if relu else y
        return y if rest is None else F.relu(rest + y)


def _unit(conv: nn.Conv2d, norm: nn.Module, dtype: torch.dtype) -> Unit:
    weight, bias = conv.weight.detach().float(), cast(Tensor, conv.bias).detach().float()
    if isinstance(norm, nn.BatchNorm2d):
        mean, variance = cast(Tensor, norm.running_mean), cast(Tensor, norm.running_var)
        scale = norm.weight.detach() * (variance + norm.eps).rsqrt()
        weight = weight * scale[:, None, None, None]
        bias = (bias - mean) * scale + norm.bias.detach()
    instance = isinstance(norm, nn.InstanceNorm2d)
    return Unit(
        weight.detach().to(dtype).contiguous(memory_format=torch.channels_last),
        # What an instance norm would take away again is not added.
        None if instance else bias.detach().to(dtype),
        conv.stride[0],
        cast(int, conv.padding[0]),
        instance,
    )
