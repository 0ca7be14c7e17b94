"""Batches: how much each pixel of a procedural pair counts in the loss."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from lcv.errors import ArgumentError
from lcv.train import DataConfig, LossConfig
from lcv.train.batches import pixel_weights


def test_less_counts_what_moves_by_itself_and_is_not_seen_again():
    """Of six pixels: seen, hidden, departed; first moved by the camera, then by themselves."""

    def mask(*values):
        return torch.tensor(values, dtype=torch.bool).view(1, 1, 1, 6)

    made = SimpleNamespace(
        flow=torch.zeros(1, 2, 1, 6),
        occluded=mask(0, 1, 1, 0, 1, 1),
        out_of_frame=mask(0, 0, 1, 0, 0, 1),
        independent=mask(0, 0, 0, 1, 1, 1),
    )
    data = DataConfig(occluded_weight=0.25, out_of_frame_weight=0.0)
    assert pixel_weights(made, data).flatten().tolist() == [1, 1, 1, 1, 0.25, 0]
    data = replace(data, out_of_frame_weight=1.0)
    assert pixel_weights(made, data).flatten().tolist() == [1, 1, 1, 1, 0.25, 1]
    assert pixel_weights(made, DataConfig()).flatten().tolist() == [1] * 6


def test_only_the_sequence_loss_of_procedural_pairs_has_weights(tiny):
    data = DataConfig(occluded_weight=0.0)
    tiny(data=data)
    for changes in ({"data": replace(data, source="files")}, {"loss": LossConfig("multiscale")}):
        with pytest.raises(ArgumentError, match=r"data\.occluded_weight and .* are for procedural"):
            tiny(**{"data": data, **changes})
