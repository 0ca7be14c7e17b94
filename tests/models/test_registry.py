"""How a network is described: kept as plain values, and not trusted when read from a file."""

from __future__ import annotations

import inspect
import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import lcv
from lcv.errors import ArgumentError, WeightsError
from lcv.models.convention import KNOWN, Convention
from lcv.models.ddflow import DDFlow
from lcv.models.raft import RAFT
from lcv.models.vcn import VCN, vcn, vcn_small


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


# What the documentation says of each network: sides, forms, ways to hold the volume, how many
# iterations it does and learns with, and what files of it can be.
FACTS = {
    RAFT: {
        "sides": (8, 57),
        "forms": ("left", "factor", "zca"),
        "volumes": ("all-pairs", "on-demand"),
        "takes_flow_init": True,
        "iters": (20, 12),
        "pads": ("sintel", "kitti"),
        "losses": ("sequence",),
        "finetuning": {"model.freeze_batch_norm": True},
        "export": (8, 64, 128, ("gather", "grid_sample"), ("sintel", "kitti"), True),
    },
    VCN: {
        "sides": (64, 65),
        "forms": ("factor", "left", "zca"),
        "volumes": ("local",),
        "takes_flow_init": False,
        "iters": (None, None),
        "pads": (),
        "losses": ("multiscale", "sequence"),
        "finetuning": {
            "model.options": {"heads": True},
            "optim.weight_decay": 0.0,
            "loss.name": "multiscale",
            "precision": "float32",
        },
        "export": (64, 128, None, ("grid_sample", "gather"), (None,), True),
    },
    DDFlow: {
        "sides": (1, 5),
        "forms": ("left", "factor", "zca"),
        "volumes": ("local",),
        "takes_flow_init": False,
        "iters": (None, None),
        "pads": (),
        "losses": ("unsupervised", "sequence"),
        "finetuning": {
            "data.recipe": "moderate",
            "optim.weight_decay": 0.0,
            "loss.name": "unsupervised",
        },
        "export": (1, 5, None, ("gather",), (None,), False),
    },
}


@pytest.mark.parametrize("network", FACTS)
def test_what_is_said_of_each_network(network):
    own, rule = network.defaults, network.export_rule
    assert {
        "sides": (network.stride, network.least_side),
        "forms": network.forms,
        "volumes": network.volumes,
        "takes_flow_init": network.takes_flow_init,
        "iters": (own.iters, own.training_iters),
        "pads": own.pads,
        "losses": own.losses,
        "finetuning": own.finetuning,
        "export": (
            *(rule.stride, rule.least, rule.least_open),
            *(rule.lookups, rule.modes, rule.fits_any),
        ),
    } == FACTS[network]


def test_the_usual_options_of_vcn():
    """The authors' for FlyingChairs and Things."""
    usual = {name: each.default for name, each in inspect.signature(VCN).parameters.items()}
    assert (usual["md"], usual["fac"], usual["heads"]) == ((4, 4, 4, 4, 4), 1.0, False)
    assert (usual["means"], usual["finest"]) == ((0.33, 0.33), 2)
    for make, levels in ((vcn, 5), (vcn_small, 4)):
        usual = {name: each.default for name, each in inspect.signature(make).parameters.items()}
        assert (usual["inner_product"], usual["form"]) == ("euclidean", "factor")
        assert (usual["md"], usual["fac"], usual["heads"]) == ((4,) * levels, 1.0, False)


def test_how_a_network_is_called_unless_said_otherwise():
    plain = Convention()
    assert (plain.range, plain.bgr, plain.multiple, plain.least) == ((0.0, 255.0), False, 1, 1)
    theirs, others = KNOWN.values()
    assert (theirs.range, theirs.bgr, theirs.multiple, theirs.least) == ((-1.0, 1.0), False, 8, 128)
    assert (others.range, others.bgr, others.multiple) == ((0.0, 1.0), True, 1)
