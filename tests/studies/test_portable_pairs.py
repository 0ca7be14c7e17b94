"""Pairs written plainly are read, and measured by an ablation, where PyAV is not installed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from lcv.evaluate.sources import records_in
from lcv.models.types import FlowOutput
from lcv.studies.ablation_measure import measure
from lcv.train.config import TrainConfig
from lcv.train.kept import Kept
from testing import datasets

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "portable_pairs.py"


class Still(nn.Module):
    """Says that nothing moves."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))

    def forward(self, image1, image2):
        return FlowOutput(flow=torch.zeros_like(image1[:, :2]), flows=(), low=None)


@pytest.fixture
def pairs(tmp_path, monkeypatch):
    """What the script wrote of two pairs, and the two pairs; PyAV is gone from here on."""
    spec = importlib.util.spec_from_file_location("portable_pairs", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    source = datasets.middlebury(tmp_path / "set", ["Grove", "Urban"])
    assert script.write_pairs(str(source), tmp_path / "plain", [], None) == 2
    monkeypatch.setitem(sys.modules, "av", None)
    return tmp_path / "plain", [record.read() for record in records_in([str(source)])]


def test_they_are_the_same_pairs(pairs):
    folder, originals = pairs
    for where in (folder, folder / "pairs.txt"):
        records = records_in([str(where)])
        assert [record.scene for record in records] == ["middlebury-Grove", "middlebury-Urban"]
        for record, original in zip(records, originals, strict=True):
            plain = record.read()
            assert np.array_equal(plain.image1, original.image1)
            assert np.array_equal(plain.image2, original.image2)
            assert np.array_equal(plain.valid, original.valid)
            assert np.array_equal(plain.flow[plain.valid], original.flow[original.valid])


def test_a_study_measures_on_them_and_reads_them_once(pairs, monkeypatch):
    folder, originals = pairs
    lengths = [np.linalg.norm(pair.flow[pair.valid], axis=-1).mean() for pair in originals]
    kept, cpu = Kept(), torch.device("cpu")
    tests = {"real": str(folder)}
    first = measure(Still(), TrainConfig(), tests, 0, cpu, kept)
    assert first["real"]["pairs"]["epe"] == pytest.approx(lengths, rel=1e-6)  # float32 truth

    def again(*_):
        raise AssertionError("read twice")

    monkeypatch.setattr("lcv.studies.ablation_measure.read_pairs", again)
    assert measure(Still(), TrainConfig(), tests, 0, cpu, kept) == first
