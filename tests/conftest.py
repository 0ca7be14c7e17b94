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


LONGEST = (
    "test_guide.py",
    "test_page.py",
    "test_onnx_file.py",
    "test_processes.py",
    "test_kill.py",
)


def pytest_collection_modifyitems(items):
    """The longest tests first: begun last, they would keep one process at work and the others idle."""
    items.sort(key=lambda item: item.path.name not in LONGEST)


def pytest_runtest_setup(item):
    """Tests marked `gpu` are skipped without one; benchmarks/gpu_tests.sh runs them all."""
    if item.get_closest_marker("gpu") and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")


@pytest.fixture(autouse=True)
def seeded():
    """Every test draws the same numbers, alone or among others."""
    torch.manual_seed(0)
