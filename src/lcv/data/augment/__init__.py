"""Augmentation of pairs in batches on the device: RAFT's for dense and sparse truth, DDFlow's.

    from lcv.data.augment import RAFT_KITTI, augment, pad_samples

    batch = augment(pad_samples(samples, indices, "cuda"), RAFT_KITTI, seed=7)

Every draw is a function of (seed, index, name of the draw); flow follows every change of geometry.
`reference.py` does the same to one pair, step by step.
"""

from lcv.data.augment.apply import augment, augment_mixed
from lcv.data.augment.recipes import (
    AUGMENTATIONS,
    DDFLOW,
    RAFT_CHAIRS,
    RAFT_KITTI,
    RAFT_SINTEL,
    RAFT_SINTEL_HD1K,
    RAFT_SINTEL_KITTI,
    RAFT_THINGS,
    Augmentation,
    Eraser,
    Geometry,
    Jitter,
    raft_dense,
    raft_sparse,
)
from lcv.data.augment.types import Batch, batch_of, pad_samples

__all__ = [
    "AUGMENTATIONS",
    "DDFLOW",
    "RAFT_CHAIRS",
    "RAFT_KITTI",
    "RAFT_SINTEL",
    "RAFT_SINTEL_HD1K",
    "RAFT_SINTEL_KITTI",
    "RAFT_THINGS",
    "Augmentation",
    "Batch",
    "Eraser",
    "Geometry",
    "Jitter",
    "augment",
    "augment_mixed",
    "batch_of",
    "pad_samples",
    "raft_dense",
    "raft_sparse",
]
