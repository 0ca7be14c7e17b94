"""The verbs that change checkpoints: convert, attach, fold; and the list of models."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import lcv
from lcv.cli import main as cli
from lcv.models.archive import read_checkpoint
from lcv.models.cards import Card, card_path, save_weights
from lcv.models.published import PUBLISHED, sha256_of
from testing.painted import painted_pair
from testing.shared import shared


@pytest.fixture
def learned(tmp_path):
    """A small RAFT with a W of its own, and its file."""
    torch.manual_seed(0)
    model = lcv.build("raft-small").eval()
    with torch.no_grad():
        model.inner_product.t.normal_()
        model.inner_product.S_upper.normal_(std=0.1)
    save_weights(model, tmp_path / "learned.safetensors")
    return model, tmp_path / "learned.safetensors"


@torch.no_grad()
def test_fold_then_convert_gives_others_a_plain_network(learned, tmp_path, capsys):
    model, path = learned
    pair = painted_pair(64, 72)[:2]
    flow = model(*pair, iters=2).flow
    assert cli.main(["fold", str(path), str(tmp_path / "plain.pth")]) == 0
    assert all(key.startswith("module.") for key in torch.load(tmp_path / "plain.pth"))
    folded = lcv.load("raft-small", weights=tmp_path / "plain.pth", inner_product="euclidean")
    torch.testing.assert_close(folded(*pair, iters=2).flow, flow, atol=1e-4, rtol=1e-4)
    arguments = [
        "convert",
        str(tmp_path / "plain.pth"),
        str(tmp_path / "tv.pth"),
        "--to",
        "torchvision",
    ]
    assert cli.main(arguments) == 0
    assert "feature_encoder.conv.weight" in read_checkpoint(tmp_path / "tv.pth").state
    assert cli.main(["convert", str(tmp_path / "tv.pth"), str(tmp_path / "back.safetensors")]) == 0
    back = lcv.load("raft-small", weights=tmp_path / "back.safetensors")
    assert back.spec.inner_product == "euclidean"
    assert torch.equal(back(*pair, iters=2).flow, folded(*pair, iters=2).flow)
    assert "raft-small without W, the same flow" in capsys.readouterr().out


@torch.no_grad()
def test_attach_starts_at_the_identity_and_is_not_done_twice(tmp_path, capsys):
    model = lcv.build("raft-small", "euclidean").eval()
    save_weights(model, tmp_path / "plain.safetensors")
    out = tmp_path / "with.safetensors"
    assert cli.main(["attach", str(tmp_path / "plain.safetensors"), str(out)]) == 0
    assert "raft-small with W = I, 8,256 parameters more" in capsys.readouterr().out
    attached = lcv.load("raft-small", weights=out)
    assert attached.spec.inner_product == "elliptical"
    pair = painted_pair(64, 72)[:2]
    assert torch.equal(attached(*pair, iters=2).flow, model(*pair, iters=2).flow)
    assert cli.main(["attach", str(out), str(tmp_path / "twice.safetensors")]) == 2
    assert "has a W already (`elliptical`)" in capsys.readouterr().err
    assert not (tmp_path / "twice.safetensors").exists()


def test_fold_says_that_there_was_no_w(tmp_path, capsys):
    lcv.save(lcv.build("raft-small", "euclidean"), tmp_path / "plain.safetensors")
    assert cli.main(["fold", str(tmp_path / "plain.safetensors"), str(tmp_path / "out.pth")]) == 2
    assert "plain.safetensors: there is no W in this file" in capsys.readouterr().err
    assert not (tmp_path / "out.pth").exists()


def test_data_and_licence_follow_a_published_file_through_every_verb(tmp_path, capsys):
    """By its hash, then by the card beside each file; and no card tells where on a disk it was."""
    source = tmp_path / "renamed.pth"
    source.write_bytes(shared("weights", "raft-small.pth").read_bytes())
    steps = [
        ("attach", "renamed.pth", "with.safetensors", "with.json"),
        ("fold", "with.safetensors", "plain.pth", "plain.pth.json"),
        ("convert", "plain.pth", "tv.pth", "tv.pth.json"),
    ]
    for verb, before, after, card in steps:
        words = [verb, str(tmp_path / before), str(tmp_path / after)]
        words += ["--to", "torchvision"] if verb == "convert" else []
        assert cli.main(words) == 0
        text = (tmp_path / card).read_text()
        said = json.loads(text)
        assert said["licence"] == "BSD-3-Clause"
        assert said["data"] == PUBLISHED["raft-small-things"].data
        assert said["source"] == {"file": before, "sha256": sha256_of(tmp_path / before)}
        assert said["sha256"] == sha256_of(tmp_path / after)
        assert str(tmp_path) not in text
    assert said["notes"] == [
        "elliptical W = I put into renamed.pth",
        "W of with.safetensors folded into the encoder",
        "converted from plain.pth",
    ]


def test_a_card_is_carried_over_only_if_it_is_of_that_file(learned, tmp_path):
    model, path = learned
    card = Card(data="mine", seed=3, scores={"EPE": 1.5}, notes=["first"])
    lcv.save(model, path, card, overwrite=True)
    for out, half in (("a", []), ("b", ["--half"])):
        assert cli.main(["convert", str(path), str(tmp_path / f"{out}.safetensors"), *half]) == 0
        said = json.loads((tmp_path / f"{out}.json").read_text())
        assert (said["data"], said["seed"]) == ("mine", 3)
        assert said["scores"] == ({} if half else {"EPE": 1.5}), "measured in full precision"
        assert said["notes"] == ["first", "converted from learned.safetensors"]
    for index, other in enumerate(("not json", "[]", '{"data": "another\'s"}', '{"sha256": 1}')):
        card_path(path).write_text(other)
        out = tmp_path / f"c{index}.safetensors"
        assert cli.main(["convert", str(path), str(out)]) == 0
        assert json.loads(card_path(out).read_text())["data"] == ""


@pytest.mark.parametrize("name", ["vcn", "vcn-small"])
def test_vcn_goes_to_its_authors_and_back(tmp_path, name):
    torch.manual_seed(0)
    model = lcv.build(name, "euclidean", heads=True)
    model.mean1.copy_(torch.tensor([0.1, 0.2, 0.3]))
    model.mean2.copy_(torch.tensor([0.4, 0.5, 0.6]))
    lcv.save(model, tmp_path / "a.safetensors")
    out = tmp_path / "authors.tar"
    assert cli.main(["convert", str(tmp_path / "a.safetensors"), str(out), "--to", "authors"]) == 0
    content = torch.load(out)
    assert content.keys() == {"state_dict", "mean_L", "mean_R"}
    assert all(key.startswith("module.") for key in content["state_dict"])
    assert "module.f6.proj.0.conv1.weight" in content["state_dict"]
    assert torch.equal(torch.tensor(content["mean_L"]), torch.tensor([[0.1, 0.2, 0.3]]))
    twin = lcv.load(name, weights=out, inner_product="euclidean", heads=True).state_dict()
    assert twin.keys() == model.state_dict().keys()
    for key, value in model.state_dict().items():
        assert torch.equal(twin[key], value), key


def test_vcn_s_w_has_no_place_with_its_authors(tmp_path, capsys):
    lcv.save(lcv.build("vcn-small"), tmp_path / "a.safetensors")
    assert cli.main(["convert", str(tmp_path / "a.safetensors"), str(tmp_path / "a.pth")]) == 2
    said = capsys.readouterr().err
    assert "no place for W (`elliptical`): keep these weights as .safetensors" in said


@pytest.mark.parametrize("kind", ["euclidean", "elliptical"])
def test_ddflow_goes_to_tensorflow_s_variables_and_back(tmp_path, kind):
    torch.manual_seed(0)
    model = lcv.build("ddflow", kind)
    with torch.no_grad():
        for product in model.inner_products.values():
            for value in product.parameters():
                value.normal_(std=0.3)
    lcv.save(model, tmp_path / "a.safetensors")
    out = tmp_path / "a.npz"
    assert cli.main(["convert", str(tmp_path / "a.safetensors"), str(out), "--to", "authors"]) == 0
    with np.load(out) as variables:
        assert variables["feature_extractor/conv1_1/weights"].shape == (3, 3, 3, 16)
        assert ("estimator_level_2/raw_P" in variables) == (kind == "elliptical")
    back = tmp_path / "back.safetensors"
    assert cli.main(["convert", str(out), str(back)]) == 0
    twin = lcv.load("ddflow", weights=back)
    assert twin.spec.inner_product == kind
    for key, value in model.state_dict().items():
        assert torch.equal(twin.state_dict()[key], value), key


def test_ddflow_s_variables_hold_no_other_w(tmp_path, capsys):
    lcv.save(lcv.build("ddflow", "gram"), tmp_path / "a.safetensors")
    assert cli.main(["convert", str(tmp_path / "a.safetensors"), str(tmp_path / "a.npz")]) == 2
    assert "a place for `elliptical` alone, not for W (`gram`)" in capsys.readouterr().err


def test_half_precision_on_request(learned, tmp_path):
    out = tmp_path / "half.safetensors"
    assert cli.main(["convert", str(learned[1]), str(out), "--half"]) == 0
    assert read_checkpoint(out).state["fnet.conv1.weight"].dtype == torch.float16


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["convert", "{path}", "{out}.pth"], "no place for W (`elliptical`): take it out first"),
        (
            ["convert", "{path}", "{out}.bin"],
            "wanted a name ending in .safetensors, .pth, .tar or .npz",
        ),
        (["convert", "{path}", "{out}.pth", "--to", "lcv"], "are written to a .safetensors file"),
        (["convert", "{path}", "{path}"], "exists already"),
        (["convert", "none.pth", "{out}.pth"], "none.pth: there is no such file"),
        (["convert", "{path}", "{out}.npz"], "are written to a .pth or .tar file for raft-small"),
        (["convert", "{path}", "{path}/x.pth"], "learned.safetensors is a file, wanted a folder"),
        (["convert", "{folder}", "{out}.pth"], "this is a folder, wanted a checkpoint file"),
        (["fold", "{path}", "{path}"], "exists already"),
        (["models", "--fetch", "raft-things"], "unknown checkpoint 'raft-things'"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(learned, tmp_path, capsys, arguments, message):
    places = {"path": learned[1], "out": tmp_path / "out", "folder": tmp_path}
    filled = [word.format(**places) for word in arguments]
    before = sorted(p.name for p in tmp_path.iterdir())
    assert cli.main(filled) == 2
    assert message in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_models_lists_sizes_and_hashes(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cli.main(["models", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    sizes = {row["name"]: (row["parameters"], row["w_adds"]) for row in listed["networks"]}
    assert sizes == {
        "raft-large": (5_257_536, 32_896),
        "raft-small": (990_162, 8_256),
        "vcn": (6_227_224, 28_928),
        "vcn-small": (5_192_432, 3 * 8_256 + 2_080),
        "ddflow": (4_273_628, 34_048),
    }
    assert {row["file"] for row in listed["published"]} == {None}
    ours = {row["name"]: (row["model"], row["inner_product"]) for row in listed["embedded"]}
    assert ours["raft-small-vanilla"] == ("raft-small", "euclidean")
    assert all(len(row["sha256"]) == 64 for row in listed["embedded"])
    assert cli.main(["models"]) == 0
    said = capsys.readouterr().out
    assert "raft-sintel" in said
    assert "raft-small-vanilla" in said


@pytest.mark.parametrize("verb", ["convert", "attach", "fold", "models"])
def test_a_verb_s_help_takes_less_than_half_a_second(verb):
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        command = [sys.executable, "-m", "lcv.cli.main", verb, "--help"]
        subprocess.run(command, check=True, capture_output=True)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.5


@pytest.mark.parametrize(
    ("verb", "kind"), [("attach", "euclidean"), ("fold", "elliptical"), ("convert", "elliptical")]
)
def test_what_was_noticed_while_reading_is_said_and_written_down(
    verb, kind, tmp_path, monkeypatch, capsys
):
    source = tmp_path / "a.safetensors"
    source.touch()
    model, notes, cards = lcv.build("raft-small", kind), ["a note", "another"], []
    monkeypatch.setattr("lcv.models.archive.read_checkpoint", lambda path: path)
    monkeypatch.setattr("lcv.models.families.as_found", lambda read: (model, notes))
    monkeypatch.setattr("lcv.models.cards.card_from", lambda *words, **_: cards.append(words))
    monkeypatch.setattr("lcv.models.families.write_weights", lambda *_, **__: None)
    assert cli.main([verb, str(source), str(tmp_path / "b.safetensors")]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == notes
    ((path, (_, *written)),) = cards
    assert (path, written) == (source, notes)


def test_a_published_file_is_fetched_and_its_path_alone_is_printed(monkeypatch, capsys):
    """How far it is stands on the standard error, and goes at the end."""
    made, told = [], []

    class Bar:
        def __init__(self, *columns, **options):
            made.append(options)

        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

        def add_task(self, *words, **options):
            told.append((words, options))
            return 5

        def update(self, task, **options):
            told.append((task, options))

    def fetch(name, progress=None):
        progress(3, 9)
        return tmp / name

    tmp = Path("cache")
    monkeypatch.setattr("rich.progress.Progress", Bar)
    monkeypatch.setattr("lcv.models.published.fetch", fetch)
    assert cli.main(["models", "--fetch", "raft-sintel"]) == 0
    assert capsys.readouterr().out == f"{tmp / 'raft-sintel'}\n"
    ((console, transient),) = ((how["console"], how["transient"]) for how in made)
    assert (console.stderr, transient) == (True, True)
    assert told == [(("raft-sintel",), {"total": None}), (5, {"completed": 3, "total": 9})]
