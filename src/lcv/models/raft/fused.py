"""A convolution and what follows it, as one step of RAFT's prepared update block.

Tensors are (b, h, w, c), channels together. Each step writes into buffers that it is given, some of
them channels of a larger one, so that nothing is concatenated or copied afterwards. In torch here;
`triton_fused.py` does each in one kernel.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

MULTIPLE = 32
"""Channels of a buffer, so that a kernel takes them in whole blocks; what is added is zero."""


class Layer(NamedTuple):
    """A convolution of stride 1 that keeps the size.

    weight: (outputs, inputs, kh, kw), inputs with their zeros; packed: the same as (kh·kw·inputs,
    outputs); bias: (outputs,), float32
    """

    weight: Tensor
    packed: Tensor
    bias: Tensor
    planes: bool = False

    @property
    def outputs(self) -> int:
        return self.weight.shape[0]

    @property
    def kernel(self) -> tuple[int, int]:
        return self.weight.shape[2], self.weight.shape[3]

    def sums(self, x: Tensor) -> Tensor:
        """The convolution without its bias, in float32: (b, h, w, c) → (b, h, w, outputs)."""
        return self.convolved(x).float()

    def convolved(self, x: Tensor) -> Tensor:
        """The same in the layer's dtype, channels together."""
        kh, kw = self.kernel
        x = x.to(self.weight.dtype) if self.planes else x.permute(0, 3, 1, 2)
        return F.conv2d(x, self.weight, padding=(kh // 2, kw // 2)).permute(0, 2, 3, 1).contiguous()


def padded(channels: int) -> int:
    """The channels of a buffer that holds so many."""
    return -(-channels // MULTIPLE) * MULTIPLE


def make_layer(weight: Tensor, bias: Tensor, dtype: torch.dtype, *, planes: bool = False) -> Layer:
    """weight: (outputs, inputs, kh, kw); planes: the input is (b, c, h, w), of few channels."""
    more = 0 if planes else padded(weight.shape[1]) - weight.shape[1]
    weight = F.pad(weight, (0, 0, 0, 0, 0, more)).to(dtype)
    packed = weight.permute(2, 3, 1, 0).flatten(0, 2)
    packed = F.pad(packed, (0, -packed.shape[1] % 16)).contiguous()
    return Layer(weight.contiguous(memory_format=torch.channels_last), packed, bias.float(), planes)


def convolve(
    x: Tensor, layer: Layer, out: Tensor, *, relu: bool, also: Tensor | None = None, kernels: bool
) -> None:
    """out, and also `also`, = relu(conv(x) + bias)."""
    if kernels:
        from lcv.models.raft import triton_fused as fast

        after = fast.RELU if relu else fast.LINEAR
        _launch(after, x, layer, bias=layer.bias, out=out, also=also)
        return
    y = layer.sums(x) + layer.bias
    y = F.relu(y) if relu else y
    out.copy_(y)
    if also is not None:
        also.copy_(y)


def gates(
    x: Tensor,
    layer: Layer,
    context: Tensor,
    hidden: Tensor,
    z: Tensor,
    out: Tensor,
    *,
    kernels: bool,
) -> None:
    """z and r from one convolution: z = σ(…), out = σ(…)·h."""
    if kernels:
        from lcv.models.raft import triton_fused as fast

        _launch(fast.GATES, x, layer, context=context, hidden=hidden, z=z, out=out)
        return
    update, reset = torch.sigmoid(layer.sums(x) + context.float()).chunk(2, dim=3)
    z.copy_(update)
    out.copy_(reset * hidden.float())


def blend(
    x: Tensor, layer: Layer, context: Tensor, z: Tensor, hidden: Tensor, *, kernels: bool
) -> None:
    """h ← (1 − z) h + z tanh(conv(x) + context), in place."""
    if kernels:
        from lcv.models.raft import triton_fused as fast

        _launch(fast.BLEND, x, layer, context=context, z=z, hidden=hidden)
        return
    new = torch.tanh(layer.sums(x) + context.float())
    hidden.copy_(torch.lerp(hidden.float(), new, z.float()))


def step(
    x: Tensor,
    layer: Layer,
    flow: Tensor,
    coords: Tensor,
    out: Tensor,
    also: Tensor,
    *,
    kernels: bool,
) -> None:
    """flow += conv(x) + bias, in float32, in place; coords, and both copies, follow.

    flow, coords: (b, 2, h, w) float32, coords = flow + the pixel's own place
    """
    if kernels:
        from lcv.models.raft import triton_fused as fast

        _launch(
            *(fast.STEP, x, layer),
            bias=layer.bias,
            hidden=flow,
            coords=coords,
            out=out,
            also=also,
        )
        return
    change = (layer.sums(x) + layer.bias).permute(0, 3, 1, 2)
    flow += change
    coords += change
    out.copy_(flow.permute(0, 2, 3, 1))
    also.copy_(flow.permute(0, 2, 3, 1))


def _launch(after: int, x: Tensor, layer: Layer, **given: Tensor | None) -> None:
    from lcv.models.raft import triton_fused as fast

    kernel, outputs = layer.kernel, layer.outputs
    pixels = x.shape[0] * x.shape[1] * x.shape[2]
    if not layer.planes and fast.by_library(pixels, x.shape[3], outputs, kernel):
        sums = layer.convolved(x)
        fast.launch(after, sums, layer.packed, (1, 1), outputs, given, summed=True)
        return
    fast.launch(after, x, layer.packed, kernel, outputs, given, planes=layer.planes)
