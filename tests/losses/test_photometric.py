"""The photometric loss: against the original's, by hand, and its gradient."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from lcv.cost_volume.warp import warp_clamped
from lcv.errors import ShapeError
from lcv.losses.occlusion import occluded_by_consistency
from lcv.losses.photometric import photometric_loss
from testing.shared import shared


def golden() -> tuple[dict[str, np.ndarray], list[Tensor], list[Tensor]]:
    arrays = dict(np.load(shared("golden", "ddflow__losses.npz")))
    images = [
        torch.from_numpy(arrays[name]).permute(2, 0, 1)[None].float()
        for name in ("image1", "image2")
    ]
    flows = [torch.from_numpy(arrays[name]).permute(0, 3, 1, 2) for name in ("flow_fw", "flow_bw")]
    return arrays, images, flows


def test_equals_the_original() -> None:
    arrays, images, flows = golden()
    visible = [~occluded for occluded in occluded_by_consistency(*flows)]
    everywhere = photometric_loss(*images, *flows)
    assert everywhere.item() == pytest.approx(float(arrays["abs_robust_no_occlusion"]), rel=1e-4)
    masked = photometric_loss(*images, *flows, *visible)
    assert masked.item() == pytest.approx(float(arrays["abs_robust_occlusion"]), rel=1e-4)

    warped = warp_clamped(images[1] / 255, flows[0])[:, :, ::4, ::4]
    theirs = torch.from_numpy(arrays["img2_warped"].astype(np.float32)).permute(0, 3, 1, 2)
    half_ulp = torch.finfo(torch.float16).eps / 2
    torch.testing.assert_close(warped, theirs, rtol=half_ulp, atol=1e-6)


def test_by_hand() -> None:
    """Two grey images of 2×3 under zero flow: the warp empties all but two pixels of each."""
    image1 = torch.full((1, 3, 2, 3), 51.0, dtype=torch.float64)  # 0.2
    image2 = torch.full((1, 3, 2, 3), 102.0, dtype=torch.float64)  # 0.4
    still = torch.zeros(1, 2, 2, 3, dtype=torch.float64)
    forward = 3 * (2 * 0.21**0.4 + 4 * 0.21**0.4) / (2 * 6 + 1e-6)  # |0.2 − 0.4| and |0.2 − 0|
    backward = 3 * (2 * 0.21**0.4 + 4 * 0.41**0.4) / (2 * 6 + 1e-6)
    loss = photometric_loss(image1, image2, still, still)
    assert loss.item() == pytest.approx(forward + backward, rel=1e-12)

    inside = torch.zeros(1, 1, 2, 3, dtype=torch.bool)
    inside[:, :, 0, :2] = True
    loss = photometric_loss(image1, image2, still, still, inside, inside)
    assert loss.item() == pytest.approx(2 * 3 * 2 * 0.21**0.4 / (4 + 1e-6), rel=1e-12)


def test_the_true_flow_reaches_the_minimum_where_it_is_in_view() -> None:
    generator = torch.Generator().manual_seed(0)
    image1 = 255 * torch.rand(1, 3, 8, 11, generator=generator)
    image2 = image1.roll((1, 2), dims=(2, 3))  # one down, two to the right
    flow = torch.tensor([2.0, 1.0])[None, :, None, None].expand(1, 2, 8, 11)
    seen1, seen2 = torch.zeros(2, 1, 1, 8, 11)
    seen1[:, :, :6, :8] = 1
    seen2[:, :, 1:7, 2:10] = 1
    minimum = 2 * 3 * 0.01**0.4 / 2
    loss = photometric_loss(image1, image2, flow, -flow, seen1, seen2)
    assert loss.item() == pytest.approx(minimum, rel=1e-5)
    assert photometric_loss(image1, image2, -flow, flow, seen1, seen2) > 2 * minimum


def test_gradients() -> None:
    generator = torch.Generator().manual_seed(0)
    images = 255 * torch.rand(2, 1, 3, 3, 4, generator=generator, dtype=torch.float64)
    flows = torch.rand(2, 1, 2, 3, 4, generator=generator, dtype=torch.float64) - 0.5
    inputs = [*images.unbind(), *flows.unbind()]
    for tensor in inputs:
        tensor.requires_grad_()
    assert torch.autograd.gradcheck(photometric_loss, inputs)


def test_empty_masks_give_zero() -> None:
    images, flow = torch.rand(2, 1, 3, 4, 5), torch.zeros(1, 2, 4, 5)
    nowhere = torch.zeros(1, 1, 4, 5, dtype=torch.bool)
    assert photometric_loss(*images, flow, flow, nowhere, nowhere) == 0


def test_flows_have_the_size_of_the_images() -> None:
    images, flow = torch.rand(2, 1, 3, 4, 5), torch.zeros(1, 2, 2, 5)
    with pytest.raises(ShapeError, match="photometric_loss: flow_fw has h=2 but image1 has h=4"):
        photometric_loss(*images, flow, flow)
