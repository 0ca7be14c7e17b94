"""How a network is described: kept as plain values, and not trusted when read from a file."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import lcv
from lcv.errors import ArgumentError, WeightsError


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("not json", "'not json' is no JSON"),
        ("{}", "inner_product, name, options is missing or unknown"),
        ("[]", "it is a list"),
        ('"x"', "it is a str"),
        ("[" * 100_000, "is no JSON"),
        ({"options": None}, "options is a NoneType"),
        ({"options": {"md": [4]}}, "raft-small: unknown option 'md'; it takes inner_product, form"),
        ({"options": {"form": ["left"]}}, "no raft-small can be built with its options"),
        ({"options": {"form": "upside down"}}, "no raft-small can be built with its options"),
        ({"options": {"inner_product": "gram"}}, "no raft-small can be built with its options"),
        ({"name": "raft-tiny"}, "unknown model 'raft-tiny'"),
        ({"name": ["raft-small"]}, "the model is a list"),
        ({"inner_product": "hyperbolic"}, "unknown inner product 'hyperbolic'"),
        ({"inner_product": None}, "unknown inner product None"),
        ({"more": 1}, "more is missing or unknown"),
    ],
)
def test_our_own_header_is_not_trusted(tmp_path, said, message):
    path = tmp_path / "a.safetensors"
    if isinstance(said, dict):
        spec = {"name": "raft-small", "inner_product": "euclidean", "options": {}}
        said = json.dumps(spec | said)
    save_file({"a": torch.zeros(2)}, path, metadata={"lcv": said})
    with pytest.raises(WeightsError) as caught:
        lcv.load("raft-small", weights=path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


def test_options_are_kept_as_plain_values(tmp_path):
    model = lcv.build(
        "vcn-small", "euclidean", md=torch.tensor([8, 4, 4, 4]), fac=np.float32(2), heads=np.False_
    )
    assert model.spec.options == {"md": [8, 4, 4, 4], "fac": 2.0, "heads": False}
    assert json.loads(json.dumps(model.spec.options)) == model.spec.options
    assert lcv.build("vcn-small", md=(8, 4, 4, 4)).spec.options == {"md": [8, 4, 4, 4]}
    lcv.save(model, tmp_path / "a.safetensors")
    assert lcv.load("vcn-small", tmp_path / "a.safetensors").md == (8, 4, 4, 4)
    with pytest.raises(ArgumentError, match="option md is a set, wanted a number"):
        lcv.build("vcn-small", md={4})
