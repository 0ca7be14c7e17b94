"""Factories of the user's: found, called and recorded, and only when they are named."""

from __future__ import annotations

import hashlib
import sys

import pytest
import torch

import lcv
from lcv.errors import ArgumentError, FileError, WeightsError
from lcv.models.factory import find_factory, is_factory

NETWORK = """
from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

import lcv
from neighbour import CHANNELS


@dataclass
class Settings:
    channels: int = CHANNELS


class Net(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.encoder = nn.Conv2d(3, channels, 1)
        self.head = nn.Conv2d(1, 2, 1)

    def forward(self, image1, image2):
        costs = (self.encoder(image1) * self.encoder(image2)).sum(1, keepdim=True)
        return self.head(costs)


def net(channels=Settings().channels):
    return lcv.wrap(Net(channels), range=(0, 1), least=8, after="encoder")


def with_slot(inner_product="diagonal"):
    model = net()
    return model if inner_product == "euclidean" else lcv.attach(model, inner_product=inner_product)


def bare():
    return Net(4)


def fails():
    raise RuntimeError("no such luck")


def number():
    return 3
"""


@pytest.fixture(autouse=True)
def path(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])


@pytest.fixture
def file(tmp_path):
    (tmp_path / "neighbour.py").write_text("CHANNELS = 4\n")
    path = tmp_path / "mine.py"
    path.write_text(NETWORK)
    yield path
    sys.modules.pop("neighbour", None)


def test_what_a_factory_looks_like():
    for name in ("mine.py:net", "a/b/mine.py:net", "package.module:make", "C:\\a.py:net"):
        assert is_factory(name)
    for name in ("raft-small", ":net", "mine.py", "mine.py:", "mine.py:a b", 3):
        assert not is_factory(name)


def test_a_file_with_a_neighbour_is_built_and_remembered(file):
    model = lcv.build(f"{file}:net", "euclidean", channels=6)
    assert model.network.encoder.out_channels == 6
    assert model.spec.name == "mine.py:net"
    assert model.spec.options == {"channels": 6}
    assert model.spec.source == hashlib.sha256(file.read_bytes()).hexdigest()


def test_a_module_of_the_current_folder(file, monkeypatch):
    monkeypatch.chdir(file.parent)
    model = lcv.load("mine:net")
    assert model.spec.name == "mine:net"
    assert model.inner_product is None
    assert not model.training
    del sys.modules["mine"]


def test_lcv_is_attached_unless_the_factory_takes_the_inner_product_itself(file):
    attached = lcv.build(f"{file}:net")
    assert attached.spec.inner_product == "elliptical"
    assert type(attached.inner_product).__name__ == "Elliptical"
    gram = lcv.build(f"{file}:net", "gram", form="factor")
    assert type(gram.inner_product).__name__ == "Gram"
    with pytest.raises(
        ArgumentError, match="form is 'left', but mine.py:net takes no form: LCV is"
    ):
        lcv.build(f"{file}:net", "elliptical", form="left")
    assert type(lcv.build(f"{file}:with_slot", "gram").inner_product).__name__ == "Gram"
    assert type(lcv.load(f"{file}:with_slot").inner_product).__name__ == "Diagonal"


def test_weights_go_to_the_networks_own_names_and_bring_their_w(file, tmp_path):
    name = f"{file}:net"
    model = lcv.build(name)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()
    images = 255 * torch.rand(2, 1, 3, 9, 11)
    ours, theirs = tmp_path / "ours.safetensors", tmp_path / "theirs.pth"
    lcv.save(model, ours)
    torch.save(lcv.fold(model).state_dict(), theirs)
    again = lcv.load(name, weights=ours)
    assert again.spec == model.spec
    assert torch.equal(again(*images).flow, model(*images).flow)
    plain = lcv.load(name, weights=theirs)
    assert plain.inner_product is None
    torch.testing.assert_close(plain(*images).flow, model(*images).flow, rtol=1e-4, atol=1e-3)


def test_a_file_alone_imports_nothing(file, tmp_path):
    weights = tmp_path / "w.safetensors"
    lcv.save(lcv.build(f"{file}:net"), weights)
    with pytest.raises(WeightsError, match=r"network that mine.py:net builds. Name it as the mod"):
        lcv.models.build.from_checkpoint(lcv.models.archive.read_checkpoint(weights))


def test_a_changed_source_is_noted(file, tmp_path, caplog):
    weights = tmp_path / "w.safetensors"
    lcv.save(lcv.build(f"{file}:net"), weights)
    file.write_text(file.read_text() + "\n# changed\n")
    lcv.load(f"{file}:net", weights=weights)
    assert "the source of mine.py:net has changed since these weights were saved" in caplog.text


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none.py:net", "none.py: there is no such file"),
        ("mine.py:met", r"has no function met \(did you mean net\?\)"),
        ("mine.py:fails", r"mine.py: fails in line \d+: RuntimeError: no such luck"),
        ("mine.py:CHANNELS", "CHANNELS is of class int, wanted a function that returns a network"),
        ("mine.py:number", "returned int, wanted a network"),
        ("mine.py:bare", "mine.py:bare is of class Net, and how to call it is not known. Wrap it"),
        ("no_such_package.nets:raft", "there is no module no_such_package.nets"),
        ("asking:net", "asking: needs the module no_such_package; install it"),
        ("failing:net", "failing: fails: ZeroDivisionError: division by zero"),
    ],
)
def test_what_goes_wrong_is_said(file, monkeypatch, name, message):
    monkeypatch.chdir(file.parent)
    (file.parent / "asking.py").write_text("import no_such_package\n")
    (file.parent / "failing.py").write_text("1 / 0\n")
    with pytest.raises((ArgumentError, FileError), match=message):
        lcv.build(name)


def test_options_that_a_factory_does_not_take(file):
    with pytest.raises(ArgumentError, match="mine.py:net: unknown option 'depth'; it takes chan"):
        lcv.build(f"{file}:net", depth=3)


def test_options_are_blamed_on_the_file_only_where_it_has_some(file, tmp_path):
    name = f"{file}:net"
    bare, plain, own = (tmp_path / f"{word}.safetensors" for word in ("bare", "plain", "own"))
    bare = bare.with_suffix(".pth")
    model = lcv.build(name, "euclidean")
    torch.save(model.state_dict(), bare)
    lcv.save(model, plain)
    lcv.save(lcv.build(name, "euclidean", channels=6), own)
    refused = "mine.py:net: unknown option 'depth'"
    for weights in (bare, plain):
        with pytest.raises(ArgumentError, match=f"^{refused}"):
            lcv.load(name, weights, depth=3)
    words = (
        r"own\.safetensors: mine.py:net cannot be built with the options of this file \(channels\)"
    )
    with pytest.raises(WeightsError, match=f"{words}: {refused}"):
        lcv.load(name, own, depth=3)


def test_files_of_one_name_do_not_replace_each_other(tmp_path):
    for k in (1, 2):
        (tmp_path / str(k)).mkdir()
        (tmp_path / str(k) / "net.py").write_text(f"def make():\n    return {k}\n")
    one, two = (find_factory(f"{tmp_path}/{k}/net.py:make") for k in (1, 2))
    assert (one.function(), two.function()) == (1, 2)


def test_tensors_under_two_names_are_saved(tmp_path):
    """As in the authors' RAFT, whose blocks hold their last norm twice."""

    class Twice(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.one = self.two = torch.nn.Conv2d(3, 2, 1)

        def forward(self, image1, image2):
            return self.one(image1)

    lcv.save(lcv.wrap(Twice()), tmp_path / "w.safetensors")
    state = lcv.models.archive.read_checkpoint(tmp_path / "w.safetensors").state
    assert set(state) == {"one.weight", "one.bias", "two.weight", "two.bias"}
