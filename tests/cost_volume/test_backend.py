"""Every operator takes the backend as an argument and says why one is not to be had."""

from __future__ import annotations

import logging

import pytest
import torch

from lcv.cost_volume import AllPairs, OnDemand, backend, local_cost_volume
from lcv.cost_volume.backend import choose_backend
from lcv.errors import BackendError
from testing.extras import needs


class On(torch.Tensor):
    """A tensor that says it is elsewhere."""

    device = torch.device("cuda", 0)


@pytest.mark.parametrize(
    ("like", "installed", "no_kernel", "chosen", "said"),
    [
        (torch.zeros(1), True, "", "torch", None),
        (torch.zeros(1).as_subclass(On), True, "", "triton", "runs by triton"),
        (torch.zeros(1).as_subclass(On), False, "", "torch", "by torch: Triton is not installed"),
        (torch.zeros(1).double().as_subclass(On), True, "", "torch", "are float64"),
        (torch.zeros(1).as_subclass(On), True, "it is odd", "torch", "by torch: it is odd"),
    ],
)
def test_auto_takes_the_kernels_where_they_run_and_says_so_once(
    like, installed, no_kernel, chosen, said, monkeypatch, caplog
) -> None:
    monkeypatch.setattr(backend, "HAS_TRITON", installed)
    backend._say.cache_clear()
    with caplog.at_level(logging.INFO, "lcv"):
        for _ in range(3):
            assert choose_backend("f", "auto", like, no_kernel) == chosen
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == (said is not None)
    assert all(said in message for message in messages)


def test_an_unknown_backend_lists_the_known() -> None:
    with pytest.raises(
        BackendError, match="unknown backend 'cuda'; known are auto, reference, torch, triton"
    ):
        choose_backend("f", "cuda")


def test_a_missing_backend_gives_its_reason(monkeypatch) -> None:
    x = torch.zeros(1, 1, 3, 4)
    with pytest.raises(BackendError, match="with channels kept there is nothing to sum"):
        local_cost_volume(x, x, (3, 3), keep_channels=True, backend="triton")
    monkeypatch.setattr(backend, "HAS_TRITON", False)
    with pytest.raises(BackendError, match='f: backend "triton" .* Triton is not installed; use'):
        choose_backend("f", "triton")


def test_what_is_asked_for_and_there_is_taken(monkeypatch) -> None:
    monkeypatch.setattr(backend, "HAS_TRITON", True)
    gpu = torch.zeros(1).as_subclass(On)
    for like in (None, gpu):
        for name in ("reference", "torch", "triton"):
            assert choose_backend("f", name, like) == name
    assert choose_backend("f", "auto") == "torch"
    assert choose_backend("f", "torch", gpu, "it is odd") == "torch"
    with pytest.raises(BackendError, match='f: backend "triton" is unavailable: it is odd; use'):
        choose_backend("f", "triton", gpu, "it is odd")


def test_kernels_are_for_gpus() -> None:
    needs("triton")
    x = torch.zeros(1, 1, 8, 8)
    with pytest.raises(BackendError, match="tensors are on cpu, wanted a CUDA device"):
        AllPairs(backend="triton").build(x, x)
    with pytest.raises(BackendError, match="sum in float32, and the tensors are float64"):
        OnDemand(backend="triton").build(x.double(), x.double())


def test_every_operator_refuses_in_its_own_name() -> None:
    x = torch.zeros(1, 1, 3, 4)
    with pytest.raises(BackendError, match="local_cost_volume: unknown backend"):
        local_cost_volume(x, x, (3, 3), backend="cuda")
    with pytest.raises(BackendError, match="AllPairs: unknown backend"):
        AllPairs(backend="cuda")
    with pytest.raises(BackendError, match="OnDemand: unknown backend"):
        OnDemand(backend="cuda")
