"""Beginning anew, in shards too: the end is that of a run in an empty folder."""

from __future__ import annotations

import json

import pytest

from lcv.errors import FileError
from lcv.predict.inputs import find_inputs
from lcv.predict.job import Job, Silent
from lcv.predict.jobs import Run
from lcv.predict.outputs import wanted_outputs
from lcv.predict.record_file import RecordFile
from lcv.predict.shards import Shard
from predict.small_jobs import FLOW, ONE, PLAIN, TWO, Killed, change, run
from testing.footage import files_of, save_film, save_frames

ORDERS = pytest.mark.parametrize("order", [(ONE, TWO), (TWO, ONE)], ids=["1 2", "2 1"])


@pytest.fixture
def walk(tmp_path):
    """Every frame another scene, so that its scale depends on which are looked at."""
    folder = save_frames(tmp_path / "walk", 5)
    for number in range(1, 6):
        change(folder / f"frame_{number}.png", seed=number)
    return folder


@pytest.fixture
def lists(walk, tmp_path):
    """Two files, each with two pairs of the walk that the other does not have."""
    found = []
    for name, first in (("a", 1), ("b", 3)):
        found.append(tmp_path / f"{name}.txt")
        lines = (f"walk/frame_{n}.png walk/frame_{n + 1}.png\n" for n in (first, first + 1))
        found[-1].write_text("".join(lines))
    return found


@ORDERS
def test_shards_find_the_scale_anew(predictor, walk, tmp_path, order):
    out = tmp_path / "out"
    old = run(predictor, walk, out, frames=3).scales
    assert run(predictor, walk, out).scales == old, "and it stays"
    for shard in order:
        run(predictor, walk, out, shard=shard, overwrite=True)
    assert run(predictor, walk, tmp_path / "fresh").scales != old, "or this shows nothing"
    assert files_of(out) == files_of(tmp_path / "fresh")


@pytest.mark.parametrize("source", ["frames", "film", "list"])
def test_shards_leave_nothing_beyond_their_frames(predictor, walk, tmp_path, source):
    listed = tmp_path / "list.txt"
    listed.write_text("".join(f"walk/frame_{n}.png walk/frame_{n + 1}.png\n" for n in range(1, 5)))
    film = tmp_path / "walk.mkv"
    words = {"frames": walk, "film": film, "list": listed}[source]
    if source == "film":
        save_film(film, 5)
    run(predictor, words, tmp_path / "out")
    for shard in (TWO, ONE):
        run(predictor, words, tmp_path / "out", overwrite=True, frames=3, shard=shard)
    run(predictor, words, tmp_path / "fresh", frames=3)
    assert files_of(tmp_path / "out") == files_of(tmp_path / "fresh")


@pytest.mark.parametrize(
    ("killed", "number", "again"),
    [(ONE, 3, True), (TWO, 2, True), (TWO, 3, False)],
)
def test_a_shard_that_is_killed_and_started_again_costs_the_others_nothing(
    predictor, walk, tmp_path, dies_at, monkeypatch, killed, number, again
):
    out = tmp_path / "out"
    run(predictor, walk, out)
    other = TWO if killed is ONE else ONE
    if killed is TWO:
        run(predictor, walk, out, overwrite=True, shard=other)
    dies_at(number)
    with pytest.raises(Killed):
        run(predictor, walk, out, overwrite=True, shard=killed)
    monkeypatch.undo()
    if killed is ONE:
        run(predictor, walk, out, overwrite=True, shard=other)
    mine = [f"flow/walk/frame_{n}.flo" for n in ((1, 2) if other is ONE else (3, 4))]
    times = [(out / name).stat().st_mtime_ns for name in mine]
    run(predictor, walk, out, overwrite=again, shard=killed)
    assert [(out / name).stat().st_mtime_ns for name in mine] == times
    run(predictor, walk, tmp_path / "fresh")
    assert files_of(out) == files_of(tmp_path / "fresh")


def test_shards_that_run_at_the_same_time_begin_once(predictor, walk, tmp_path):
    """The second begins and ends while the first is at work."""
    order = TWO, ONE
    out = tmp_path / "out"
    run(predictor, walk, out, clip=True, frames=4)

    class Meanwhile(Silent):
        is_over = False

        def advance(self, pairs, computed):
            if not self.is_over:
                self.is_over = True
                run(predictor, walk, out, clip=True, overwrite=True, shard=order[1])

    sequences = find_inputs([str(walk)]).sequences
    job = Job(sequences, out, **PLAIN, clip=True, overwrite=True, shard=order[0])
    Run(predictor, job, Meanwhile()).go()
    run(predictor, walk, tmp_path / "fresh", clip=True)
    assert files_of(out) == files_of(tmp_path / "fresh")


@pytest.mark.parametrize(
    ("order", "again"), [((ONE, TWO), False), ((TWO, ONE), True)], ids=["1 2", "2 1, told again"]
)
def test_a_shard_that_can_make_nothing_costs_the_other_nothing(
    predictor, walk, tmp_path, order, again
):
    for number in (1, 2):
        (walk / f"frame_{number}.png").write_bytes(b"no picture")
    out = tmp_path / "out"
    for index, shard in enumerate(order):
        overwrite = again or index == 0
        run(predictor, walk, out, overwrite=overwrite, shard=shard, outputs=FLOW)
    run(predictor, walk, tmp_path / "fresh", outputs=FLOW)
    assert files_of(out) == files_of(tmp_path / "fresh")


def test_a_shard_that_need_not_begin_anew_counts_as_one_that_did(predictor, walk, tmp_path):
    run(predictor, walk, tmp_path / "out", shard=ONE)
    assert run(predictor, walk, tmp_path / "out", shard=TWO, overwrite=True).removed == 0
    run(predictor, walk, tmp_path / "fresh")
    assert files_of(tmp_path / "out") == files_of(tmp_path / "fresh")
    # But one that goes on with what was there does not.
    (walk / "frame_6.png").write_bytes((walk / "frame_1.png").read_bytes())
    run(predictor, walk, tmp_path / "out", shard=TWO)
    assert run(predictor, walk, tmp_path / "out", shard=ONE, overwrite=True).removed == 10


def test_shards_begin_anew_again_once_all_have_ended(predictor, walk, tmp_path):
    """As soon as anything is there that they would not have made."""
    out = tmp_path / "out"
    both = [{"overwrite": True, "shard": shard} for shard in (ONE, TWO)]
    assert [run(predictor, walk, out, **each).removed for each in both] == [0, 0]
    assert [run(predictor, walk, out, **each).removed for each in both] == [4, 4]
    run(predictor, walk, out, outputs=wanted_outputs(("npy",)))
    assert [run(predictor, walk, out, **each).removed for each in both] == [12, 0]
    # In the middle of it, other frames are another beginning.
    run(predictor, walk, out, overwrite=True, shard=ONE)
    change(walk / "frame_2.png", seed=8)
    assert run(predictor, walk, out, overwrite=True, shard=TWO).removed == 8
    run(predictor, walk, out, overwrite=True, shard=ONE)
    run(predictor, walk, tmp_path / "fresh")
    assert files_of(out) == files_of(tmp_path / "fresh")


def test_shards_of_two_lists_in_one_folder_leave_each_other_alone(predictor, lists, tmp_path):
    out = tmp_path / "out"
    for listed in lists:
        run(predictor, listed, out)
    for shard in (ONE, TWO):
        for listed in lists:
            removed = run(predictor, listed, out, overwrite=True, shard=shard).removed
            assert removed == 2, "its own part of its own list"
    for listed in lists:
        run(predictor, listed, tmp_path / "fresh")
    assert files_of(out) == files_of(tmp_path / "fresh")


def test_a_scale_goes_with_its_pictures(predictor, walk, tmp_path):
    out = tmp_path / "out"
    run(predictor, walk, out, scale=3.0)
    run(predictor, walk, out, outputs=FLOW, overwrite=True)
    run(predictor, walk, tmp_path / "fresh", outputs=FLOW)
    assert files_of(out) == files_of(tmp_path / "fresh")
    run(predictor, walk, out, scale=5.0)
    run(predictor, walk, tmp_path / "fresh", scale=5.0)
    assert files_of(out) == files_of(tmp_path / "fresh")


def test_a_scale_stays_while_any_picture_is_drawn_at_it(predictor, walk, tmp_path):
    other, out = save_frames(tmp_path / "other", 3, seed=2), tmp_path / "out"
    run(predictor, [walk, other], out, scale=3.0)
    run(predictor, walk, out, outputs=FLOW, overwrite=True)
    with pytest.raises(FileError, match=r"there scale is 3\.0, here 5\.0"):
        run(predictor, walk, out, scale=5.0)
    run(predictor, other, out, outputs=FLOW, overwrite=True)
    assert json.loads((out / "job.json").read_text())["settings"]["scale"] is None
    assert run(predictor, [walk, other], out, scale=5.0).done == 6


def test_a_scale_of_pairs_without_a_name_goes_with_the_last_picture(predictor, walk, tmp_path):
    out = tmp_path / "out"
    pairs = [[walk / f"frame_{n}.png", walk / f"frame_{n + 1}.png"] for n in (1, 4)]
    for pair in pairs:
        run(predictor, pair, out, scale=3.0)
    run(predictor, pairs[0], out, outputs=FLOW, overwrite=True)
    with pytest.raises(FileError, match=r"there scale is 3\.0, here 5\.0"):
        run(predictor, pairs[0], out, scale=5.0)
    run(predictor, pairs[1], out, outputs=FLOW, overwrite=True)
    for pair in pairs:
        run(predictor, pair, tmp_path / "fresh", outputs=FLOW)
    assert files_of(out) == files_of(tmp_path / "fresh")


def test_a_scale_goes_with_its_pictures_also_after_a_kill(
    predictor, walk, tmp_path, dies_at, monkeypatch
):
    run(predictor, walk, tmp_path / "fresh", outputs=FLOW)
    for number in (1, 2):
        out = tmp_path / f"out {number}"
        run(predictor, walk, out, scale=3.0)
        dies_at(number)
        with pytest.raises(Killed):
            run(predictor, walk, out, outputs=FLOW, overwrite=True)
        monkeypatch.undo()
        run(predictor, walk, out, outputs=FLOW)
        assert files_of(out) == files_of(tmp_path / "fresh")


@pytest.mark.parametrize("began", [{"outputs": FLOW}, {"outputs": FLOW, "frames": 3}])
def test_what_others_added_to_a_part_goes_with_it(predictor, walk, tmp_path, began):
    """Another command has gone on with what this one began: its extras are not this one's."""
    out = tmp_path / "out"
    run(predictor, walk, out, shard=ONE, **began)
    run(predictor, walk, out, shard=TWO)
    for shard in (ONE, TWO):
        run(predictor, walk, out, shard=shard, overwrite=True, **began)
    run(predictor, walk, tmp_path / "fresh", **began)
    assert files_of(out) == files_of(tmp_path / "fresh")


@pytest.mark.parametrize("again", [True, False])
def test_another_scale_that_was_broken_off_is_begun_with_again(
    predictor, walk, tmp_path, monkeypatch, again
):
    """Where nothing is drawn any more, and the job's own file still has the old scale."""
    out, outputs = tmp_path / "out", wanted_outputs(("png",))
    run(predictor, walk, out, outputs=outputs, scale=9.0)
    remove = RecordFile.remove

    def dying(file):
        remove(file)
        raise Killed

    monkeypatch.setattr(RecordFile, "remove", dying)
    with pytest.raises(Killed):
        run(predictor, walk, out, outputs=outputs, overwrite=True)
    monkeypatch.undo()
    run(predictor, walk, out, outputs=outputs, overwrite=again)
    run(predictor, walk, tmp_path / "fresh", outputs=outputs)
    assert files_of(out) == files_of(tmp_path / "fresh")


def test_shards_take_another_scale_also_where_the_first_can_make_nothing(predictor, walk, tmp_path):
    (walk / "frame_1.png").write_bytes(b"no picture")
    out, outputs = tmp_path / "out", wanted_outputs(("png",))
    run(predictor, walk, out, outputs=outputs, scale=9.0)
    for index in range(1, 5):
        run(predictor, walk, out, outputs=outputs, overwrite=True, shard=Shard(index, 4))
    run(predictor, walk, tmp_path / "fresh", outputs=outputs)
    assert files_of(out) == files_of(tmp_path / "fresh")


@ORDERS
@pytest.mark.parametrize("damaged", [1, 4])
def test_a_job_with_a_damaged_frame_is_redone_shard_by_shard(
    predictor, walk, tmp_path, order, damaged
):
    (walk / f"frame_{damaged}.png").write_bytes(b"no picture")
    out = tmp_path / "out"
    run(predictor, walk, out, outputs=FLOW)
    for shard in order:
        run(predictor, walk, out, outputs=FLOW, overwrite=True, shard=shard)
    run(predictor, walk, tmp_path / "fresh", outputs=FLOW)
    assert files_of(out) == files_of(tmp_path / "fresh")


def test_a_list_that_has_only_begun_is_not_another_lists_to_end(
    predictor, lists, tmp_path, dies_at, monkeypatch
):
    out = tmp_path / "out"
    dies_at(1)
    with pytest.raises(Killed):
        run(predictor, lists[0], out, outputs=FLOW, overwrite=True, shard=ONE)
    monkeypatch.undo()
    run(predictor, lists[1], out, outputs=FLOW)
    run(predictor, lists[0], out, outputs=FLOW, shard=ONE)
    assert run(predictor, lists[0], out, outputs=FLOW, overwrite=True, shard=TWO).removed == 0
    for listed in lists:
        run(predictor, listed, tmp_path / "fresh", outputs=FLOW)
    assert files_of(out) == files_of(tmp_path / "fresh")


def test_nothing_is_left_of_kinds_that_are_not_asked_for(predictor, walk, tmp_path):
    """Neither half-written files nor folders, also of pairs without a name."""
    listed = tmp_path / "list.txt"
    listed.write_text("walk/frame_1.png walk/frame_2.png\nwalk/frame_2.png walk/frame_3.png\n")
    for words in (walk, listed):
        out, fresh = tmp_path / f"{words.name} out", tmp_path / f"{words.name} fresh"
        run(predictor, words, out)
        (out / "picture" / "walk" / f".frame_2.png.{'0' * 16}.part").write_bytes(b"half")
        run(predictor, words, out, outputs=FLOW, overwrite=True)
        run(predictor, words, fresh, outputs=FLOW)
        left = [sorted(path.relative_to(root) for path in root.rglob("*")) for root in (out, fresh)]
        assert left[0] == left[1]
