"""TensorFlow's names and ours, both ways, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lcv.models.ddflow import DDFlow, ddflow
from lcv.models.ddflow.names import from_tensorflow, to_tensorflow
from testing.shared import shared


@pytest.fixture(scope="module")
def elliptical() -> DDFlow:
    model = ddflow("elliptical")
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=generator))
    return model


def test_there_and_back_changes_nothing(elliptical: DDFlow) -> None:
    state = elliptical.state_dict()
    again = from_tensorflow(to_tensorflow(state))
    assert again.keys() == state.keys()
    for name, value in state.items():
        assert torch.equal(again[name], value), name


@pytest.mark.parametrize(("file", "kind"), [("vanilla", "euclidean"), ("lcv", "elliptical")])
def test_names_and_shapes_are_the_authors(file: str, kind: str) -> None:
    golden = np.load(shared("golden", f"ddflow__{file}.npz"))
    theirs = dict(zip(golden["names"].tolist(), golden["shapes"].tolist(), strict=True))
    ours = to_tensorflow(ddflow(kind).state_dict())
    assert {name: str(tuple(value.shape)) for name, value in ours.items()} == theirs


def test_weights_are_transposed_and_the_sign_of_s_is_the_papers(elliptical: DDFlow) -> None:
    state, theirs = elliptical.state_dict(), to_tensorflow(elliptical.state_dict())
    weight = theirs["estimator_level_4/conv2/weights"]
    assert weight[0, 2, 5, 7] == state["estimators.4.conv2.weight"][7, 5, 0, 2]
    upper = state["inner_products.3.S_upper"]
    assert torch.equal(theirs["estimator_level_3/raw_P"][0, 1:], -2 * upper[:63])
    assert torch.equal(theirs["estimator_level_3/raw_D"], state["inner_products.3.t"])


def test_arrays_suffixes_and_the_step_counter_are_taken() -> None:
    variables = {f"{k}:0": v.numpy() for k, v in to_tensorflow(ddflow().state_dict()).items()}
    variables["Variable"] = np.array(100000, dtype=np.int32)
    state = from_tensorflow(variables)
    ddflow().load_state_dict(state)
    absent = ddflow("elliptical").load_state_dict(state, strict=False)
    assert not absent.unexpected_keys
    assert len(absent.missing_keys) == 10
    assert all(key.startswith("inner_products.") for key in absent.missing_keys)


def test_what_is_unknown_or_half_there_keeps_its_name_to_be_refused(elliptical: DDFlow) -> None:
    whole = to_tensorflow(elliptical.state_dict())
    more = from_tensorflow({**whole, "conv7/weights": torch.zeros(3, 3, 1, 1)})
    assert more.keys() - elliptical.state_dict().keys() == {"conv7/weights"}
    half = from_tensorflow({k: v for k, v in whole.items() if k != "estimator_level_5/raw_D"})
    assert half.keys() - elliptical.state_dict().keys() == {"estimator_level_5/raw_P"}
