"""A convolution with TensorFlow's SAME padding, which is lopsided where the stride is 2."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

LEAK = 0.2


def same_padding(size: int, kernel: int, stride: int = 1, dilation: int = 1) -> tuple[int, int]:
    """How many zeros SAME padding puts before and after `size` numbers.

        n     = ⌈size / stride⌉                                    the length of the result
        total = max((n − 1)·stride + (kernel − 1)·dilation + 1 − size, 0)
        before, after = ⌊total / 2⌋, total − ⌊total / 2⌋            the odd zero comes last

    Facts: kernel 3 at stride 1 gives (dilation, dilation); at stride 2 an even size gives (0, 1)
    and an odd size (1, 1), whereas `padding=1` in torch means (1, 1) for both and so shifts every
    even-sized map by half an output pixel.
    """
    n = (size + stride - 1) // stride
    total = max((n - 1) * stride + (kernel - 1) * dilation + 1 - size, 0)
    return total // 2, total - total // 2


class SameConv2d(nn.Conv2d):
    """A 3×3 convolution with bias under SAME padding, as the original's layers are.

    x: (b, i, h, w) → (b, o, ⌈h/stride⌉, ⌈w/stride⌉)
    Starts with Xavier-uniform weights and zero biases, the default of the original's library.
    """

    def __init__(self, inputs: int, outputs: int, *, stride: int = 1, dilation: int = 1) -> None:
        # At stride 1 SAME is symmetric, and torch's own padding saves a copy of the input.
        padding = dilation if stride == 1 else 0
        super().__init__(inputs, outputs, 3, stride=stride, padding=padding, dilation=dilation)

    def reset_parameters(self) -> None:
        nn.init.xavier_uniform_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        if self.stride != (1, 1):
            rows, columns = (
                same_padding(size, 3, stride, dilation)
                for size, stride, dilation in zip(
                    input.shape[2:], self.stride, self.dilation, strict=True
                )
            )
            input = F.pad(input, (*columns, *rows))
        return super().forward(input)


def leaky(x: Tensor) -> Tensor:
    """max(x, 0.2·x), the activation behind every convolution but the last of a stack."""
    return F.leaky_relu(x, LEAK)
