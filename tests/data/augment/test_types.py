"""Batches: padding of pairs of several sizes, and refusals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from lcv.data.augment import Batch, batch_of, pad_samples
from lcv.data.record import Record, Sample
from lcv.errors import ArgumentError, ShapeError


def _sample(h: int, w: int, value: int, truth: bool = True) -> Sample:
    image = np.full((h, w, 3), value, np.uint8)
    image[0, 1] = (1, 2, 3)
    flow = np.full((h, w, 2), (value, -value), np.float32)
    record = Record(f"pair {value}", Path("a"), Path("b"))
    return Sample(record, image, image, *((flow, np.ones((h, w), bool)) if truth else ()))


def test_samples_are_padded_to_the_largest_of_each_axis() -> None:
    batch = pad_samples([_sample(3, 7, 10), _sample(5, 4, 20)], [8, 9])
    assert batch.image1.shape == (2, 3, 5, 7)
    assert batch.sizes == ((3, 7), (5, 4))
    assert batch.image1[0, :, 0, 1].tolist() == [1, 2, 3]
    assert batch.valid.sum((1, 2, 3)).tolist() == [21, 20]
    assert batch.flow[1, :, 4, 3].tolist() == [20, -20]
    assert batch.image2[0, :, 3:].max() == batch.image2[1, :, :, 4:].max() == 0
    assert batch.indices.tolist() == [8, 9]
    heights, widths = batch.heights_and_widths()
    assert heights.tolist() == [3, 5]
    assert widths.tolist() == [7, 4]


def test_samples_without_truth_make_a_batch_without() -> None:
    batch = pad_samples([_sample(3, 7, 10, truth=False)], [0])
    assert batch.flow is None
    assert batch.valid is None


def test_a_batch_of_tensors_counts_everywhere() -> None:
    batch = batch_of(
        torch.zeros(2, 3, 4, 5), torch.zeros(2, 3, 4, 5), [3, 4], torch.ones(2, 2, 4, 5)
    )
    assert batch.valid.all()
    assert batch.sizes == ((4, 5), (4, 5))


def test_refusals() -> None:
    image, flow = torch.zeros(2, 3, 4, 5), torch.zeros(2, 2, 4, 5)
    known = torch.ones(2, 1, 4, 5, dtype=torch.bool)
    batch = batch_of(image, image, [0, 1], flow, known)
    with pytest.raises(ShapeError, match="image2 has w=4 but image1 has w=5"):
        batch_of(image, image[..., :4], [0, 1])
    with pytest.raises(ShapeError, match="indices has b=3 but image1 has b=2"):
        batch_of(image, image, [0, 1, 2])
    with pytest.raises(ArgumentError, match="flow and valid come together"):
        replace(batch, valid=None)
    with pytest.raises(ArgumentError, match="valid is torch.float32, wanted torch.bool"):
        replace(batch, valid=known.float())
    with pytest.raises(ShapeError, match="flow has h=3 but image1 has h=4"):
        replace(batch, flow=flow[:, :, :3])
    with pytest.raises(ShapeError, match=r"sizes\[1\] is 4×6, which the 4×5 planes cannot hold"):
        Batch(image, image, batch.indices, ((4, 5), (4, 6)))
    with pytest.raises(ShapeError, match="1 sizes for 2 pairs"):
        Batch(image, image, batch.indices, ((4, 5),))
    with pytest.raises(ArgumentError, match="there are no samples"):
        pad_samples([], [])
    with pytest.raises(ArgumentError, match="pair 20 has no flow and pair 10 has one"):
        pad_samples([_sample(3, 4, 10), _sample(3, 4, 20, truth=False)], [0, 1])
    odd = replace(_sample(3, 4, 10), image2=np.zeros((3, 5, 3), np.uint8))
    with pytest.raises(ShapeError, match=r"pair 10 has frames \(3, 4, 3\) and \(3, 5, 3\)"):
        pad_samples([odd], [0])
