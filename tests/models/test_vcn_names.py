"""The authors' names of VCN's weights to ours and back, and their recorded flow through them."""

from __future__ import annotations

import ast
import runpy

import numpy as np
import pytest
import torch
from torch import Tensor

from lcv.models.vcn import vcn, vcn_small
from lcv.models.vcn.names import (
    FAMILIES,
    from_authors,
    means_from_authors,
    prefixes,
    to_authors,
)
from testing.shared import shared


@pytest.fixture(scope="module")
def golden() -> dict[str, np.ndarray]:
    with np.load(shared("golden", "vcn__md4.npz")) as file:
        return dict(file)


def filled_weights(golden: dict[str, np.ndarray]) -> dict[str, Tensor]:
    """The weights that the recorded flow was made with, under the authors' names."""
    weights = {}
    for name, shape in zip(golden["names"].tolist(), golden["shapes"].tolist(), strict=True):
        counter = name.endswith("num_batches_tracked")
        weights[name] = torch.zeros(
            ast.literal_eval(shape), dtype=torch.long if counter else torch.float64
        )
    return runpy.run_path(str(shared("golden", "fill.py")))["fill"](weights)


def test_recorded_flow_of_the_authors_code(golden):
    weights = from_authors(filled_weights(golden))
    model = vcn(md=golden["md"].tolist(), fac=golden["fac"].item()).eval()
    rgb = [
        torch.from_numpy(golden[name]).permute(2, 0, 1)[None].flip(1)
        for name in ("image1", "image2")
    ]
    # The record was made in double precision from an input normalised in single precision.
    inputs = [model.normalise(image, i).double() for i, image in enumerate(rgb, start=1)]
    missing, unexpected = model.double().load_state_dict(weights, strict=False)
    assert (sorted(missing), unexpected) == (["mean1", "mean2"], [])
    with torch.inference_mode():
        output = model.match(*map(model.pyramid, inputs))
    step = int(golden["stride"])
    # It was stored in single precision, and that rounding is all that may be between us.
    for found, recorded in (
        (output.flow[0, :, ::step, ::step], golden["flow"]),
        (output.entropy[0, 0], golden["entropy"]),
    ):
        torch.testing.assert_close(
            found, torch.from_numpy(recorded).double(), rtol=2**-23, atol=1e-9
        )


def test_every_name_and_shape_of_theirs_has_one_of_ours_and_back(golden):
    shapes = {
        name: ast.literal_eval(shape)
        for name, shape in zip(golden["names"].tolist(), golden["shapes"].tolist(), strict=True)
    }
    ours = vcn("elliptical").state_dict()
    theirs = to_authors(ours)
    assert {name: tuple(tensor.shape) for name, tensor in theirs.items()} == shapes
    back = from_authors(theirs)
    left_out = {name for name in ours if name.startswith(("mean", "inner_products."))}
    assert set(back) == set(ours) - left_out
    assert all(back[name] is ours[name] for name in back)


@pytest.mark.parametrize("build", [vcn, vcn_small])
def test_heads_are_renamed_or_left_out(build):
    ours = build(heads=True).state_dict()
    theirs = {"module." + name: tensor for name, tensor in to_authors(ours).items()}
    theirs["module.flow_reg64.flowx"] = torch.zeros(1)
    theirs["module.warp5.grid"] = torch.zeros(1)
    assert "module.dc6_convo.0.1.running_mean" in theirs
    back = from_authors(theirs)
    assert set(back) == set(ours) - {"mean1", "mean2"}
    assert all(back[name] is ours[name] for name in back)
    assert set(from_authors(theirs, heads=False)) == set(build().state_dict()) - {"mean1", "mean2"}


def test_no_prefix_begins_another():
    for side in zip(*prefixes(), strict=True):
        assert len(set(side)) == len(side)
        assert not any(a != b and b.startswith(a) for a in side for b in side)


def test_means_are_averages_of_the_lists():
    checkpoint = {
        "mean_L": [[0.33, 0.33, 0.33], np.array([0.35, 0.31, 0.21])],
        "mean_R": [[0.5, 0.25, 0.125]],
    }
    means = means_from_authors(checkpoint)
    torch.testing.assert_close(means["mean1"], torch.tensor([0.34, 0.32, 0.27]))
    assert means["mean2"].tolist() == [0.5, 0.25, 0.125]


def test_unknown_names_stay_to_be_refused():
    assert [*from_authors({"module.fnet.conv1.weight": torch.zeros(1)})] == ["fnet.conv1.weight"]


def test_a_file_without_colour_means_says_so():
    model = vcn_small()
    with torch.no_grad():
        model.mean1.fill_(0.4)
    read = next(family for family in FAMILIES if family.name == "authors").read
    ours, notes = read(to_authors(model.state_dict()), {}, model)
    assert notes == ["no colour means in the file: 0.33 is assumed for every channel"]
    assert ours["mean1"] is model.mean1
    assert ours["mean2"] is model.mean2
    means = {"mean_L": [[0.1, 0.2, 0.3]], "mean_R": [[0.4, 0.5, 0.6]]}
    ours, notes = read(to_authors(vcn_small(heads=True).state_dict()), means, model)
    assert notes == ["the out-of-range heads, used in training only, were left out"]
    assert ours["mean1"].tolist() == pytest.approx([0.1, 0.2, 0.3])
