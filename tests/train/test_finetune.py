"""Fine-tuning on one's own pairs: who is held out, and settings that follow from the data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import lcv
from lcv.data.formats.flow import write_flow
from lcv.data.formats.image import write_image
from lcv.data.record import Record
from lcv.errors import ArgumentError, FileError
from lcv.train import (
    DataConfig,
    LossConfig,
    ModelConfig,
    OptimConfig,
    PartConfig,
    SplitConfig,
    TrainConfig,
)
from lcv.train.config import by_dotted_name
from lcv.train.distributed import Processes
from lcv.train.finetune import Plan, _look_at, judge, make_plan, split


def record(scene: str, first: int) -> Record:
    frames = (Path(scene, f"{k}.png") for k in (first, first + 1))
    return Record(f"{scene}/{first}", *frames, Path(scene, f"{first}.flo"), scene=scene)


def names(records):
    return [each.name for each in records]


def test_whole_scenes_are_held_out_the_smallest_and_last_first():
    records = [record(scene, k) for scene, n in (("a", 6), ("b", 2), ("c", 2)) for k in range(n)]
    train, held = split(records)
    assert names(held) == ["c/0", "c/1"]
    assert names(train) == names(records[:8])


def test_of_one_scene_the_last_pairs_and_no_frame_of_theirs_is_trained_on():
    records = [record("a", k) for k in range(10)]
    train, held = split(records)
    assert names(held) == ["a/8", "a/9"]
    assert names(train) == [
        f"a/{k}" for k in range(7)
    ]  # a/7 ends with the frame that a/8 begins with
    assert len(split([record(str(k), 0) for k in range(1000)])[1]) == 40


def test_pairs_that_leave_nothing_to_train_on_are_refused():
    for records in ([record("a", 0)], [record("a", 0), record("a", 1)]):
        with pytest.raises(ArgumentError, match="leave none to train on .* at least two"):
            split(records)


def write_pairs(folder, sizes: dict[str, tuple[int, int]], holes: str = "") -> Path:
    """A list of pairs of these sizes; the truth of `holes` has one."""
    lines = []
    for name, (height, width) in sizes.items():
        image = np.zeros((height, width, 3), np.uint8)
        flow, valid = np.zeros((height, width, 2), np.float32), np.ones((height, width), bool)
        valid[0, 0] = name != holes
        for k in (1, 2):
            write_image(folder / f"{name}{k}.png", image)
        write_flow(folder / f"{name}.flo", flow, valid)
        lines.append(f"{name}1.png {name}2.png {name}.flo")
    (folder / "pairs.txt").write_text("\n".join(lines))
    return folder / "pairs.txt"


@pytest.mark.parametrize("holes", [False, True])
def test_settings_follow_from_the_pairs_and_the_device(tmp_path, holes):
    sizes = {"a": (150, 300), "b": (210, 170)}
    pairs = write_pairs(tmp_path, sizes, "b" if holes else "")
    folder = str(tmp_path / "run")
    for device in ("cpu", "cuda:1"):
        on_gpu = device != "cpu"
        plan = make_plan(pairs, "raft-small-vanilla", folder=folder, device=device)
        assert plan.config == TrainConfig(
            model=ModelConfig(
                "raft-small", weights="raft-small-vanilla", freeze_batch_norm=True, options={}
            ),
            data=DataConfig(
                source="files",
                root=folder,
                parts=(
                    PartConfig("list", "raft-kitti" if holes else "raft-sintel", root="train.txt"),
                ),
                size=(136, 160),
                workers=4 if on_gpu else 0,
            ),
            optim=OptimConfig(lr=1e-4, weight_decay=1e-5),
            loss=LossConfig(iters=12 if on_gpu else 6),
            steps=2000 if on_gpu else 100,
            batch=1,
            precision="bf16" if on_gpu else "float32",
            folder=folder,
            log_every=100 if on_gpu else 5,
            validate_every=500 if on_gpu else 25,
            validation={"held-out": SplitConfig("list", root="held-out.txt")},
            best="held-out/epe",
        )
        assert (names(plan.train), names(plan.held_out)) == (["pairs:1"], ["pairs:2"])


def test_crops_are_no_larger_than_the_device_likes_and_no_smaller_than_the_network(tmp_path):
    for size, crop in (((500, 900), {"cpu": (192, 256), "cuda": (368, 768)}), ((70, 90), {})):
        (tmp_path / str(size[0])).mkdir()
        pairs = write_pairs(tmp_path / str(size[0]), dict.fromkeys("ab", size))
        for device in ("cpu", "cuda"):
            plan = make_plan(pairs, "raft-small", device=device)
            assert plan.config.data.size == crop.get(device, (128, 128))
            assert plan.config.model.inner_product == "elliptical"
            assert plan.config.folder == "runs/finetune"


def test_a_batch_is_no_larger_than_the_pairs_there_are(tmp_path):
    pairs = write_pairs(tmp_path, dict.fromkeys("abcdefghij", (130, 130)))
    for device, batch in (("cpu", 2), ("cuda", 6)):
        assert make_plan(pairs, "raft-small", device=device).config.batch == batch


def test_of_many_pairs_64_are_looked_at():
    read = []

    class Seen:
        sparse = False

        def __init__(self, number: int) -> None:
            self.number = number

        def read(self, maps):
            assert not maps
            read.append(self.number)
            return SimpleNamespace(valid=np.ones((200 - self.number, 100 + self.number), bool))

    assert _look_at([Seen(k) for k in range(65)]) == ((136, 100), False)
    assert read == list(range(0, 65, 2))
    read.clear()
    assert _look_at([Seen(k) for k in range(64)]) == ((137, 100), False)
    assert len(read) == 64


def test_both_lists_are_written_once_and_others_are_refused(tmp_path):
    def plan(first: int) -> Plan:
        odd = Record("odd", tmp_path / 'a "b".png', tmp_path / "it's.png", tmp_path / "c d.flo")
        config = TrainConfig(folder=str(tmp_path / "new" / "run"))
        return Plan(config, (odd, record("s", first)), (record("t", 0),))

    for _ in range(2):
        plan(3).write_lists()
    here = Path.cwd()
    folder = tmp_path / "new" / "run"
    assert sorted(path.name for path in folder.iterdir()) == ["held-out.txt", "train.txt"]
    assert (folder / "train.txt").read_text(encoding="utf-8") == (
        f'\'{tmp_path}/a "b".png\' "{tmp_path}/it\'s.png" "{tmp_path}/c d.flo"\n'
        f'"{here}/s/3.png" "{here}/s/4.png" "{here}/s/3.flo"\n'
    )
    assert (folder / "held-out.txt").read_text(encoding="utf-8") == (
        f'"{here}/t/0.png" "{here}/t/1.png" "{here}/t/0.flo"\n'
    )
    with pytest.raises(FileError, match=r"train\.txt: lists other pairs than this run would use"):
        plan(4).write_lists()


@pytest.mark.parametrize("changes", [{"step": 2}, {"disparity": 256.0}])
def test_truth_that_no_list_can_name_is_refused(monkeypatch, changes):
    odd = replace(record("a", 0), dataset="spring", **changes)
    monkeypatch.setattr("lcv.train.finetune.records_in", lambda _: [record("b", 0), odd])
    with pytest.raises(ArgumentError, match="x: the truth of spring/a/0 is not a plain flow file"):
        make_plan("x", "raft-small")
    monkeypatch.setattr(
        "lcv.train.finetune.records_in",
        lambda _: [SimpleNamespace(step=1, disparity=None, dataset="benchmark", name="000")],
    )
    with pytest.raises(ArgumentError, match="x: the truth of benchmark/000 is not a plain flow"):
        make_plan("x", "raft-small")


def test_a_network_that_learns_without_truth_alone_is_refused(tmp_path, monkeypatch):
    def blind(*_):
        network = lcv.build("raft-small")
        network.defaults = replace(network.defaults, losses=("unsupervised",))
        return network, []

    monkeypatch.setattr("lcv.train.finetune.from_checkpoint", blind)
    pairs = write_pairs(tmp_path, dict.fromkeys("ab", (130, 130)))
    with pytest.raises(ArgumentError, match="raft-small cannot be trained with truth; wanted anot"):
        make_plan(pairs, "raft-small")


@pytest.mark.parametrize(
    ("network", "settings"),
    [
        ("ddflow", {"data.recipe": "training", "loss.name": "sequence", "loss.iters": None}),
        (
            "vcn-small",
            {"loss.name": "multiscale", "precision": "float32", "optim.weight_decay": 0.0},
        ),
    ],
)
def test_what_a_network_wants_of_its_fine_tuning(tmp_path, monkeypatch, network, settings):
    """But recipes are of procedural pairs, and these are files with truth."""
    made = lcv.build(network, inner_product="diagonal")
    monkeypatch.setattr("lcv.train.finetune.from_checkpoint", lambda *_: (made, []))
    pairs = write_pairs(tmp_path, dict.fromkeys("ab", (130, 130)))
    config = make_plan(pairs, "raft-small", device="cuda").config
    found = by_dotted_name(config.as_dict())
    assert {name: found[name] for name in settings} == settings
    assert (config.model.name, config.model.inner_product) == (network, "diagonal")
    assert config.model.options.get("heads", False) == (network == "vcn-small")


def test_judging_names_the_numbers_and_shows_pairs(monkeypatch):
    made = []

    class Measure:
        def __init__(self, config, processes) -> None:
            made.append((config.validate_every, processes))

        def __call__(self, network, show):
            made.append(network)
            show("held-out/0", "a pair")
            return {"held-out/epe": 2.0, "held-out/fl": 9.0}

    monkeypatch.setattr("lcv.train.finetune.Validation", Measure)
    config = TrainConfig(
        model=ModelConfig("raft-small", weights="raft-small-vanilla"), validate_every=500
    )
    assert judge(config) == ({"epe": 2.0, "fl": 9.0}, ["a pair"])
    judge(config, "raft-small")
    assert made[0] == made[2] == (1, Processes(0, 1, torch.device("cpu")))
    plain, learned = (network.inner_product.matrix().detach() for network in made[1::2])
    assert torch.equal(plain, torch.eye(len(plain)))
    assert not torch.equal(learned, plain), "the weights that were asked for have a W"
