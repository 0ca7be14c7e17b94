"""The choice of a renderer: said once, and refused where it cannot be had."""

from __future__ import annotations

import logging

import pytest
import torch

from lcv.data.synthetic import backend
from lcv.data.synthetic.backend import choose_backend
from lcv.errors import BackendError
from testing.extras import needs


@pytest.fixture(autouse=True)
def _forget():
    choose_backend.cache_clear()
    yield
    choose_backend.cache_clear()


def pretend(monkeypatch, installed: bool) -> None:
    found = object() if installed else None
    monkeypatch.setattr(backend.importlib.util, "find_spec", lambda name: found)


@pytest.mark.parametrize(
    ("device", "installed", "chosen"),
    [("cpu", True, "torch"), ("cuda", True, "triton"), ("cuda", False, "torch")],
)
def test_auto_takes_triton_on_a_gpu_and_says_so_once(
    device, installed, chosen, monkeypatch, caplog
):
    pretend(monkeypatch, installed)
    with caplog.at_level(logging.INFO, "lcv"):
        for _ in range(3):
            assert choose_backend("auto", torch.device(device)) == chosen
    (record,) = caplog.records
    assert f"on {device} are made by {chosen}" in record.getMessage()
    assert ("is not there" in record.getMessage()) == (not installed)


def test_what_cannot_be_had_is_refused(monkeypatch):
    with pytest.raises(BackendError, match="unknown backend 'fast'; known are auto, torch, triton"):
        choose_backend("fast", torch.device("cpu"))
    pretend(monkeypatch, False)
    with pytest.raises(BackendError, match='Triton is not installed; use "torch" or "auto"'):
        choose_backend("triton", torch.device("cuda"))
    assert choose_backend("torch", torch.device("cuda")) == "torch"


def test_triton_is_for_gpus():
    needs("triton")
    with pytest.raises(BackendError, match="made on cpu, wanted a CUDA device"):
        choose_backend("triton", torch.device("cpu"))
