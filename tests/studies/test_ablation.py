"""The ablation end to end on a tiny network: one order of data, a null control, stops and resumes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from lcv.errors import ArgumentError, FileError
from lcv.files import only_one
from lcv.inner_product import Rotation
from lcv.models.build import build, load
from lcv.models.cards import save_weights
from lcv.models.published import sha256_of
from lcv.models.raft import RAFT
from lcv.studies import ablation
from lcv.studies.ablation import _Runner, run
from lcv.studies.ablation_cell import untrained
from lcv.studies.ablation_show import markdown, write
from lcv.studies.ablation_study import prepare, read_study
from lcv.studies.ablation_summary import summarise
from lcv.studies.columns import BY_NAME, PAPER, choose, config_for
from lcv.train import loop
from lcv.train import run as run_training
from lcv.train.checkpoint import Folder, read
from lcv.train.log import read_log
from lcv.train.step import Step
from testing.ablating import tiny_base

PAIRS = 2


@pytest.fixture(autouse=True, scope="module")
def short_measures():
    """Validation on two pairs where it has 48."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lcv.train.validate.PAIRS", 2)
        yield


@pytest.fixture(scope="module")
def seven(tmp_path_factory):
    """The paper's seven columns with two seeds, and the batches that each cell was shown."""
    folder = tmp_path_factory.mktemp("seven")
    seen: dict[str, list[str]] = {}
    take = Step.__call__

    def noted(self, batch, number):
        content = b"".join(x.numpy().tobytes() for x in (batch.image1, batch.image2, batch.flow))
        digest = hashlib.sha256(content).hexdigest()
        seen.setdefault(Path(self.config.folder).name, []).append(digest)
        take(self, batch, number)

    said = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Step, "__call__", noted)
        study = prepare(folder / "out", tiny_base(folder), choose(RAFT), (0, 1), pairs=PAIRS)
        outcome = run(study, "cpu", say=said.append)
    assert not outcome.failed
    assert not outcome.left
    return study, seen, said


def test_every_cell_is_measured_at_best_and_last_on_the_same_pairs(seven):
    study, _, said = seven
    cells = list(study.cells())
    assert len(cells) == 1 + 6 * 2  # the weights as they are need no seed
    assert len(said) == len(cells) + 1
    for cell in cells:
        result = study.result(cell)
        for checkpoint in ("best", "last"):
            test = result[checkpoint]["tests"]["procedural"]
            assert test["pairs"]["names"] == ["0", "1"]
            mean = sum(test["pairs"]["epe"]) / PAIRS
            assert test["metrics"]["epe"] == pytest.approx(mean, rel=1e-9)  # equal sizes
        validated = (
            [
                (entry["validation/epe"], entry["step"])
                for entry in read_log(study.folder_of(cell) / "log.jsonl")
                if entry["kind"] == "validation"
            ]
            if cell.column.trained
            else [(0, 0)]
        )
        assert result["best"]["step"] == min(validated)[1]
        assert result["last"]["step"] == (2 if cell.column.trained else 0)


def test_a_seed_shows_every_column_the_same_batches_in_the_same_order(seven):
    study, seen, _ = seven
    trained = [name for name in PAPER if BY_NAME[name].trained]
    for seed in (0, 1):
        orders = [seen[f"{name}-{seed}"] for name in trained]
        assert all(order == orders[0] for order in orders)
        assert len(set(orders[0])) == study.base.steps
    assert not set(seen["continued-0"]) & set(seen["continued-1"])


def test_finished_cells_are_small_and_their_weights_load(seven):
    study, _, _ = seven
    for cell in study.cells():
        files = {path.name for path in study.folder_of(cell).iterdir()}
        kept = {"result.json", "log.jsonl", "config.json", "weights.safetensors", "weights.json"}
        assert files == (kept if cell.column.trained else {"result.json"})
    lcv = study.folder_of(study.cell("lcv", 0)) / "weights.safetensors"
    assert lcv.stat().st_size < 2.2e6  # a million numbers in half precision
    assert load("raft-small", lcv).spec.inner_product == "elliptical"
    result = study.result(study.cell("lcv", 0))
    card = json.loads(lcv.with_suffix(".json").read_text())
    step = result["best"]["step"]
    assert (card["data"], card["seed"]) == ("quick", 0)
    assert card["recipe"] == f"ablation, column lcv, step {step}"
    assert card["scores"] == {"procedural": result["best"]["tests"]["procedural"]["metrics"]}
    assert card["notes"] == ["float16; the scores were measured before rounding"]
    assert (result["format"], result["column"], result["seed"]) == ("lcv ablation cell 1", "lcv", 0)
    seconds = [study.result(cell)["seconds"] for cell in study.cells()]
    assert seconds == [round(value, 1) for value in seconds]
    assert result["provenance"]["weights"]["sha256"] == study.weights_sha256
    assert list(result["last"]["W"]) == ["inner_product"]


def test_a_finished_study_is_left_as_it_is(seven):
    study, _, _ = seven
    said = []
    outcome = run(read_study(study.folder), "cpu", say=said.append)
    assert said == ["13 of 13 cells are done"]
    assert not outcome.done


def test_the_null_control_differs_by_nothing_and_the_others_do(seven):
    """Two steps on a CPU: W = PᵀP multiplies by an exact identity.

    What is left is the norm of the gradient, which has one more part: its last bit, 1e-7 of an
    update, which in two steps is far from the whole error.
    """
    study, _, _ = seven
    for table in summarise(study):
        rows = {row.column.name: row for row in table.rows}
        rounding = 1e-7 * rows["continued"].mean
        assert rows["rotation"].null_control
        assert max(map(abs, rows["rotation"].differences)) < rounding
        for name in ("free", "diagonal", "gram", "lcv"):
            assert max(map(abs, rows[name].differences)) > 10 * rounding
        assert rows["continued"].differences == ()
        assert rows["original"].values == pytest.approx(rows["original"].values[:1])


def test_table_and_plot(seven):
    study, _, _ = seven
    text = markdown(study)
    assert "13 of 13 cells are done" in text
    assert "| P only (null control) | 2 |" in text
    assert text.count("| full LCV | 2 |") == 2  # best and last
    assert write(study) == ["table.md", "plot.svg"]
    picture = (study.folder / "plot.svg").read_text()
    assert "<svg" in picture
    assert "1×1 convolution" in picture


def press(*, at):
    """A listener that presses Ctrl-C when the validation of this step is logged."""

    def listen(entry):
        if entry["kind"] == "validation" and entry["step"] == at:
            os.kill(os.getpid(), signal.SIGINT)

    return listen


def diverge(monkeypatch):
    """Runs without W fail from now on."""
    forward = Step._forward

    def diverging(self, batch):
        loss, epe = forward(self, batch)
        wrong = self.config.model.inner_product == "euclidean"
        return (loss * float("inf") if wrong else loss), epe

    monkeypatch.setattr(Step, "_forward", diverging)


def test_an_interrupted_cell_is_carried_on_to_the_bit(seven, tmp_path):
    study, _, _ = seven
    columns = choose(RAFT, ["lcv"])
    other = replace(study, folder=tmp_path / "out", columns=columns, seeds=(0,))
    outcome = run(other, "cpu", say=lambda _: None, listeners=(press(at=1),))
    assert len(outcome.left) == 2
    assert not run(other, "cpu", say=lambda _: None).left
    for name in ("continued", "lcv"):
        for checkpoint in ("best", "last"):
            one, two = (s.result(s.cell(name, 0))[checkpoint] for s in (study, other))
            assert one == two


def test_a_cell_that_fails_does_not_stop_the_others(seven, tmp_path, monkeypatch):
    study, _, _ = seven
    other = replace(study, folder=tmp_path / "out", columns=choose(RAFT, ["free"]))
    other = replace(other, seeds=(0,))
    with monkeypatch.context() as patch:
        diverge(patch)
        said = []
        outcome = run(other, "cpu", say=said.append, together=True)
    assert [str(cell) for cell in outcome.failed] == ["continued, seed 0"]
    assert [str(cell) for cell in outcome.done] == ["free, seed 0"]
    TestTogether.assert_same(study, replace(other, columns=(BY_NAME["free"],)))
    assert "not finite" in other.failure(other.cell("continued", 0))
    assert any("continued, seed 0: failed: step 0: the loss or its" in line for line in said)
    assert "| continued | 0, 1 failed | – |" in markdown(other)
    # Its folder has the weights before the failure, so the same command tries again from there.
    assert not run(other, "cpu", say=lambda _: None).failed
    assert "failed" not in markdown(other)
    assert other.failure(other.cell("continued", 0)) is None


def test_a_cell_whose_test_cannot_be_read_has_failed(tmp_path, monkeypatch):
    error, noted, said = FileError("a.flo: it is cut"), [], []

    def refuse(*given):
        assert given[1:3] == ("cell 2", "network")
        raise error

    monkeypatch.setattr(ablation, "measure_cell", refuse)
    monkeypatch.setattr(ablation, "note_failure", lambda *given: noted.append(given))
    study = SimpleNamespace(folder_of=lambda cell: tmp_path / cell)
    left = ["cell 1", "cell 2"]
    runner = _Runner(study, "cpu", lambda: False, said.append, None, left)
    runner._measure("cell 2", "network", 0.0)
    assert noted == [(tmp_path / "cell 2", error)]
    assert said == ["cell 2: failed: a.flo: it is cut"]
    outcome = runner.outcome
    assert (outcome.done, outcome.failed, outcome.left) == ([], ["cell 2"], ["cell 1"])


def test_cells_of_another_process_are_left_to_it_and_waited_for(seven, tmp_path, monkeypatch):
    """Two processes share a study: the second takes other cells first, then waits for the first."""
    study, _, _ = seven
    columns = choose(RAFT, ["original", "lcv"])
    other = replace(study, folder=tmp_path / "out", columns=columns, seeds=(0,))
    cell = other.cell("continued", 0)
    shutil.copytree(study.folder_of(cell), other.folder_of(cell))
    result = other.folder_of(cell) / "result.json"
    finished = result.read_bytes()
    result.unlink()
    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    said, lock = [], ExitStack()
    lock.enter_context(only_one(other.folder_of(cell) / "cell"))

    def say(line):
        said.append(line)
        if line.startswith("lcv"):  # the other process ends now
            result.write_bytes(finished)
            lock.close()

    outcome = run(other, "cpu", say=say)
    assert [each.column.name for each in outcome.done] == ["original", "lcv", "continued"]
    assert result.read_bytes() == finished
    assert said[-1].endswith("; 0 s)")  # of the other process
    assert slept == [1.0]  # before it looks again


class TestTogether:
    """All columns of a seed side by side in one process."""

    @pytest.fixture
    def other(self, seven, tmp_path):
        """The study with three of its columns and one of its seeds, not begun."""
        columns = choose(RAFT, ["original", "rotation", "lcv"])
        return replace(seven[0], folder=tmp_path / "out", columns=columns, seeds=(0,))

    @staticmethod
    def assert_same(study, other):
        for cell in other.cells():
            for checkpoint in ("best", "last"):
                assert study.result(cell)[checkpoint] == other.result(cell)[checkpoint]

    def test_gives_the_numbers_that_cells_one_by_one_give(self, seven, other):
        said = []
        outcome = run(other, "cpu", say=said.append, together=True)
        assert not outcome.left
        assert len(outcome.done) == 4
        assert any("step 2 of 2" in line and "of 3 columns" in line for line in said)
        self.assert_same(seven[0], other)
        assert (other.folder / "plot.svg").exists()
        files = {path.name for path in other.folder_of(other.cell("lcv", 0)).iterdir()}
        assert "checkpoints" not in files
        assert "cell.lock" not in files

    def test_stops_in_time_says_what_is_missing_and_goes_on_to_the_bit(
        self, seven, other, monkeypatch
    ):
        clock = iter([0.0] * 8 + [60.5] * 1000)
        monkeypatch.setattr(
            ablation,
            "time",
            SimpleNamespace(monotonic=lambda: next(clock), perf_counter=time.perf_counter),
        )
        outcome = run(other, "cpu", minutes=1, say=lambda _: None, together=True)
        assert [cell.column.name for cell in outcome.done] == ["original"]
        kept = Folder(other.folder_of(other.cell("lcv", 0)))
        assert read(kept.path("last"))["step"] == 1
        missing = (
            "1 of 4 cells are done; missing: continued, seed 0; rotation, seed 0; lcv, seed 0."
        )
        assert missing in markdown(other)
        assert (other.folder / "table.md").exists()
        monkeypatch.undo()
        monkeypatch.setattr("lcv.train.validate.PAIRS", 2)
        assert not run(other, "cpu", say=lambda _: None, together=True).left
        self.assert_same(seven[0], other)


@pytest.fixture(scope="module")
def continued(tmp_path_factory):
    """Twenty steps without W in float64: the folder, the base, the network."""
    folder = tmp_path_factory.mktemp("null")
    base = replace(tiny_base(folder, steps=20), precision="float64", validate_every=0)
    return folder, base, trained(folder, base, "continued")


def trained(folder, base, name, run_name=None):
    config = config_for(BY_NAME[name], base, 0, folder / (run_name or name))
    return run_training(config, device="cpu")


def apart(one, other):
    first, second = one.state_dict(), other.state_dict()
    return max(float((first[k] - second[k]).abs().max()) for k in first if k in second)


class TestNullControl:
    """Λ = I: f₁ᵀPᵀPf₂ = f₁ᵀf₂ for every P, so training must go where it goes without W."""

    def test_p_only_equals_continued_after_twenty_steps_in_float64(self, continued):
        """W is computed as PᵀP, from P = I.

        There the gradient with respect to S is the skew part of what reaches W, which `left`
        makes symmetric: it is 0 to the bit, so P does not move at all.
        """
        folder, base, plain = continued
        model = trained(folder, base, "rotation")
        assert type(model.inner_product) is Rotation
        assert apart(plain, model) < 1e-6
        assert not model.inner_product.S_upper.any()

    @pytest.mark.parametrize("name", ["rotation", "rotation-factor"])
    def test_and_wherever_p_is_and_in_either_form(self, continued, name, monkeypatch):
        """From a P far from I, which rounding then moves; the function stays what it was."""
        folder, base, plain = continued
        make = loop.make_model

        def turned(config):
            model, notes = make(config)
            generator = torch.Generator().manual_seed(0)
            entries = torch.randn(len(model.inner_product.S_upper), generator=generator)
            model.inner_product.S_upper.data.copy_(0.3 * entries)
            return model, notes

        monkeypatch.setattr(loop, "make_model", turned)
        model = trained(folder, base, name, f"turned-{name}")
        P = model.inner_product.rotation()
        assert (P - torch.eye(len(P))).norm() > 5
        assert apart(plain, model) < 1e-6

    def test_any_other_w_does_not(self, continued):
        """The bound is one that a real change breaks at once: Λ free."""
        folder, base, plain = continued
        model = trained(folder, base, "diagonal")
        assert apart(plain, model) > 1e-4


class TestWeightsOfAStudy:
    """They are in its file by name and hash: a study is to be shown, and may lie anywhere."""

    def test_no_folder_is_told_and_they_are_found_again_by_their_hash(self, tmp_path, monkeypatch):
        base = tiny_base(tmp_path)
        study = prepare(tmp_path / "out", base, choose(RAFT, []), (0,), pairs=1)
        said = json.loads((study.folder / "study.json").read_text())
        assert said["base"]["model"]["weights"] == "born.safetensors"
        assert said["weights_sha256"] == sha256_of(study.weights())

        read = read_study(study.folder)
        with pytest.raises(FileError, match="born.safetensors: there is no such file"):
            run(read, "cpu", say=lambda _: None)
        monkeypatch.chdir(tmp_path)
        read.check_weights()
        assert read.weights().resolve() == study.weights().resolve()
        save_weights(build("raft-small", "euclidean"), "born.safetensors", overwrite=True)
        with pytest.raises(FileError, match="is not the file that .* began with, born.safetensors"):
            run(read, "cpu", say=lambda _: None)


def test_null_controls_are_as_a_study_says_or_found_out_where_it_is_of_version_0_1(tmp_path):
    study = prepare(tmp_path / "out", tiny_base(tmp_path), choose(RAFT), (0,))
    for cell in (("lcv", 1), ("left", 0)):
        with pytest.raises(ArgumentError, match="the study has no cell {}, seed {}".format(*cell)):
            study.cell(*cell)
    assert study.null == ("rotation",)
    path = study.folder / "study.json"
    said = json.loads(path.read_text())
    path.write_text(json.dumps({**said, "null_controls": ["free"]}))
    assert read_study(study.folder).null == ("free",)
    del said["null_controls"]
    path.write_text(json.dumps(said))
    assert read_study(study.folder).null == ("rotation",)


def test_without_weights_a_cell_begins_with_those_of_its_seed(tmp_path):
    base = tiny_base(tmp_path)
    config = replace(base, model=replace(base.model, weights=None))
    born = [untrained(replace(config, seed=seed)).state_dict() for seed in (3, 3, 4)]
    same = [all(torch.equal(born[0][name], other[name]) for name in born[0]) for other in born]
    assert same == [True, True, False]


class TestRefusals:
    @pytest.fixture
    def base(self, tmp_path):
        return tiny_base(tmp_path)

    def test_another_study_in_the_same_folder(self, base, tmp_path):
        columns = choose(RAFT, ["lcv"])
        prepare(tmp_path / "out", base, columns, (0,), pairs=2)
        with pytest.raises(ArgumentError, match=r"out: holds an ablation with steps 2, and .* 3"):
            prepare(tmp_path / "out", replace(base, steps=3), columns, (0,), pairs=2)
        with pytest.raises(ArgumentError, match=r"with pairs 2, and this one has 5"):
            prepare(tmp_path / "out", base, columns, (0,), pairs=5)
        moved = shutil.copy(base.model.weights, tmp_path / "moved.safetensors")
        moved = replace(base, model=replace(base.model, weights=str(moved)))
        grown = prepare(tmp_path / "out", moved, choose(RAFT, ["free"]), (1,), pairs=2)
        assert [column.name for column in grown.columns] == ["continued", "free", "lcv"]
        assert grown.seeds == (0, 1)
        named = replace(moved.model, weights="moved.safetensors")
        assert read_study(tmp_path / "out") == replace(grown, base=replace(grown.base, model=named))

    def test_folders_that_are_something_else(self, base, tmp_path):
        (tmp_path / "full").mkdir()
        (tmp_path / "full" / "letter.txt").write_text("dear")
        with pytest.raises(FileError, match="holds other things than an ablation"):
            prepare(tmp_path / "full", base, choose(RAFT), (0,))
        with pytest.raises(FileError, match="full: holds no ablation"):
            read_study(tmp_path / "full")
        with pytest.raises(FileError, match=r"letter\.txt: this is a file"):
            prepare(tmp_path / "full" / "letter.txt", base, choose(RAFT), (0,))

    def test_numbers_that_make_no_study(self, base, tmp_path):
        columns = choose(RAFT)
        with pytest.raises(ArgumentError, match="seeds is empty"):
            prepare(tmp_path / "out", base, columns, ())
        for seed in (-1, 2**30):
            with pytest.raises(ArgumentError, match=rf"seeds are \[{seed}\], wanted whole numbers"):
                prepare(tmp_path / "out", base, columns, (seed,))
        with pytest.raises(ArgumentError, match="pairs is 0, wanted at least 1"):
            prepare(tmp_path / "out", base, columns, (0,), pairs=0)
        small = replace(base, data=replace(base.data, size=(64, 56)))
        with pytest.raises(ArgumentError, match="size is 64×56, and raft-small .* at least 57×57"):
            prepare(tmp_path / "out", small, columns, (0,))
        with pytest.raises(ArgumentError, match="validate_every is 3 and there are 2 steps"):
            prepare(tmp_path / "out", replace(base, validate_every=3), columns, (0,))
        with pytest.raises(ArgumentError, match="minutes is 0"):
            run(prepare(tmp_path / "out", base, columns, (0,)), minutes=0)

    def test_a_graph_without_a_gpu_is_refused_once_and_not_by_every_cell(self, base, tmp_path):
        study = prepare(tmp_path / "out", replace(base, graph=True), choose(RAFT), (0, 1))
        with pytest.raises(ArgumentError, match="graph is True, which needs CUDA"):
            run(study, "cpu")
        assert not list((tmp_path / "out").rglob("failure.txt"))


def test_a_ctrl_c_in_the_last_validation_of_a_cell_stops_the_study(tmp_path):
    """It was lost there once, and the study ran on for minutes."""
    study = prepare(
        tmp_path / "out", tiny_base(tmp_path), choose(RAFT, ["continued", "lcv"]), (0,), pairs=PAIRS
    )

    outcome = run(study, "cpu", listeners=(press(at=study.base.steps),))
    assert not outcome.done
    assert [cell.column.name for cell in outcome.left] == ["continued", "lcv"]
    outcome = run(study, "cpu")
    assert not outcome.left
    assert len(outcome.done) == 2
