"""No leak: scenes, frames and textures are on one side of the split alone."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lcv.data.kitti import validation_scenes
from lcv.data.listfile import listfile
from lcv.data.record import Record
from lcv.data.synthetic.recipe import RECIPES
from lcv.data.synthetic.sequence import generate
from lcv.data.synthetic.textures import load_bank, procedural_bank
from lcv.errors import ArgumentError
from lcv.models.build import build
from lcv.studies.ablation_measure import measure
from lcv.studies.ablation_split import (
    TEST_SEED,
    check_apart,
    check_not_trained_on,
    held_out_config,
    held_out_records,
    procedural_test_pairs,
    split_files,
    split_scenes,
    write_list,
)
from lcv.train import DataConfig, PartConfig, TrainConfig
from lcv.train.batches import Procedural
from lcv.train.distributed import Processes
from lcv.train.files import Files, name_of
from lcv.train.validate import HELD_OUT_SEED, held_out_pairs
from testing import datasets
from testing.ablating import textures, tiny_base


@given(st.lists(st.text(min_size=1, max_size=8), min_size=3, max_size=60, unique=True))
def test_scenes_are_on_one_side_in_fixed_shares(scenes):
    for rule in ("hash", "every-fifth"):
        validation, test = split_scenes(scenes, rule)
        assert not set(validation) & set(test)
        assert set(validation) | set(test) < set(scenes)
        assert len(validation) == max(1, len(scenes) // 10)
        fifth = len(scenes) // 5 if rule == "hash" else -(-len(scenes) // 5)
        assert len(test) == max(1, fifth)
        assert split_scenes(list(reversed(scenes)), rule) == (validation, test)


def test_every_fifth_is_the_split_that_vcn_and_the_paper_use():
    scenes = [f"{number:06d}" for number in range(200)]
    _, test = split_scenes(scenes, "every-fifth")
    assert {int(scene) for scene in test} == set(validation_scenes("vcn"))


def test_too_few_scenes_and_unknown_rules_are_refused():
    with pytest.raises(ArgumentError, match="have 2 scenes, wanted at least 3"):
        split_scenes(["a", "b"])
    with pytest.raises(ArgumentError, match="split is 'random', wanted one of hash, every-fifth"):
        split_scenes(["a", "b", "c"], "random")
    assert split_scenes(["a", "b", "c"], "every-fifth")[1] == ["a"]


def test_the_split_by_hash_is_the_one_of_stored_studies():
    scenes = [f"scene_{number}" for number in range(20)]
    order = sorted(scenes, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    assert split_scenes(scenes) == (sorted(order[4:6]), sorted(order[:4]))


def test_the_seed_of_the_test_is_the_one_of_stored_studies():
    """Another one would make other pairs, whose numbers could not stand beside the old ones."""
    assert TEST_SEED == 3_221_225_472


@pytest.fixture
def sintel(tmp_path):
    scenes = dict.fromkeys(("alley_1", "bamboo_1", "cave_4", "market_5", "temple_3"), 3)
    datasets.sintel(tmp_path / "Sintel", scenes, maps=False)
    part = PartConfig("sintel", "raft-sintel", 2, options={"passes": ["clean", "final"]})
    data = DataConfig(source="files", root=str(tmp_path), parts=(part,), size=(64, 64), workers=0)
    return TrainConfig(data=data, batch=2)


def test_files_are_split_by_scene_and_training_never_reads_the_others(sintel, tmp_path):
    split = split_files(sintel.data)
    assert len(split.training) == 3
    assert len({r.scene for r in split.validation}) == len({r.scene for r in split.test}) == 1
    # Both passes of a scene are on its side.
    assert {r.name.partition("/")[0] for r in split.test} == {"clean", "final"}
    assert len(split.test) == 2 * 2

    config, lists = held_out_config(sintel, tmp_path)
    assert config.best == "validation/epe"
    assert config.validation == {"validation": str(tmp_path / "validation.txt")}
    source = Files(config, Processes(0, 1, torch.device("cpu")), torch.float32)
    read = {source.item(index).record.scene for index in range(3 * len(source.mix))}
    assert read == set(split.training)
    for path, records in lists.items():
        write_list(records, path)
        again = listfile(path)
        assert [r.image1 for r in again] == [r.image1.absolute() for r in records]
        assert [r.flow for r in again] == [r.flow.absolute() for r in records]
    # Read back, they have the names and scenes of their dataset again.
    assert held_out_records(config.data, tmp_path / "test.txt") == list(split.test)


def test_a_frame_on_both_sides_is_found_whatever_its_scene_is_called(tmp_path):
    home = datasets.sequence_list(tmp_path / "film", frames=7)
    lines = home.read_text().splitlines()[1:]
    folders = []
    for number, line in enumerate(lines):
        # Every pair pretends to a scene of its own, though neighbours share a frame.
        scene = tmp_path / "film" / f"scene{number}"
        scene.mkdir()
        folders.append(" ".join(f"scene{number}/../{word}" for word in line.split()))
    home.write_text("\n".join(folders) + "\n")
    data = DataConfig(source="files", parts=(PartConfig("list", "raft-chairs", root=str(home)),))
    with pytest.raises(ArgumentError, match="is a frame of .* on one side of the split"):
        split_files(data)


@pytest.mark.parametrize("column", [0, 1])  # the first frame of a pair, the second
@pytest.mark.parametrize("other", ["training", "validation"])
def test_one_frame_of_the_test_anywhere_else_is_found(tmp_path, column, other):
    film = datasets.sequence_list(tmp_path, frames=10)
    words = [line.split() for line in film.read_text().splitlines()[1::2]]  # share no frame
    for number in range(len(words)):
        (tmp_path / f"scene{number}").mkdir()

    def data():
        lines = [" ".join(f"scene{n}/../{w}" for w in pair) for n, pair in enumerate(words)]
        film.write_text("\n".join(lines) + "\n")
        part = PartConfig("list", "raft-chairs", root=str(film))
        return DataConfig(source="files", parts=(part,))

    split = split_files(data())
    scenes = {"training": split.training[0], "validation": split.validation[0].scene}
    number = {record.scene: n for n, record in enumerate(listfile(film))}
    words[number[split.test[0].scene]][column] = words[number[scenes[other]]][column]
    with pytest.raises(ArgumentError, match="is a frame of .* on one side of the split"):
        split_files(data())


def test_data_without_truth_cannot_be_split(tmp_path):
    home = datasets.sequence_list(tmp_path / "film", frames=4)
    words = [line.split() for line in home.read_text().splitlines()[1:]]
    for number, pair in enumerate(words):
        (tmp_path / "film" / str(number)).mkdir()
        for name in pair[:2]:
            target = tmp_path / "film" / str(number) / name
            target.write_bytes((tmp_path / "film" / name).read_bytes())
    home.write_text("".join(f"{i}/{pair[0]} {i}/{pair[1]}\n" for i, pair in enumerate(words)))
    data = DataConfig(source="files", parts=(PartConfig("list", "raft-chairs", root=str(home)),))
    with pytest.raises(ArgumentError, match="has no truth, by which the study could choose"):
        split_files(data)


def test_a_test_folder_that_is_trained_on_is_refused(sintel, tmp_path):
    config, _ = held_out_config(sintel, tmp_path)
    with pytest.raises(ArgumentError, match="the numbers would not be held out"):
        check_not_trained_on(config, str(tmp_path / "Sintel"))
    other = datasets.middlebury(tmp_path / "other", ["Grove", "Urban"])
    check_not_trained_on(config, str(other))
    held_out = {name_of(r) for r in split_files(sintel.data).test}
    assert held_out <= set(config.data.exclude)


def test_the_held_out_scenes_are_what_is_measured(sintel, tmp_path):
    config, lists = held_out_config(sintel, tmp_path)
    for path, records in lists.items():
        write_list(records, path)
    tests = {"held-out": str(tmp_path / "test.txt")}
    model = build("raft-small", "euclidean")
    found = measure(model, replace(config, validate_iters=1), tests, 0, torch.device("cpu"))
    pairs = found["held-out"]["pairs"]
    assert pairs["names"] == [name_of(record) for record in lists[tmp_path / "test.txt"]]
    assert len(set(pairs["scenes"])) == 1  # both passes of a scene are one witness
    assert found["held-out"]["metrics"]["epe"] == pytest.approx(sum(pairs["epe"]) / 4)


def test_procedural_parts_share_no_scene_and_training_no_texture(tmp_path):
    base = tiny_base(tmp_path)
    cpu = torch.device("cpu")
    train = load_bank(base.data.textures)
    held_out = load_bank(base.data.textures, "held-out")
    assert not any(torch.equal(a, b) for a in train for b in held_out)
    assert TEST_SEED != HELD_OUT_SEED
    assert min(TEST_SEED, HELD_OUT_SEED) >= 2**30  # beyond any seed that a study takes
    source = Procedural(base, Processes(0, 1, cpu), torch.float32)
    images = [next(source.batches(0)).image1[:1]]
    images.append(next(held_out_pairs(base, cpu))[0][:1])
    images.append(next(procedural_test_pairs(base, 3, cpu))[0][:1])
    for i in range(3):
        for j in range(i):
            assert (images[i] - images[j]).abs().mean() > 10  # grey levels


@pytest.mark.parametrize(
    ("pairs", "seed"),
    [(held_out_pairs, HELD_OUT_SEED), (partial(procedural_test_pairs, count=1), TEST_SEED)],
)
@pytest.mark.parametrize("kind", ["procedural", "photographs", "detailed photographs"])
def test_validation_and_test_are_painted_with_the_held_out_textures(
    pairs, seed, kind, tmp_path, monkeypatch
):
    def small_bank(part, *, size=64, device="cpu"):
        return procedural_bank(part, count=4, size=size, device=device)

    monkeypatch.setattr("lcv.train.batches.procedural_bank", small_bank)
    monkeypatch.setattr("lcv.data.synthetic.textures.procedural_bank", small_bank)
    monkeypatch.setattr("lcv.train.batches.load_bank", partial(load_bank, size=64))
    folder = None if kind == "procedural" else str(textures(tmp_path))
    detailed = kind == "detailed photographs"
    data = DataConfig(recipe="quick", size=(64, 64), textures=folder, detailed=detailed)
    cpu = torch.device("cpu")
    made = next(pairs(TrainConfig(data=data), device=cpu))[0][:1]

    def painted(part):
        if folder is None:
            bank = small_bank(part)
        else:
            bank = load_bank(folder, part, size=64, detailed=detailed)
        return generate(RECIPES["quick"], seed, [0], (64, 64), "cpu", textures=bank).image1

    torch.testing.assert_close(made, painted("held-out"))
    assert (made - painted("train")).abs().mean() > 1  # grey levels: this would be noticed


def test_the_test_is_the_same_for_every_seed_and_count(tmp_path):
    base = tiny_base(tmp_path)
    cpu = torch.device("cpu")
    few = torch.cat([pair[0] for pair in procedural_test_pairs(base, 3, cpu)])
    many = torch.cat([p[0] for p in procedural_test_pairs(replace(base, seed=7), 9, cpu)])
    assert (len(few), len(many)) == (3, 9)
    assert torch.equal(few, many[:3])


def test_a_list_is_quoted_and_refuses_what_it_cannot_name(tmp_path):
    first = Record("a", tmp_path / 'a "1".png', tmp_path / "b.png", tmp_path / "c.flo", dataset="d")
    write_list([first], tmp_path / "list.txt")
    write_list([first], tmp_path / "list.txt")  # again, by another process of the study
    assert (tmp_path / "list.txt").read_text() == (
        f'\'{tmp_path}/a "1".png\' "{tmp_path}/b.png" "{tmp_path}/c.flo"\n'
    )
    for change in ({"step": 2}, {"disparity": 256.0}, {"flow": None}):
        with pytest.raises(
            ArgumentError, match="d/a: truth of this kind cannot be named in a list"
        ):
            write_list([first, replace(first, **change)], tmp_path / "other.txt")
    assert not (tmp_path / "other.txt").exists()


def test_a_list_of_pairs_that_are_not_trained_on_is_refused(sintel, tmp_path):
    other = datasets.sequence_list(tmp_path / "film", frames=2)
    with pytest.raises(ArgumentError, match="which is not among the training data"):
        held_out_records(sintel.data, other)


def test_the_two_that_share_a_frame_are_named_in_order(tmp_path):
    one, two = (
        Record(name, tmp_path / f"{name}.png", tmp_path / "same.png", dataset="d")
        for name in ("one", "two")
    )
    with pytest.raises(
        ArgumentError, match=r"same\.png: is a frame of 'd/one' on one side .* and of 'd/two'"
    ):
        check_apart([one], [two])
    check_apart([one], [])


def test_procedural_data_are_validated_on_held_out_pairs(tmp_path):
    config, lists = held_out_config(tiny_base(tmp_path), tmp_path)
    assert lists == {}
    assert (config.validation, config.best) == ({"validation": "procedural"}, "validation/epe")
    check_not_trained_on(config, str(datasets.middlebury(tmp_path / "other", ["Grove"])))


def test_pairs_of_the_test_are_known_at_every_pixel(tmp_path):
    (pair,) = procedural_test_pairs(tiny_base(tmp_path), 1, torch.device("cpu"))
    assert pair[3].shape == (1, 1, 64, 64)
    assert pair[3].all()
