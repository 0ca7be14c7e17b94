"""Every operator takes the backend as an argument and says why one is not to be had."""

from __future__ import annotations

import pytest
import torch

from lcv.cost_volume import AllPairs, OnDemand, local_cost_volume
from lcv.cost_volume.backend import choose_backend
from lcv.errors import BackendError


def test_auto_is_torch() -> None:
    assert choose_backend("f", "auto") == "torch"


def test_an_unknown_backend_lists_the_known() -> None:
    with pytest.raises(
        BackendError, match="unknown backend 'cuda'; known are auto, reference, torch, triton"
    ):
        choose_backend("f", "cuda")


def test_a_missing_backend_gives_its_reason() -> None:
    with pytest.raises(BackendError, match=r'f: backend "triton" is unavailable: .* no Triton'):
        choose_backend("f", "triton")


def test_every_operator_refuses_in_its_own_name() -> None:
    x = torch.zeros(1, 1, 3, 4)
    with pytest.raises(BackendError, match="local_cost_volume: unknown backend"):
        local_cost_volume(x, x, (3, 3), backend="cuda")
    with pytest.raises(BackendError, match="AllPairs: unknown backend"):
        AllPairs(backend="cuda")
    with pytest.raises(BackendError, match="OnDemand: unknown backend"):
        OnDemand(backend="cuda")
