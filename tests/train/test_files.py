"""Batches from files: one order, one augmentation a sample, whatever reads and shares them."""

from __future__ import annotations

import os
import signal
from collections import Counter
from dataclasses import fields, replace
from itertools import islice

import pytest
import torch

from lcv.data.augment import AUGMENTATIONS, augment, pad_samples
from lcv.errors import ArgumentError, FileError
from lcv.train import DataConfig, LossConfig, PartConfig, TrainConfig, files, run
from lcv.train.batches import make_source
from lcv.train.distributed import Processes
from lcv.train.files import Files, Reader, _begin_worker, name_of
from testing import datasets

CPU = torch.device("cpu")
SINTEL = PartConfig("sintel", "raft-sintel", weight=2)
KITTI = PartConfig("kitti", "raft-sintel-kitti", weight=3)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Three dense pairs and two sparse ones: 2·3 + 3·2 = 12 samples an epoch."""
    folder = tmp_path_factory.mktemp("datasets")
    datasets.sintel(folder / "Sintel", {"alley_1": 4}, test={"cave_3": 2}, maps=False)
    datasets.kitti(folder / "KITTI", [0, 7])
    return folder


def config_of(root, parts=(SINTEL, KITTI), **changes) -> TrainConfig:
    settings = {"workers": 0, "size": (48, 64), **changes}
    data = DataConfig(source="files", root=str(root), parts=parts, **settings)
    return TrainConfig(data=data, batch=4, seed=5, precision="float32")


def source_of(config: TrainConfig, rank: int = 0, world: int = 1) -> Files:
    source = make_source(config, Processes(rank, world, CPU), torch.float32)
    assert isinstance(source, Files)
    return source


def take(source: Files, first: int, count: int) -> list:
    return list(islice(source.batches(first), count))


def assert_same(one, other) -> None:
    for field in fields(one):
        assert torch.equal(getattr(one, field.name), getattr(other, field.name)), field.name


@pytest.mark.parametrize(("is_parent", "status"), [(True, 0), (False, 1)])
def test_a_worker_whose_run_is_gone_before_it_has_begun_goes_too(is_parent, status):
    run_of_it = os.getpid() if is_parent else 0
    child = os.fork()
    if not child:
        _begin_worker(run_of_it, 0)
        handlers = {signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        os._exit(0 if handlers == {signal.SIG_IGN} else 3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == status


def test_batches_are_the_same_at_any_number_of_workers(root):
    alone = take(source_of(config_of(root)), 0, 4)
    for batch in alone:
        assert batch.image1.shape == (4, 3, 48, 64)
        assert batch.flow.shape == (4, 2, 48, 64)
        assert batch.valid.dtype == torch.bool
        assert torch.equal(batch.weight, torch.ones(4, 1, 48, 64))
    for one, other in zip(
        alone, take(source_of(config_of(root, workers=2, ahead=3)), 0, 4), strict=True
    ):
        assert_same(one, other)


@pytest.mark.parametrize(
    ("workers", "ahead", "prefetch"), [(0, 4, None), (2, 3, 2), (2, 4, 2), (4, 1, 1), (1, 3, 3)]
)
def test_workers_hold_as_many_batches_ready_as_are_wanted(
    root, monkeypatch, workers, ahead, prefetch
):
    asked = []
    monkeypatch.setattr(files, "DataLoader", lambda *_, **words: asked.append(words) or iter(()))
    assert list(source_of(config_of(root, workers=workers, ahead=ahead)).batches(3)) == []
    (words,) = asked
    assert (words["num_workers"], words["prefetch_factor"]) == (workers, prefetch)
    assert words["multiprocessing_context"] == ("spawn" if workers else None)
    assert words["pin_memory"] is False
    assert words["collate_fn"]("as it is") == "as it is"
    assert words["worker_init_fn"].args == (os.getpid(),)
    first = next(iter(words["batch_sampler"]))
    assert [item.index for item in first] == [12, 13, 14, 15]


def test_without_supervision_no_truth_is_known(root):
    config = replace(config_of(root), loss=LossConfig("unsupervised", iters=None))
    source = source_of(config)
    assert all(item.record.flow is None for item in source.items(0))
    (batch,) = take(source, 0, 1)
    assert torch.equal(batch.flow, torch.zeros(4, 2, 48, 64))
    assert torch.equal(batch.valid, torch.zeros(4, 1, 48, 64, dtype=torch.bool))


def test_the_orders_of_two_epochs_are_kept(root):
    source = source_of(config_of(root))
    for epoch in (0, 1, 2, 1, 3):
        source.item(12 * epoch)
    assert sorted(source._orders) == [2, 3]


def test_a_reader_groups_samples_by_part_and_reads_no_maps(root):
    source, asked = source_of(config_of(root)), []

    class Noted:
        def __init__(self, record) -> None:
            self.record = record

        def read(self, maps):
            asked.append(maps)
            return self.record.read(maps)

    items = [replace(item, record=Noted(item.record)) for item in map(source.item, range(6))]
    groups = Reader().__getitems__(items)
    assert asked == [False] * 6
    parts = [item.part for item in items]
    assert [group.part for group in groups] == list(dict.fromkeys(parts))
    for group in groups:
        places = [k for k in range(6) if parts[k] == group.part]
        assert (group.places, group.indices.tolist()) == (places, places)


def test_batches_are_the_same_from_any_step_on(root):
    whole = take(source_of(config_of(root)), 0, 5)
    for one, other in zip(whole[3:], take(source_of(config_of(root)), 3, 2), strict=True):
        assert_same(one, other)


def test_batches_are_the_same_over_any_number_of_processes(root):
    (whole,) = take(source_of(config_of(root)), 2, 1)
    shares = [take(source_of(config_of(root), rank, 2), 2, 1)[0] for rank in (0, 1)]
    for field in fields(whole):
        joined = torch.cat([getattr(share, field.name) for share in shares])
        assert torch.equal(joined, getattr(whole, field.name))


def test_a_sample_is_its_record_augmented_by_its_number_in_the_run(root):
    config = config_of(root)
    source = source_of(config)
    (batch,) = take(source, 5, 1)
    for place, index in enumerate(range(20, 24)):
        item = source.item(index)
        recipe = AUGMENTATIONS[config.data.parts[item.part].augmentation].with_crop((48, 64))
        alone = augment(pad_samples([item.record.read()], [index]), recipe, seed=5)
        assert torch.equal(batch.image1[place], alone.image1[0])
        assert torch.equal(batch.image2[place], alone.image2[0])
        assert torch.equal(batch.flow[place], alone.flow[0])
        assert torch.equal(batch.valid[place], alone.valid[0])


def test_one_by_one_gives_the_samples_of_the_batch(root):
    source = source_of(config_of(root))
    (batch,) = take(source, 1, 1)
    alone = list(source.one_by_one(1))
    assert [name for name, _ in alone] == source.names(1)
    for field in fields(batch):
        joined = torch.cat([getattr(one, field.name) for _, one in alone])
        assert torch.equal(joined, getattr(batch, field.name))


def test_an_epoch_has_every_record_as_often_as_its_weight(root):
    source = source_of(config_of(root))
    for epoch in (0, 1, 7):
        items = [source.item(12 * epoch + i) for i in range(12)]
        counts = Counter(name_of(item.record) for item in items)
        assert counts == {
            "sintel-clean/clean/alley_1/frame_0001": 2,
            "sintel-clean/clean/alley_1/frame_0002": 2,
            "sintel-clean/clean/alley_1/frame_0003": 2,
            "kitti2015/000000_10": 3,
            "kitti2015/000007_10": 3,
        }
        assert all((item.part == 1) == (item.record.dataset == "kitti2015") for item in items)


def test_the_order_follows_from_seed_and_epoch_alone(root):
    def order(source, epoch):
        return [name_of(source.item(12 * epoch + i).record) for i in range(12)]

    source = source_of(config_of(root))
    forwards = [order(source, epoch) for epoch in range(4)]
    backwards = [order(source_of(config_of(root)), epoch) for epoch in (3, 2, 1, 0)]
    assert forwards == backwards[::-1]
    assert forwards[0] != forwards[1]
    assert order(source_of(replace(config_of(root), seed=6)), 0) != forwards[0]


def test_an_excluded_record_gives_way_to_the_next_and_the_others_stay(root):
    plain = source_of(config_of(root))
    out = "kitti2015/000007_10"
    without = source_of(config_of(root, exclude=(out,)))
    before = [name_of(plain.item(i).record) for i in range(24)]
    after = [name_of(without.item(i).record) for i in range(24)]
    assert out in before
    assert out not in after
    for start in (0, 12):
        for place in range(start, start + 12):
            k = place
            while before[k] == out:
                k = k + 1 if k + 1 < start + 12 else start
            assert after[place] == before[k]


def test_reading_draws_nothing_from_torchs_own_stream(root):
    before = torch.get_rng_state()
    take(source_of(config_of(root)), 0, 1)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_file_that_cannot_be_read_stops_the_run_when_its_turn_comes(tmp_path):
    datasets.chairs(tmp_path / "chairs", count=8)
    part = PartConfig("chairs", "raft-chairs")
    source = source_of(config_of(tmp_path, (part,), workers=1))
    name = source.names(1)[2]
    bad = tmp_path / "chairs" / "data" / f"{name.rpartition('/')[2]}_img2.ppm"
    bad.write_bytes(bad.read_bytes()[:100])
    batches = source.batches(0)
    next(batches)
    with pytest.raises(FileError, match=bad.name) as caught:
        next(batches)
    assert f"the sample is '{name}', and data.exclude can leave it out" in str(caught.value)
    assert "Traceback" not in str(caught.value)
    with pytest.raises(FileError, match=bad.name):
        list(source.one_by_one(1))


def test_a_run_on_files_resumes_to_the_bit(root, tiny, tmp_path):
    config = replace(tiny(steps=4, batch=2), data=config_of(root, size=(64, 64)).data)
    straight = run(replace(config, folder=str(tmp_path / "a")), device="cpu")
    halved = replace(config, folder=str(tmp_path / "b"))
    run(halved, device="cpu", until=2)
    resumed = run(halved, resume="auto", device="cpu")
    for (name, one), other in zip(
        straight.state_dict().items(), resumed.state_dict().values(), strict=True
    ):
        assert torch.equal(one, other), name


@pytest.mark.parametrize(
    ("parts", "changes", "message"),
    [
        ((), {}, "data.parts is empty, wanted at least one dataset"),
        ((replace(SINTEL, dataset="sintl"),), {}, "no dataset 'sintl', wanted one of chairs"),
        ((replace(SINTEL, augmentation="x"),), {}, "no augmentation 'x', wanted one of raft-"),
        ((replace(SINTEL, options={"pass": 1}),), {}, "sintel has no option 'pass', wanted one"),
        ((replace(SINTEL, weight=0),), {}, "the weight of sintel-training is 0"),
        ((replace(SINTEL, options={"split": "test"}),), {}, "frame_0001 has no truth to train on"),
        ((replace(KITTI, augmentation="raft-sintel"),), {}, "has holes, over which the augment"),
        (
            (SINTEL, KITTI),
            {"exclude": ("kitti2015/00007_10",)},
            "no sample 'kitti2015/00007_10'; there is 'kitti2015/000007_10'",
        ),
        ((SINTEL, KITTI), {"exclude": ("?",)}, r"no sample '\?'; there is 'kitti2015/000000_10'"),
        (
            (KITTI,),
            {"exclude": ("kitti2015/000000_10", "kitti2015/000007_10")},
            "data.exclude leaves no sample",
        ),
    ],
)
def test_what_cannot_be_a_source_is_refused(root, parts, changes, message):
    with pytest.raises(ArgumentError, match=message):
        source_of(config_of(root, parts, **changes))


def test_a_source_that_does_not_exist_is_refused(root):
    config = config_of(root)
    with pytest.raises(ArgumentError, match="data.source is 'file', wanted procedural or files"):
        source_of(replace(config, data=replace(config.data, source="file")))
