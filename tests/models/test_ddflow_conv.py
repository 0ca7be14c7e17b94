"""SAME padding against the indices it stands for, and the start of the weights."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from lcv.models.ddflow.conv import SameConv2d, leaky, same_padding


def fewest_zeros(size: int, kernel: int, stride: int, dilation: int) -> tuple[int, int]:
    """SAME as TensorFlow words it: as few zeros as give ⌈size/stride⌉ windows, the odd one last."""
    reach = (kernel - 1) * dilation
    total = 0
    while len(range(0, size + total - reach, stride)) < math.ceil(size / stride):
        total += 1
    return total // 2, total - total // 2


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2, 16])
def test_padding_is_the_fewest_zeros_that_keep_the_size(stride: int, dilation: int) -> None:
    for kernel in (1, 2, 3, 5):
        for size in range(1, 20):
            wanted = fewest_zeros(size, kernel, stride, dilation)
            assert same_padding(size, kernel, stride, dilation) == wanted, (size, kernel)


def brute_force(x: Tensor, conv: SameConv2d) -> Tensor:
    """Σ over taps of weight · x at row·stride − before + tap·dilation, index by index."""
    h, w = x.shape[2:]
    (stride, _), (dilation, _) = conv.stride, conv.dilation
    top, left = (fewest_zeros(size, 3, stride, dilation)[0] for size in (h, w))
    out = conv.bias[:, None, None].repeat(1, -(-h // stride), -(-w // stride))
    for row in range(out.shape[1]):
        for column in range(out.shape[2]):
            for tap in range(9):
                y = row * stride - top + tap // 3 * dilation
                z = column * stride - left + tap % 3 * dilation
                if 0 <= y < h and 0 <= z < w:
                    out[:, row, column] += conv.weight[:, :, tap // 3, tap % 3] @ x[0, :, y, z]
    return out[None]


@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2), (1, 4)])
@pytest.mark.parametrize("size", [(4, 7), (7, 6), (5, 5), (6, 8), (1, 2)])
def test_convolution_equals_brute_force(size: tuple[int, int], stride: int, dilation: int) -> None:
    conv = SameConv2d(2, 3, stride=stride, dilation=dilation).double()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for p in conv.parameters():  # small integers, so that sums are exact in any order
            p.copy_(torch.randint(-9, 10, p.shape, generator=generator))
        x = torch.randint(-9, 10, (1, 2, *size), generator=generator).double()
        assert torch.equal(conv(x), brute_force(x, conv))


def test_at_stride_two_the_first_tap_of_an_even_map_is_its_first_pixel() -> None:
    conv = SameConv2d(1, 1, stride=2)
    with torch.no_grad():
        conv.weight.zero_()
        conv.weight[0, 0, 0, 0] = 1
        even = torch.arange(1.0, 5)[None, None, None].repeat(1, 1, 4, 1)
        assert conv(even)[0, 0].tolist() == [[1, 3], [1, 3]]
        odd = torch.arange(1.0, 6)[None, None, None].repeat(1, 1, 5, 1)
        assert conv(odd)[0, 0].tolist() == [[0, 0, 0], [0, 2, 4], [0, 2, 4]]


def test_weights_start_xavier_uniform_and_biases_at_zero() -> None:
    conv = SameConv2d(64, 128)
    bound = math.sqrt(6 / (9 * (64 + 128)))
    assert conv.weight.abs().max() <= bound
    assert conv.weight.abs().max() > 0.99 * bound
    assert conv.weight.var().item() == pytest.approx(bound**2 / 3, rel=0.05)
    assert not conv.bias.any()


def test_the_leak_is_a_fifth() -> None:
    assert leaky(torch.tensor([-5.0, 0.0, 3.0])).tolist() == [-1, 0, 3]
