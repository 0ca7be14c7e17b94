"""The batch that augmentation takes and gives, and how to make one of pairs of any sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lcv.cost_volume.expect import expect
from lcv.data.record import Sample
from lcv.errors import ArgumentError, ShapeError


@dataclass(frozen=True, eq=False)
class Batch:
    """b pairs on one device, each in the top left corner of its plane.

    image1, image2: (b, 3, h, w), uint8 or float in 0 … 255. indices: (b,) int64, which samples
    these are; their random draws follow from them. sizes: the true (height, width) of each pair,
    known without asking the device. flow (b, 2, h, w) and valid (b, 1, h, w) bool, both or
    neither. What lies beyond a pair's size is never read.
    """

    image1: Tensor
    image2: Tensor
    indices: Tensor
    sizes: tuple[tuple[int, int], ...]
    flow: Tensor | None = None
    valid: Tensor | None = None

    def __post_init__(self) -> None:
        if (self.flow is None) != (self.valid is None):
            raise ArgumentError("Batch: flow and valid come together; one of them is None")
        given: list[Tensor | str] = [self.image1, "image1: b 3 h w", self.image2, "image2: b 3 h w"]
        given += [self.indices, "indices: b"]
        if self.flow is not None and self.valid is not None:
            given += [self.flow, "flow: b 2 h w", self.valid, "valid: b 1 h w"]
            if self.valid.dtype != torch.bool:
                raise ArgumentError(f"Batch: valid is {self.valid.dtype}, wanted torch.bool")
        b, h, w = expect("Batch", *given, hint="Frames and truth of a pair have one size.")
        if len(self.sizes) != b:
            raise ShapeError(f"Batch: {len(self.sizes)} sizes for {b} pairs, wanted one a pair")
        for k, (height, width) in enumerate(self.sizes):
            if not (1 <= height <= h and 1 <= width <= w):
                raise ShapeError(
                    f"Batch: sizes[{k}] is {height}×{width}, which the {h}×{w} planes cannot hold"
                )

    def __len__(self) -> int:
        return len(self.sizes)

    def heights_and_widths(self) -> tuple[Tensor, Tensor]:
        """The true sizes as two int64 tensors (b,) on the batch's device, without waiting for it."""
        device = self.image1.device
        if len(set(self.sizes)) == 1:
            height, width = self.sizes[0]
            return (
                torch.full((len(self),), height, dtype=torch.int64, device=device),
                torch.full((len(self),), width, dtype=torch.int64, device=device),
            )
        sizes = torch.tensor(self.sizes, dtype=torch.int64).reshape(-1, 2)
        heights, widths = sizes.to(device, non_blocking=True).unbind(1)
        return heights, widths


def batch_of(
    image1: Tensor,
    image2: Tensor,
    indices: Sequence[int] | Tensor,
    flow: Tensor | None = None,
    valid: Tensor | None = None,
) -> Batch:
    """Pairs that fill their planes. Without `valid` all of `flow` counts; shapes as in `Batch`."""
    if flow is not None and valid is None:
        valid = torch.ones_like(flow[:, :1], dtype=torch.bool)
    where = torch.as_tensor(indices, dtype=torch.int64).to(image1.device, non_blocking=True)
    b, _, h, w = image1.shape
    return Batch(image1, image2, where, ((h, w),) * b, flow, valid)


def pad_samples(
    samples: Sequence[Sample],
    indices: Sequence[int] | Tensor,
    device: torch.device | str = "cpu",
) -> Batch:
    """Pairs as read from files, of any sizes, in planes as large as the largest of each axis.

    Beyond a pair's size there are zeros, and `valid` is False.
    """
    if not samples:
        raise ArgumentError("pad_samples: there are no samples, wanted at least one")
    sizes = tuple((s.image1.shape[0], s.image1.shape[1]) for s in samples)
    b, h, w = len(samples), max(s[0] for s in sizes), max(s[1] for s in sizes)
    image1, image2 = np.zeros((2, b, h, w, 3), np.uint8)
    flow, valid = np.zeros((b, h, w, 2), np.float32), np.zeros((b, h, w, 1), bool)
    truths = [s.flow is not None and s.valid is not None for s in samples]
    with_truth = truths[0]
    if with_truth != all(truths) or with_truth != any(truths):
        raise ArgumentError(
            f"pad_samples: {samples[truths.index(False)].record.name} has no flow and "
            f"{samples[truths.index(True)].record.name} has one, wanted all or none; "
            f"put them into batches of their own"
        )
    for k, (sample, (height, width)) in enumerate(zip(samples, sizes, strict=True)):
        if sample.image2.shape != sample.image1.shape:
            raise ShapeError(
                f"pad_samples: {sample.record.name} has frames {sample.image1.shape} and "
                f"{sample.image2.shape}, wanted one size"
            )
        image1[k, :height, :width] = sample.image1
        image2[k, :height, :width] = sample.image2
        if with_truth:
            flow[k, :height, :width] = sample.flow
            valid[k, :height, :width, 0] = sample.valid

    def plane(array: np.ndarray) -> Tensor:
        on_device = torch.from_numpy(array).to(device, non_blocking=True)
        return on_device.permute(0, 3, 1, 2).contiguous()

    return Batch(
        plane(image1),
        plane(image2),
        torch.as_tensor(indices, dtype=torch.int64).to(device, non_blocking=True),
        sizes,
        plane(flow) if with_truth else None,
        plane(valid) if with_truth else None,
    )
