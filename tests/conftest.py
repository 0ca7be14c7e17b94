"""Settings that hold for every test."""

from __future__ import annotations

import os

import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def one_thread_a_worker():
    """Workers that share the cores do not also share them among threads: spinning costs more."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def seeded():
    """Every test draws the same numbers, alone or among others."""
    torch.manual_seed(0)
