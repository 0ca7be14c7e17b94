"""What may change when a run goes on, and that everything else is refused by name."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields, replace
from pathlib import Path

import pytest
import torch

from lcv.errors import ArgumentError
from lcv.models.build import build
from lcv.train import (
    DataConfig,
    LossConfig,
    ModelConfig,
    OptimConfig,
    PartConfig,
    TrainConfig,
    run,
)
from lcv.train.checkpoint import read
from lcv.train.distributed import Processes
from lcv.train.log import read_log
from lcv.train.loop import Run, freeze_batch_norm
from lcv.train.resume import FREE, check_passes, check_resumed, judged_alike


def content_of(config: TrainConfig, step: int = 2) -> dict:
    return {"step": step, "config": config.as_dict()}


def own(config: TrainConfig) -> Path:
    return Path(config.folder) / "checkpoints" / "last.pt"


def changed(config: TrainConfig, name: str) -> TrainConfig:
    """The configuration with one setting, by its dotted name, of another value."""
    group, _, last = name.rpartition(".")
    record = getattr(config, group) if group else config
    value = getattr(record, last)
    if isinstance(value, bool):
        new = not value
    elif isinstance(value, tuple):
        new = value[::-1] if len(set(value)) > 1 else (*value, 5)
    elif isinstance(value, dict):
        new = {**value, "more": "procedural"}
    else:
        new = {str: "another", int: 77, float: 0.123, type(None): 5}[type(value)]
    # As a recipe's own check would refuse such words, it is passed by.
    record, whole = replace(record), replace(config)
    object.__setattr__(record, last, new)
    if group:
        object.__setattr__(whole, group, record)
    return whole if group else record


def names() -> list[str]:
    config = TrainConfig()
    groups = ("model", "data", "optim", "loss")
    flat = [f.name for f in fields(config) if f.name not in groups]
    return flat + [f"{g}.{f.name}" for g in groups for f in fields(getattr(config, g))]


# Written by hand, so that a setting that is freed by mistake is noticed.
MAY_CHANGE = {
    *("folder", "name", "half", "log_every", "save_every", "keep_every", "goal"),
    *("validate_every", "validate_iters", "validation", "best"),
    *("accumulate", "graph", "compile", "data.workers", "data.ahead", "data.exclude"),
}
DECIDING = [n for n in names() if n not in MAY_CHANGE | {"steps", "data.root", "data.parts"}]


@pytest.mark.parametrize("name", DECIDING)
def test_whatever_decides_the_result_is_refused_with_both_values(tiny, name):
    config = tiny()
    other = changed(config, name)
    group, _, last = name.rpartition(".")
    new, old = (
        json.loads(json.dumps(getattr(getattr(c, group) if group else c, last)))
        for c in (other, config)
    )
    with pytest.raises(ArgumentError) as caught:
        check_resumed(content_of(config), other, own(config))
    assert f"{name} is {new!r}, but was {old!r} when the run of {config.folder}" in str(
        caught.value
    )
    assert "another --folder" in str(caught.value)


@pytest.mark.parametrize("name", sorted(MAY_CHANGE - {"folder"}))
def test_what_leaves_the_numbers_as_they_are_may_change(tiny, name):
    config = tiny()
    assert check_resumed(content_of(config), changed(config, name), own(config)) == []


def test_the_list_of_free_settings_is_this_one():
    assert FREE == MAY_CHANGE
    assert set(names()) >= FREE


def test_the_same_configuration_through_json_is_the_same(tiny):
    config = tiny(data=DataConfig("files", parts=(PartConfig("sintel", "raft-sintel"),)))
    content = json.loads(json.dumps(content_of(config)))
    assert check_resumed(content, config, own(config)) == []


def test_the_parts_of_a_mixture_decide_but_not_where_they_lie(tiny):
    part = PartConfig("sintel", "raft-sintel", root="here")
    config = tiny(data=DataConfig("files", parts=(part,)))

    def of(part):
        return replace(config, data=replace(config.data, parts=(part,)))

    assert check_resumed(content_of(config), of(replace(part, root="there")), own(config)) == []
    with pytest.raises(ArgumentError, match=r"data\.parts is .*'weight': 2.* was .*'weight': 1"):
        check_resumed(content_of(config), of(replace(part, weight=2)), own(config))


def test_files_may_lie_elsewhere_and_no_path_is_noted(tiny):
    config = tiny(data=DataConfig(textures="/old/photographs", root="/old"))
    moved = replace(config, data=replace(config.data, textures="/new/photographs", root="/new"))
    notes = check_resumed(content_of(config), moved, own(config))
    assert [note.partition(" is another folder now")[0] for note in notes] == [
        "data.textures",
        "data.root",
    ]
    assert not any("/" in note for note in notes)
    plain = replace(config, data=replace(config.data, textures=None))
    with pytest.raises(ArgumentError, match=r"data\.textures is None, but was '/old/photographs'"):
        check_resumed(content_of(config), plain, own(config))


def test_in_another_folder_rates_may_be_others_but_not_the_network(tiny, tmp_path):
    config = tiny()
    other = replace(config, folder=str(tmp_path / "other"), optim=OptimConfig(lr=1e-5))
    (note,) = check_resumed(content_of(config), other, own(config))
    assert note == "after step 2, optim.lr 1e-05 in place of 0.0004"
    for held in (
        {"model": ModelConfig("raft-large")},
        {"precision": "float64"},
        {"optim": OptimConfig(optimiser="sgd")},
        {"optim": OptimConfig(w_alone=True)},
    ):
        with pytest.raises(ArgumentError, match="but was .* when the run of"):
            check_resumed(content_of(config), replace(other, **held), own(config))
    taught = replace(other, optim=config.optim, loss=LossConfig(iters=2, teacher="/secret/t.pt"))
    (note,) = check_resumed(content_of(config), taught, own(config))
    assert "'t.pt'" in note
    assert "secret" not in note


def test_a_run_may_become_longer_and_says_so_but_not_shorter_than_it_is(tiny):
    config = tiny(steps=6)
    (note,) = check_resumed(content_of(config), replace(config, steps=9), own(config))
    assert "steps is now 9 in place of 6: after step 2 the rates are those of a one-cycle" in note
    constant = replace(config, optim=OptimConfig(schedule="constant"))
    assert check_resumed(content_of(constant), replace(constant, steps=9), own(config)) == [
        "steps is now 9 in place of 6"
    ]
    with pytest.raises(ArgumentError, match="steps is 1, and 2 are done already; say 2 or more"):
        check_resumed(content_of(config), replace(config, steps=1), own(config))


def test_the_checkpoint_of_a_refusal_is_named_by_its_run_where_it_lies_in_one(tiny):
    config = tiny()
    for path, name in ((own(config), config.folder), (Path("/x/y/z.pt"), "/x/y/z.pt")):
        other = replace(config, precision="float64")
        with pytest.raises(ArgumentError, match=f" when the run of {name} began, and it decides"):
            check_resumed(content_of(config), other, path)


def test_the_weights_that_a_run_began_with_may_lie_elsewhere(tiny, tmp_path):
    config = tiny(model=ModelConfig("raft-small", weights="/old/a.pt"))
    moved = replace(config, model=replace(config.model, weights=str(tmp_path / "b.pt")))
    (tmp_path / "b.pt").write_bytes(b"the weights")
    sha256 = hashlib.sha256(b"the weights").hexdigest()
    content = {**content_of(config), "start": {"source": {"file": "a.pt", "sha256": sha256}}}
    assert check_resumed(content, moved, own(config)) == []
    for start in (None, {"source": None}, {"source": {"sha256": "0"}}):
        with pytest.raises(
            ArgumentError, match=r"model\.weights is .*b\.pt', but was '/old/a\.pt'"
        ):
            check_resumed({**content, "start": start}, moved, own(config))
    plain = replace(config, model=replace(config.model, weights=None))
    with pytest.raises(ArgumentError, match=r"model\.weights is None, but was '/old/a\.pt'"):
        check_resumed(content, plain, own(config))


def test_a_checkpoint_that_does_not_tell_its_processes_is_not_asked_for_them(tiny):
    config = tiny(loss=LossConfig("multiscale"))
    model = build("raft-small", "euclidean")
    content = content_of(config)
    other = replace(config, accumulate=2)
    assert check_passes(content, other, 1, model, own(config)) == []
    del content["config"]["accumulate"]
    assert check_passes({**content, "processes": 1}, other, 1, model, own(config)) == []


def test_a_checkpoint_of_an_older_version_lacks_what_was_not_there_yet(tiny):
    content = content_of(tiny())
    del content["config"]["optim"]["beta2"]
    assert check_resumed(content, tiny(), own(tiny())) == []


def test_the_best_number_counts_only_among_its_like(tiny):
    config = tiny(validation={"a": "procedural"}, best="a/epe")
    assert judged_alike(content_of(config), replace(config, validate_every=7))
    for change in ({"best": "a/fl"}, {"validate_iters": 3}, {"validation": {"a": "elsewhere"}}):
        assert not judged_alike(content_of(config), replace(config, **change))


def test_the_best_number_of_another_validation_is_forgotten(tiny):
    config = tiny(validation={"a": "procedural"}, best="a/epe")
    run(config, device="cpu", until=1)
    content = read(own(config))
    torch.save({**content, "best": 1.5}, own(config))
    for change, best in (({}, 1.5), ({"validate_iters": 3}, None)):
        processes = Processes(0, 1, torch.device("cpu"))
        assert Run(replace(config, **change), processes, "auto").position.best == best


@pytest.mark.parametrize("name", ["raft-large", "vcn", "raft-small", "ddflow"])
def test_a_pass_of_another_size_is_refused_where_batch_norm_learns(name, tiny):
    """raft-large and VCN have batch norms; raft-small and DDFlow have none."""
    config = tiny(model=ModelConfig(name), batch=8)
    content = {**content_of(config), "processes": 2}
    model = build(name, "euclidean").train()
    check_passes(content, replace(config, batch=8), 2, model, own(config))
    check_passes(content, replace(config, accumulate=2), 1, model, own(config))
    for changed, world in ((config, 4), (replace(config, accumulate=2), 2)):
        if name in ("raft-small", "ddflow"):
            assert check_passes(content, changed, world, model, own(config)) == []
            continue
        with pytest.raises(ArgumentError, match="2 pairs at once, but .* 4 when the run of"):
            check_passes(content, changed, world, model, own(config))
        elsewhere = replace(changed, folder=f"{config.folder}-2")
        (note,) = check_passes(content, elsewhere, world, model, own(config))
        assert "2 pairs at once in place of 4" in note
    freeze_batch_norm(model)
    assert check_passes(content, config, 4, model, own(config)) == []


@pytest.mark.parametrize(
    ("loss", "stays"), [("multiscale", True), ("unsupervised", True), ("sequence", False)]
)
def test_parts_of_a_batch_stay_where_the_loss_counts_masks_by_part(loss, stays, tiny):
    config = tiny(loss=LossConfig(loss), batch=8)
    model = build("raft-small", "euclidean")
    content = {**content_of(config), "processes": 1}
    assert check_passes(content, config, 2, model, own(config)) == []
    other = replace(config, accumulate=2)
    if not stays:
        assert check_passes(content, other, 1, model, own(config)) == []
        return
    with pytest.raises(ArgumentError, match="accumulate is 2, but was 1 when the run of"):
        check_passes(content, other, 1, model, own(config))


def test_a_refused_run_is_left_as_it_is_and_a_longer_one_tells(tiny, tmp_path):
    config = tiny(steps=3)
    run(config, device="cpu", until=2)
    files = [
        tmp_path / "run" / name for name in ("config.json", "checkpoints/last.pt", "log.jsonl")
    ]
    before = [path.read_bytes() for path in files]
    for change in ({"seed": 3}, {"model": ModelConfig("raft-large")}):
        with pytest.raises(ArgumentError, match="another --folder"):
            run(replace(config, **change), resume="auto", device="cpu")
    assert [path.read_bytes() for path in files] == before
    run(replace(config, steps=4), resume="auto", device="cpu")
    said = [e["text"] for e in read_log(files[2]) if e["kind"] == "note"]
    assert len(said) == 1
    assert said[0].startswith("steps is now 4 in place of 3")
    assert read(files[1])["notes"] == said
    assert json.loads((tmp_path / "run" / "weights.json").read_text())["notes"] == said
