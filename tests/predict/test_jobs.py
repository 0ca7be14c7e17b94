"""Jobs: whatever happens on the way, the same files in the end."""

from __future__ import annotations

import dataclasses
import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

import lcv
from lcv.data.formats.image import read_image, write_image
from lcv.data.formats.video import read_video
from lcv.errors import ArgumentError, FileError, LcvError
from lcv.predict import Predictor
from lcv.predict.inputs import find_inputs
from lcv.predict.job import Job, Silent
from lcv.predict.jobs import Run
from lcv.predict.outputs import Named, wanted_outputs
from lcv.predict.pairs import Wanted
from lcv.predict.scale import own_scale, rounded_up, sample_pairs
from lcv.predict.shards import Part, Shard
from lcv.predict.single import run_pair
from lcv.predict.sources import Film, film
from lcv.visual.colours import flow_scale
from predict.small_jobs import PLAIN, Killed, run
from testing.footage import files_of, moving, save_film, save_frames

WARM = {"outputs": wanted_outputs(("flo",)), "warm_start": True}
CLIP = {"outputs": wanted_outputs(("flo", "png")), "clip": True}
PICTURES_AND_CLIP = {
    "outputs": wanted_outputs(("png",), overlay=True),
    "clip": True,
    "arrows": True,
    "warm_start": True,
}
LOSSY_AND_CLIP = {"outputs": wanted_outputs(("kitti",)), "clip": True}
ALL_MAPS = {
    "outputs": wanted_outputs(("npz",), backward=True, occlusion=True, warp_error=True),
    "wanted": Wanted(True, True, True),
}
SETTINGS = {
    "plain": PLAIN,
    "warm": WARM,
    "clip": CLIP,
    "pictures and clip": PICTURES_AND_CLIP,
    "lossy and clip": LOSSY_AND_CLIP,
    "all maps": ALL_MAPS,
}


def test_the_flow_of_a_job_is_the_flow_of_its_pairs(predictor, walk, tmp_path):
    summary = run(predictor, walk, tmp_path / "out")
    assert (summary.done, summary.there, summary.failures) == (6, 0, [])
    frames = moving(7)
    for number in range(6):
        flow, _ = lcv.read_flow(tmp_path / "out" / "flow" / "walk" / f"frame_{number + 1}.flo")
        assert np.array_equal(flow, predictor(frames[number], frames[number + 1]).flow)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_job_that_was_broken_off_ends_with_the_same_files(
    predictor, walk, tmp_path, dies_at, monkeypatch, name
):
    settings = SETTINGS[name]
    run(predictor, walk, tmp_path / "whole", **settings)
    wanted = files_of(tmp_path / "whole")
    for number in (1, 2, 5, 8):
        root = tmp_path / f"broken {number}"
        with monkeypatch.context() as patched:
            dies_at(number)
            with pytest.raises(Killed):
                run(predictor, walk, root, **settings)
            patched.undo()
        monkeypatch.undo()
        run(predictor, walk, root, **settings)
        assert files_of(root) == wanted, number


def test_a_warm_start_goes_on_from_the_last_pair_and_not_from_the_first(
    predictor, walk, tmp_path, dies_at, monkeypatch
):
    """And a warm start is no cold one, or this test would show nothing."""
    run(predictor, walk, tmp_path / "cold", outputs=WARM["outputs"])
    run(predictor, walk, tmp_path / "whole", **WARM)
    names = [f"flow/walk/frame_{n}.flo" for n in range(1, 7)]
    cold, warm = files_of(tmp_path / "cold"), files_of(tmp_path / "whole")
    assert [cold[name] == warm[name] for name in names] == [True] + 5 * [False]
    # job.json with the plan, again with the sequence, then flow and state of each pair.
    dies_at(10)
    with pytest.raises(Killed):
        run(predictor, walk, tmp_path / "out", **WARM)
    monkeypatch.undo()
    assert (tmp_path / "out" / "warm" / "walk.npz").exists()
    matched = []
    match = Predictor.match
    monkeypatch.setattr(
        Predictor, "match", lambda self, *a, **k: matched.append(1) or match(self, *a, **k)
    )
    run(predictor, walk, tmp_path / "out", **WARM)
    assert len(matched) == 2
    assert files_of(tmp_path / "out") == warm


def test_a_second_run_has_nothing_to_do(predictor, walk, tmp_path):
    run(predictor, walk, tmp_path / "out", **CLIP)
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
    summary = run(predictor, walk, tmp_path / "out", **CLIP)
    assert (summary.done, summary.there) == (0, 6)
    assert times == {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}


@pytest.mark.parametrize("name", ["clip", "pictures and clip"])
def test_broken_outputs_are_made_again(predictor, walk, tmp_path, name):
    out = tmp_path / "out"
    run(predictor, walk, out, **SETTINGS[name])
    wanted = files_of(out)
    picture = out / "picture" / "walk" / "frame_2.png"
    picture.write_bytes(picture.read_bytes()[:-9])
    (out / "picture" / "walk" / "frame_5.png").unlink()
    clip = out / "clip" / "walk.mp4"
    clip.write_bytes(clip.read_bytes()[:200])
    assert run(predictor, walk, out, **SETTINGS[name]).done == 2
    assert files_of(out) == wanted
    clip.unlink()
    assert run(predictor, walk, out, **SETTINGS[name]).done == 0
    assert files_of(out) == wanted


def test_what_a_kill_left_half_written_is_removed(predictor, walk, tmp_path):
    run(predictor, walk, tmp_path / "out", **CLIP)
    wanted = files_of(tmp_path / "out")
    for name in ("flow/walk/.frame_3.flo", "clip/.walk.mp4", ".job.json"):
        (tmp_path / "out" / f"{name}.0123456789abcdef.part").touch()
    (tmp_path / "out" / "flow" / "walk" / "frame_3.flo").unlink()
    (tmp_path / "out" / "clip" / "walk.mp4").unlink()
    (tmp_path / "out" / "job.json").unlink()
    # Without the job's file nobody knows whose the rest is.
    with pytest.raises(
        FileError, match=r"flow: exists already and is not empty, but .* no job\.json"
    ):
        run(predictor, walk, tmp_path / "out", **CLIP)
    (tmp_path / "out" / "job.json").write_bytes(wanted["job.json"])
    run(predictor, walk, tmp_path / "out", **CLIP)
    found = files_of(tmp_path / "out")
    assert found.pop(".job.json.0123456789abcdef.part") == b"", "the file itself was not written"
    assert found == wanted


@pytest.mark.parametrize("name", ["plain", "clip", "pictures and clip", "lossy and clip"])
@pytest.mark.parametrize("count", [2, 3])
def test_shards_give_the_files_of_one_run(predictor, tmp_path, name, count):
    sources = [save_frames(tmp_path / "a", 6), save_frames(tmp_path / "b", 4, seed=1)]
    run(predictor, sources, tmp_path / "one", **SETTINGS[name])
    for order in (range(1, count + 1), range(count, 0, -1)):
        root = tmp_path / f"{order[0]} first"
        done = 0
        for index in order:
            shard = Shard(index, count)
            done += run(predictor, sources, root, shard=shard, **SETTINGS[name]).done
        assert done == 8
        assert files_of(root) == files_of(tmp_path / "one")


def test_shards_of_a_sequence_with_a_bad_frame_make_its_clip_too(predictor, walk, tmp_path):
    (walk / "frame_3.png").write_bytes(b"no picture")
    assert len(run(predictor, walk, tmp_path / "one", **CLIP).failures) == 1
    for index in (2, 1):
        run(predictor, walk, tmp_path / "two", shard=Shard(index, 2), **CLIP)
    assert files_of(tmp_path / "two") == files_of(tmp_path / "one")
    # Once all is there, a shard that runs again leaves all as it is.
    run(predictor, walk, tmp_path / "two", shard=Shard(2, 2), **CLIP)
    assert files_of(tmp_path / "two") == files_of(tmp_path / "one")


@pytest.mark.parametrize("warm_start", [False, True])
def test_one_bad_frame_costs_its_two_pairs(predictor, walk, tmp_path, warm_start):
    (walk / "frame_4.png").write_bytes((walk / "frame_4.png").read_bytes()[:200])
    summary = run(predictor, walk, tmp_path / "out", warm_start=warm_start)
    (failure,) = summary.failures
    assert "frame_4.png: damaged PNG" in str(failure)
    assert (summary.done, summary.failed) == (4, 2)
    made = sorted(path.stem for path in (tmp_path / "out" / "flow" / "walk").iterdir())
    assert made == ["frame_1", "frame_2", "frame_5", "frame_6"]
    with pytest.raises(FileError, match=r"frame_4\.png: damaged PNG"):
        run(predictor, walk, tmp_path / "strict", strict=True, warm_start=warm_start)


def test_a_bad_frame_that_was_mended_is_taken_up(predictor, walk, tmp_path):
    run(predictor, walk, tmp_path / "whole", scale=3.0)
    content = (walk / "frame_1.png").read_bytes()
    (walk / "frame_1.png").write_bytes(content[:50])
    assert run(predictor, walk, tmp_path / "out", scale=3.0).done == 5
    (walk / "frame_1.png").write_bytes(content)
    assert run(predictor, walk, tmp_path / "out", scale=3.0).done == 1
    whole, found = files_of(tmp_path / "whole"), files_of(tmp_path / "out")
    assert {k: v for k, v in found.items() if k != "job.json"} == {
        k: v for k, v in whole.items() if k != "job.json"
    }


def test_frames_of_different_size_are_named_with_both_sizes(predictor, walk, tmp_path):
    write_image(walk / "frame_4.png", moving(1, (64, 80))[0], overwrite=True)
    summary = run(predictor, walk, tmp_path / "out", clip=True)
    messages = [str(failure) for failure in summary.failures]
    assert len(messages) == 2
    assert "frame_3.png is 72×64" in messages[0]
    assert "frame_4.png is 80×64" in messages[0]
    assert (summary.done, summary.failed) == (4, 2)
    assert summary.clips, "the frames with flow are all of one size"


def test_a_clip_of_frames_that_change_their_size_is_given_up(predictor, walk, tmp_path):
    for number in (5, 6, 7):
        write_image(walk / f"frame_{number}.png", moving(1, (64, 80))[0], overwrite=True)
    summary = run(predictor, walk, tmp_path / "out", clip=True)
    assert summary.done == 5
    assert "no clip, since frames change their size" in str(summary.failures[-1])
    assert not list((tmp_path / "out" / "clip").iterdir())


def test_a_sequence_that_cannot_be_computed_does_not_stop_the_others(predictor, walk, tmp_path):
    small = save_frames(tmp_path / "small", 4, (32, 40))
    summary = run(predictor, [small, walk], tmp_path / "out")
    assert summary.done == 6
    (failure,) = summary.failures
    assert "40×32" in str(failure)


def test_another_setting_is_refused_until_told_to_begin_anew(predictor, walk, tmp_path):
    out = tmp_path / "out"
    run(predictor, walk, out)
    before = files_of(out)
    other = Predictor(predictor.model, iters=2, device="cpu")
    message = (
        r"out: holds the outputs of another job: there iters is 1, here 2\. Choose another folder "
        r"with -o, or say --overwrite to begin anew\."
    )
    with pytest.raises(FileError, match=message):
        run(other, walk, out)
    with pytest.raises(FileError, match=r"there scale is auto, here 5\.0"):
        run(predictor, walk, out, scale=5.0)
    with pytest.raises(FileError, match="there warm_start is False, here True"):
        run(predictor, walk, out, warm_start=True)
    torch.manual_seed(8)
    with pytest.raises(FileError, match="there weights is .*, here "):
        run(Predictor(lcv.build("raft-small"), iters=1, device="cpu"), walk, out)
    assert files_of(out) == before
    run(other, walk, out, overwrite=True)
    run(other, walk, tmp_path / "fresh")
    assert files_of(out) == files_of(tmp_path / "fresh")


def test_beginning_anew_leaves_nothing_old_however_it_ends(
    predictor, walk, tmp_path, dies_at, monkeypatch
):
    out = tmp_path / "out"
    run(predictor, walk, out)
    other = Predictor(predictor.model, iters=2, device="cpu")
    run(other, walk, tmp_path / "fresh")
    dies_at(4)
    with pytest.raises(Killed):
        run(other, walk, out, overwrite=True)
    monkeypatch.undo()
    run(other, walk, out)
    assert files_of(out) == files_of(tmp_path / "fresh")


def test_another_input_of_the_same_name_is_refused(predictor, walk, tmp_path):
    run(predictor, walk, tmp_path / "out")
    other = save_frames(tmp_path / "elsewhere" / "walk", 7, seed=3)
    with pytest.raises(FileError, match="already has outputs of another input .* 'walk'"):
        run(predictor, other, tmp_path / "out")
    run(predictor, other, tmp_path / "out", overwrite=True)
    run(predictor, other, tmp_path / "fresh")
    assert files_of(tmp_path / "out") == files_of(tmp_path / "fresh")


def test_a_damaged_job_file_is_said(predictor, walk, tmp_path):
    run(predictor, walk, tmp_path / "out")
    path = tmp_path / "out" / "job.json"
    sound = json.loads(path.read_text())
    for damage in ("{", "[]", json.dumps({**sound, "plans": {"72×64": {}}}), "\0"):
        path.write_text(damage)
        with pytest.raises(FileError, match=r"its job\.json is damaged, so that nobody knows"):
            run(predictor, walk, tmp_path / "out")


def test_more_frames_and_more_outputs_are_added_to_a_job(predictor, walk, tmp_path):
    frames = moving(9)
    run(predictor, walk, tmp_path / "out", scale=3.0)
    for number in (8, 9):
        write_image(walk / f"frame_{number}.png", frames[number - 1])
    assert run(predictor, walk, tmp_path / "out", scale=3.0).done == 2
    more = wanted_outputs(("flo", "png"), overlay=True)
    assert run(predictor, walk, tmp_path / "out", scale=3.0, outputs=more).done == 8
    run(predictor, walk, tmp_path / "fresh", scale=3.0, outputs=more)
    assert files_of(tmp_path / "out") == files_of(tmp_path / "fresh")


def test_the_scale_that_was_found_draws_the_same_pictures_again(predictor, walk, tmp_path):
    found = run(predictor, walk, tmp_path / "auto")
    (scale,) = found.scales
    record = json.loads((tmp_path / "auto" / "made" / "walk.json").read_text())
    assert record["scales"] == {"walk": scale}
    run(predictor, walk, tmp_path / "fixed", scale=scale)
    for path in (tmp_path / "auto" / "picture").rglob("*.png"):
        again = tmp_path / "fixed" / path.relative_to(tmp_path / "auto")
        assert again.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("value", [0.0000123, 0.999, 1.0, 2.001, 9.995, 23.412, 99.95, 12345.6])
def test_a_scale_is_rounded_up_to_three_digits(value):
    rounded = rounded_up(value)
    assert value * (1 - 1e-8) <= rounded <= value * 1.0101
    assert float(f"{rounded:.3g}") == rounded
    assert rounded_up(rounded) == rounded


@pytest.mark.parametrize("pairs", [2, 7, 8, 15, 16, 40, 41, 279, 100_000])
def test_a_scale_is_taken_from_pairs_all_over_and_costs_an_eighth_at_most(pairs):
    chosen = sample_pairs(pairs)
    assert len(chosen) == len(set(chosen)) == min(5, max(1, pairs // 8))
    assert all(0 <= pair < pairs for pair in chosen)
    gaps = np.diff([-chosen[0] - 1, *chosen, 2 * pairs - chosen[-1]])
    assert gaps.max() - gaps.min() <= 2


def test_one_pair_goes_to_the_named_file(predictor, walk, tmp_path):
    words = [str(walk / "frame_1.png"), str(walk / "frame_2.png")]
    (pair,) = find_inputs(words).sequences
    outputs = wanted_outputs(("flo", "png"), overlay=True)
    summary = run_pair(predictor, pair, Named(tmp_path / "out.flo", outputs))
    flow, _ = lcv.read_flow(tmp_path / "out.flo")
    assert np.array_equal(flow, predictor(*moving(2)).flow)
    assert list(summary.scales) == [own_scale(flow)]
    assert own_scale(flow) >= flow_scale(flow)
    assert {path.name for path in tmp_path.iterdir()} == {
        "walk",
        "out.flo",
        "out.png",
        "out_overlay.png",
    }


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


def test_a_film_is_a_sequence_like_any_other(predictor, tmp_path):
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


@pytest.mark.parametrize("declared", [3, 9])
def test_a_film_that_declares_a_wrong_length_loses_nothing_in_shards(
    predictor, tmp_path, declared, monkeypatch
):
    path = save_film(tmp_path / "walk.mkv", 6)
    wrong = dataclasses.replace(film(path, "walk"), length=declared)
    settings = {"outputs": wanted_outputs(("flo",))}
    orders = {
        "one": [Shard()],
        "two": [Shard(1, 2), Shard(2, 2)],
        "turned": [Shard(2, 2), Shard(1, 2)],
    }
    for root, shards in orders.items():
        for shard in shards:
            Run(predictor, Job((wrong,), tmp_path / root, shard=shard, **settings)).go()
    assert len(list((tmp_path / "one" / "flow" / "walk").iterdir())) == 5
    assert files_of(tmp_path / "two") == files_of(tmp_path / "one")
    assert files_of(tmp_path / "turned") == files_of(tmp_path / "one")
    # Its true length is known from now on, so that nothing has to be read to see that all is done.
    monkeypatch.setattr(Film, "stills", lambda *_: pytest.fail("read again"))
    assert Run(predictor, Job((wrong,), tmp_path / "one", **settings)).go().there == 5


def test_a_damaged_film_gives_what_can_be_read_and_its_name(predictor, tmp_path):
    good = save_film(tmp_path / "good.mkv", 3)
    path = save_film(tmp_path / "bad.mp4", 8)
    path.write_bytes(path.read_bytes()[:-300])
    (tmp_path / "empty.mp4").touch()
    words = [tmp_path / "bad.mp4", tmp_path / "empty.mp4", good]
    summary = run(predictor, words, tmp_path / "out")
    assert summary.done == 2
    assert ["bad.mp4" in str(f) or "empty.mp4" in str(f) for f in summary.failures] == [True, True]


def test_a_film_of_one_frame_is_named(predictor, tmp_path):
    path = save_film(tmp_path / "still.mkv", 1)
    for _ in range(2):
        (failure,) = run(predictor, path, tmp_path / "out").failures
        assert "still.mkv frame 0 is its only one; flow needs at least two" in str(failure)


def test_pairs_of_a_list_have_scales_of_their_own(predictor, walk, tmp_path):
    pairs = [f"walk/frame_{n}.png walk/frame_{m}.png\n" for n in range(1, 8) for m in (2, 5, 7)]
    (tmp_path / "list.txt").write_text("".join(pairs))
    summary = run(predictor, tmp_path / "list.txt", tmp_path / "out")
    assert summary.done == 21
    assert len(summary.scales) > 1, "each pair has its own scale"
    record = json.loads((tmp_path / "out" / "made.json").read_text())
    assert len(record["scales"]) < 8, "chains alone have one in common"
    other = save_frames(tmp_path / "elsewhere" / "walk", 7, seed=3).parent / "list.txt"
    other.write_text("".join(pairs))
    with pytest.raises(FileError, match="already has outputs of another input"):
        run(predictor, other, tmp_path / "out")


def test_a_stream_is_seen_once(predictor, tmp_path):
    folder = save_frames(tmp_path / "a", 4)
    content = b"".join((folder / f"frame_{n}.png").read_bytes() for n in (1, 2, 3, 4))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def send():
        writer = threading.Thread(target=Path(pipe).write_bytes, args=(content,))
        writer.start()
        return writer

    writer = send()
    assert run(predictor, pipe, tmp_path / "out", **CLIP).done == 3
    writer.join()
    names = sorted(path.name for path in (tmp_path / "out" / "flow" / "pipe").iterdir())
    assert names == ["000000.flo", "000001.flo", "000002.flo"]
    assert len(list(read_video(tmp_path / "out" / "clip" / "pipe.mp4"))) == 3
    with pytest.raises(FileError, match="cannot be seen a second time .* --overwrite"):
        run(predictor, pipe, tmp_path / "out", **CLIP)
    with pytest.raises(ArgumentError, match="a camera or a pipe is seen by one process only"):
        run(predictor, pipe, tmp_path / "other", shard=Shard(1, 2))


def test_only_the_first_frames_on_request(predictor, walk, tmp_path):
    assert run(predictor, walk, tmp_path / "out", frames=3).done == 2
    assert run(predictor, walk, tmp_path / "out", frames=3).there == 2
    assert Part(0).is_whole


def test_a_flow_that_is_not_finite_is_reported_and_not_written(predictor, walk, tmp_path):
    broken = Predictor(lcv.build("raft-small"), iters=1, device="cpu")
    with torch.no_grad():
        broken.model.update_block.flow_head.conv2.bias.fill_(float("nan"))
    summary = run(broken, walk, tmp_path / "out", outputs=wanted_outputs(("flo",)))
    assert summary.done == 0
    assert "is not finite" in str(summary.failures[0])
    assert list(files_of(tmp_path / "out")) == ["job.json"]
    words = [str(walk / "frame_1.png"), str(walk / "frame_2.png")]
    (pair,) = find_inputs(words).sequences
    with pytest.raises(LcvError, match=r"frame_1\.png: the flow to .*frame_2\.png is not finite"):
        run_pair(broken, pair, Named(tmp_path / "a.flo", wanted_outputs(("flo",))))
    assert not (tmp_path / "a.flo").exists()


@pytest.mark.parametrize("strategy", ["all-pairs", "on-demand", "tiles"])
def test_a_job_keeps_to_the_plan_it_was_begun_with(predictor, tmp_path, monkeypatch, strategy):
    """Also when so much memory is free that another would be chosen."""
    walk = save_frames(tmp_path / "walk", 3, (264, 200))
    first = Predictor(predictor.model, iters=1, device="cpu", strategy=strategy)
    run(first, walk, tmp_path / "out")
    wanted = files_of(tmp_path / "out")
    name = "flow/walk/frame_2.flo"
    (tmp_path / "out" / name).unlink()
    other = "on-demand" if strategy == "all-pairs" else "all-pairs"
    message = f"its frames of 200×264 are computed by {strategy}, and here --strategy is {other}"
    with pytest.raises(FileError, match=message):
        run(
            Predictor(predictor.model, iters=1, device="cpu", strategy=other),
            walk,
            tmp_path / "out",
            strict=True,
        )
    with pytest.raises(FileError, match=r"and here --max-memory is 1 MB\. Allow more"):
        run(
            Predictor(predictor.model, iters=1, device="cpu", max_memory="1MB"),
            walk,
            tmp_path / "out",
            strict=True,
        )
    little = first.plan(264, 200).bytes // 2 if strategy == "all-pairs" else 10**12
    monkeypatch.setattr("lcv.predict.planner.free_bytes", lambda _: little)
    again = Predictor(predictor.model, iters=1, device="cpu")
    run(again, walk, tmp_path / "out")
    assert again.plan(264, 200).strategy == strategy
    assert files_of(tmp_path / "out") == wanted
    chosen = Predictor(predictor.model, iters=1, device="cpu")
    if strategy == "all-pairs":
        with pytest.raises(ArgumentError, match="of memory are free"):
            chosen.plan(264, 200)
    else:
        assert chosen.plan(264, 200).strategy == "all-pairs"


def test_memory_that_runs_out_is_a_sentence_and_other_errors_are_not_hidden(
    predictor, walk, tmp_path, monkeypatch
):
    def fail(message):
        def match(*_, **__):
            raise RuntimeError(message)

        monkeypatch.setattr(Predictor, "match", match)

    fail("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")
    (failure,) = run(predictor, walk, tmp_path / "out").failures
    assert "frame_1.png: memory ran out" in str(failure)
    assert "--max-memory" in str(failure)
    (pair,) = find_inputs([str(walk / "frame_1.png"), str(walk / "frame_2.png")]).sequences
    with pytest.raises(LcvError, match="memory ran out"):
        run_pair(predictor, pair, Named(tmp_path / "a.flo", PLAIN["outputs"]))
    fail("a mistake of ours")
    with pytest.raises(RuntimeError, match="a mistake of ours"):
        run(predictor, walk, tmp_path / "out")


def test_errors_of_writing_stop_the_job(predictor, walk, tmp_path, monkeypatch):
    """A full disk is full for every pair; there is no use in going on."""

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("lcv.files._publish", full)
    with pytest.raises(LcvError, match="No space left on device"):
        run(predictor, walk, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == []


class Told(Silent):
    def __init__(self):
        self.names = []

    def begin(self, name, pairs):
        self.names.append((name, pairs))


def test_what_is_read_before_the_first_pair_is_shown(predictor, walk, tmp_path):
    job = Job(find_inputs([str(walk)]).sequences, tmp_path / "out", **PLAIN)
    told = Told()
    Run(predictor, job, told).go()
    assert told.names[0] == (f"reading {walk.name!r}", None)
    assert told.names[-1][1] is not None
