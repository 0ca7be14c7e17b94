"""Runs of a job: interrupted, killed, divided, repeated, they end with the same files."""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import lcv
from lcv.cli.predict_inputs import find_inputs
from lcv.data.formats.image import read_image
from lcv.data.formats.video import read_video
from lcv.errors import FileError
from lcv.predict import Predictor
from lcv.predict.job import Job, Listener, Summary
from lcv.predict.matching import Wanted
from lcv.predict.outputs import Named, wanted_outputs
from lcv.predict.run import Run, compute_chunk, parts_of
from lcv.predict.scale import own_scale
from lcv.predict.selection import Selection, Shard
from lcv.predict.sources import FrameFiles, Video
from lcv.predict.worker import Work
from predict.killing import MOMENTS
from predict.small_jobs import FLOW, ONE, TWO, Killed, made, run
from testing.footage import files_of, moving, save_film, save_frames

TESTS = Path(__file__).resolve().parents[1]
WARM = {"outputs": FLOW, "warm_start": True}
CLIP = {"outputs": wanted_outputs(("flo", "png")), "clip": True}
PICTURES_AND_CLIP = {
    "outputs": wanted_outputs(("png",), overlay=True),
    "clip": True,
    "arrows": True,
    "warm_start": True,
}
ALL_MAPS = {
    "outputs": wanted_outputs(("npz",), backward=True, occlusion=True, warp_error=True),
    "wanted": Wanted(True, True, True),
}
SETTINGS = {
    "warm": WARM,
    "clip": CLIP,
    "pictures and clip": PICTURES_AND_CLIP,
    "lossy and clip": {"outputs": wanted_outputs(("kitti",)), "clip": True},
    "all maps": ALL_MAPS,
}


def test_the_flow_of_a_job_is_the_flow_of_its_pairs(predictor, walk, tmp_path):
    summary = run(predictor, walk, tmp_path / "out")
    assert (summary.done, summary.there, summary.failures) == (6, 0, {})
    frames = moving(7)
    for number in range(6):
        flow, _ = lcv.read_flow(tmp_path / "out" / "flow" / "walk" / f"frame_{number + 1}.flo")
        assert np.array_equal(flow, predictor(frames[number], frames[number + 1]).flow)


def test_a_job_that_is_killed_and_run_again_ends_with_the_same_files(walk, tmp_path):
    """At eleven moments, as SIGKILL does it, between an output and its line among them."""
    done = subprocess.run(
        [sys.executable, "-m", "predict.killing", str(walk), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": f"{TESTS}:{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {moment: [True, True] for moment in MOMENTS}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_job_that_breaks_off_goes_on(predictor, walk, tmp_path, dies_at, monkeypatch, name):
    settings = SETTINGS[name]
    run(predictor, walk, tmp_path / "whole", **settings)
    for number in (2, 7):
        root = tmp_path / f"broken {number}"
        dies_at(number)
        with pytest.raises(Killed):
            run(predictor, walk, root, **settings)
        monkeypatch.undo()
        run(predictor, walk, root, **settings)
        assert made(root) == made(tmp_path / "whole"), number


def test_a_warm_start_goes_on_from_the_last_pair_and_not_from_the_first(
    predictor, walk, tmp_path, dies_at, monkeypatch
):
    """And a warm start is no cold one, or this test would show nothing."""
    run(predictor, walk, tmp_path / "cold", outputs=FLOW)
    run(predictor, walk, tmp_path / "whole", **WARM)
    names = [f"flow/walk/frame_{n}.flo" for n in range(1, 7)]
    cold, warm = made(tmp_path / "cold"), made(tmp_path / "whole")
    assert [cold[name] == warm[name] for name in names] == [True] + 5 * [False]
    # job.json, the strategy, then the flow and the low flow of each pair.
    dies_at(11)
    with pytest.raises(Killed):
        run(predictor, walk, tmp_path / "out", **WARM)
    monkeypatch.undo()
    matched = []
    match = Predictor.match
    monkeypatch.setattr(
        Predictor, "match", lambda self, *a, **k: matched.append(1) or match(self, *a, **k)
    )
    run(predictor, walk, tmp_path / "out", **WARM)
    assert len(matched) == 2
    assert made(tmp_path / "out") == warm


def test_there_is_no_clip_where_a_cluster_left_pairs_undone(predictor, walk, tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(Listener, "say", lambda _, text: said.append(text))
    nothing_done = SimpleNamespace(
        workers=2, cores=1, per_machine=2, map=lambda *_: (_ for _ in ())
    )
    job = Job(find_inputs([str(walk)]).sequences, tmp_path / "out", **CLIP)
    summary = Run(predictor, job).go(nothing_done, {})
    assert (summary.done, summary.clips) == (0, [])
    assert "walk: no clip, since pairs are missing; run this again" in said


def test_a_second_run_has_nothing_to_do(predictor, walk, tmp_path, monkeypatch):
    """And decodes neither frames nor outputs."""
    run(predictor, walk, tmp_path / "out", **CLIP)
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
    for name in ("lcv.predict.sources.read_image", "lcv.predict.outputs.read_flow"):
        monkeypatch.setattr(name, lambda *_: pytest.fail("decoded"))
    summary = run(predictor, walk, tmp_path / "out", **CLIP)
    assert (summary.done, summary.there) == (0, 6)
    assert times == {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}


@pytest.mark.parametrize("name", ["clip", "pictures and clip"])
def test_outputs_that_were_cut_or_removed_are_made_again(predictor, walk, tmp_path, name):
    out = tmp_path / "out"
    run(predictor, walk, out, **SETTINGS[name])
    wanted = made(out)
    picture = out / "picture" / "walk" / "frame_2.png"
    picture.write_bytes(picture.read_bytes()[:-9])
    (out / "picture" / "walk" / "frame_5.png").unlink()
    clip = out / "clip" / "walk.mp4"
    clip.write_bytes(clip.read_bytes()[:200])
    assert run(predictor, walk, out, **SETTINGS[name]).done == 2
    assert made(out) == wanted
    clip.unlink()
    assert run(predictor, walk, out, **SETTINGS[name]).done == 0
    assert made(out) == wanted


@pytest.mark.parametrize("name", ["clip", "pictures and clip"])
def test_shards_give_the_files_of_one_run(predictor, tmp_path, name):
    """In either order; a run without --shard then makes the clip."""
    sources = [save_frames(tmp_path / "a", 5), save_frames(tmp_path / "b", 4, seed=1)]
    run(predictor, sources, tmp_path / "one", **SETTINGS[name])
    for order in ((ONE, TWO), (TWO, ONE)):
        root = tmp_path / f"{order[0].number} first"
        done = [run(predictor, sources, root, shard=s, **SETTINGS[name]).done for s in order]
        assert sum(done) == 7
        run(predictor, sources, root, **SETTINGS[name])
        assert made(root) == made(tmp_path / "one")


def test_a_worker_of_a_cluster_leaves_what_others_have_done(predictor, walk, tmp_path, monkeypatch):
    """A chunk whose worker died comes again, whole, to another, which may be at work already."""
    monkeypatch.chdir(tmp_path)
    (sequence,) = find_inputs([str(walk)]).sequences
    options = {"model": predictor.model, "iters": 1, "device": "cpu"}
    job = Job((sequence,), tmp_path / "out", FLOW)
    order = (options, job, tmp_path, torch.get_num_threads(), 2)
    one, other = pickle.dumps(order), pickle.dumps(order, protocol=3)  # a worker each
    assert compute_chunk(one, (0, range(1)))[0].done == 1
    assert compute_chunk(other, (0, range(1, 2)))[0].done == 1
    summary, _ = compute_chunk(one, (0, range(3)))
    assert (summary.done, summary.there) == (1, 2)


def test_folders_of_shards_are_merged_by_copying_files(predictor, walk, tmp_path):
    run(predictor, walk, tmp_path / "one", scale=3.0, **CLIP)
    for shard in (ONE, TWO):
        run(predictor, walk, tmp_path / f"{shard.number}", shard=shard, scale=3.0, **CLIP)
    for name in "12":
        subprocess.run(["cp", "-r", f"{tmp_path}/{name}/.", f"{tmp_path}/both"], check=True)
    assert run(predictor, walk, tmp_path / "both", scale=3.0, **CLIP).done == 0
    assert made(tmp_path / "both") == made(tmp_path / "one")


def test_a_clip_of_a_sequence_with_a_bad_frame_is_made_once_all_shards_have_ended(
    predictor, walk, tmp_path
):
    (walk / "frame_3.png").write_bytes(b"no picture")
    assert len(run(predictor, walk, tmp_path / "one", **CLIP).failures) == 1
    for shard in (TWO, ONE):
        run(predictor, walk, tmp_path / "two", shard=shard, **CLIP)
    run(predictor, walk, tmp_path / "two", **CLIP)
    assert made(tmp_path / "two") == made(tmp_path / "one")


COUNTS = st.lists(st.integers(0, 30), max_size=6)
PROCESSES = st.integers(1, 9)


@given(COUNTS, PROCESSES, st.booleans())
def test_shards_are_all_pairs_each_once_in_order(counts, processes, whole):
    shares = [parts_of(counts, Shard(i + 1, processes), whole=whole) for i in range(processes)]
    given_out = [(number, pair) for parts in shares for number, own in parts for pair in own]
    assert given_out == [(s, pair) for s, count in enumerate(counts) for pair in range(count)]
    if whole:
        assert all(len(own) == counts[number] for parts in shares for number, own in parts)


@given(COUNTS, PROCESSES)
def test_shares_differ_by_one_pair_at_most(counts, processes):
    shares = [parts_of(counts, Shard(i + 1, processes)) for i in range(processes)]
    sizes = [sum(len(own) for _, own in parts) for parts in shares]
    assert max(sizes) - min(sizes) <= 1


def test_one_pair_goes_to_the_named_file(predictor, walk, tmp_path):
    sequences = find_inputs([str(walk / "frame_1.png"), str(walk / "frame_2.png")]).sequences
    outputs = wanted_outputs(("flo", "png"), overlay=True)
    summary = Run(predictor, Job(sequences, Named(tmp_path / "out.flo", outputs), outputs)).go()
    flow, _ = lcv.read_flow(tmp_path / "out.flo")
    assert np.array_equal(flow, predictor(*moving(2)).flow)
    assert summary.scales == {own_scale(flow)}
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"walk", "out.flo", "out.png", "out_overlay.png"}


def test_a_clip_shows_the_frame_and_its_flow(predictor, walk, tmp_path):
    run(predictor, walk, tmp_path / "out", clip=True)
    shown = list(read_video(tmp_path / "out" / "clip" / "walk.mp4"))
    assert len(shown) == 6
    for number, frame in enumerate(shown, start=1):
        picture = read_image(tmp_path / "out" / "picture" / "walk" / f"frame_{number}.png")
        halves = frame[:64, :72], frame[:64, 76 : 76 + 72]
        for found, wanted in zip(halves, (moving(7)[number - 1], picture), strict=True):
            # A coder with loss; another frame, or flow at another place, is off by far more.
            assert np.abs(found.astype(float) - wanted).mean() < 25


def test_a_video_is_a_sequence_like_any_other(predictor, tmp_path):
    path = save_film(tmp_path / "walk.mkv", 5)
    summary = run(predictor, path, tmp_path / "out", **CLIP)
    assert (summary.done, len(summary.clips)) == (4, 1)
    folder = tmp_path / "out" / "flow" / "walk"
    assert sorted(p.name for p in folder.iterdir()) == [f"00000{n}.flo" for n in range(4)]
    frames = moving(5)
    flow, _ = lcv.read_flow(folder / "000003.flo")
    assert np.array_equal(flow, predictor(frames[3], frames[4]).flow)
    (folder / "000001.flo").unlink()
    assert run(predictor, path, tmp_path / "out", **CLIP).done == 1


def test_a_video_that_ends_before_it_says_is_complete(predictor, tmp_path, monkeypatch):
    """Some of its frames may be meant never to be shown; the clip is of those that are."""
    path = save_film(tmp_path / "walk.mkv", 5)
    opened = Video.opened
    monkeypatch.setattr(Video, "opened", lambda self: dataclasses.replace(opened(self), length=9))
    for _ in range(2):
        summary = run(predictor, path, tmp_path / "out", scale=3.0, **CLIP)
        assert (summary.done + summary.there, summary.failures) == (4, {})
        assert len(list(read_video(tmp_path / "out" / "clip" / "walk.mp4"))) == 4
    for shard in (ONE, TWO):
        run(predictor, path, tmp_path / "two", scale=3.0, shard=shard, **CLIP)
    run(predictor, path, tmp_path / "two", scale=3.0, **CLIP)
    assert made(tmp_path / "two") == made(tmp_path / "out")


def test_a_damaged_video_gives_what_can_be_read_and_its_name(predictor, tmp_path):
    good = save_film(tmp_path / "good.mkv", 3)
    path = save_film(tmp_path / "bad.mp4", 8)
    path.write_bytes(path.read_bytes()[:-300])
    (tmp_path / "empty.mp4").touch()
    save_film(tmp_path / "still.mkv", 1)
    words = [tmp_path / name for name in ("bad.mp4", "empty.mp4", "still.mkv")]
    summary = run(predictor, [*words, good], tmp_path / "out")
    assert summary.done == 2
    assert [any(word.name in said for said in summary.failures) for word in words] == [True] * 3


def test_pairs_of_a_list_have_scales_of_their_own(predictor, walk, tmp_path):
    pairs = [f"walk/frame_{n}.png walk/frame_{m}.png\n" for n in range(1, 8) for m in (2, 5, 7)]
    (tmp_path / "list.txt").write_text("".join(pairs))
    summary = run(predictor, tmp_path / "list.txt", tmp_path / "out")
    assert summary.done == 21
    assert len(summary.scales) > 1
    other = save_frames(tmp_path / "elsewhere" / "walk", 7, seed=3).parent / "list.txt"
    other.write_text("".join(pairs))
    with pytest.raises(FileError, match="already has outputs of another input"):
        run(predictor, other, tmp_path / "out")


def test_a_stream_is_read_once(predictor, tmp_path):
    folder = save_frames(tmp_path / "a", 4)
    content = b"".join((folder / f"frame_{n}.png").read_bytes() for n in (1, 2, 3, 4))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    assert run(predictor, pipe, tmp_path / "out", **CLIP).done == 3
    writer.join()
    names = sorted(path.name for path in (tmp_path / "out" / "flow" / "pipe").iterdir())
    assert names == ["000000.flo", "000001.flo", "000002.flo"]
    assert len(list(read_video(tmp_path / "out" / "clip" / "pipe.mp4"))) == 3
    # Ends the stream for one who reads it after all, and would wait for ever.
    writer = threading.Thread(target=pipe.write_bytes, args=(b"",), daemon=True)
    writer.start()
    with pytest.raises(FileError, match=r"it cannot be read again.* --overwrite"):
        run(predictor, pipe, tmp_path / "out", **CLIP)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    writer.join()
    os.close(reader)


@pytest.mark.parametrize(
    ("length", "why"),
    [(None, "pipe: fewer than two frames came; flow needs two"), (100, "damaged video at frame 0")],
)
def test_a_stream_of_fewer_than_two_frames_has_failed(predictor, tmp_path, length, why):
    folder = save_frames(tmp_path / "a", 2)
    content = (folder / "frame_1.png").read_bytes()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(content[:length],))
    writer.start()
    summary = run(predictor, pipe, tmp_path / "out")
    writer.join()
    (failure,) = summary.failures
    assert why in failure


def test_only_the_first_frames_on_request(predictor, walk, tmp_path):
    assert run(predictor, walk, tmp_path / "out", frames=3).done == 2
    assert run(predictor, walk, tmp_path / "out", frames=3).there == 2
    assert run(predictor, walk, tmp_path / "out").done == 4


def test_an_output_is_never_an_input(predictor, walk, tmp_path):
    one, two = walk / "frame_1.png", walk / "frame_2.png"
    pair = find_inputs([str(one), str(two)]).sequences
    link = tmp_path / "link.png"
    link.symlink_to(two)
    film = save_film(tmp_path / "walk.mp4", 4)
    run(predictor, walk, tmp_path / "out")
    before = files_of(tmp_path)
    outputs = wanted_outputs(("png",))
    for name in (one, link, walk / ".." / "walk" / "frame_2.png"):
        with pytest.raises(FileError, match="is the input .* itself"):
            Run(predictor, Job(pair, Named(name, outputs), outputs, overwrite=True)).go()
    job = Job(find_inputs([str(film)]).sequences, None, (), clip=film, overwrite=True)
    with pytest.raises(FileError, match="is the input .* itself"):
        Run(predictor, job).go()
    pictures = tmp_path / "out" / "picture" / "walk"
    with pytest.raises(FileError, match="has the input .* in it, and inputs are never written to"):
        run(predictor, pictures, tmp_path / "out", overwrite=True)
    assert files_of(tmp_path) == before


class Heard(Listener):
    """Writes down all that it is told."""

    def __init__(self) -> None:
        self.told: list[tuple] = []

    def say(self, text):
        self.told.append(("say", text))

    def begin(self, name, pairs):
        self.told.append(("begin", name, pairs))

    def advance(self, pairs=1, computed=True):
        self.told.append(("advance", pairs, computed))


@pytest.fixture
def plain():
    """A network of no layers."""
    return Predictor(lcv.wrap(lambda a, b: (a - b)[:, :2].contiguous()), device="cpu")


def heard(plain, walk, out, **settings) -> list[tuple]:
    listener = Heard()
    job = Job(find_inputs([str(walk)]).sequences, out, **{**CLIP, **settings})
    Run(plain, job, listener).go()
    return listener.told


def test_what_is_told_of_a_job(plain, tmp_path):
    """All of it the first time, nothing the second time."""
    walk, out = save_frames(tmp_path / "walk", 4), tmp_path / "out"
    (walk / "frame_4.png").write_bytes(b"no picture")
    told = heard(plain, walk, out)
    plan = "72×64: your network's own way; its memory will be measured on the first pair"
    looking = ("say", "walk: looking at 3 of 3 pairs for a common scale")
    assert told[0] == ("begin", "walk", 3)
    assert sorted(told[1:-1]) == sorted(
        [("say", plan), looking, *2 * [("advance", 1, True)], ("advance", 1, False)]
    )
    assert told[-1] == ("begin", "walk, clip", None)
    (walk / "frame_4.png").unlink()
    assert heard(plain, walk, out)[:-1] == []


def test_why_there_is_no_clip(plain, walk, tmp_path):
    told = heard(plain, walk, tmp_path / "one", scale=3.0, selection=Selection(frames=2))
    assert told[-1] == ("say", "walk: no clip, since only one pair is left")
    told = heard(plain, walk, tmp_path / "two", scale=3.0, shard=ONE)
    assert told[-1] == ("say", "--shard makes no clips; run without it once all are done")
    pair = save_frames(tmp_path / "pair", 2)
    told = heard(plain, pair, tmp_path / "three", scale=3.0)
    assert told[-1] == ("advance", 1, True), "one pair that is all there is needs no words"
    assert not (tmp_path / "three" / "clip").exists()


class Workers:
    """A cluster that notes what it is given."""

    workers, cores, per_machine = 2, 3, 4
    ended = False

    def __init__(self, *results) -> None:
        self.results = results

    def map(self, function, order, chunks):
        self.function, self.order, self.chunks = function, pickle.loads(order), [*chunks]
        try:
            yield from self.results
        finally:
            self.ended = True


class Here(Workers):
    """A cluster whose tasks run in this process."""

    cores = property(lambda self: torch.get_num_threads())

    def map(self, function, order, chunks):
        yield from (function(order, chunk) for chunk in chunks)


def chunks_of(plain, tmp_path, parts, **settings):
    workers = Workers()
    run = Run(plain, Job((), tmp_path / "out", FLOW, **settings))
    run._share(parts, workers, {})
    sequences = [part.sequence for part in parts]
    assert workers.order[1].sequences == (*sequences,)
    return [(sequences[number].name, pairs) for number, pairs in workers.chunks]


def test_how_a_job_is_divided_among_workers(plain, tmp_path):
    """Of files an eighth of all that is missing for each of two, of a video a half of its pairs."""
    walk = FrameFiles("walk", (), ())
    film = Video("film", Path("film.mp4"), 8)
    parts = [Work(walk, range(3, 20), 13), Work(film, range(2, 9), 7)]
    film_halves = [("film", range(2, 6)), ("film", range(6, 9))]
    assert chunks_of(plain, tmp_path, parts) == [
        *(("walk", range(i, min(i + 3, 20))) for i in range(3, 20, 3)),
        *film_halves,
    ]
    assert chunks_of(plain, tmp_path, parts, warm_start=True) == [
        ("walk", range(3, 20)),
        ("film", range(2, 9)),
    ]
    many = [Work(walk, range(70), 1000)]
    assert [len(pairs) for _, pairs in chunks_of(plain, tmp_path, many)] == [32, 32, 6]


def test_what_workers_are_told_and_what_they_answer(plain, tmp_path):
    walk = FrameFiles("walk", (), ())
    job = Job((walk,), tmp_path / "out", FLOW, clip=True, overwrite=True, strict=True)
    listener = Heard()
    run = Run(plain, job, listener)
    workers = Workers(
        (Summary(done=4, failed={("walk", 1), ("walk", 2)}), {"walk": 5}),
        (Summary(done=1, there=2), {"film": 7}),
        (Summary(), {"film": 9}),  # a chunk behind the end
    )
    run._share([Work(walk, range(7), 7)], workers, {"iters": 2})
    resumed = dataclasses.replace(job, overwrite=False)
    assert workers.order == ({"iters": 2, "precision": "float32"}, resumed, Path.cwd(), 3, 4)
    assert workers.function is compute_chunk
    assert listener.told == [
        ("begin", "2 workers", 7),
        ("advance", 6, True),
        ("advance", 1, True),
        ("advance", 0, True),
    ]
    summary = run.worker.summary
    assert (summary.done, summary.there, len(summary.failed)) == (5, 2, 2)
    assert run.worker.ends == {"walk": 5, "film": 7}


def test_a_cluster_computes_what_is_missing_and_nothing_is_computed_here(plain, walk, tmp_path):
    run = Run(plain, Job(find_inputs([str(walk)]).sequences, tmp_path / "out", FLOW))
    workers = Workers()
    assert run.go(workers).done == 0
    assert [pairs for _, pairs in workers.chunks] == [range(i, i + 1) for i in range(6)]
    assert workers.order[0] == {"precision": "float32"}, "a GPU's own choice would be another job"
    assert run.go(workers, {"iters": 2, "precision": "auto"}).done == 0
    assert workers.order[0] == {"iters": 2, "precision": "float32"}


def test_workers_are_left_alone_where_nothing_is_missing(plain, walk, tmp_path):
    sequences, workers, listener = find_inputs([str(walk)]).sequences, Workers(), Heard()
    run(plain, walk, tmp_path / "out", outputs=FLOW)
    summary = Run(plain, Job(sequences, tmp_path / "out", FLOW), listener).go(workers)
    assert (summary.done, summary.there, listener.told) == (0, 6, [])
    assert not hasattr(workers, "order")


def test_tasks_end_before_an_interrupt_leaves_the_run(plain, walk, tmp_path):
    """Those of a cluster are cancelled while it is still there."""

    class Interrupted(Listener):
        def advance(self, pairs=1, computed=True):
            raise KeyboardInterrupt

    job = Job(find_inputs([str(walk)]).sequences, tmp_path / "out", FLOW)
    workers = Workers((Summary(done=1), {}), (Summary(done=1), {}))
    with pytest.raises(KeyboardInterrupt) as interrupt:
        Run(plain, job, Interrupted()).go(workers)
    assert workers.ended, interrupt


def test_workers_decide_the_scale_of_a_clip(predictor, walk, tmp_path):
    """And not the process that makes it, which may have no memory for a pair."""
    sequences, listener = find_inputs([str(walk)]).sequences, Heard()
    options = {"model": predictor.model, "iters": 1, "device": "cpu"}
    wanted = run(predictor, walk, tmp_path / "one", outputs=FLOW, clip=True)
    job = Job(sequences, tmp_path / "two", FLOW, clip=True)
    summary = Run(predictor, job, listener).go(Here(), options)
    assert (summary.done, summary.scales) == (6, wanted.scales)
    assert listener.told[-1] == ("begin", "walk, clip", None)
    assert not [told for told in listener.told if told[0] == "say"], "workers looked at pairs"
    assert made(tmp_path / "two") == made(tmp_path / "one")


def test_a_share_of_sequences():
    """Of 5, 0 and 4 pairs; whole sequences go to whom their first pair falls."""
    counts = [5, 0, 4]
    assert parts_of(counts, Shard(1, 2)) == [(0, range(4))]
    assert parts_of(counts, Shard(2, 2)) == [(0, range(4, 5)), (2, range(4))]
    assert parts_of(counts, Shard(1, 2), whole=True) == [(0, range(5))]
    assert parts_of(counts, Shard(2, 2), whole=True) == [(2, range(4))]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_shard_computes_its_share_and_no_pair_more(plain, walk, tmp_path, number):
    """Of six pairs two each; the frames that it reads are those of its pairs."""
    summary = run(plain, walk, tmp_path / "out", outputs=FLOW, shard=Shard(number, 3))
    assert (summary.done, summary.there) == (2, 0)
    names = sorted(path.name for path in (tmp_path / "out" / "flow" / "walk").iterdir())
    assert names == [f"frame_{2 * number + k}.flo" for k in (-1, 0)]
