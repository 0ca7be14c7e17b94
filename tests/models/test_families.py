"""Weights under the names of others: which file holds what, and what no file of theirs can hold."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

import lcv
from lcv.errors import ArgumentError, FileError, WeightsError
from lcv.models.archive import read_checkpoint
from lcv.models.cards import Card
from lcv.models.ddflow.names import to_tensorflow
from lcv.models.families import as_found, family_names, write_weights
from lcv.models.raft.names import to_authors_names, torchvision_name


@pytest.fixture(scope="module")
def raft():
    return lcv.build("raft-small", "euclidean").eval()


@pytest.fixture(scope="module")
def ddflow():
    return lcv.build("ddflow", "elliptical").eval()


def test_the_families_that_can_be_written():
    assert family_names() == ["lcv", "authors", "torchvision"]


@pytest.mark.parametrize("ending", [".pth", ".tar"])
def test_the_authors_names_are_the_default_of_their_endings(raft, tmp_path, ending):
    path = tmp_path / f"raft{ending}"
    write_weights(raft, path, card=Card(data="none"))
    wanted = {f"module.{k}": v for k, v in to_authors_names(raft.state_dict()).items()}
    found = torch.load(path, weights_only=True)
    assert found.keys() == wanted.keys()
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)
    card = json.loads((tmp_path / f"raft{ending}.json").read_text())
    assert (card["file"], card["data"], card["stored_as"]) == (path.name, "none", "torch.float32")
    model, _ = as_found(read_checkpoint(path))
    assert model.spec.inner_product == "euclidean"
    assert torch.equal(model.fnet.conv2.weight, raft.fnet.conv2.weight)


def test_torchvisions_names_and_half_the_size(raft, tmp_path):
    path = tmp_path / "raft.pth"
    write_weights(raft, path, "torchvision", half=True)
    found = torch.load(path, weights_only=True)
    assert found.keys() == {torchvision_name(name) for name in raft.state_dict()}
    assert {v.dtype for v in found.values() if v.is_floating_point()} == {torch.float16}
    assert json.loads((tmp_path / "raft.pth.json").read_text())["stored_as"] == "torch.float16"


def test_variables_of_tensorflow_hold_the_elliptical_w(ddflow, tmp_path):
    write_weights(ddflow, tmp_path / "a.npz")
    wanted = to_tensorflow(ddflow.state_dict())
    with np.load(tmp_path / "a.npz") as found:
        assert found.files == list(wanted)
        assert all(np.array_equal(found[name], wanted[name].numpy()) for name in wanted)
    model, _ = as_found(read_checkpoint(tmp_path / "a.npz"))
    assert model.spec.inner_product == "elliptical"


def test_our_own_names(raft, tmp_path):
    write_weights(raft, tmp_path / "a.safetensors", card=Card(seed=3), half=True)
    assert json.loads((tmp_path / "a.json").read_text())["seed"] == 3
    found = read_checkpoint(tmp_path / "a.safetensors").state
    assert found.keys() == raft.state_dict().keys()
    assert found["fnet.conv2.weight"].dtype == torch.float16


def test_all_tensors_of_vcns_file_are_halved(tmp_path):
    model = lcv.build("vcn-small", "euclidean")
    write_weights(model, tmp_path / "a.pth", half=True)
    found = torch.load(tmp_path / "a.pth", weights_only=True)
    inside = found["state_dict"].values()
    assert {v.dtype for v in inside if v.is_floating_point()} == {torch.float16}
    assert found.keys() > {"state_dict"}


def test_what_cannot_be_written(raft, ddflow, tmp_path):
    bent = lcv.build("raft-small", "elliptical")
    vcn = lcv.build("vcn-small", "diagonal")
    other = lcv.build("ddflow", "diagonal")
    cases = [
        (raft, "a.bin", None, ArgumentError, "wanted a name ending in .safetensors, .pth, .tar or"),
        (raft, "a.pth", "keras", ArgumentError, "unknown family 'keras'; there are lcv, authors"),
        (raft, "a.npz", None, ArgumentError, "names of authors are written to a .pth or .tar file"),
        (raft, "a.pth", "lcv", ArgumentError, "names of lcv are written to a .safetensors file"),
        (ddflow, "a.pth", "torchvision", WeightsError, "no names of torchvision for ddflow"),
        (
            bent,
            "a.pth",
            None,
            WeightsError,
            "have no place for W .`elliptical`.: take it out first",
        ),
        (vcn, "a.pth", None, WeightsError, "have no place for W .`diagonal`.: "),
        (
            other,
            "a.npz",
            None,
            WeightsError,
            "a place for `elliptical` alone, not for W .`diagonal",
        ),
    ]
    for model, file, family, error, words in cases:
        with pytest.raises(error, match=words):
            write_weights(model, tmp_path / file, family)
    assert list(tmp_path.iterdir()) == []
    for there in ("a.pth", "a.pth.json"):
        (tmp_path / there).write_text("mine")
        with pytest.raises(FileError, match="exists already"):
            write_weights(raft, tmp_path / "a.pth")
        assert [path.name for path in tmp_path.iterdir()] == [there]
        (tmp_path / there).unlink()
    (tmp_path / "a.pth").write_text("mine")
    write_weights(raft, tmp_path / "a.pth", overwrite=True)
    assert (tmp_path / "a.pth").stat().st_size > 1000
