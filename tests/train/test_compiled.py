"""A compiled step is the plain step: same numbers, same names, and only within steps."""

from __future__ import annotations

import pytest
import torch

import lcv
from lcv.train.compiled import Compiled
from lcv.train.config import DataConfig, LossConfig, ModelConfig, OptimConfig, TrainConfig
from lcv.train.loop import run


@pytest.fixture
def traced(monkeypatch):
    """torch.compile without a code generator: the graph is traced, split and run as it is."""
    seen = []
    real = torch.compile

    def compile(function, **options):
        assert options == {"dynamic": False}, "every size has code of its own"
        compiled = real(function, backend="aot_eager", **options)
        calls = []
        seen.append(calls)

        def counted(*given, **named):
            calls.append(function)
            return compiled(*given, **named)

        return counted

    monkeypatch.setattr(torch, "compile", compile)
    torch._dynamo.reset()
    return seen


def config(folder, compiled):
    return TrainConfig(
        model=ModelConfig("raft-small", "elliptical"),
        data=DataConfig(recipe="quick", size=(64, 72), ahead=1),
        optim=OptimConfig("sgd", lr=1e-3, schedule="constant"),
        loss=LossConfig("sequence", gamma=0.6, max_flow=20.0, iters=2),
        steps=2,
        batch=1,
        precision="float64",
        folder=str(folder),
        validation={"procedural": "procedural"},
        validate_every=2,
        compile=compiled,
    )


def test_compiled_steps_equal_plain_ones(tmp_path, traced):
    plain = run(config(tmp_path / "plain", False)).state_dict()
    assert not traced
    swift = run(config(tmp_path / "compiled", True)).state_dict()
    assert len(traced) == 5  # two encoders, update block, upsampling, loss
    assert all(traced)  # each is called
    assert swift.keys() == plain.keys()
    for name, value in plain.items():
        torch.testing.assert_close(swift[name], value, rtol=1e-9, atol=1e-12)


def test_outside_of_steps_the_plain_forwards_are_back(traced):
    model = lcv.build("raft-small")
    compiled = Compiled(model)
    weights = [p for p in model.parameters() if p.ndim == 4]
    assert all(p.is_contiguous(memory_format=torch.channels_last) for p in weights)
    with compiled.active():
        assert "forward" in vars(model.fnet)
        assert "upsample" in vars(model)
    assert "forward" not in vars(model.fnet)
    assert "upsample" not in vars(model)


def test_other_networks_are_refused():
    with pytest.raises(lcv.LcvError, match=r"compile: nothing in a DDFlow is known to gain by it"):
        Compiled(lcv.build("ddflow"))


@pytest.mark.gpu
def test_generated_code_agrees_on_the_device(tmp_path):
    torch._dynamo.reset()
    plain = run(config(tmp_path / "plain", False), device="cuda").state_dict()
    swift = run(config(tmp_path / "compiled", True), device="cuda").state_dict()
    for name, value in plain.items():
        torch.testing.assert_close(swift[name], value, rtol=1e-9, atol=1e-12)
