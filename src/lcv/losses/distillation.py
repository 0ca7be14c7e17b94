"""Distillation on crops: what a crop hides, the teacher saw in the whole frame."""

from __future__ import annotations

from torch import Tensor

from lcv.cost_volume.expect import expect
from lcv.losses.robust import ReduceCount, abs_robust


def occluded_by_crop(occluded_patch: Tensor, occluded_full: Tensor) -> Tensor:
    """The pixels that a crop hides though the whole frame shows them.

        M = clip(occluded_patch − occluded_full, 0, 1)

    occluded_patch: (b, 1, h, w) bool, from the student's flows on the crop; occluded_full: the
    same pixels of the teacher's mask on the whole frame, cropped → (b, 1, h, w) bool

    Facts: a pixel hidden in both, or in the frame alone, does not count.
    """
    expect(
        "occluded_by_crop",
        occluded_patch,
        "occluded_patch: b 1 h w",
        occluded_full,
        "occluded_full: b 1 h w",
        hint="Crop the teacher's mask to the student's patch first.",
    )
    return occluded_patch.bool() & ~occluded_full.bool()


def distillation_loss(
    teacher_fw: Tensor,
    teacher_bw: Tensor,
    student_fw: Tensor,
    student_bw: Tensor,
    mask_fw: Tensor,
    mask_bw: Tensor,
    *,
    reduce_count: ReduceCount | None = None,
) -> Tensor:
    """The student's flow on the crop, held to the teacher's where only the crop hides the match.

        [abs_robust(teacher_fw − student_fw, mask_fw) + the same of bw] / 2

    teacher_*, student_*: (b, 2, h, w), the teacher's cropped to the patch and left in the same
    pixels (a crop changes no displacement); mask_*: (b, 1, h, w), from `occluded_by_crop`
    → scalar. `reduce_count` as in `abs_robust`.

    Facts: no gradient reaches the teacher or the masks; empty masks give 0.
    """
    expect(
        "distillation_loss",
        teacher_fw,
        "teacher_fw: b 2 h w",
        teacher_bw,
        "teacher_bw: b 2 h w",
        student_fw,
        "student_fw: b 2 h w",
        student_bw,
        "student_bw: b 2 h w",
        hint="Crop the teacher's flows to the student's patch first.",
    )
    forward = abs_robust(teacher_fw.detach() - student_fw, mask_fw, reduce_count=reduce_count)
    backward = abs_robust(teacher_bw.detach() - student_bw, mask_bw, reduce_count=reduce_count)
    return (forward + backward) / 2
