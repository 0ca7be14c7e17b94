"""The verbs that change checkpoints: convert, attach, fold; and the list of models."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest
import torch

import lcv
from lcv.cli import main as cli
from lcv.models.archive import read_checkpoint
from lcv.models.cards import save_weights
from testing.painted import painted_pair


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


def test_half_precision_on_request(learned, tmp_path):
    out = tmp_path / "half.safetensors"
    assert cli.main(["convert", str(learned[1]), str(out), "--half"]) == 0
    assert read_checkpoint(out).state["fnet.conv1.weight"].dtype == torch.float16


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["convert", "{path}", "{out}.pth"], "no place for W (`elliptical`): take it out first"),
        (["convert", "{path}", "{out}.bin"], "wanted a name ending in .safetensors or .pth"),
        (["convert", "{path}", "{out}.pth", "--to", "lcv"], "are written to a .safetensors file"),
        (["convert", "{path}", "{path}"], "exists already"),
        (["convert", "none.pth", "{out}.pth"], "none.pth: there is no such file"),
        (["fold", "{path}", "{path}"], "exists already"),
        (["models", "--fetch", "raft-things"], "unknown checkpoint 'raft-things'"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(learned, tmp_path, capsys, arguments, message):
    filled = [word.format(path=learned[1], out=tmp_path / "out") for word in arguments]
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
    assert cli.main(["models"]) == 0
    assert "raft-sintel" in capsys.readouterr().out


@pytest.mark.parametrize("verb", ["convert", "attach", "fold", "models"])
def test_a_verb_s_help_takes_less_than_half_a_second(verb):
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        command = [sys.executable, "-m", "lcv.cli.main", verb, "--help"]
        subprocess.run(command, check=True, capture_output=True)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.5
