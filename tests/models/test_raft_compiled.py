"""What RAFT computes in compiled training steps on a GPU: the same as everywhere else."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lcv.cost_volume.conventions import float32_products
from lcv.models.raft.encoder import InstanceNorm, add
from lcv.models.raft.update import convolve_in_eights
from lcv.models.raft.upsample import bilinear_upsample, upsample_by_products


def forwards_and_backwards(function, *inputs):
    leaves = [each.clone().requires_grad_() for each in inputs]
    out = function(*leaves)
    slope = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view(out.shape)
    return [out.detach(), *torch.autograd.grad(out, leaves, slope)]


def assert_same(one, other, *inputs):
    for a, b in zip(
        forwards_and_backwards(one, *inputs), forwards_and_backwards(other, *inputs), strict=True
    ):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("inputs", "outputs"), [(5, 2), (8, 6), (6, 16), (8, 8)])
def test_a_convolution_in_eights_is_the_same_convolution(inputs, outputs):
    shapes = (2, inputs, 5, 7), (outputs, inputs, 3, 1), (outputs,)
    given = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
    assert_same(
        lambda x, weight, bias: convolve_in_eights(x, weight, bias, (1, 0)),
        lambda x, weight, bias: F.conv2d(x, weight, bias, padding=(1, 0)),
        *given,
    )


def test_an_instance_norm_written_out_is_torchs():
    x = 5 + 3 * torch.randn(2, 3, 6, 9, dtype=torch.float64)
    assert_same(InstanceNorm(3).written_out, nn.InstanceNorm2d(3), x)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("images", [1, 2])
def test_an_instance_norm_is_torchs_and_keeps_one_image_channels_last(images, grad):
    """As exact as torch's own: sums of many pixels are where a norm in float32 goes wrong."""
    x = (5 + torch.randn(images, 8, 256, 512)).relu()
    last = x.contiguous(memory_format=torch.channels_last).requires_grad_(grad)
    with torch.set_grad_enabled(grad):
        found = InstanceNorm(8)(last)
    keeps = images == 1 and not grad
    assert (found is last) == keeps  # overwritten
    assert torch.equal(last, x) != keeps
    assert found.is_contiguous(memory_format=torch.channels_last) == keeps
    assert found.requires_grad == grad
    torch.testing.assert_close(found.double(), F.instance_norm(x.double()), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("way", [InstanceNorm.written_out, InstanceNorm.in_place])
def test_an_instance_norm_of_half_precision_sums_in_float32(way):
    x = (100 + torch.randn(1, 2, 64, 64)).to(torch.bfloat16)
    wanted = F.instance_norm(x.float())
    found = way(InstanceNorm(2), x)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), wanted, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("grad", [False, True])
def test_a_sum_is_written_over_its_first_part_without_gradients_alone(grad):
    y, x = torch.randn(2, 3), torch.randn(2, 3)
    wanted = y + x
    with torch.set_grad_enabled(grad):
        found = add(y, x)
    assert torch.equal(found, wanted)
    assert (found is y) != grad


@pytest.mark.parametrize("size", [(1, 1), (2, 5), (7, 3)])
def test_upsampling_by_products_is_bilinear(size):
    flow = 20 * torch.randn(2, 2, *size, dtype=torch.float64)
    assert_same(upsample_by_products, bilinear_upsample, flow)


def failing():
    with float32_products("tf32"):
        assert torch.backends.cuda.matmul.fp32_precision == "tf32"
        raise KeyError


def test_the_precision_of_products_is_put_back_after_an_error():
    had = torch.backends.cuda.matmul.fp32_precision
    with pytest.raises(KeyError):
        failing()
    assert torch.backends.cuda.matmul.fp32_precision == had
