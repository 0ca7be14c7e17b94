"""Training without truth: three stages that learn, W at I until the last, truth never read."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image

from lcv.errors import ArgumentError, FileError
from lcv.losses.census import census_loss
from lcv.losses.occlusion import occluded_by_consistency
from lcv.models.build import load
from lcv.models.types import FlowOutput
from lcv.train import DataConfig, LossConfig, ModelConfig, OptimConfig, PartConfig, run
from lcv.train.batches import Procedural, TrainBatch
from lcv.train.checkpoint import read
from lcv.train.config import STAGES, TrainConfig
from lcv.train.log import read_log
from lcv.train.network import make_model
from lcv.train.unsupervised import Seen, Teacher, patch_offset, patch_size, unsupervised_loss
from testing.shared import shared

CPU = torch.device("cpu")
SHIFT = (2, -1)
SIZE = (32, 48)
CONTEXT = "context.conv7.bias"  # a parameter that every step moves


def easy_pair() -> TrainBatch:
    """Smooth colours that move by (2, −1) pixels, what comes into view included."""
    h, w = SIZE
    generator = torch.Generator().manual_seed(0)
    wide = torch.rand(1, 3, 6, 7, generator=generator)
    wide = F.interpolate(wide, (h + 16, w + 16), mode="bicubic", align_corners=False)
    wide = 255 * (wide - wide.min()) / (wide.max() - wide.min())
    x, y = SHIFT
    image1 = wide[..., 8 : 8 + h, 8 : 8 + w]
    image2 = wide[..., 8 - y : 8 - y + h, 8 - x : 8 - x + w]
    flow = torch.tensor(SHIFT).float().view(1, 2, 1, 1).expand(1, 2, h, w)
    valid = torch.ones(1, 1, h, w, dtype=torch.bool)
    weight = torch.ones_like(flow[:, :1])
    return TrainBatch(*(x.contiguous() for x in (image1, image2, flow, valid, weight)))


class Easy:
    """A source of that one pair."""

    def __init__(self, *_) -> None:
        self.batch = easy_pair()

    def batches(self, first_step):
        while True:
            yield self.batch


def configured(stage: str, folder: Path, weights: Path | None = None, **changes) -> TrainConfig:
    steps = changes.get("steps", 2)
    free = stage == "distillation"
    defaults = {
        "model": ModelConfig("ddflow", weights=None if weights is None else str(weights)),
        "data": DataConfig(recipe="quick", size=SIZE, ahead=2, workers=0),
        "optim": OptimConfig(
            lr=3e-4 if stage == "photometric" else 1e-4,  # more empties the masks
            schedule="constant",
            weight_decay=0.0,
            clip=1e9,
            w_from_step=0 if free else steps,
        ),
        "loss": LossConfig("unsupervised", stage=stage, iters=None),
        "steps": steps,
        "batch": 1,
        "precision": "float32",
        "folder": str(folder),
        "log_every": 1,
        "save_every": 100,
        "validate_every": 0,
    }
    return TrainConfig(**{**defaults, **changes})


@pytest.fixture(scope="module")
def stages(tmp_path_factory):
    """The three stages on the easy pair: by name, configuration, log, checkpoint and weights."""
    done, weights = {}, None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lcv.train.loop.make_source", Easy)
        for stage, steps in (("photometric", 30), ("census", 15), ("distillation", 15)):
            folder = tmp_path_factory.mktemp(stage)
            config = configured(stage, folder, weights, steps=steps)
            run(config, device="cpu")
            weights = folder / "weights.safetensors"
            done[stage] = SimpleNamespace(
                config=config,
                log=[e for e in read_log(folder / "log.jsonl") if e["kind"] == "train"],
                checkpoint=read(folder / "checkpoints" / "last.pt"),
                weights=weights,
            )
    return done


def test_the_photometric_stage_finds_the_motion_that_nobody_told_it(stages):
    first, last = stages["photometric"].log[0], stages["photometric"].log[-1]
    assert last["loss"] < 0.75 * first["loss"]
    # Neither the start nor zero flow is as good.
    assert last["epe"] < 0.5 * min(first["epe"], float(np.hypot(*SHIFT)))


def test_the_census_stage_goes_on_from_there(stages):
    before, log = stages["photometric"].log, stages["census"].log
    assert log[-1]["loss"] < 0.9 * log[0]["loss"]
    assert log[0]["epe"] < 0.5 * before[0]["epe"]
    assert log[-1]["epe"] < log[0]["epe"]


def test_distillation_lowers_its_loss(stages):
    # Patches differ from step to step, so the same ones are looked at before and after.
    teacher = Teacher(stages["distillation"].config, CPU, torch.float32)

    def mean_loss(weights):
        model = load("ddflow", weights)
        with torch.no_grad():
            losses = []
            for step in range(6):
                part, seen = teacher.look(easy_pair(), torch.tensor(step))
                output = model(part.image1, part.image2)
                images = part.image1, part.image2
                losses.append(unsupervised_loss("distillation", output, *images, seen))
        return float(torch.stack(losses).mean())

    assert mean_loss(stages["distillation"].weights) < 0.95 * mean_loss(stages["census"].weights)


def test_w_is_exactly_the_identity_until_the_last_stage_though_it_has_a_gradient(stages):
    for stage in STAGES:
        products = load("ddflow", stages[stage].weights).inner_products
        moved = {
            level: not torch.equal(product.matrix(), torch.eye(product.channels))
            for level, product in products.items()
        }
        assert any(moved.values()) == moved["2"] == (stage == "distillation")
        # The optimiser's second moments of W: sums of squared gradients.
        groups = stages[stage].checkpoint["optimisers"][0]
        moments = [groups["state"][i]["exp_avg_sq"] for i in groups["param_groups"][1]["params"]]
        assert sum(float(m.sum()) for m in moments) > 0


def test_w_can_be_freed_from_the_first_step(tmp_path):
    config = configured("photometric", tmp_path)
    model = run(replace(config, optim=replace(config.optim, w_from_step=0)), device="cpu")
    W = model.inner_product.matrix()
    assert not torch.equal(W, torch.eye(len(W)))


def test_teacher_and_student_begin_with_the_stage_before(stages):
    config = stages["distillation"].config
    assert config.loss.teacher is None
    stored = load("ddflow", stages["census"].weights).state_dict()
    teacher = Teacher(config, CPU, torch.float32).model
    for model in (make_model(config)[0], teacher):
        for name, value in model.state_dict().items():
            assert torch.equal(value, stored[name]), name
    assert not teacher.training
    assert not any(p.requires_grad for p in teacher.parameters())

    other = str(stages["photometric"].weights)
    chosen = Teacher(replace(config, loss=replace(config.loss, teacher=other)), CPU, torch.float32)
    assert not torch.equal(chosen.model.state_dict()[CONTEXT], stored[CONTEXT])


class Poisoned(Procedural):
    """Pairs whose truth is NaN, and half of it called invalid."""

    def _make(self, indices):
        batch = super()._make(indices)
        batch.flow.fill_(torch.nan)
        batch.valid[:, :, ::2] = False
        return batch


@pytest.mark.parametrize("stage", STAGES)
def test_truth_is_never_read(stages, tmp_path, monkeypatch, stage):
    weights = stages["census"].weights
    sound = run(configured(stage, tmp_path / "a", weights), device="cpu").state_dict()
    monkeypatch.setattr("lcv.train.batches.Procedural", Poisoned)
    other = run(configured(stage, tmp_path / "b", weights), device="cpu").state_dict()
    for name, value in sound.items():
        assert torch.equal(other[name], value), name


def test_a_resumed_distillation_equals_an_uninterrupted_one_to_the_bit(stages, tmp_path):
    weights = stages["census"].weights
    whole = configured("distillation", tmp_path / "whole", weights, steps=4)
    parts = replace(whole, folder=str(tmp_path / "parts"))
    run(parts, device="cpu", until=3)
    resumed = run(parts, resume="auto", device="cpu").state_dict()
    for name, value in run(whole, device="cpu").state_dict().items():
        assert torch.equal(resumed[name], value), name


def some_output(batch: int = 4) -> tuple[FlowOutput, torch.Tensor, torch.Tensor, Seen]:
    """Flows of a pixel or two that disagree here and there, float64."""
    generator = torch.Generator().manual_seed(1)

    def smooth(channels: int) -> torch.Tensor:
        coarse = torch.randn(batch, channels, 4, 5, generator=generator, dtype=torch.float64)
        return F.interpolate(coarse, (12, 15), mode="bilinear", align_corners=False)

    fw, bw = smooth(2), smooth(2)
    output = FlowOutput(fw, backward=FlowOutput(bw))
    seen = Seen(fw + smooth(2), bw + smooth(2), smooth(1) > 0.5, smooth(1) > 0.5)
    return output, 128 + 60 * smooth(3), 128 + 60 * smooth(3), seen


def half(x, part: slice):
    if isinstance(x, torch.Tensor):
        return x[part]
    if isinstance(x, FlowOutput):
        return FlowOutput(x.flow[part], backward=FlowOutput(x.backward.flow[part]))
    return Seen(*(getattr(x, field.name)[part] for field in fields(x)))


@pytest.mark.parametrize("stage", STAGES)
def test_two_processes_losses_average_to_that_of_the_whole_batch(stage):
    inputs = some_output()
    parts = [[half(x, part) for x in inputs] for part in (slice(0, 1), slice(1, None))]
    counts: list[list[torch.Tensor]] = [[], []]
    for mine, values in zip(counts, parts, strict=True):
        unsupervised_loss(stage, *values, reduce_count=lambda c, mine=mine: mine.append(c) or c)
    assert len(counts[0]) == {"photometric": 2, "census": 2, "distillation": 4}[stage]

    def mean_of(values):
        shared_counts = iter([(a + b) / 2 for a, b in zip(*counts, strict=True)])
        return unsupervised_loss(stage, *values, reduce_count=lambda _: next(shared_counts))

    together = sum(mean_of(values) for values in parts) / 2
    whole = unsupervised_loss(stage, *inputs)
    # The 1e-6 in the denominator counts once a process.
    torch.testing.assert_close(together, whole, rtol=1e-7, atol=0)
    apart = sum(unsupervised_loss(stage, *values) for values in parts) / 2
    assert abs(apart - whole) > 1e-4


def test_distillation_adds_nothing_where_the_whole_crop_hides_all():
    output, image1, image2, seen = some_output()
    fw, bw = output.flow, output.backward.flow
    hidden_fw, hidden_bw = occluded_by_consistency(fw, bw)
    census = census_loss(image1, image2, fw, bw, ~hidden_fw, ~hidden_bw)
    assert torch.equal(unsupervised_loss("census", output, image1, image2), census)
    blind = replace(
        seen,
        occluded_fw=torch.ones_like(seen.occluded_fw),
        occluded_bw=torch.ones_like(seen.occluded_bw),
    )
    assert torch.equal(unsupervised_loss("distillation", output, image1, image2, blind), census)
    assert unsupervised_loss("distillation", output, image1, image2, seen) > census


def test_the_patch_has_ddflows_sizes_and_places():
    assert patch_size((320, 896), LossConfig().patch) == (224, 640)
    places = [patch_offset(3, torch.tensor(step), (96, 256)) for step in range(2000)]
    rows, columns = ([int(place[axis]) for place in places] for axis in (0, 1))
    assert (min(rows), max(rows)) == (0, 95)
    assert min(columns) < 4
    assert 251 < max(columns) < 256
    assert abs(np.corrcoef(rows, columns)[0, 1]) < 0.1
    assert patch_offset(3, torch.tensor(7), (96, 256)) == places[7]
    others = [patch_offset(4, torch.tensor(step), (96, 256)) for step in range(20)]
    assert others != places[:20]
    assert [int(k) for k in patch_offset(3, torch.tensor(7), (0, 1))] == [0, 0]


def test_the_student_sees_a_patch_and_the_teachers_flow_of_it(stages):
    teacher = Teacher(stages["distillation"].config, CPU, torch.float32)
    batch, step = easy_pair(), torch.tensor(5)
    part, seen = teacher.look(batch, step)
    y, x = patch_offset(0, step, (32 - 22, 48 - 34))
    where = (..., slice(int(y), int(y) + 22), slice(int(x), int(x) + 34))
    for field in fields(batch):
        assert torch.equal(getattr(part, field.name), getattr(batch, field.name)[where])
    with torch.no_grad():
        whole = teacher.model(batch.image1, batch.image2)
    hidden = occluded_by_consistency(whole.flow, whole.backward.flow)
    wanted = (whole.flow, whole.backward.flow, *hidden)
    for field, value in zip(fields(seen), wanted, strict=True):
        assert torch.equal(getattr(seen, field.name), value[where])


def on_files(stage: str, folder: Path, root: Path, dataset: str, **changes) -> TrainConfig:
    part = PartConfig(dataset, "ddflow", root=root.name)
    data = DataConfig(
        source="files", root=str(root.parent), parts=(part,), size=(48, 64), workers=0
    )
    return configured(stage, folder, data=data, **changes)


def test_a_folder_of_frames_is_enough(tmp_path):
    generator = np.random.default_rng(0)
    (tmp_path / "walk").mkdir()
    for k in range(4):
        picture = generator.integers(0, 256, (50, 70, 3), dtype=np.uint8)
        Image.fromarray(picture).save(tmp_path / "walk" / f"{k:03d}.png")
    config = on_files("photometric", tmp_path / "run", tmp_path / "walk", "frames", batch=2)
    run(config, device="cpu")
    for entry in read_log(tmp_path / "run" / "log.jsonl"):
        assert entry["loss"] > 0
        assert "epe" not in entry  # there is nothing to judge it by
    supervised = replace(config, loss=LossConfig(iters=None), folder=str(tmp_path / "again"))
    with pytest.raises(ArgumentError, match="frames/000 has no truth to train on; .*unsupervised"):
        run(supervised, device="cpu")


def test_truth_on_the_disk_is_not_even_opened(tmp_path):
    for k in (1, 2):
        Image.new("RGB", (70, 50), (k * 90, 10, 200)).save(tmp_path / f"{k}.png")
    (tmp_path / "1.flo").write_text("no flow at all")
    (tmp_path / "pairs.txt").write_text("1.png 2.png 1.flo\n1.png 2.png\n")
    config = on_files("photometric", tmp_path / "run", tmp_path / "pairs.txt", "list", steps=1)
    run(replace(config, batch=2), device="cpu")
    (tmp_path / "pairs.txt").write_text("1.png 2.png 1.flo\n")
    supervised = replace(config, loss=LossConfig(iters=None), folder=str(tmp_path / "again"))
    with pytest.raises(FileError, match=r"1\.flo"):
        run(supervised, device="cpu")


def test_a_film_is_enough(tmp_path):
    film = shared("data", "video", "mmflow-demo.mp4")
    model = run(on_files("photometric", tmp_path / "run", film, "videos", steps=1), device="cpu")
    torch.manual_seed(0)
    start = make_model(configured("photometric", tmp_path))[0].state_dict()
    assert not torch.equal(model.state_dict()[CONTEXT], start[CONTEXT])


def test_what_cannot_be_is_refused(tmp_path):
    with pytest.raises(ArgumentError, match="loss.stage is 'cencus', wanted one of photometric"):
        configured("cencus", tmp_path)
    with pytest.raises(ArgumentError, match=r"loss.patch is \(0.5, 1.5\), wanted shares above 0"):
        configured("census", tmp_path, loss=LossConfig("unsupervised", patch=(0.5, 1.5)))
    with pytest.raises(ArgumentError, match="loss.teacher and model.weights are both None"):
        run(configured("distillation", tmp_path), device="cpu")
    output, image1, image2, _ = some_output()
    with pytest.raises(ArgumentError, match="gives no backward flow; .* model.name ddflow"):
        unsupervised_loss("census", replace(output, backward=None), image1, image2)
    with pytest.raises(ArgumentError, match="wants what the teacher saw"):
        unsupervised_loss("distillation", output, image1, image2)
