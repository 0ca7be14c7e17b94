"""Separable 4D convolutions against loops over all six axes, and the shapes of the hourglass."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from lcv.models.vcn.conv4d import (
    Block4d,
    Project4d,
    SeparableConv4d,
    VolumeFilter,
    resize_volume,
)


def brute_force_conv4d(x: Tensor, weight: Tensor, bias: Tensor, strides: list[int]) -> Tensor:
    """Cross-correlation over (u, v, h, w), zeros outside, padding k // 2; one product at a time.

    x: (b, c, u, v, h, w), weight: (o, c, ku, kv, kh, kw)
    """
    kernel, size = weight.shape[2:], x.shape[2:]
    outputs = [math.ceil(n / s) for n, s in zip(size, strides, strict=True)]
    out = torch.zeros(x.shape[0], weight.shape[0], *outputs, dtype=x.dtype)
    for place in itertools.product(*map(range, outputs)):
        total = bias.expand(x.shape[0], -1).clone()
        for tap in itertools.product(*map(range, kernel)):
            at = [
                p * s + t - k // 2 for p, s, t, k in zip(place, strides, tap, kernel, strict=True)
            ]
            if all(0 <= a < n for a, n in zip(at, size, strict=True)):
                total = total + x[(slice(None), slice(None), *at)] @ weight[(..., *tap)].T
        out[(slice(None), slice(None), *place)] = total
    return out


@pytest.mark.parametrize("strides", [(1, 1), (2, 1), (2, 2)])
def test_separable_convolution_is_two_brute_force_convolutions(strides):
    torch.manual_seed(0)
    layer = SeparableConv4d(2, 3, strides=strides, norm=False).double()
    x = torch.randn(2, 2, 5, 3, 4, 6, dtype=torch.float64)
    s, t = strides
    # The kernels (k, k, 1) on (u, v, h·w) and (1, k, k) on (u·v, h, w), unfolded to four axes.
    over_window = layer.window.weight[..., None]
    over_pixels = layer.pixels.weight[:, :, None]
    truth = brute_force_conv4d(x, over_window, layer.window.bias, [s, s, 1, 1]).relu()
    truth = brute_force_conv4d(truth, over_pixels, layer.pixels.bias, [1, 1, t, t])
    torch.testing.assert_close(layer(x), truth)


def test_projection_mixes_channels_and_strides_the_window_alone():
    torch.manual_seed(0)
    layer = Project4d(4, 3, stride=2).double().eval()
    x = torch.randn(2, 4, 9, 5, 2, 3, dtype=torch.float64)
    mixed = torch.einsum("oc,bcuvhw->bouvhw", layer.conv.weight[..., 0, 0, 0], x[:, :, ::2, ::2])
    torch.testing.assert_close(layer(x), mixed / math.sqrt(1 + layer.norm.eps))


def test_resizing_treats_window_and_pixels_as_two_separate_images():
    """Of a product a(u, v) · b(h, w), the factors may be resized one by one."""
    torch.manual_seed(0)
    a = torch.randn(1, 1, 5, 3, dtype=torch.float64)
    b = torch.randn(1, 1, 4, 6, dtype=torch.float64)
    volume = torch.einsum("nmuv,nmhw->nmuvhw", a, b)
    a = F.interpolate(a, (9, 5), mode="bilinear", align_corners=False)
    b = F.interpolate(b, (7, 12), mode="bilinear", align_corners=False)
    expected = torch.einsum("nmuv,nmhw->nmuvhw", a, b)
    torch.testing.assert_close(resize_volume(volume, (9, 5, 7, 12)), expected)


@pytest.mark.parametrize(
    ("strides", "smaller"),
    [((1, 1), (9, 5, 3, 6)), ((2, 1), (5, 3, 3, 6)), ((2, 2), (5, 3, 2, 3))],
)
def test_block_adds_the_shortcut_that_its_strides_ask_for(strides, smaller):
    torch.manual_seed(0)
    block = Block4d(2, strides).double().eval()
    x = torch.randn(1, 2, 9, 5, 3, 6, dtype=torch.float64)
    y = block(x)
    assert y.shape[2:] == smaller
    for half in (block.second.window, block.second.pixels):
        half[0].weight.data.zero_()
    torch.testing.assert_close(block(x), F.relu(block.shortcut(x)))


@pytest.mark.parametrize(("window", "full"), [((9, 9), True), ((17, 9), False), ((15, 11), False)])
def test_filter_keeps_the_volume_size(window, full):
    filtered = VolumeFilter(4, 2, full=full)(torch.randn(1, 4, *window, 3, 5))
    assert filtered.shape == (1, 2, *window, 3, 5)
    assert filtered.isfinite().all()
