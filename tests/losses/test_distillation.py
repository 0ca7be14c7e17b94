"""Distillation: which pixels count, what they cost, and who learns."""

from __future__ import annotations

import pytest
import torch

from lcv.errors import ShapeError
from lcv.losses.distillation import distillation_loss, occluded_by_crop


def test_mask_is_the_clipped_difference() -> None:
    patch = torch.tensor([False, False, True, True]).view(1, 1, 1, 4)
    full = torch.tensor([False, True, False, True]).view(1, 1, 1, 4)
    wanted = (patch.float() - full.float()).clip(0, 1)
    assert torch.equal(occluded_by_crop(patch, full).float(), wanted)
    assert wanted.flatten().tolist() == [0, 0, 1, 0]


def test_by_hand() -> None:
    teacher_fw = torch.zeros(1, 2, 1, 3, dtype=torch.float64)
    student_fw = teacher_fw.clone()
    student_fw[0, :, 0, 1] = torch.tensor([0.99, -31.99], dtype=torch.float64)
    student_fw[0, :, 0, 2] = 5.0  # not in the mask
    mask_fw = torch.tensor([True, True, False]).view(1, 1, 1, 3)
    mask_bw = torch.tensor([False, False, True]).view(1, 1, 1, 3)
    zero = torch.zeros_like(teacher_fw)
    forward = (2 * 0.01**0.4 + 1 + 32**0.4) / (2 * 2 + 1e-6)
    backward = 2 * 0.01**0.4 / (2 * 1 + 1e-6)
    loss = distillation_loss(teacher_fw, zero, student_fw, zero, mask_fw, mask_bw)
    assert loss.item() == pytest.approx((forward + backward) / 2, rel=1e-12)


def test_only_the_student_learns_and_only_in_the_mask() -> None:
    generator = torch.Generator().manual_seed(0)
    teacher = torch.randn(2, 1, 2, 3, 4, generator=generator, dtype=torch.float64)
    student = torch.randn(2, 1, 2, 3, 4, generator=generator, dtype=torch.float64)
    teacher_fw, teacher_bw, *students = [*teacher.unbind(), *student.unbind()]
    for tensor in (teacher_fw, teacher_bw, *students):
        tensor.requires_grad_()
    masks = torch.rand(2, 1, 1, 3, 4, generator=generator) < 0.5
    distillation_loss(teacher_fw, teacher_bw, *students, *masks).backward()
    assert teacher_fw.grad is None
    assert teacher_bw.grad is None
    for flow, mask in zip(students, masks, strict=True):
        assert torch.equal(flow.grad != 0, mask.expand_as(flow))
    assert torch.autograd.gradcheck(
        lambda fw, bw: distillation_loss(teacher_fw, teacher_bw, fw, bw, *masks), students
    )


def test_empty_masks_give_zero() -> None:
    flows = torch.randn(4, 1, 2, 3, 4)
    nowhere = torch.zeros(1, 1, 3, 4, dtype=torch.bool)
    assert distillation_loss(*flows, nowhere, nowhere) == 0


def test_a_teacher_that_was_not_cropped_is_refused() -> None:
    flow, patch = torch.zeros(1, 2, 8, 9), torch.zeros(1, 2, 4, 5)
    mask = torch.ones(1, 1, 4, 5)
    with pytest.raises(ShapeError, match=r"student_fw has h=4 .* Crop the teacher's flows"):
        distillation_loss(flow, flow, patch, patch, mask, mask)
    with pytest.raises(ShapeError, match="Crop the teacher's mask to the student's patch first"):
        occluded_by_crop(mask, torch.ones(1, 1, 8, 9))
