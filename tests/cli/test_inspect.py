"""`lcv inspect`: the numbers of W in one file, and its pictures."""

from __future__ import annotations

import json
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import lcv
from lcv.cli import inspect as verb
from lcv.cli.main import main
from lcv.data.formats.image import write_image
from lcv.errors import FileError
from lcv.models.embedded import embedded_card


def inspect(*words):
    return main(["inspect", *map(str, words)])


def said(folder):
    return json.loads((folder / "inspect.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """Files of a raft-small with a strong W, with W = I, and without W."""
    folder = tmp_path_factory.mktemp("weights")
    torch.manual_seed(0)
    for kind in ("elliptical", "euclidean"):
        lcv.save(lcv.build("raft-small", kind), folder / f"{kind}.safetensors")
    model = lcv.build("raft-small")
    with torch.no_grad():
        model.inner_product.t.normal_(std=0.5)
        model.inner_product.S_upper.normal_(std=0.05)
    lcv.save(model, folder / "strong.safetensors")
    frame = np.random.default_rng(0).integers(0, 255, (72, 96, 3), dtype=np.uint8)
    write_image(folder / "frame.png", frame)
    return folder


def test_numbers_and_pictures(weights, tmp_path, capsys):
    file, frame = weights / "strong.safetensors", weights / "frame.png"
    out = tmp_path / "deep" / "out"
    assert inspect("raft-small", "--weights", file, "--image", frame, "-o", out) == 0
    found = said(out)
    assert found["model"]["name"] == "raft-small"
    assert found["weights"]["file"] == "strong.safetensors"
    assert len(found["weights"]["sha256"]) == 64
    assert str(weights) not in json.dumps(found)
    W = lcv.load("raft-small", weights=file).inner_product.matrix().detach().double()
    level = found["levels"]["W"]
    lam = torch.linalg.eigvalsh(W)
    assert level["eigenvalues"] == pytest.approx(lam.tolist(), rel=1e-9)
    assert level["condition"] == pytest.approx(float(lam[-1] / lam[0]))
    assert len(level["most_weighted"]) == len(level["least_weighted"]) == 3
    wanted = {"spectrum.png", "angles.png", "matrix.png", "features.png", "vectors.png"}
    assert set(found["pictures"]) == wanted
    assert {path.name for path in out.iterdir()} == {*wanted, "inspect.json"}
    for name in wanted:
        assert lcv.read_image(out / name).std() > 1
    assert f"condition {level['condition']:.3g}" in capsys.readouterr().out


def test_the_same_input_gives_the_same_files(weights, tmp_path):
    file, frame = weights / "strong.safetensors", weights / "frame.png"
    for name in ("one", "two"):
        assert inspect(file, "--image", frame, "-o", tmp_path / name) == 0
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_the_embedded_weights(tmp_path):
    assert inspect("raft-small", "-o", tmp_path / "out") == 0
    found = said(tmp_path / "out")
    assert found["weights"]["sha256"] == embedded_card("raft-small")["sha256"]
    assert not found["levels"]["W"]["is_identity"]


def test_a_chosen_pair_of_channels_and_count(weights, tmp_path):
    file = weights / "strong.safetensors"
    assert inspect(file, "--channels", 7, 3, "--count", 1, "-o", tmp_path / "out") == 0
    level = said(tmp_path / "out")["levels"]["W"]
    assert level["pair"]["channels"] == [7, 3]
    assert len(level["most_weighted"]) == 1


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("euclidean", "raft-small is a plain network without W; the numbers are those of W = I"),
        ("elliptical", "raft-small with elliptical W = I: it has not been trained yet"),
    ],
)
def test_the_identity_says_so(weights, tmp_path, capsys, name, sentence):
    assert inspect(weights / f"{name}.safetensors", "-o", tmp_path / "out") == 0
    assert sentence in capsys.readouterr().out
    level = said(tmp_path / "out")["levels"]["W"]
    assert level["is_identity"]
    assert level["eigenvalues"] == [1.0] * 128


def test_a_w_that_has_moved_a_little_is_told_from_the_identity(tmp_path, capsys):
    model = lcv.build("raft-small")
    with torch.no_grad():
        model.inner_product.t[0] = 1e-4
    lcv.save(model, tmp_path / "moved.safetensors")
    assert inspect(tmp_path / "moved.safetensors", "-o", tmp_path / "out") == 0
    line = capsys.readouterr().out.splitlines()[1]
    assert re.search(r"eigenvalues 1 to 1 \+ [\d.e-]+, condition 1 \+ [\d.e-]+, distance", line), (
        line
    )


@pytest.mark.parametrize("more", [[], ["--weights", "raft-small-vanilla"]])
def test_embedded_weights_are_called_by_their_own_name(tmp_path, capsys, more):
    assert inspect("raft-small-vanilla", *more, "-o", tmp_path) == 0
    assert capsys.readouterr().out.startswith("raft-small-vanilla is a plain network without W")
    found = said(tmp_path)
    assert (found["name"], found["model"]["name"]) == ("raft-small-vanilla", "raft-small")
    assert found["weights"]["file"] == "raft-small-vanilla.safetensors"


def test_a_network_of_several_levels(tmp_path, capsys):
    lcv.save(lcv.build("ddflow"), tmp_path / "ddflow.safetensors")
    assert inspect(tmp_path / "ddflow.safetensors", "-o", tmp_path / "out") == 0
    found = said(tmp_path / "out")
    assert list(found["levels"]) == ["6", "5", "4", "3", "2"]
    assert {"matrix-6.png", "vectors-2.png"} <= set(found["pictures"])
    assert "level 2: 32 channels" in capsys.readouterr().out


def test_without_matplotlib_the_numbers_are_there(weights, tmp_path, capsys, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert inspect(weights / "strong.safetensors", "-o", tmp_path / "out") == 0
    assert (
        "vectors.png: needs matplotlib, which is not installed: pip install 'lcv-flow[report]'"
        in (capsys.readouterr().out)
    )
    assert not (tmp_path / "out" / "vectors.png").exists()
    assert (tmp_path / "out" / "spectrum.png").exists()
    assert said(tmp_path / "out")["notes"]


def test_refusals(weights, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(weights)
    out = tmp_path / "out"

    def refused(*words):
        assert inspect(*words) == 2
        captured = capsys.readouterr()
        assert captured.err.count("\n") == 1
        return captured.err

    strong = "strong.safetensors"
    assert "'raft-huge' (did you mean raft-large?); there are" in refused("raft-huge", "-o", out)
    assert "vcn: no weights of this network come with the package" in refused("vcn", "-o", out)
    (weights / "folder").mkdir()
    assert "folder: this is a folder, wanted a checkpoint" in refused("folder", "-o", out)
    assert "none.pth: there is no such file" in refused("none.pth", "-o", out)
    assert "weights of raft-small, wanted those of vcn" in refused(
        "vcn", "--weights", strong, "-o", out
    )
    assert "two different channels from 0 to 127" in refused(
        strong, "--channels", 1, 128, "-o", out
    )
    assert "--channels is 'x', wanted a whole number" in refused(
        strong, "--channels", 1, "x", "-o", out
    )
    assert "not an image that can be read" in refused(strong, "--image", strong, "-o", out)
    write_image(tmp_path / "tiny.png", np.zeros((4, 4, 3), np.uint8))
    assert "RAFT: the image is 4×4 pixels" in refused(
        strong, "--image", tmp_path / "tiny.png", "-o", out
    )
    assert "is a file, wanted a folder" in refused(strong, "-o", strong)
    assert not out.exists()
    assert inspect(strong, "-o", out) == 0
    capsys.readouterr()
    assert "inspect.json: exists already" in refused(strong, "-o", out)
    assert inspect(strong, "-o", out, "--overwrite") == 0


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1.0, "1"),
        (1.000021, "1 + 2.1e-05"),
        (0.999, "1 − 0.001"),
        (1.0099, "1 + 0.0099"),
        (1.0101, "1.01"),
        (1.0151, "1.02"),
        (0.983, "0.983"),
        (12.345, "12.3"),
    ],
)
def test_a_number_near_one_says_how_near(value, words):
    assert verb._near_one(value) == words


def level(**more):
    summary = SimpleNamespace(
        eigenvalues=torch.tensor([0.5, 1.0, 2.0]),
        condition=torch.tensor(4.0),
        distance=0.12345,
        angles=torch.tensor([0.0, torch.pi / 6]),
    )
    plain = {"summary": summary, "positive": True, "angles": True, "is_identity": False}
    return SimpleNamespace(**{**plain, **more})


def test_a_level_in_a_line():
    words = "3 channels, eigenvalues 0.5 to 2, condition 4, distance from I 0.123"
    assert verb._line("", level()) == f"W: {words}, P turns by up to 30 degrees"
    assert verb._line("4", level(angles=False)) == f"level 4: {words}"
    plain = verb._line("", level(positive=False, angles=False))
    assert plain == "W: 3 channels, eigenvalues 0.5 to 2, distance from I 0.123"


def test_a_network_in_a_headline():
    one, many = {"": level()}, {"1": level(), "2": level(is_identity=True)}
    assert verb._headline("raft", "free", one) == "raft, free W"
    assert verb._headline("vcn", "free", many) == "vcn with free W, 2 of them"
    same = {"": level(is_identity=True)}
    wanted = "raft with free W = I: it has not been trained yet"
    assert verb._headline("raft", "free", same) == wanted
    assert verb._headline("raft", "euclidean", same).startswith("raft is a plain network")


@pytest.mark.parametrize("name", ["inspect.json", "spectrum.png", "matrix-4.png"])
def test_files_of_an_earlier_look_are_seen_before_the_work(tmp_path, name):
    verb._check_folder(tmp_path / "new", False)
    (tmp_path / "other.png").touch()
    verb._check_folder(tmp_path, False)
    (tmp_path / name).touch()
    with pytest.raises(FileError, match=f"{name}: exists already"):
        verb._check_folder(tmp_path, False)
    verb._check_folder(tmp_path, True)
    with pytest.raises(FileError, match="is a file, wanted a folder to write into"):
        verb._check_folder(tmp_path / name, True)


def test_a_w_that_is_no_inner_product_has_no_ellipse(monkeypatch):
    """Its other pictures are drawn, and the other levels whole."""

    def ellipse(level):
        if level == fails:
            raise ModuleNotFoundError("no module", name=missing)
        return f"ellipse of {level.name}"

    fails = missing = None
    draw = "lcv.visual.weight_pictures"
    monkeypatch.setattr(f"{draw}.spectrum_chart", lambda levels: [*levels])
    monkeypatch.setattr(f"{draw}.angles_chart", lambda levels: None)
    monkeypatch.setattr(f"{draw}.matrix_picture", lambda level: f"matrix of {level.name}")
    monkeypatch.setattr(f"{draw}.channel_plane_figure", ellipse)
    levels = {
        "3": SimpleNamespace(name="three", has_ellipse=False),
        "4": SimpleNamespace(name="four", has_ellipse=True),
    }
    drawn = {
        "spectrum.png": ["3", "4"],
        "matrix-3.png": "matrix of three",
        "matrix-4.png": "matrix of four",
    }
    note = "vectors-3.png: not drawn, W is no inner product there"
    found = verb._pictures(None, levels, None, 1)
    assert found == ({**drawn, "vectors-4.png": "ellipse of four"}, [note])
    fails, missing = levels["4"], "matplotlib.pyplot"
    assert verb._pictures(None, levels, None, 1) == (
        drawn,
        [note, f"vectors-4.png: {verb.WITHOUT}"],
    )
    for missing in ("numpy", None):  # noqa: B007
        with pytest.raises(ModuleNotFoundError):
            verb._pictures(None, levels, None, 1)
