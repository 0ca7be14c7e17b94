"""`import lcv` is cheap and without effect."""

from __future__ import annotations

import subprocess
import sys

import pytest

import lcv


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_import_loads_nothing_slow_until_a_name_is_used():
    code = """
import sys, lcv
slow = {"torch", "numpy", "PIL", "av", "jsonargparse", "rich"}
print(sorted(slow & set(sys.modules)))
lcv.read_image
print("PIL" in sys.modules, "torch" in sys.modules)
"""
    assert run(code).splitlines() == ["[]", "True False"]


def test_import_has_no_side_effect_on_torch():
    code = """
import torch
def state():
    return (torch.initial_seed(), torch.get_default_dtype(), torch.get_num_threads(),
            torch.are_deterministic_algorithms_enabled(), torch.is_grad_enabled(),
            torch.get_float32_matmul_precision(), torch.get_rng_state().sum().item(),
            torch.backends.cudnn.benchmark)
import os, warnings, logging
environment, filters, handlers = dict(os.environ), list(warnings.filters), logging.root.handlers[:]
before = state()
import lcv, lcv.inner_product, lcv.cost_volume
assert before == state()
assert environment == dict(os.environ) and handlers == logging.root.handlers
assert filters == list(warnings.filters)
print("same")
"""
    assert run(code) == "same"


def test_every_public_name_is_there():
    for name in lcv.__all__:
        assert getattr(lcv, name) is not None
    assert set(lcv.__all__) <= set(dir(lcv))


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(
        AttributeError, match=r"no attribute 'raft'; it has .'FlowResult', 'LcvError'"
    ):
        _ = lcv.raft
