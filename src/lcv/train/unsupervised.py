"""DDFlow's training without truth: three stages that see nothing but pairs of frames.

    photometric     abs_robust(I1 − warp(I2)), every pixel counted
    census          the census loss where the forward-backward check finds no occlusion
    distillation    census on a patch + the teacher's flow where only the patch hides the match

The stages follow each other, each from the weights of the one before. W stays at I in the first two
(`optim.w_from_step` beyond the last step) and is free in the third: freed at the start, the paper
warns, it leads to trivial solutions. `optim.w_from_step 0` tries it.

With `accumulate` above 1, masks are counted in each accumulated part by itself, since the next
one's are not known yet; over processes they are counted together.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor, nn

from lcv.data.random import Draws
from lcv.errors import ArgumentError
from lcv.losses.census import census_loss
from lcv.losses.distillation import distillation_loss, occluded_by_crop
from lcv.losses.occlusion import occluded_by_consistency
from lcv.losses.photometric import photometric_loss
from lcv.losses.robust import ReduceCount
from lcv.models.archive import read_checkpoint
from lcv.models.build import find, from_checkpoint
from lcv.models.types import FlowOutput
from lcv.train.batches import TrainBatch
from lcv.train.config import TrainConfig


@dataclass(frozen=True)
class Seen:
    """What the teacher made of the whole crop, at the student's patch.

    flow_*: (b, 2, h, w); occluded_*: (b, 1, h, w) bool; fw of frame 1, bw of frame 2
    """

    flow_fw: Tensor
    flow_bw: Tensor
    occluded_fw: Tensor
    occluded_bw: Tensor


def unsupervised_loss(
    stage: str,
    output: FlowOutput,
    image1: Tensor,
    image2: Tensor,
    seen: Seen | None = None,
    *,
    reduce_count: ReduceCount | None = None,
) -> Tensor:
    """The loss of a stage, in both directions.

        photometric     photometric_loss(I1, I2)
        census          census_loss(I1, I2) where not occluded
        distillation    census_loss(I1, I2) where not occluded
                        + distillation_loss where occluded in the patch and not in the whole crop

    output: of the student, with `backward`; image1, image2: (b, 3, h, w) in 0..255, what the
    student saw; seen: from the teacher, distillation only → scalar. reduce_count: as in
    `abs_robust`, for every sum over a mask.

    Facts: occlusion is judged by the student's own flows and no gradient passes through it; the
    teacher receives none. Flows that contradict each other everywhere leave no pixel to count: the
    loss is 0, less than the 0.158 of a perfect match, and so is its gradient. Random weights and
    too high a rate lead there, so photometric comes first.
    """
    if output.backward is None:
        raise ArgumentError(
            "unsupervised_loss: the network gives no backward flow; wanted one that does, which is "
            "model.name ddflow"
        )
    fw, bw = output.flow, output.backward.flow
    if stage == "photometric":
        return photometric_loss(image1, image2, fw, bw, reduce_count=reduce_count)
    occluded_fw, occluded_bw = occluded_by_consistency(fw, bw)
    loss = census_loss(
        image1, image2, fw, bw, ~occluded_fw, ~occluded_bw, reduce_count=reduce_count
    )
    if stage == "census":
        return loss
    if seen is None:
        raise ArgumentError("unsupervised_loss: distillation wants what the teacher saw (`seen`)")
    return loss + distillation_loss(
        seen.flow_fw,
        seen.flow_bw,
        fw,
        bw,
        occluded_by_crop(occluded_fw, seen.occluded_fw),
        occluded_by_crop(occluded_bw, seen.occluded_bw),
        reduce_count=reduce_count,
    )


class Teacher:
    """The network of the stage before, frozen, and the patch at which the student is to match it.

    weights: by default those that the student begins with. It sees the whole crop, as it is
    augmented for this step, and the student a patch of it, `loss.patch` of its height and width.
    **Departure:** the authors' code stores the teacher's flows of whole images beforehand; here, as
    in their paper, it runs along with the student.
    """

    def __init__(self, config: TrainConfig, device: torch.device, dtype: torch.dtype) -> None:
        weights = config.loss.teacher or config.model.weights
        if weights is None:
            raise ArgumentError(
                "loss.teacher and model.weights are both None; wanted the weights of the stage "
                "before, since loss.stage is distillation"
            )
        self.seed, self.share = config.seed, config.loss.patch
        checkpoint = read_checkpoint(find(weights))
        self.model: nn.Module = from_checkpoint(checkpoint, config.model.name)[0]
        self.model.to(device=device, dtype=dtype).requires_grad_(False)

    @torch.no_grad()
    def look(self, batch: TrainBatch, step: Tensor) -> tuple[TrainBatch, Seen]:
        """The student's patch of a batch, and what the teacher made of it; step: scalar int64.

        One patch a step for all pairs, since its place follows from (seed, step) alone.
        """
        output = self.model(batch.image1, batch.image2)
        fw, bw = output.flow, output.backward.flow
        made = (fw, bw, *occluded_by_consistency(fw, bw))
        height, width = batch.image1.shape[2:]
        h, w = patch_size((height, width), self.share)
        y, x = patch_offset(self.seed, step, (height - h, width - w))
        rows = y + torch.arange(h, device=y.device)
        columns = x + torch.arange(w, device=x.device)

        def patch(x: Tensor) -> Tensor:
            return x.index_select(2, rows).index_select(3, columns)

        own = TrainBatch(*(patch(getattr(batch, field.name)) for field in fields(batch)))
        return own, Seen(*(patch(x) for x in made))


def patch_size(size: tuple[int, int], share: tuple[float, float]) -> tuple[int, int]:
    """A patch's (h, w) in a crop of `size`: DDFlow's 224×640 of 320×896 is the default's."""
    return round(size[0] * share[0]), round(size[1] * share[1])


def patch_offset(seed: int, step: Tensor, room: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """The patch's first row and column, 0 ≤ k < room (0 if there is none), scalars on the device.

    A function of (seed, step), so all processes, accumulated parts and resumed runs agree; made
    where `step` lies, so a captured CUDA graph draws anew each time.
    """
    draws = Draws(seed, step.reshape(1))
    y, x = (
        draws.integers(f"distillation: patch {axis}", (), 0, max(1, places)).squeeze(0)
        for axis, places in zip("yx", room, strict=True)
    )
    return y, x
