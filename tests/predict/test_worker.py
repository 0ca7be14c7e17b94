"""A worker: what cannot be computed is named and stops nothing else."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest
import torch

import lcv
from lcv.cli.predict_inputs import find_inputs
from lcv.data.formats.image import write_image
from lcv.errors import FileError, LcvError
from lcv.models.types import FlowOutput
from lcv.predict import Predictor
from lcv.predict.job import Job, Listener
from lcv.predict.matching import Wanted
from lcv.predict.outputs import Named
from lcv.predict.run import Run
from lcv.predict.selection import Shard
from lcv.predict.sources import Video
from lcv.predict.worker import READERS
from predict.small_jobs import FLOW, PLAIN, made, run
from testing.footage import moving, save_film, save_frames


def one_pair(predictor, walk, file):
    sequences = find_inputs([str(walk / "frame_1.png"), str(walk / "frame_2.png")]).sequences
    return Run(predictor, Job(sequences, Named(file, FLOW), FLOW, strict=True)).go()


@pytest.mark.parametrize("warm_start", [False, True])
def test_one_bad_frame_costs_its_two_pairs(predictor, walk, tmp_path, warm_start):
    frame = walk / "frame_4.png"
    frame.write_bytes(frame.read_bytes()[:200])
    summary = run(predictor, walk, tmp_path / "out", warm_start=warm_start)
    (said,) = summary.failures
    assert "frame_4.png: damaged PNG" in said
    assert (summary.done, summary.failed) == (4, {("walk", 2), ("walk", 3)})
    names = sorted(path.stem for path in (tmp_path / "out" / "flow" / "walk").iterdir())
    assert names == ["frame_1", "frame_2", "frame_5", "frame_6"]
    with pytest.raises(FileError, match=r"frame_4\.png: damaged PNG"):
        run(predictor, walk, tmp_path / "strict", strict=True, warm_start=warm_start)


def test_a_bad_frame_that_was_mended_is_taken_up(predictor, walk, tmp_path):
    run(predictor, walk, tmp_path / "whole", scale=3.0)
    content = (walk / "frame_1.png").read_bytes()
    (walk / "frame_1.png").write_bytes(content[:50])
    assert run(predictor, walk, tmp_path / "out", scale=3.0).done == 5
    (walk / "frame_1.png").write_bytes(content)
    assert run(predictor, walk, tmp_path / "out", scale=3.0).done == 1
    assert made(tmp_path / "out") == made(tmp_path / "whole")


def test_frames_of_different_size_are_named_with_both_sizes(predictor, walk, tmp_path):
    write_image(walk / "frame_4.png", moving(1, (64, 80))[0], overwrite=True)
    summary = run(predictor, walk, tmp_path / "out", clip=True)
    first, _ = summary.failures
    assert "frame_3.png is 72×64" in first
    assert "frame_4.png is 80×64" in first
    assert (summary.done, len(summary.failed)) == (4, 2)
    assert summary.clips, "the frames with flow are all of one size"


def test_a_clip_of_frames_that_change_their_size_is_given_up(predictor, walk, tmp_path):
    for number in (5, 6, 7):
        write_image(walk / f"frame_{number}.png", moving(1, (64, 80))[0], overwrite=True)
    summary = run(predictor, walk, tmp_path / "out", clip=True)
    assert summary.done == 5
    assert any("no clip, since frames change their size" in said for said in summary.failures)
    assert not list((tmp_path / "out" / "clip").iterdir())


def test_one_pair_that_is_left_of_a_sequence_has_no_clip_and_this_is_said(
    predictor, walk, tmp_path, monkeypatch
):
    said = []
    monkeypatch.setattr("lcv.predict.job.Listener.say", lambda _, text: said.append(text))
    run(predictor, walk, tmp_path / "out", clip=True, every=6)
    assert f"{walk.name}: no clip, since only one pair is left" in said


def test_a_sequence_that_cannot_be_computed_does_not_stop_the_others(predictor, walk, tmp_path):
    small = save_frames(tmp_path / "small", 4, (32, 40))
    summary = run(predictor, [small, walk], tmp_path / "out")
    assert summary.done == 6
    (said,) = summary.failures
    assert "40×32" in said


def test_frames_for_which_no_strategy_fits_are_named_once(walk, tmp_path):
    little = Predictor(lcv.build("raft-small"), iters=1, device="cpu", max_memory="1MB")
    summary = run(little, walk, tmp_path / "none")
    (said,) = summary.failures
    assert "72×64" in said
    assert (summary.done, len(summary.failed)) == (0, 6)


@pytest.mark.parametrize("first", [0, 3])
def test_frames_that_are_too_small_cost_their_pairs_wherever_a_run_begins(
    predictor, walk, tmp_path, first
):
    for number in (first + 1, first + 2):
        write_image(walk / f"frame_{number}.png", np.zeros((32, 40, 3), np.uint8), overwrite=True)
    whole = run(predictor, walk, tmp_path / "whole")
    assert len(whole.failed) == (2 if first == 0 else 3)
    out = tmp_path / "out"
    for number in (1, 2, 3):
        run(predictor, walk, out, shard=Shard(number, 3))
    assert made(out) == made(tmp_path / "whole")
    (out / "flow" / "walk" / "frame_6.flo").unlink()
    run(predictor, walk, out)
    assert made(out) == made(tmp_path / "whole")


def test_a_size_that_cannot_be_computed_costs_its_own_pairs_only(predictor, walk, tmp_path):
    for number in (3, 4):
        write_image(walk / f"frame_{number}.png", np.zeros((32, 40, 3), np.uint8), overwrite=True)
    summary = run(predictor, walk, tmp_path / "out")
    assert summary.done == 3
    assert summary.failed == {("walk", pair) for pair in (1, 2, 3)}
    assert any("40×32" in said for said in summary.failures)


def test_a_video_of_a_size_that_cannot_be_computed_is_not_read_on(
    predictor, walk, tmp_path, monkeypatch
):
    film, count, frames = save_film(tmp_path / "small.mkv", 12, (32, 40)), [], Video.frames

    def counted(*words, **more):
        for frame in frames(*words, **more):
            count.append(frame.index)
            yield frame

    monkeypatch.setattr(Video, "frames", counted)
    summary = run(predictor, [film, walk], tmp_path / "out", outputs=FLOW)
    (said,) = summary.failures
    assert "40×32" in said
    assert (summary.done, count) == (6, [0, 1])


def test_a_flow_that_is_not_finite_is_reported_and_not_written(walk, tmp_path):
    broken = Predictor(lcv.build("raft-small"), iters=1, device="cpu")
    with torch.no_grad():
        broken.model.update_block.flow_head.conv2.bias.fill_(float("nan"))
    summary = run(broken, walk, tmp_path / "out", outputs=FLOW)
    assert summary.done == 0
    assert all("is not finite" in said for said in summary.failures)
    assert not (tmp_path / "out" / "flow").exists()
    with pytest.raises(LcvError, match=r"frame_1\.png: the flow to .*frame_2\.png is not finite"):
        one_pair(broken, walk, tmp_path / "a.flo")
    assert not (tmp_path / "a.flo").exists()


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("index", [(0, 0, 5, 7), (0, 1, 63, 71)])
def test_one_number_that_is_not_finite_is_found_in_both_directions(walk, bad, index):
    good, broken = torch.zeros(2, 1, 2, 64, 72)
    broken[index] = bad
    sequences = find_inputs([str(walk / "frame_1.png"), str(walk / "frame_2.png")]).sequences
    network = lcv.wrap(lambda image1, image2: image1[:, :2])
    predictor = Predictor(network, device="cpu")
    done = []
    for there, back in ((good, good), (broken, good), (good, broken)):
        output = FlowOutput(there, backward=FlowOutput(back))
        network.match = lambda *_, output=output, **__: output
        summary = Run(predictor, Job(sequences, None, (), Wanted(backward=True))).go()
        done.append(summary.done)
    assert done == [1, 0, 0]


def test_memory_that_runs_out_is_a_sentence_and_other_errors_are_not_hidden(
    predictor, walk, tmp_path, monkeypatch
):
    def fail(message):
        def match(*_, **__):
            raise RuntimeError(message)

        monkeypatch.setattr(Predictor, "match", match)

    def no_memory(*_, **__):
        raise MemoryError

    with monkeypatch.context() as patched:  # while a pair is drawn
        patched.setattr("lcv.predict.worker.Drawing.write", no_memory)
        (said,) = run(predictor, walk, tmp_path / "drawn").failures
        assert "frame_1.png: memory ran out" in said
        with pytest.raises(LcvError, match="memory ran out"):
            one_pair(predictor, walk, tmp_path / "a.flo")
    fail("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")
    (said,) = run(predictor, walk, tmp_path / "out").failures
    assert "frame_1.png: memory ran out" in said
    assert "--max-memory" in said
    with pytest.raises(LcvError, match="memory ran out"):
        one_pair(predictor, walk, tmp_path / "a.flo")
    fail("a mistake of ours")
    with pytest.raises(RuntimeError, match="a mistake of ours"):
        run(predictor, walk, tmp_path / "out")


def test_a_pair_that_fell_back_says_so_in_its_line(walk, tmp_path, monkeypatch):
    """And the others keep to the job's strategy."""
    predictor = Predictor(lcv.build("raft-small"), iters=1, device="cpu")
    attempt, seen = Predictor._match, []

    def once(self, plan, *rest):
        seen.append(plan.strategy)
        if len(seen) == 3:
            raise torch.OutOfMemoryError("no memory")
        return attempt(self, plan, *rest)

    monkeypatch.setattr(Predictor, "_match", once)
    summary = run(predictor, walk, tmp_path / "out", outputs=FLOW)
    assert seen == ["all-pairs"] * 3 + ["on-demand"] + ["all-pairs"] * 3
    assert summary.notes == {"out of memory, so computed by on-demand": 1}
    (log,) = (tmp_path / "out" / "done").iterdir()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    notes = [line["notes"] for line in lines]
    assert notes == [[], [], ["out of memory, so computed by on-demand"], [], [], []]


def test_a_network_of_unknown_memory_is_measured_and_its_strategy_kept(walk, tmp_path):
    network = lcv.wrap(lambda a, b: (a - b)[:, :2].contiguous())
    predictor = Predictor(network, device="cpu")
    assert predictor.plan(64, 72).bytes is None
    assert run(predictor, walk, tmp_path / "out", outputs=FLOW).done == 6
    strategy, _, peak = json.loads((tmp_path / "out" / "strategy" / "72x64.json").read_text())
    assert strategy == predictor.plan(64, 72).strategy
    assert peak is not None
    assert run(predictor, walk, tmp_path / "out", outputs=FLOW).there == 6


def test_a_network_of_unknown_memory_goes_on_whatever_it_was_measured_to_take(walk, tmp_path):
    """No limit has kept it from the first pair."""
    network = lcv.wrap(lambda a, b: (a - b)[:, :2].contiguous())
    predictor = Predictor(network, device="cpu", max_memory="1MB")
    run(predictor, walk, tmp_path / "out", outputs=FLOW)
    (tmp_path / "out" / "strategy" / "72x64.json").write_text('["own", null, 2000000]')
    (tmp_path / "out" / "flow" / "walk" / "frame_2.flo").unlink()
    assert run(predictor, walk, tmp_path / "out", outputs=FLOW).done == 1


def test_errors_of_writing_stop_the_job(predictor, walk, tmp_path, monkeypatch):
    """A full disk is full for every pair; there is no use in going on."""

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("lcv.files._publish", full)
    with pytest.raises(LcvError, match="No space left on device"):
        run(predictor, walk, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == []


def test_what_killed_runs_left_half_written_is_removed(predictor, walk, tmp_path):
    out = tmp_path / "out"
    run(predictor, walk, out, clip=True)
    wanted = made(out)
    for name in ("flow/walk/.frame_3.flo", "clip/.walk.mp4"):
        (out / f"{name}.0123456789abcdef.part").touch()
    (out / "flow" / "walk" / "frame_3.flo").unlink()
    (out / "clip" / "walk.mp4").unlink()
    run(predictor, walk, out, clip=True)
    assert made(out) == wanted


class Told(Listener):
    def __init__(self):
        self.said, self.begun, self.finished = [], [], 0

    def say(self, text):
        self.said.append(text)

    def begin(self, name, pairs):
        self.begun.append((name, pairs))

    def advance(self, pairs=1, computed=True):
        self.finished += pairs


def test_progress_is_told(predictor, walk, tmp_path):
    told = Told()
    Run(predictor, Job(find_inputs([str(walk)]).sequences, tmp_path / "out", **PLAIN), told).go()
    assert told.begun == [("walk", 6)]
    assert told.finished == 6
    assert any("72×64: all-pairs" in text for text in told.said)
    assert any("looking at 6 of 6 pairs for a common scale" in text for text in told.said)


def test_a_frame_is_read_once(predictor, walk, tmp_path, monkeypatch):
    read = []
    original = lcv.read_image
    monkeypatch.setattr(
        "lcv.predict.sources.read_image", lambda path: read.append(path.name) or original(path)
    )
    run(predictor, walk, tmp_path / "out", outputs=FLOW)
    assert sorted(read) == [f"frame_{n}.png" for n in range(1, 8)]
    flow, _ = lcv.read_flow(tmp_path / "out" / "flow" / "walk" / "frame_6.flo")
    assert np.isfinite(flow).all()


def test_no_more_pictures_are_read_ahead_than_there_are_readers(predictor, tmp_path, monkeypatch):
    walk, begun = save_frames(tmp_path / "walk", 20), []
    all_read, may_go_on = threading.Event(), threading.Event()
    original = lcv.read_image

    def read(path):
        begun.append(path)
        if len(begun) == READERS:
            all_read.set()
        may_go_on.wait(60)
        return original(path)

    monkeypatch.setattr("lcv.predict.sources.read_image", read)
    job = threading.Thread(
        target=run, args=(predictor, walk, tmp_path / "out"), kwargs={"outputs": FLOW}
    )
    job.start()
    assert all_read.wait(60)
    job.join(0.3)  # long enough for more to begin, if they could
    assert 4 <= len(begun) == READERS <= 8
    may_go_on.set()
    job.join()
    assert len(begun) == 20
