"""What is about to be made is told before: a file of yours in its place is never taken or replaced."""

from __future__ import annotations

import shutil

import pytest

from lcv import files
from lcv.errors import FileError
from lcv.predict.inputs import find_inputs
from lcv.predict.job import Job, Silent
from lcv.predict.jobs import Run
from lcv.predict.journal import Journal, failed, made, without
from lcv.predict.shards import Shard
from predict.small_jobs import FLOW, ONE, PLAIN, TWO, Killed, run
from testing.footage import files_of, save_film, save_frames


@pytest.fixture
def walk(tmp_path):
    return save_frames(tmp_path / "walk", 5)


def refused(predictor, source, out, own, **settings):
    """A file of yours is named, and all stays as it is; without it the job goes on."""
    before = files_of(out)
    with pytest.raises(FileError, match=f"{own.name}: exists already, but .* does not say that"):
        run(predictor, source, out, **settings)
    assert files_of(out) == before
    own.unlink()


@pytest.mark.parametrize(
    ("source", "content"),
    [("frames", "whole"), ("frames", "other"), ("film", "whole"), ("list", "whole")],
)
def test_a_file_in_the_place_of_an_output_yet_to_be_made_is_yours(
    predictor, walk, tmp_path, dies_at, monkeypatch, source, content
):
    listed = tmp_path / "list.txt"
    listed.write_text("".join(f"walk/frame_{n}.png walk/frame_{n + 1}.png\n" for n in range(1, 5)))
    words = {"frames": walk, "film": tmp_path / "walk.mkv", "list": listed}[source]
    if source == "film":
        save_film(words, 5)
    out = tmp_path / "out"
    dies_at(6)
    with pytest.raises(Killed):
        run(predictor, words, out, scale=3.0)
    monkeypatch.undo()
    made_ = sorted((out / "flow").rglob("*.flo"))
    assert 1 <= len(made_) < 4
    name = {"frames": "walk/frame_4", "film": "walk/000003", "list": "walk/frame_4"}[source]
    own = out / "flow" / f"{name}.flo"
    own.parent.mkdir(exist_ok=True)
    if content == "whole":
        shutil.copy(made_[0], own)
    else:
        own.write_bytes(b"mine")
    refused(predictor, words, out, own, scale=3.0)
    run(predictor, words, out, scale=3.0)
    run(predictor, words, tmp_path / "fresh", scale=3.0)
    assert files_of(out) == files_of(tmp_path / "fresh")


def test_a_kind_that_was_added_is_told_of_pair_by_pair(
    predictor, walk, tmp_path, dies_at, monkeypatch
):
    out = tmp_path / "out"
    run(predictor, walk, out, outputs=FLOW)
    dies_at(4)
    with pytest.raises(Killed):
        run(predictor, walk, out, scale=3.0)
    monkeypatch.undo()
    own = out / "picture" / "walk" / "frame_4.png"
    shutil.copy(walk / "frame_4.png", own)
    refused(predictor, walk, out, own, scale=3.0)
    run(predictor, walk, out, scale=3.0)
    run(predictor, walk, tmp_path / "fresh", scale=3.0)
    assert files_of(out) == files_of(tmp_path / "fresh")


def test_a_pair_that_could_not_be_made_leaves_its_place_free_for_yours(predictor, walk, tmp_path):
    """Neither when its frame is mended, nor when a shard comes to it."""
    frame, out = walk / "frame_3.png", tmp_path / "out"
    content = frame.read_bytes()
    frame.write_bytes(b"no picture")
    for shard in (ONE, TWO):
        run(predictor, walk, out, shard=shard, outputs=FLOW)
    run(predictor, walk, tmp_path / "one", outputs=FLOW)
    assert files_of(out) == files_of(tmp_path / "one")
    own = out / "flow" / "walk" / "frame_3.flo"
    own.write_bytes(b"mine")
    frame.write_bytes(content)
    refused(predictor, walk, out, own, outputs=FLOW)
    for shard in (TWO, ONE):
        run(predictor, walk, out, shard=shard, outputs=FLOW)
    run(predictor, walk, tmp_path / "fresh", outputs=FLOW)
    assert files_of(out) == files_of(tmp_path / "fresh")


def test_a_kind_that_others_were_made_of_is_not_yet_that_of_a_pair(predictor, walk, tmp_path):
    out = tmp_path / "out"
    pairs = [[walk / f"frame_{n}.png", walk / f"frame_{n + 1}.png"] for n in (1, 3)]
    run(predictor, pairs[0], out)
    run(predictor, pairs[1], out, outputs=FLOW)
    own = out / "picture" / "frame_3.png"
    shutil.copy(walk / "frame_3.png", own)
    refused(predictor, pairs[1], out, own)
    run(predictor, pairs[1], out)
    for pair in pairs:
        run(predictor, pair, tmp_path / "fresh")
    assert files_of(out) == files_of(tmp_path / "fresh")


@pytest.mark.parametrize("what", ["flow/walk/frame_3.flo", "clip/walk.mp4"])
def test_a_file_that_appears_while_a_job_runs_stays_and_is_named(predictor, walk, tmp_path, what):
    out = tmp_path / "out"
    own = out / what

    class Meanwhile(Silent):
        def advance(self, pairs, computed):
            own.parent.mkdir(exist_ok=True, parents=True)
            own.write_bytes(b"mine")

    settings = {"scale": 3.0, "clip": True}
    job = Job(find_inputs([str(walk)]).sequences, out, **PLAIN, **settings)
    summary = Run(predictor, job, Meanwhile()).go()
    (failure,) = summary.failures
    assert f"{own.name}: exists already" in str(failure)
    assert (summary.done, summary.failed) == ((3, 1) if "flow" in what else (4, 0))
    assert own.read_bytes() == b"mine"
    refused(predictor, walk, out, own, **settings)
    run(predictor, walk, out, **settings)
    run(predictor, walk, tmp_path / "fresh", **settings)
    assert files_of(out) == files_of(tmp_path / "fresh")


def test_a_clip_that_was_being_made_is_the_jobs(predictor, walk, tmp_path, dies_at, monkeypatch):
    """Killed after the film appeared and before the record says what it shows."""
    settings = {"outputs": FLOW, "scale": 3.0, "clip": True}
    out = tmp_path / "out"
    dies_at(8)
    with pytest.raises(Killed):
        run(predictor, walk, out, **settings)
    monkeypatch.undo()
    assert (out / "clip" / "walk.mp4").exists()
    run(predictor, walk, out, **settings)
    run(predictor, walk, tmp_path / "fresh", **settings)
    assert files_of(out) == files_of(tmp_path / "fresh")


def test_a_frame_put_before_the_first_costs_no_clip(predictor, walk, tmp_path):
    settings = {"outputs": FLOW, "scale": 3.0, "clip": True}
    shutil.copy(walk / "frame_5.png", tmp_path / "late.png")
    run(predictor, walk, tmp_path / "out", **settings)
    shutil.copy(tmp_path / "late.png", walk / "frame_0.png")
    assert run(predictor, walk, tmp_path / "out", **settings).done == 1
    run(predictor, walk, tmp_path / "fresh", **settings)
    assert files_of(tmp_path / "out") == files_of(tmp_path / "fresh")


def test_a_log_is_read_as_it_was_written(tmp_path):
    """With names of any kind, of every shard, and but for lines that were cut."""
    record = tmp_path / "made" / "a.b.json"
    odd = "new\nline \udcff ü"
    one, two = (Journal(record, "0123abcd", Shard(index, 2)) for index in (1, 2))
    other = Journal(record, "deadbeef", Shard())
    one.begin()
    one.tell("+", odd, ["flow/*.flo", "clip"])
    with one.own.open("a") as file:
        file.write('\n["+", "cut')
    two.tell("+", "x", ["flow/*.flo"])
    two.tell("-", "y", ["flow/*.flo"])
    one.tell("+", "z", ["flow/*.flo"])
    other.tell("+", "q", ["flow/*.flo"])
    # Of another sequence, though its name begins alike.
    Journal(tmp_path / "made" / "a.json", "0123abcd", Shard()).tell("+", "no", ["flow/*.flo"])
    logs = one.logs()
    assert made(logs) == {"flow/*.flo": {odd, "x", "z", "q"}, "clip": {odd}}
    assert failed(logs)["flow/*.flo"] == {"y"}
    assert without({"flow/*.flo": ["x", "y"], "clip": [odd]}, made(logs)) == {"flow/*.flo": ["y"]}
    two.tell("-", "x", ["flow/*.flo"])
    one.withdraw({"z", "y"}, ["flow/*.flo", "clip"])
    logs = one.logs()
    assert made(logs) == {"flow/*.flo": {odd, "q"}, "clip": {odd}}, "the last word counts"
    assert failed(logs)["flow/*.flo"] == {"x", "y"}
    assert [log.command for log in one.others()] == ["deadbeef"]
    assert len(Journal(record, "0123abcd", Shard(1, 3)).others()) == 3, "divided otherwise"
    one.drop({"x"}, with_empty=True)
    assert [log.command for log in two.logs()] == ["deadbeef"]
    other.begin()
    one.drop({"x"}, with_empty=False)
    assert [log.command for log in two.logs()] == ["deadbeef"], "it has begun, and is not ours"
    one.drop({"x"}, with_empty=True)
    assert [path.name for path in record.parent.iterdir()] == ["a.0123abcd.1-1.log"]


@pytest.mark.parametrize("what", ["flow", "clip"])
def test_a_file_that_appears_while_its_output_is_written_stays_and_is_named(
    predictor, walk, tmp_path, monkeypatch, what
):
    """Later than we can look: the place was told of as ours, and is given back."""
    out, settings = tmp_path / "out", {"scale": 3.0, "clip": True}
    own = out / {"flow": "picture/walk/frame_3.png", "clip": "clip/walk.mp4"}[what]
    publish = files._publish

    def late(temporary, path, overwrite):
        if path == own and not own.exists():
            own.write_bytes(b"mine")
        publish(temporary, path, overwrite)

    monkeypatch.setattr(files, "_publish", late)
    summary = run(predictor, walk, out, **settings)
    monkeypatch.undo()
    (failure,) = summary.failures
    assert f"{own.name}: exists already" in str(failure)
    assert (summary.done, summary.failed) == ((3, 1) if what == "flow" else (4, 0))
    assert own.read_bytes() == b"mine"
    refused(predictor, walk, out, own, **settings)
    run(predictor, walk, out, **settings)
    run(predictor, walk, tmp_path / "fresh", **settings)
    assert files_of(out) == files_of(tmp_path / "fresh")


def test_a_kind_that_others_are_made_of_later_is_not_that_of_a_pair(predictor, walk, tmp_path):
    out = tmp_path / "out"
    pairs = [[walk / f"frame_{n}.png", walk / f"frame_{n + 1}.png"] for n in (1, 3)]
    run(predictor, pairs[1], out, outputs=FLOW)
    run(predictor, pairs[0], out)
    own = out / "picture" / "frame_3.png"
    shutil.copy(walk / "frame_3.png", own)
    refused(predictor, pairs[1], out, own)


@pytest.mark.parametrize("shard", [Shard(), Shard(123, 456)])
def test_a_name_that_just_fits_has_logs_that_fit_too(tmp_path, shard):
    """A file system takes 255 bytes; the record's lock ends in .json.lock."""
    for name in ("n" * 245, "ü" * 122):
        journal = Journal(tmp_path / f"{name}.json", "0123abcd", shard)
        journal.begin_unless_begun()
        journal.tell("+", "a", ["flow/*.flo"])
        assert made(journal.logs()) == {"flow/*.flo": {"a"}}


def test_outputs_of_frames_that_changed_leave_their_places_free_for_yours(
    predictor, walk, tmp_path
):
    frame, out = walk / "frame_3.png", tmp_path / "out"
    content = frame.read_bytes()
    run(predictor, walk, out, outputs=FLOW)
    frame.write_bytes(b"no picture")
    run(predictor, walk, out, outputs=FLOW)
    run(predictor, walk, tmp_path / "broken", outputs=FLOW)
    assert files_of(out) == files_of(tmp_path / "broken")
    own = out / "flow" / "walk" / "frame_2.flo"
    shutil.copy(out / "flow" / "walk" / "frame_1.flo", own)
    for now in (b"no picture", content):
        frame.write_bytes(now)
        mine = own.read_bytes()
        refused(predictor, walk, out, own, outputs=FLOW)
        own.write_bytes(mine)
    own.unlink()
    run(predictor, walk, out, outputs=FLOW)
    run(predictor, walk, tmp_path / "fresh", outputs=FLOW)
    assert files_of(out) == files_of(tmp_path / "fresh")


def test_a_file_of_yours_does_not_go_with_outputs_of_changed_frames(predictor, walk, tmp_path):
    """Of a kind that the job could not make, and that is not asked for now."""
    frame, out = walk / "frame_3.png", tmp_path / "out"
    content = frame.read_bytes()
    frame.write_bytes(b"no picture")
    run(predictor, walk, out, scale=3.0)
    own = out / "picture" / "walk" / "frame_2.png"
    own.write_bytes(b"mine")
    frame.write_bytes(content)
    assert run(predictor, walk, out, outputs=FLOW).done == 2
    assert own.read_bytes() == b"mine"
    refused(predictor, walk, out, own, scale=3.0)


def test_a_part_that_is_redone_and_broken_off_leaves_its_places_free_for_yours(
    predictor, walk, tmp_path, dies_at, monkeypatch
):
    out = tmp_path / "out"
    run(predictor, walk, out, outputs=FLOW)
    dies_at(2)
    with pytest.raises(Killed):
        run(predictor, walk, out, outputs=FLOW, overwrite=True, shard=ONE)
    monkeypatch.undo()
    own = out / "flow" / "walk" / "frame_2.flo"
    own.write_bytes(b"mine")
    refused(predictor, walk, out, own, outputs=FLOW)
    run(predictor, walk, out, outputs=FLOW)
    run(predictor, walk, tmp_path / "fresh", outputs=FLOW)
    assert files_of(out) == files_of(tmp_path / "fresh")
