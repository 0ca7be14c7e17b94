"""Weights of every family come in under our names; whatever does not fit is listed at once."""

from __future__ import annotations

import io
import json
import logging
import os

import numpy as np
import pytest
import torch

import lcv
from lcv.errors import ArgumentError, FileError, WeightsError
from lcv.inner_product import INNER_PRODUCTS
from lcv.inner_product.convert import to_authors as raw_of
from lcv.models.archive import Checkpoint, read_checkpoint
from lcv.models.build import NETWORKS, network_and_weights, spec_of
from lcv.models.cards import Card, card_path, save_weights
from lcv.models.ddflow.names import to_tensorflow
from lcv.models.families import write_weights
from lcv.models.raft.names import to_authors_names, torchvision_name
from lcv.models.types import check_volume, in_evaluation
from lcv.models.vcn.names import to_authors
from lcv.models.weights import model_of
from testing.painted import painted_pair
from testing.shared import shared


def moved(name, kind="elliptical", **options):
    """A network with random weights and, where there is one, a W away from I."""
    torch.manual_seed(0)
    model = lcv.build(name, kind, **options).eval()
    with torch.no_grad():
        for key, value in model.named_parameters():
            if key.endswith((".t", ".S_upper")):
                value.normal_(std=0.3)
    return model


def same_weights(one, other):
    first, second = one.state_dict(), other.state_dict()
    assert first.keys() == second.keys()
    return all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("name", NETWORKS)
def test_our_own_files_say_all_that_is_needed(tmp_path, name):
    model = moved(name)
    path = tmp_path / "a.safetensors"
    sha256 = save_weights(model, path, Card(data="none", seed=0))
    assert same_weights(lcv.load(name, weights=path), model)
    card = json.loads(card_path(path).read_text())
    assert card["sha256"] == sha256
    assert card["model"] == {"name": name, "inner_product": "elliptical", "options": {}}
    assert card["parameters"] == sum(p.numel() for p in model.parameters())


def test_options_travel_in_the_file(tmp_path):
    model = moved("vcn-small", "diagonal", form="left", md=(8, 4, 4, 4), fac=2.0, heads=True)
    save_weights(model, tmp_path / "a.safetensors")
    twin = lcv.load("vcn-small", weights=tmp_path / "a.safetensors")
    assert (twin.md, twin.fac, twin.inner_product.form) == ((8, 4, 4, 4), 2.0, "left")
    assert same_weights(twin, model)


def test_half_precision_is_half_the_size_and_reads_back_in_float32(tmp_path):
    model = moved("raft-small")
    save_weights(model, tmp_path / "full.safetensors")
    save_weights(model, tmp_path / "half.safetensors", half=True)
    sizes = [(tmp_path / f"{n}.safetensors").stat().st_size for n in ("half", "full")]
    assert sizes[0] < 0.52 * sizes[1]
    twin = lcv.load("raft-small", weights=tmp_path / "half.safetensors")
    assert twin.fnet.conv1.weight.dtype == torch.float32
    assert torch.equal(twin.fnet.conv1.weight, model.fnet.conv1.weight.half().float())


@pytest.mark.parametrize("name", ["raft-large", "raft-small"])
@pytest.mark.parametrize("prefix", ["", "module."])
def test_the_authors_names(tmp_path, name, prefix, caplog):
    model = moved(name, "euclidean")
    state = to_authors_names(model.state_dict())
    torch.save({prefix + key: value for key, value in state.items()}, tmp_path / "a.pth")
    with caplog.at_level(logging.WARNING, logger="lcv"):
        twin = lcv.load(name, weights=tmp_path / "a.pth")
    assert torch.equal(twin.inner_product.matrix(), torch.eye(twin.inner_product.channels))
    assert "a.pth: no W in the file: it starts at W = I" in caplog.text
    caplog.clear()
    assert same_weights(lcv.load(name, tmp_path / "a.pth", inner_product="euclidean"), model)
    assert caplog.text == ""


def test_the_authors_alias_counts_are_theirs():
    """179 and 106 entries, ten of the first being the second name of a norm."""
    assert len(to_authors_names(lcv.build("raft-large", "euclidean").state_dict())) == 179
    assert len(to_authors_names(lcv.build("raft-small", "euclidean").state_dict())) == 106
    large = read_checkpoint(shared("weights", "raft-sintel.pth")).state
    assert set(to_authors_names(lcv.build("raft-large", "euclidean").state_dict())) == set(large)
    small = read_checkpoint(shared("weights", "raft-small.pth")).state
    assert set(to_authors_names(lcv.build("raft-small", "euclidean").state_dict())) == set(small)


@pytest.mark.parametrize("name", ["raft-large", "raft-small"])
def test_torchvision_s_names(tmp_path, name):
    model = moved(name, "euclidean")
    theirs = {torchvision_name(k): v for k, v in model.state_dict().items()}
    assert "feature_encoder.convnormrelu.0.weight" in theirs
    assert "update_block.recurrent_block.convgru1.convz.weight" in theirs
    assert not any("norm3" in key or "fnet" in key or ".gru." in key for key in theirs)
    torch.save(theirs, tmp_path / "a.pth")
    assert same_weights(lcv.load(name, tmp_path / "a.pth", inner_product="euclidean"), model)


@torch.no_grad()
def test_ptlflow_s_lcv_raft_with_its_bgr_input(tmp_path, caplog):
    """A network that was trained on BGR gives the same flow for RGB once its input is turned."""
    model = moved("raft-large")
    raw_P, raw_D = raw_of(model.inner_product.S_upper, model.inner_product.t)
    state = {k: v for k, v in model.state_dict().items() if not k.startswith("inner_product")}
    state = to_authors_names(state)
    state |= {
        "corr_block.raw_P": raw_P,
        "corr_block.raw_D": raw_D,
        "corr_block.eye": torch.eye(256),
    }
    torch.save({"state_dict": state, "epoch": 3, "global_step": 7}, tmp_path / "lcv_raft.ckpt")
    with caplog.at_level(logging.WARNING, logger="lcv"):
        twin = lcv.load("raft-large", weights=tmp_path / "lcv_raft.ckpt")
    assert "trained on BGR images" in caplog.text
    image1, image2, _ = painted_pair(64, 72)
    as_trained = model(image1.flip(1), image2.flip(1), iters=2).flow
    torch.testing.assert_close(twin(image1, image2, iters=2).flow, as_trained)
    torch.testing.assert_close(twin.inner_product.matrix(), model.inner_product.matrix())


def test_ptlflow_s_plain_raft_is_rgb(tmp_path):
    model = moved("raft-small", "euclidean")
    torch.save({"state_dict": model.state_dict(), "epoch": 1}, tmp_path / "raft_small.ckpt")
    twin = lcv.load("raft-small", weights=tmp_path / "raft_small.ckpt", inner_product="euclidean")
    assert same_weights(twin, model)


@pytest.mark.parametrize("name", ["vcn", "vcn-small"])
def test_vcn_s_checkpoints_with_means_and_heads(tmp_path, name, caplog):
    model = moved(name, "euclidean", heads=True)
    state = {"module." + key: value for key, value in to_authors(model.state_dict()).items()}
    means = {"mean_L": [[0.1, 0.2, 0.3], [0.3, 0.4, 0.5]], "mean_R": [[0.5, 0.5, 0.5]]}
    torch.save({"iters": 9, "state_dict": state, "train_loss": 1.0, **means}, tmp_path / "f.tar")
    with caplog.at_level(logging.WARNING, logger="lcv"):
        twin = lcv.load(name, weights=tmp_path / "f.tar")
    torch.testing.assert_close(twin.mean1, torch.tensor([0.2, 0.3, 0.4]))
    torch.testing.assert_close(twin.mean2, torch.full((3,), 0.5))
    assert "heads, used in training only, were left out" in caplog.text
    with_heads = lcv.load(name, weights=tmp_path / "f.tar", heads=True)
    own = with_heads.state_dict()
    for key, value in model.state_dict().items():
        assert key in ("mean1", "mean2") or torch.equal(own[key], value), key


@pytest.mark.parametrize("suffix", ["", ":0"])
def test_ddflow_s_variables_from_numpy(tmp_path, suffix):
    model = moved("ddflow")
    arrays = {
        f"{k}{suffix}": v.detach().numpy() for k, v in to_tensorflow(model.state_dict()).items()
    }
    np.savez(tmp_path / "a.npz", **arrays, Variable=np.int32(5))
    twin = lcv.load("ddflow", weights=tmp_path / "a.npz")
    for key, value in model.state_dict().items():
        torch.testing.assert_close(twin.state_dict()[key], value)


def test_our_warm_start_is_a_plain_raft(caplog):
    model = lcv.load("raft-large", weights=shared("weights", "raft-large-procedural.safetensors"))
    assert "no W in the file" in caplog.text
    assert model.spec.inner_product == "elliptical"


def test_whatever_does_not_fit_is_one_error_that_lists_it_all(tmp_path):
    state = moved("raft-small", "euclidean").state_dict()
    del state["fnet.conv1.bias"]
    state["cnet.conv2.weight"] = torch.zeros(7, 96, 1, 1)
    state["stranger"] = torch.zeros(3)
    state["fnet.conv1.weight"] = torch.zeros(32, 3, 7, 7, dtype=torch.int64)
    torch.save(state, tmp_path / "a.pth")
    with pytest.raises(WeightsError) as caught:
        lcv.load("raft-small", weights=tmp_path / "a.pth")
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'a.pth'}: 4 of its entries do not fit the model: ")
    assert "fnet.conv1.bias is missing" in message
    assert "cnet.conv2.weight is (7, 96, 1, 1), wanted (160, 96, 1, 1)" in message
    assert "stranger (3,) is not part of the model" in message
    assert "fnet.conv1.weight is torch.int64, wanted torch.float32" in message


def test_half_a_w_is_an_error_not_a_silent_identity(tmp_path, caplog):
    state = moved("raft-small").state_dict()
    del state["inner_product.t"]
    torch.save(state, tmp_path / "a.pth")
    with pytest.raises(WeightsError, match=r"inner_product\.t is missing"):
        lcv.load("raft-small", weights=tmp_path / "a.pth", inner_product="elliptical")
    # What is left is all that a rotation has; so it is taken for one, and that is said.
    assert lcv.load("raft-small", tmp_path / "a.pth").spec.inner_product == "rotation"
    assert "a.pth: W is `rotation`, judging by its parameters' names" in caplog.text
    state = moved("vcn-small").state_dict()
    del state["inner_products.4.t"]
    torch.save(state, tmp_path / "b.pth")
    with pytest.raises(WeightsError, match=r"inner_products\.4\.t is missing"):
        lcv.load("vcn-small", weights=tmp_path / "b.pth")


@pytest.mark.parametrize("kind", INNER_PRODUCTS)
@pytest.mark.parametrize("name", ["raft-small", "vcn-small", "ddflow"])
def test_a_bare_state_dict_of_ours_is_recognised_with_its_kind_of_w(tmp_path, name, kind):
    model = moved(name, kind, **({"form": "left"} if kind == "free" else {}))
    torch.save(model.state_dict(), tmp_path / "a.pth")
    found = model_of(read_checkpoint(tmp_path / "a.pth"))
    assert (found.name, found.inner_product) == (name, None if kind == "euclidean" else kind)
    twin = lcv.load(name, tmp_path / "a.pth", inner_product=found.inner_product or "euclidean")
    assert same_weights(twin, model)


@pytest.mark.parametrize("heads", [False, True])
def test_a_bare_state_dict_of_vcn_with_or_without_heads(tmp_path, heads, caplog):
    model = moved("vcn", heads=heads)
    torch.save(model.state_dict(), tmp_path / "a.pth")
    assert same_weights(lcv.load("vcn", tmp_path / "a.pth"), model)
    assert "names do not say form, md and fac" in caplog.text


def test_names_of_a_family_with_tensors_that_are_not_are_refused_by_name(tmp_path):
    """Each of these made a conversion of names fail in a way of its own."""
    raft = {
        "update_block.encoder.convc1.weight": torch.zeros(1),
        "fnet.conv2.weight": torch.ones(2),
    }
    vcn = {"f6.proj.0.conv1.weight": torch.zeros(1)}
    tensorflow = {"feature_extractor/conv1_1/weights": torch.zeros(1)}
    for content in (
        {**raft, "fnet.conv2.weight": torch.tensor(1.0)},
        {**raft, "corr_block.raw_P": torch.zeros(2)},
        {**raft, "corr_block.raw_P": torch.zeros(2), "corr_block.raw_D": torch.tensor(1.0)},
        {"state_dict": vcn, "mean_L": 3},
        {"state_dict": vcn, "mean_L": [[1.0, 2.0, 3.0]], "mean_R": [["a"]]},
        tensorflow,
    ):
        torch.save(content, tmp_path / "a.pth")
        checkpoint = read_checkpoint(tmp_path / "a.pth")
        with pytest.raises(WeightsError) as caught:
            lcv.load(model_of(checkpoint).name, tmp_path / "a.pth")
        assert str(caught.value).startswith(f"{tmp_path / 'a.pth'}: ")


def test_half_precision_is_refused_where_a_number_would_become_infinite(tmp_path):
    model = moved("raft-small", "euclidean")
    with torch.no_grad():
        model.fnet.conv1.bias[3] = -70_000.0
    for file, name in (("a.safetensors", "fnet"), ("a.pth", "module.fnet")):
        with pytest.raises(WeightsError, match=rf"65504: {name}\.conv1\.bias reaches 70000\."):
            write_weights(model, tmp_path / file, half=True)
    assert list(tmp_path.iterdir()) == []


def test_weights_of_another_model_are_named():
    path = shared("weights", "raft-small.pth")
    with pytest.raises(WeightsError, match="these are weights of raft-small, wanted those of vcn"):
        lcv.load("vcn", weights=path)


def test_unknown_names_are_shown(tmp_path):
    torch.save({"encoder.0.weight": torch.zeros(2)}, tmp_path / "a.pth")
    with pytest.raises(
        WeightsError, match=r"no known network has these 1 names: encoder\.0\.weight"
    ):
        model_of(read_checkpoint(tmp_path / "a.pth"))


def test_what_load_and_build_cannot_do_is_said(tmp_path):
    networks = "raft-large, raft-small, vcn, vcn-small, ddflow"
    there = f"unknown model 'raft'; there are {networks}, and `lcv models`"
    with pytest.raises(ArgumentError, match=there):
        lcv.build("raft")
    with pytest.raises(ArgumentError, match=there):
        lcv.load("raft", weights="raft-sintel.pth")
    with pytest.raises(ArgumentError, match=f"there are {networks}, raft-small-vanilla, and `lcv"):
        lcv.load("raft")
    with pytest.raises(ArgumentError, match=r"'raft_smal' \(did you mean raft-small\?\); there"):
        lcv.build("raft_smal")
    with pytest.raises(ArgumentError, match="unknown model 'raft'"):
        lcv.load("raft", weights="x")
    with pytest.raises(
        ArgumentError, match=r"ddflow: unknown option 'md'; it takes inner_product, form$"
    ):
        lcv.build("ddflow", md=3)
    with pytest.raises(ArgumentError, match="the model is a list, wanted one of the names raft-l"):
        lcv.build(["raft-small"])
    with pytest.raises(ArgumentError, match=r"unknown inner product \['gram'\]; there are"):
        lcv.build("raft-small", ["gram"])
    for wrong in (3, io.BytesIO(), {"a": torch.zeros(1)}):
        with pytest.raises(ArgumentError, match=f"weights is a {type(wrong).__name__}, wanted a f"):
            lcv.load("raft-small", weights=wrong)
    with pytest.raises(ArgumentError, match="weights is an empty text"):
        lcv.load("raft-small", weights="")
    with pytest.raises(FileError, match="this is a folder, wanted a checkpoint file"):
        lcv.load("raft-small", weights=tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match="this is a device or a pipe, wanted a checkpoint file"):
        lcv.load("raft-small", weights=tmp_path / "pipe")
    with pytest.raises(FileError, match="cannot be read: File name too long"):
        lcv.load("raft-small", weights="n" * 300)
    with pytest.raises(ArgumentError, match="no network of its own, wanted the network, 'raft-sm"):
        lcv.build("raft-small-vanilla")
    with pytest.raises(FileError, match=r"there is no such file.*\(did you mean raft-kitti\?\)"):
        lcv.load("raft-large", weights="rafft-kitt.pth")
    for file, name in (("raft-sintel", "raft-sintel"), ("raft-small", "raft-small-things")):
        with pytest.raises(FileError, match=f"`lcv models --fetch {name}` fetches the published"):
            lcv.load("raft-large", weights=tmp_path / f"{file}.pth")
    with pytest.raises(WeightsError, match=r"no weights of this network .* give weights=FILE"):
        lcv.load("vcn")
    with pytest.raises(ArgumentError, match="no network of its own"):
        lcv.load("raft-small-vanilla", weights=tmp_path / "a.pth")


def test_nothing_is_overwritten_and_only_safetensors_are_written(tmp_path):
    model = moved("raft-small")
    save_weights(model, tmp_path / "a.safetensors")
    with pytest.raises(FileError, match="exists already"):
        save_weights(model, tmp_path / "a.safetensors")
    save_weights(model, tmp_path / "a.safetensors", overwrite=True)
    with pytest.raises(WeightsError, match=r"written as \.safetensors, got '\.pth'"):
        save_weights(model, tmp_path / "a.pth")


def test_a_file_says_its_network(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lcv.save(lcv.load("raft-small"), "mine.safetensors")
    by_file, alone = lcv.load("mine.safetensors"), lcv.load(None, weights="mine.safetensors")
    for model in (by_file, alone):
        assert spec_of(model) == spec_of(lcv.load("raft-small"))
    assert network_and_weights(None, "raft-small-vanilla") == ("raft-small", "raft-small-vanilla")
    assert network_and_weights("raft-kitti") == ("raft-large", "raft-kitti")
    with pytest.raises(
        ArgumentError, match="the model is the file 'mine.safetensors', and weights"
    ):
        lcv.load("mine.safetensors", weights="other.pth")
    with pytest.raises(ArgumentError, match="no network is named; there are raft-large"):
        lcv.load(None)


def test_names_of_raft_without_its_last_convolution(tmp_path):
    state = {"update_block.encoder.convc1.weight": torch.zeros(1)}
    with pytest.raises(WeightsError, match=r"a\.pth: RAFT's names, but no fnet\.conv2\.weight"):
        model_of(Checkpoint(tmp_path / "a.pth", "torch", state))


def test_a_network_is_evaluated_and_put_back_as_it_was():
    model = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.Dropout())
    model.train()
    model[1].eval()
    with in_evaluation(model):
        assert [module.training for module in model.modules()] == [False] * 3
    assert [module.training for module in model.modules()] == [True, True, False]


def test_a_volume_that_a_network_does_not_have():
    model = lcv.build("raft-small")
    for name in model.volumes:
        check_volume(model, name)
    with pytest.raises(ArgumentError, match="volume is 'cube', but RAFT has "):
        check_volume(model, "cube")
