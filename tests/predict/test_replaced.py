"""Inputs that are replaced, paired otherwise or taken away: nothing of the old passes for new."""

from __future__ import annotations

import dataclasses
import os
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest

from lcv.data.formats.image import write_image
from lcv.data.formats.video import read_video
from lcv.errors import ArgumentError, FileError
from lcv.predict import Predictor
from lcv.predict.inputs import find_inputs
from lcv.predict.job import Job
from lcv.predict.jobs import Run
from lcv.predict.outputs import Named, wanted_outputs
from lcv.predict.shards import Shard
from lcv.predict.single import run_pair
from lcv.predict.sources import film as open_film
from predict.small_jobs import FLOW, ONE, TWO, Killed, change, run
from testing.footage import files_of, moving, save_film, save_frames


def lay(folder, images):
    """Frames 1.png, 2.png …"""
    folder.mkdir(parents=True)
    for number, image in enumerate(images, start=1):
        write_image(folder / f"{number}.png", image)
    return folder


@pytest.mark.parametrize("part", [{"frames": 3}, {"shard": ONE}, {"shard": TWO}])
@pytest.mark.parametrize("ending", ["mkv", "mp4"])
def test_a_part_of_a_film_that_was_replaced_leaves_nothing_of_the_old(
    predictor, tmp_path, part, ending
):
    film = save_film(tmp_path / f"walk.{ending}", 6)
    settings = {"clip": True}
    run(predictor, film, tmp_path / "out", **settings)
    save_film(film, 6, seed=4)
    run(predictor, film, tmp_path / "out", overwrite=True, **part, **settings)
    run(predictor, film, tmp_path / "out", **settings)
    run(predictor, film, tmp_path / "fresh", **settings)
    found, wanted = files_of(tmp_path / "out"), files_of(tmp_path / "fresh")
    if "frames" in part:  # whose scale was found in those frames, and stays
        assert found["made/walk.json"] != wanted["made/walk.json"]
        found, wanted = ({k: v for k, v in all_.items() if "flow" in k} for all_ in (found, wanted))
    assert found == wanted


@pytest.mark.parametrize("ending", ["mkv", "mp4"])
def test_shards_do_all_of_a_longer_film_in_the_place_of_a_shorter(predictor, tmp_path, ending):
    film = save_film(tmp_path / f"walk.{ending}", 3)
    run(predictor, film, tmp_path / "out")
    save_film(film, 9, seed=4)
    for shard in (TWO, ONE):
        assert run(predictor, film, tmp_path / "out", overwrite=True, shard=shard).done >= 3
    run(predictor, film, tmp_path / "fresh")
    assert files_of(tmp_path / "out") == files_of(tmp_path / "fresh")


@pytest.mark.parametrize("number", [1, 2, 3, 5, 9, 11, 12])
def test_a_film_that_was_replaced_and_broken_off_goes_on(
    predictor, tmp_path, dies_at, monkeypatch, number
):
    """Without being told again, at whichever file it ended."""
    film = save_film(tmp_path / "walk.mkv", 6)
    run(predictor, film, tmp_path / "out", clip=True)
    save_film(film, 5, seed=4)
    run(predictor, film, tmp_path / "fresh", clip=True)
    dies_at(number)
    with pytest.raises(Killed):
        run(predictor, film, tmp_path / "out", clip=True, overwrite=True)
    monkeypatch.undo()
    run(predictor, film, tmp_path / "out", clip=True)
    assert files_of(tmp_path / "out") == files_of(tmp_path / "fresh")


@pytest.mark.parametrize("order", [(ONE, TWO), (TWO, ONE)])
@pytest.mark.parametrize("how", ["changed", "added", "taken away"])
def test_shards_that_begin_anew_with_other_frames_draw_at_one_scale(
    predictor, walk, tmp_path, order, how
):
    run(predictor, walk, tmp_path / "out", clip=True)
    if how == "changed":
        for number in (4, 5, 7):
            change(walk / f"frame_{number}.png", seed=number)
    elif how == "added":
        for number in range(8, 20):
            write_image(walk / f"frame_{number}.png", moving(1, seed=number)[0])
    else:
        (walk / "frame_7.png").unlink()
    for shard in order:
        run(predictor, walk, tmp_path / "out", overwrite=True, clip=True, shard=shard)
    run(predictor, walk, tmp_path / "fresh", clip=True)
    assert files_of(tmp_path / "out") == files_of(tmp_path / "fresh")


def test_shards_that_redo_their_parts_leave_those_of_others(predictor, tmp_path):
    """Also where frames have numbers for names, and others than their pairs."""
    folder = tmp_path / "walk"
    folder.mkdir()
    for number, image in enumerate(moving(7), start=1):
        write_image(folder / f"{number:06d}.png", image)
    run(predictor, folder, tmp_path / "fresh", clip=True)
    shutil.copytree(tmp_path / "fresh", tmp_path / "out")
    for index in (1, 2, 3):
        shard = Shard(index, 3)
        done = run(predictor, folder, tmp_path / "out", clip=True, overwrite=True, shard=shard)
        assert (done.done, done.removed) == (2, 5), "two flows, two pictures and the clip"
    assert files_of(tmp_path / "out") == files_of(tmp_path / "fresh")


def test_a_clip_of_as_many_frames_but_others_is_made_again(predictor, walk, tmp_path):
    ask = {"scale": 3.0, "clip": True}
    run(predictor, walk, tmp_path / "out", **ask)
    write_image(walk / "frame_8.png", moving(8)[-1])
    run(predictor, walk, tmp_path / "out", scale=3.0)
    (walk / "frame_1.png").unlink()
    summary = run(predictor, walk, tmp_path / "out", **ask)
    assert (summary.done, summary.there, len(summary.clips)) == (0, 6, 1)
    run(predictor, walk, tmp_path / "fresh", **ask)
    clip = "clip/walk.mp4"
    assert files_of(tmp_path / "out")[clip] == files_of(tmp_path / "fresh")[clip]
    assert not run(predictor, walk, tmp_path / "out", **ask).clips, "and then it is as it is"


def test_a_divided_clip_waits_for_all_pairs_and_for_nobody(predictor, walk, tmp_path):
    """Whichever shards ended before, of whatever frames."""
    settings = {"clip": True, "scale": 3.0}
    out = tmp_path / "out"
    run(predictor, walk, out, shard=ONE, **settings)
    assert not (out / "clip").exists()
    run(predictor, walk, out, **settings)
    change(walk / "frame_2.png")
    change(walk / "frame_6.png")
    run(predictor, walk, out, shard=TWO, **settings)
    assert not (out / "clip" / "walk.mp4").exists()
    run(predictor, walk, out, shard=ONE, **settings)
    assert len(list(read_video(out / "clip" / "walk.mp4"))) == 6
    run(predictor, walk, tmp_path / "fresh", **settings)
    assert files_of(out) == files_of(tmp_path / "fresh")


@pytest.mark.parametrize("shared", ["one frame", "black ones", "an opening"])
def test_folders_of_one_name_that_have_frames_in_common_are_two(predictor, tmp_path, shared):
    black = np.zeros((64, 72, 3), np.uint8)
    opening = {"one frame": moving(1), "black ones": [black, black], "an opening": moving(3)}[
        shared
    ]
    first = lay(tmp_path / "a" / "frames", [*opening, *moving(4, seed=1)])
    second = lay(tmp_path / "b" / "frames", [*opening, *moving(4, seed=2)])
    run(predictor, first, tmp_path / "out", outputs=FLOW)
    before = files_of(tmp_path / "out")
    with pytest.raises(FileError, match="already has outputs of another input .* 'frames'"):
        run(predictor, second, tmp_path / "out", outputs=FLOW)
    assert files_of(tmp_path / "out") == before
    # The same frames elsewhere are the same input.
    first.parent.rename(tmp_path / "moved")
    assert run(predictor, tmp_path / "moved" / "frames", tmp_path / "out", outputs=FLOW).done == 0


@pytest.mark.parametrize("how", ["pair", "list", "some", "every second", "in folders"])
def test_frames_that_are_paired_otherwise_are_refused(predictor, walk, tmp_path, how, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(walk, tmp_path / "other")
    first, second = {
        "pair": (
            ["walk/frame_1.png", "walk/frame_2.png"],
            ["walk/frame_1.png", "walk/frame_4.png"],
        ),
        "list": ("one.txt", "two.txt"),
        "some": ("walk", "walk/frame_[12456].png"),
        "every second": ("walk", "walk/frame_[1357].png"),
        "in folders": (
            ["walk/frame_1.png", "other/frame_2.png"],
            ["walk/frame_1.png", "other/frame_3.png"],
        ),
    }[how]
    line = "walk/frame_{}.png walk/frame_{}.png\n".format
    Path("one.txt").write_text(line(1, 2) + line(3, 4) + line(5, 6))
    Path("two.txt").write_text(line(1, 2) + line(3, 4) + line(5, 7))
    run(predictor, first, tmp_path / "out", outputs=FLOW)
    before = files_of(tmp_path / "out")
    with pytest.raises(FileError, match="which is there as it was, and here it is to be with"):
        run(predictor, second, tmp_path / "out", outputs=FLOW)
    assert files_of(tmp_path / "out") == before


@pytest.mark.parametrize("source", ["pair", "folder"])
@pytest.mark.parametrize("frame", [1, 2])
def test_a_pair_by_itself_is_made_again_if_one_of_its_frames_changed(
    predictor, tmp_path, source, frame
):
    """As that of a longer sequence is; of which nothing is left is another."""
    folder = save_frames(tmp_path / "walk", 2)
    files = [folder / "frame_1.png", folder / "frame_2.png"]
    words = files if source == "pair" else folder
    run(predictor, words, tmp_path / "out")
    change(files[frame - 1])
    summary = run(predictor, words, tmp_path / "out")
    assert (summary.done, summary.changed) == (1, 1)
    run(predictor, words, tmp_path / "fresh")
    assert files_of(tmp_path / "out") == files_of(tmp_path / "fresh")
    for file in files:
        change(file, seed=8)
    with pytest.raises(FileError, match="already has outputs of another input"):
        run(predictor, words, tmp_path / "out")
    assert files_of(tmp_path / "out") == files_of(tmp_path / "fresh")


def test_a_link_to_nothing_takes_no_frame_away(predictor, walk, tmp_path):
    run(predictor, walk, tmp_path / "out", outputs=FLOW)
    before = files_of(tmp_path / "out")
    (walk / "frame_4.png").rename(tmp_path / "away.png")
    (walk / "frame_4.png").symlink_to(tmp_path / "elsewhere.png")
    summary = run(predictor, walk, tmp_path / "out", outputs=FLOW)
    assert (summary.done, summary.there, summary.failed, summary.left) == (0, 6, 0, {})
    assert files_of(tmp_path / "out") == before
    summary = run(predictor, walk, tmp_path / "fresh", outputs=FLOW)
    (failure,) = summary.failures
    assert "walk/frame_4.png" in str(failure)
    assert (summary.done, summary.failed) == (4, 2)


def test_a_frame_that_comes_late_is_put_in_between(predictor, walk, tmp_path):
    (walk / "frame_4.png").rename(tmp_path / "late.png")
    run(predictor, walk, tmp_path / "out", scale=3.0)
    (tmp_path / "late.png").rename(walk / "frame_4.png")
    summary = run(predictor, walk, tmp_path / "out", scale=3.0)
    assert (summary.done, summary.changed) == (2, 1)
    run(predictor, walk, tmp_path / "fresh", scale=3.0)
    assert files_of(tmp_path / "out") == files_of(tmp_path / "fresh")


@pytest.mark.parametrize("first", ["stream", "film"])
def test_a_stream_and_a_film_of_one_name_are_two(predictor, tmp_path, first):
    film = save_film(tmp_path / "walk.mkv", 4)
    pipe = tmp_path / "walk"
    os.mkfifo(pipe)
    frames = save_frames(tmp_path / "frames", 3, seed=4)
    content = b"".join(path.read_bytes() for path in sorted(frames.iterdir()))

    def stream():
        writer = threading.Thread(target=pipe.write_bytes, args=(content,))
        writer.start()
        run(predictor, pipe, tmp_path / "out", outputs=FLOW)
        writer.join()

    if first == "stream":
        stream()
    else:
        run(predictor, film, tmp_path / "out", outputs=FLOW)
    before = files_of(tmp_path / "out")
    other, reason = (film, "another input") if first == "stream" else (pipe, "a second time")
    with pytest.raises(FileError, match=f"already has outputs of .*{reason}"):
        run(predictor, other, tmp_path / "out", outputs=FLOW)
    assert files_of(tmp_path / "out") == before


@pytest.mark.parametrize("is_recorded", [False, True])
def test_a_file_of_yours_with_a_number_stays(predictor, tmp_path, is_recorded):
    film = save_film(tmp_path / "walk.mkv", 4)
    own = tmp_path / "out" / "picture" / "walk" / "20240101.png"
    if is_recorded:
        run(predictor, film, tmp_path / "out")
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_bytes(b"mine")
    for shard in (Shard(), ONE, TWO):
        run(predictor, film, tmp_path / "out", overwrite=True, shard=shard)
        assert own.read_bytes() == b"mine"
    assert run(predictor, film, tmp_path / "out").there == 3


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_film_that_is_longer_than_it_says_takes_nothing_strange_for_its_own(
    predictor, tmp_path, overwrite
):
    film = dataclasses.replace(open_film(save_film(tmp_path / "walk.mkv", 6), "walk"), length=3)

    def go(root, **settings):
        return Run(predictor, Job((film,), tmp_path / root, FLOW, **settings)).go()

    go("fresh")
    strange = tmp_path / "out" / "flow" / "walk" / "000004.flo"
    go("out", frames=3)
    shutil.copy(tmp_path / "fresh" / "flow" / "walk" / "000000.flo", strange)
    if overwrite:
        go("out", overwrite=True)
        assert files_of(tmp_path / "out") == files_of(tmp_path / "fresh")
    else:
        content = strange.read_bytes()
        summary = go("out")
        assert (summary.done, summary.failed) == (2, 1)
        (failure,) = summary.failures
        assert "000004.flo: exists already, but" in str(failure)
        with pytest.raises(FileError, match=r"000004\.flo: exists already, but"):
            go("out")
        assert strange.read_bytes() == content
        strange.unlink()
        go("out")
        assert files_of(tmp_path / "out") == files_of(tmp_path / "fresh")


def test_all_refusals_are_told_before_anything_is_done(predictor, tmp_path):
    inputs = [save_frames(tmp_path / name, 3, seed=i) for i, name in enumerate("abc")]
    run(predictor, inputs[:2], tmp_path / "out", outputs=FLOW)
    before = files_of(tmp_path / "out")
    others = [save_frames(tmp_path / "other" / name, 3, seed=9) for name in "ab"]
    with pytest.raises(FileError, match="(?s)2 inputs are refused.* 'a'.* 'b'"):
        run(predictor, [inputs[2], *others], tmp_path / "out", outputs=FLOW)
    assert files_of(tmp_path / "out") == before
    with pytest.raises(FileError, match="another input that is called 'b'"):
        run(predictor, [inputs[2], inputs[0], others[1]], tmp_path / "out", outputs=FLOW)
    assert files_of(tmp_path / "out") == before


def test_the_scale_of_a_sequence_outlives_another_that_is_begun_anew(predictor, walk, tmp_path):
    other = save_frames(tmp_path / "other", 3, seed=2)
    out = tmp_path / "out"
    (scale,) = run(predictor, walk, out).scales
    two = Predictor(predictor.model, iters=2, device="cpu")
    run(two, other, out, overwrite=True)
    run(predictor, other, out, overwrite=True)
    for number in range(8, 30):
        write_image(walk / f"frame_{number}.png", moving(1, seed=number)[0])
    assert run(predictor, walk, out).scales == {scale}
    assert run(predictor, walk, tmp_path / "fresh").scales != {scale}, "or this shows nothing"


def test_outputs_of_frames_that_were_taken_away_are_told_of(predictor, walk, tmp_path):
    assert run(predictor, walk, tmp_path / "out").left == {}
    for number in (4, 7):
        (walk / f"frame_{number}.png").unlink()
    assert run(predictor, walk, tmp_path / "out").left == {"walk/frame_4": 2, "walk/frame_6": 2}
    assert run(predictor, walk, tmp_path / "out", frames=2).left.keys() == {
        "walk/frame_4",
        "walk/frame_6",
    }
    assert run(predictor, walk, tmp_path / "out", overwrite=True).left == {}
    assert len(list((tmp_path / "out" / "flow" / "walk").iterdir())) == 4


def test_an_output_is_never_an_input(predictor, walk, tmp_path):
    one, two = walk / "frame_1.png", walk / "frame_2.png"
    (pair,) = find_inputs([str(one), str(two)]).sequences
    link = tmp_path / "link.png"
    link.symlink_to(two)
    film = save_film(tmp_path / "walk.mp4", 4)
    before = files_of(tmp_path)
    outputs = wanted_outputs(("png",))
    for name in (one, link, walk / ".." / "walk" / "frame_2.png"):
        with pytest.raises(FileError, match="is the input .* itself"):
            run_pair(predictor, pair, Named(name, outputs), overwrite=True)
    job = Job(find_inputs([str(film)]).sequences, None, (), clip=film, overwrite=True)
    with pytest.raises(FileError, match="is the input .* itself"):
        Run(predictor, job).go()
    assert files_of(tmp_path) == before


@pytest.mark.parametrize("outputs", [wanted_outputs(("png",)), FLOW])
def test_no_output_of_a_job_is_its_input(predictor, walk, tmp_path, outputs):
    """Neither written to nor, being an output of before, removed."""
    run(predictor, walk, tmp_path / "out")
    before = files_of(tmp_path / "out")
    pictures = tmp_path / "out" / "picture" / "walk"
    with pytest.raises(FileError, match="is the input .* itself"):
        run(predictor, pictures, tmp_path / "out", outputs=outputs, overwrite=True)
    assert files_of(tmp_path / "out") == before


@pytest.mark.parametrize("source", ["frames", "film", "list"])
def test_beginning_anew_with_fewer_frames_leaves_no_more(predictor, walk, tmp_path, source):
    listed = tmp_path / "list.txt"
    listed.write_text("".join(f"walk/frame_{n}.png walk/frame_{n + 1}.png\n" for n in range(1, 7)))
    film = save_film(tmp_path / "walk.mkv", 7)
    words = {"frames": walk, "film": film, "list": listed}[source]
    run(predictor, words, tmp_path / "out", clip=True)
    run(predictor, words, tmp_path / "out", clip=True, overwrite=True, frames=3)
    run(predictor, words, tmp_path / "fresh", clip=True, frames=3)
    assert files_of(tmp_path / "out") == files_of(tmp_path / "fresh")


def test_an_empty_name_is_no_input():
    for word in ("", " "):
        with pytest.raises(ArgumentError, match="an empty name; wanted two images"):
            find_inputs([word])


def test_another_ending_beside_a_frame_is_said_to_name_the_pairs(predictor, tmp_path):
    folder = lay(tmp_path / "walk", moving(4))
    words = [str(folder)]
    assert find_inputs(words).notes == ()
    run(predictor, folder, tmp_path / "out", outputs=FLOW)
    write_image(folder / "2.jpg", moving(1, seed=3)[0])
    (note,) = find_inputs(words).notes
    assert "walk: 2.jpg and 2.png would have outputs of one name" in note
    assert "called as in 1.png" in note
    summary = run(predictor, folder, tmp_path / "out", outputs=FLOW)
    assert summary.done == 4
    assert summary.left == {"walk/1": 1, "walk/2": 1, "walk/3": 1}
