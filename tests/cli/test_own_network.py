"""Networks that are not ours on the command line: ptlflow's convention, and a line in the registry.

Every verb with `file.py:factory` is driven by tests/test_guide.py.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import lcv
from lcv.cli.main import main
from lcv.data.formats.flow import write_flow
from lcv.data.formats.image import write_image
from lcv.models import named, registry
from lcv.models.published import sha256_of
from lcv.models.registry import Entry
from testing.painted import painted_pair
from testing.toy import Toy

FACTORY = '''
import torch
from torch import nn

import lcv
from toy import Toy


class AsInPtlflow(nn.Module):
    """A dictionary of stacked images in, a dictionary of flows out."""

    def __init__(self):
        super().__init__()
        self.toy = Toy()

    def forward(self, inputs):
        flow = self.toy(*(255 * image for image in inputs["images"].unbind(1)))
        found = {"flows": flow[:, None]}
        if self.training:
            found["flow_preds"] = [flow / 2, flow]
        return found


def as_in_ptlflow():
    options = {"range": (0, 1), "stacked": "images", "flow": "flows", "flows": "flow_preds"}
    return lcv.wrap(AsInPtlflow(), multiple=4, least=16, after="toy.encoder", **options)
'''


@pytest.fixture(autouse=True)
def path(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the factory's file, and two pairs with truth in a list."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "nets.py").write_text(FACTORY)
    shutil.copy(inspect.getsourcefile(Toy), folder)
    lines = []
    for k in range(2):
        one, two, flow = painted_pair(32, 40, seed=k) if k else painted_pair(32, 40)
        for name, image in ((f"{k}a.png", one), (f"{k}b.png", two)):
            array = image[0].movedim(0, 2).round().clamp(0, 255).numpy().astype(np.uint8)
            write_image(folder / name, array)
        write_flow(folder / f"{k}.flo", flow[0].movedim(0, 2).numpy())
        lines.append(f"{k}a.png {k}b.png {k}.flo")
    (folder / "pairs.txt").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(params=["ptlflow", "registry"])
def model(request, place, monkeypatch):
    """What the user writes for --model."""
    if request.param == "registry":
        return _register(monkeypatch)
    return f"{place}/nets.py:as_in_ptlflow"


def _register(monkeypatch):
    """As a network of the package: a line in the registry and a name."""
    entry = Entry(lambda inner_product="euclidean": _toy(inner_product))
    monkeypatch.setitem(registry.NETWORKS, "toy", entry)
    monkeypatch.setattr(named, "NAMES", (*named.NAMES, "toy"))
    return "toy"


def _toy(inner_product):
    model = lcv.wrap(Toy(), multiple=4, least=16, after="encoder")
    return model if inner_product == "euclidean" else lcv.attach(model, inner_product=inner_product)


@pytest.fixture
def weights(model, tmp_path):
    """Its weights in a file of ours, and in one with its own names alone."""
    path = tmp_path / "weights.safetensors"
    lcv.save(lcv.build(model, "euclidean"), path)
    return str(path)


def run(*words):
    assert main([str(word) for word in words]) == 0


def test_predict_and_eval(model, weights, place, tmp_path):
    images = place / "0a.png", place / "0b.png"
    out = tmp_path / "flow.flo"
    run("predict", *images, "-o", out, "--model", model, "--weights", weights, "--quiet")
    flow, _ = lcv.read_flow(out)
    expected = lcv.Predictor(lcv.load(model, weights))(*images).flow
    assert np.array_equal(flow, expected)
    assert flow.shape == (32, 40, 2)

    result = tmp_path / "eval.json"
    words = ("--model", model, "--weights", weights, "-o", result)
    run("eval", "--data", place / "pairs.txt", *words)
    (measured,) = json.loads(result.read_text())["results"]
    (about,) = measured["datasets"].values()
    predictor = lcv.Predictor(lcv.load(model, weights))
    errors = []
    for k in range(2):
        truth, _ = lcv.read_flow(place / f"{k}.flo")
        found = predictor(place / f"{k}a.png", place / f"{k}b.png").flow
        errors.append(np.linalg.norm(found - truth, axis=2).mean())
    assert about["metrics"]["epe"] == pytest.approx(np.mean(errors), rel=1e-4)
    if ":" in model:
        source = hashlib.sha256((place / "nets.py").read_bytes()).hexdigest()
        assert about["model"]["source"] == source
        assert "/" not in about["model"]["name"]
    assert about["weights"]["sha256"] == sha256_of(Path(weights))


def test_train_twenty_steps_with_lcv_and_inspect(model, place, tmp_path, monkeypatch):
    monkeypatch.setattr("lcv.train.validate.PAIRS", 2)
    folder = tmp_path / "run"
    settings = {
        "model.name": model,
        "model.inner_product": "elliptical",
        "data.size": "[32, 40]",
        "steps": 20,
        "batch": 2,
        "validate_every": 20,
        "optim.lr": 0.01,
        "optim.w_lr_factor": 10,
        "precision": "float32",
        "folder": folder,
    }
    run("train", "quick", *(f"--{name}={value}" for name, value in settings.items()))
    weights = folder / "weights.safetensors"
    trained = lcv.load(model, weights)
    W = trained.inner_product.matrix()
    assert (W - lcv.build(model).inner_product.matrix()).norm() / 8**0.5 > 1e-3
    run("inspect", model, "--weights", weights, "-o", tmp_path / "look")
    said = json.loads((tmp_path / "look" / "inspect.json").read_text())
    assert said["model"]["inner_product"] == "elliptical"


def test_numbers_of_two_versions_of_a_factory_do_not_meet(place, tmp_path, capsys, monkeypatch):
    """Training, robustness and ablation go on only with the source that they began with."""
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "nets.py"
    source.write_text((place / "nets.py").read_text())
    shutil.copy(place / "toy.py", tmp_path)
    model = f"{source}:as_in_ptlflow"
    train = ["train", "quick", f"--model.name={model}", "--data.size=[32,40]", "--batch=1"]
    train += [
        "--model.inner_product=euclidean",
        "--validate_every=0",
        "--folder=run",
        "--resume=auto",
    ]
    weights = tmp_path / "w.safetensors"
    lcv.save(lcv.build(model, "euclidean"), weights)
    robust = ["robust", "--model", model, "--weights", weights, "--data", place / "pairs.txt"]
    robust += ["-o", "stress", "--stress", "gamma", "--pictures", 0]
    ablate = ["ablate", "-o", "study", "--model", model, "--weights", weights, "--columns"]
    ablate += ["continued", "--seeds", 0, "--size", 32, 40, "--batch", 1, "--pairs", 1]
    run(*train, "--steps=1")
    run(*robust, "--levels", "gamma=0.5")
    run(*ablate, "--steps", 1)
    source.write_text(source.read_text().replace("flow[:, None]", "2 * flow[:, None]"))
    for words, message in (
        ([*train, "--steps=2"], "--model.source is "),
        ([*robust, "--levels", "gamma=0.5,2"], "factory of nets.py:as_in_ptlflow"),
        ([*ablate, "--steps", 1], "holds an ablation with model.source "),
    ):
        capsys.readouterr()
        assert main([str(word) for word in words]) == 2
        assert message in capsys.readouterr().err


def test_a_file_of_weights_alone_names_its_network(place, tmp_path, monkeypatch):
    _register(monkeypatch)
    file = tmp_path / "mine.safetensors"
    lcv.save(lcv.build("toy", "euclidean"), file)
    pairs, found = place / "pairs.txt", []
    for k, words in enumerate(
        (("--model", "toy", "--weights", file), ("--weights", file), ("--model", file))
    ):
        run("eval", "--data", pairs, *words, "-o", tmp_path / f"{k}.json")
        found.append(json.loads((tmp_path / f"{k}.json").read_text())["results"])
    words = ("--stress", "gamma", "--levels", "gamma=0.5", "--weights", file, "--pictures", 0)
    run("robust", "--data", pairs, *words, "-o", tmp_path / "robust")
    assert found[0] == found[1] == found[2]
    run("export", "--weights", file, "-o", tmp_path / "toy.pt2", "--size", "32x40")
