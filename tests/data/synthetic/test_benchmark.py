"""The benchmark split: its pairs are a function of its recipe, its seed and held-out textures."""

from __future__ import annotations

import pytest
import torch

from lcv.data.synthetic import benchmark
from lcv.data.synthetic.benchmark import PAIRS, SEED, SIZE, benchmark_pairs
from lcv.data.synthetic.recipe import BENCHMARK
from lcv.data.synthetic.sequence import generate
from lcv.data.synthetic.textures import procedural_bank
from lcv.errors import ArgumentError


def test_the_benchmark_is_its_recipe_and_seed(monkeypatch):
    # The whole banks take seconds to paint.
    small = {part: procedural_bank(part, count=4, size=128) for part in ("train", "held-out")}
    monkeypatch.setattr(benchmark, "procedural_bank", lambda part, device: small[part])
    batches = list(benchmark_pairs(batch=2, count=3))
    assert [len(batch.flow) for batch in batches] == [2, 1]
    assert batches[0].flow.shape[-2:] == SIZE == (368, 496)
    assert (PAIRS, SEED) == (200, 1592639052)
    other = next(benchmark_pairs(batch=1))
    assert torch.equal(other.image2[0], batches[0].image2[0])
    training = generate(BENCHMARK, SEED, [0], SIZE, textures=small["train"])
    assert torch.equal(training.flow, other.flow)
    assert (training.image1 - other.image1).abs().mean() > 5  # its textures are held out
    with pytest.raises(ArgumentError, match="wanted batch ≥ 1 and 1 ≤ count ≤ 200"):
        next(benchmark_pairs(count=201))
