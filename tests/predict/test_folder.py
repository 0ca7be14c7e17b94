"""A job's folder: other settings and inputs are refused, changes are seen, nothing else is touched."""

from __future__ import annotations

import json
import os
import re
import shutil
import time

import numpy as np
import pytest
import torch

import lcv
from lcv.cli.predict_inputs import find_inputs
from lcv.data.formats.image import write_image
from lcv.data.formats.video import read_video
from lcv.errors import FileError
from lcv.memory import in_words
from lcv.predict import Predictor
from lcv.predict.folder import JobFolder
from lcv.predict.job import Job
from lcv.predict.matching import Wanted
from lcv.predict.memory import Plan
from lcv.predict.outputs import LOW, wanted_outputs
from lcv.predict.run import Run
from lcv.predict.selection import Selection
from lcv.predict.sources import FrameFiles, Video
from predict.small_jobs import FLOW, PLAIN, Killed, change, made, run
from testing.footage import files_of, moving, save_film, save_frames

CLIP = {"scale": 3.0, "clip": True}
WARM = {"outputs": FLOW, "warm_start": True}


def times(root):
    return {path.name: path.stat().st_mtime_ns for path in (root / "flow").rglob("*.flo")}


def test_other_settings_are_refused_and_named(predictor, walk, tmp_path):
    out = tmp_path / "out"
    run(predictor, walk, out)
    before = files_of(out)
    other = Predictor(predictor.model, iters=2, device="cpu")
    message = (
        r"out: was made with other settings: iters was 1, and is 2 now\. Choose another folder "
        r"with -o, or use --overwrite to start over\."
    )
    with pytest.raises(FileError, match=message):
        run(other, walk, out)
    with pytest.raises(FileError, match=r"scale was auto, and is 5\.0 now"):
        run(predictor, walk, out, scale=5.0)
    with pytest.raises(FileError, match="warm_start was False, and is True now"):
        run(predictor, walk, out, warm_start=True)
    torch.manual_seed(8)
    with pytest.raises(FileError, match="weights was [0-9a-f]{12}…, and is [0-9a-f]{12}… now"):
        run(Predictor(lcv.build("raft-small"), iters=1, device="cpu"), walk, out)
    assert files_of(out) == before
    run(other, walk, out, overwrite=True)
    run(other, walk, tmp_path / "fresh")
    assert made(out) == made(tmp_path / "fresh")


def test_overwriting_leaves_nothing_old_however_it_ends(
    predictor, walk, tmp_path, dies_at, monkeypatch
):
    out = tmp_path / "out"
    run(predictor, walk, out, clip=True)
    (out / "notes.txt").write_text("mine")
    other = Predictor(predictor.model, iters=2, device="cpu")
    run(other, walk, tmp_path / "fresh", outputs=FLOW)
    dies_at(4)
    with pytest.raises(Killed):
        run(other, walk, out, overwrite=True, outputs=FLOW)
    monkeypatch.undo()
    run(other, walk, out, outputs=FLOW)
    found = made(out)
    assert found.pop("notes.txt") == b"mine"
    assert found == made(tmp_path / "fresh")


def test_the_job_file_never_changes(predictor, walk, tmp_path):
    out = tmp_path / "out"
    run(predictor, walk, out, outputs=FLOW)
    before = (out / "job.json").stat(), (out / "job.json").read_bytes()
    run(predictor, walk, out, clip=True)
    after = (out / "job.json").stat(), (out / "job.json").read_bytes()
    assert (after[0].st_ino, after[0].st_mtime_ns) == (before[0].st_ino, before[0].st_mtime_ns)
    assert after[1] == before[1]
    (out / "job.json").write_text("{")
    with pytest.raises(
        FileError, match=r"job\.json: is not JSON; wanted a file of this job\. Choose .* -o\.$"
    ):
        run(predictor, walk, out)


def test_a_folder_with_files_and_no_job_is_refused(predictor, walk, tmp_path):
    own = tmp_path / "out" / "flow" / "mine.flo"
    own.parent.mkdir(parents=True)
    own.write_bytes(b"mine")
    for overwrite in (False, True):
        with pytest.raises(FileError, match=r"flow: is not empty, and .* has no job\.json"):
            run(predictor, walk, tmp_path / "out", overwrite=overwrite)
    assert files_of(tmp_path / "out") == {"flow": b"", "flow/mine.flo": b"mine"}


@pytest.mark.parametrize("frame", [1, 4, 7])
def test_a_changed_frame_recomputes_its_two_pairs_and_its_clip(predictor, walk, tmp_path, frame):
    out = tmp_path / "out"
    run(predictor, walk, out, **CLIP)
    before = times(out)
    change(walk / f"frame_{frame}.png")
    touched = {f"frame_{n}.flo" for n in (frame - 1, frame) if 1 <= n <= 6}
    summary = run(predictor, walk, out, **CLIP)
    assert (summary.done, summary.there, len(summary.clips)) == (len(touched), 6 - len(touched), 1)
    after = times(out)
    assert {name for name in before if after[name] != before[name]} == touched
    run(predictor, walk, tmp_path / "fresh", **CLIP)
    assert made(out) == made(tmp_path / "fresh")
    again = run(predictor, walk, out, **CLIP)
    assert (again.done, again.there, again.clips) == (0, 6, [])


@pytest.mark.parametrize("number", range(1, 6))
def test_a_kill_while_changed_pairs_are_recomputed_leaves_nothing_old(
    predictor, walk, tmp_path, dies_at, monkeypatch, number
):
    """Five files: two flows, two pictures and the clip."""
    run(predictor, walk, tmp_path / "out", **CLIP)
    change(walk / "frame_4.png")
    run(predictor, walk, tmp_path / "fresh", **CLIP)
    dies_at(number)
    with pytest.raises(Killed):
        run(predictor, walk, tmp_path / "out", **CLIP)
    monkeypatch.undo()
    run(predictor, walk, tmp_path / "out", **CLIP)
    assert made(tmp_path / "out") == made(tmp_path / "fresh")


def test_a_frame_that_changed_and_changed_back_is_recomputed(predictor, walk, tmp_path):
    """Of two lines on one output, that of the later run counts."""
    frame, out = walk / "frame_3.png", tmp_path / "out"
    shutil.copy2(frame, tmp_path / "kept.png")
    run(predictor, walk, out, outputs=FLOW)
    wanted = made(out)
    change(frame)
    run(predictor, walk, out, outputs=FLOW)
    assert made(out) != wanted
    shutil.copy2(tmp_path / "kept.png", frame)
    assert run(predictor, walk, out, outputs=FLOW).done == 2
    assert made(out) == wanted


def test_a_changed_time_alone_changes_nothing(predictor, walk, tmp_path):
    run(predictor, walk, tmp_path / "out")
    for path in walk.iterdir():
        path.write_bytes(path.read_bytes())
    summary = run(predictor, walk, tmp_path / "out")
    assert (summary.done, summary.there) == (0, 6)
    # The same frames elsewhere are the same input.
    (tmp_path / "elsewhere").mkdir()
    walk.rename(tmp_path / "elsewhere" / "walk")
    assert run(predictor, tmp_path / "elsewhere" / "walk", tmp_path / "out").done == 0


def test_frames_that_come_and_go_make_new_pairs(predictor, walk, tmp_path):
    out, frames = tmp_path / "out", moving(9)
    (walk / "frame_4.png").rename(tmp_path / "late.png")
    run(predictor, walk, out, scale=3.0)
    (tmp_path / "late.png").rename(walk / "frame_4.png")
    assert run(predictor, walk, out, scale=3.0).done == 2
    for number in (8, 9):
        write_image(walk / f"frame_{number}.png", frames[number - 1])
    assert run(predictor, walk, out, scale=3.0).done == 2
    more = wanted_outputs(("flo", "png"), overlay=True)
    before = times(out)
    assert run(predictor, walk, out, scale=3.0, outputs=more).done == 8
    assert times(out) == before, "only what is missing is written"
    run(predictor, walk, tmp_path / "fresh", scale=3.0, outputs=more)
    assert made(out) == made(tmp_path / "fresh")


def test_another_input_of_the_same_name_is_refused(predictor, walk, tmp_path):
    out = tmp_path / "out"
    run(predictor, walk, out)
    before = files_of(out)
    other = save_frames(tmp_path / "elsewhere" / "walk", 7, seed=3)
    with pytest.raises(FileError, match="already has outputs of another input .* 'walk'"):
        run(predictor, other, out)
    video = save_film(tmp_path / "walk.mkv", 4)
    with pytest.raises(FileError, match="already has outputs of another input .* 'walk'"):
        run(predictor, video, out)
    assert files_of(out) == before
    run(predictor, other, out, overwrite=True)
    run(predictor, other, tmp_path / "fresh")
    assert made(out) == made(tmp_path / "fresh")


def test_another_video_of_the_same_name_is_refused(predictor, tmp_path):
    """Also one that begins alike and has the same size."""
    film = save_film(tmp_path / "walk.mkv", 4)
    run(predictor, film, tmp_path / "out")
    content = bytearray(film.read_bytes())
    content[-1] ^= 1
    film.write_bytes(content)
    with pytest.raises(FileError, match="another input that is called 'walk'"):
        run(predictor, film, tmp_path / "out")
    assert run(predictor, film, tmp_path / "out", overwrite=True).done == 3


def test_parts_of_one_video_are_one_input(predictor, tmp_path):
    film = save_film(tmp_path / "walk.mkv", 8)
    middle = 4 / Video("walk", film).opened().rate  # of eight frames
    for chosen in (Selection(end=middle), Selection(start=middle)):
        sequences = find_inputs([str(film)]).sequences
        job = Job(sequences, tmp_path / "out", **{**PLAIN, "selection": chosen})
        assert Run(predictor, job).go().done == 3


@pytest.mark.parametrize("frame", [1, 2])
def test_a_pair_of_which_one_frame_changed_is_recomputed(predictor, tmp_path, frame):
    folder = save_frames(tmp_path / "walk", 2)
    files = [folder / "frame_1.png", folder / "frame_2.png"]
    run(predictor, files, tmp_path / "out")
    change(files[frame - 1])
    assert run(predictor, files, tmp_path / "out").done == 1
    run(predictor, files, tmp_path / "fresh")
    assert made(tmp_path / "out") == made(tmp_path / "fresh")
    for file in files:
        change(file, seed=8)
    with pytest.raises(FileError, match="already has outputs of another input"):
        run(predictor, files, tmp_path / "out")


@pytest.mark.parametrize("frame", [1, 3, 7])
def test_a_warm_start_is_recomputed_from_the_changed_frame_on(predictor, walk, tmp_path, frame):
    run(predictor, walk, tmp_path / "out", **WARM)
    pixels = lcv.read_image(walk / f"frame_{frame}.png").copy()
    pixels[20:40, 20:40] = 128  # a change, but no other scene
    write_image(walk / f"frame_{frame}.png", pixels, overwrite=True)
    assert run(predictor, walk, tmp_path / "out", **WARM).done == 6 - max(frame - 2, 0)
    run(predictor, walk, tmp_path / "fresh", **WARM)
    assert made(tmp_path / "out") == made(tmp_path / "fresh")


@pytest.mark.parametrize("how", ["mended", "taken away", "first taken away", "damaged"])
def test_a_warm_start_follows_its_frames(predictor, walk, tmp_path, how):
    frame = walk / ("frame_1.png" if how == "first taken away" else "frame_4.png")
    content = frame.read_bytes()
    if how == "mended":
        frame.write_bytes(content[:100])
    run(predictor, walk, tmp_path / "out", **WARM)
    if how == "mended":
        frame.write_bytes(content)
    elif how == "damaged":
        frame.write_bytes(content[:100])
    else:
        frame.unlink()
    run(predictor, walk, tmp_path / "out", **WARM)
    run(predictor, walk, tmp_path / "fresh", **WARM)
    fresh = made(tmp_path / "fresh" / "flow")
    assert {name: made(tmp_path / "out" / "flow")[name] for name in fresh} == fresh


def test_a_damaged_low_flow_is_refused_with_what_to_do(predictor, walk, tmp_path):
    run(predictor, walk, tmp_path / "out", **WARM)
    (tmp_path / "out" / "flow" / "walk" / "frame_4.flo").unlink()
    low = tmp_path / "out" / "low" / "walk" / "frame_3.npy"
    content = bytearray(low.read_bytes())
    content[:6] = b"broken"  # of the same size, so that its line still fits
    time = low.stat().st_mtime_ns
    low.write_bytes(content)
    os.utime(low, ns=(time, time))
    with pytest.raises(FileError, match=r"frame_3\.npy: is damaged; remove it and run this again"):
        run(predictor, walk, tmp_path / "out", **WARM)


def test_a_video_that_changes_while_it_is_read_is_computed_again(predictor, tmp_path, monkeypatch):
    film = save_film(tmp_path / "walk.mkv", 4)
    frames = Video.frames

    def changing(video, *words, **more):
        for frame in frames(video, *words, **more):
            if frame.index == 0:  # the decoder has opened it
                with film.open("ab") as file:
                    file.write(b"more")
            yield frame

    monkeypatch.setattr(Video, "frames", changing)
    assert run(predictor, film, tmp_path / "out", outputs=FLOW).done == 3
    monkeypatch.undo()
    with pytest.raises(FileError, match="all frames have changed"):
        run(predictor, film, tmp_path / "out", outputs=FLOW)


def test_the_scale_that_was_found_stays(predictor, walk, tmp_path):
    (scale,) = run(predictor, walk, tmp_path / "auto").scales
    kept = tmp_path / "auto" / "scale" / "walk.json"
    assert json.loads(kept.read_text()) == scale
    run(predictor, walk, tmp_path / "fixed", scale=scale)
    for path in (tmp_path / "auto" / "picture").rglob("*.png"):
        again = tmp_path / "fixed" / path.relative_to(tmp_path / "auto")
        assert again.read_bytes() == path.read_bytes()
    for number in range(8, 30):
        write_image(walk / f"frame_{number}.png", moving(1, seed=number)[0])
    assert run(predictor, walk, tmp_path / "auto").scales == {scale}
    assert run(predictor, walk, tmp_path / "fresh").scales != {scale}, "or this shows nothing"


def test_a_clip_that_would_show_something_else_is_made_again(predictor, walk, tmp_path):
    run(predictor, walk, tmp_path / "out", **CLIP)
    clip = tmp_path / "out" / "clip" / "walk.mp4"
    before = clip.read_bytes()
    summary = run(predictor, walk, tmp_path / "out", arrows=True, **CLIP)
    assert (summary.done, len(summary.clips)) == (0, 1)
    assert clip.read_bytes() != before
    assert len(list(read_video(clip))) == 6


@pytest.mark.parametrize("strategy", ["all-pairs", "on-demand", "tiles"])
def test_a_job_keeps_to_its_strategy(predictor, tmp_path, monkeypatch, strategy):
    """Also when so much memory is free that another would be chosen."""
    walk = save_frames(tmp_path / "walk", 3, (264, 200))
    first = Predictor(predictor.model, iters=1, device="cpu", strategy=strategy)
    run(first, walk, tmp_path / "out")
    wanted = made(tmp_path / "out")
    (tmp_path / "out" / "flow" / "walk" / "frame_2.flo").unlink()
    other = "on-demand" if strategy == "all-pairs" else "all-pairs"
    message = (
        f"was started with 200×264: {strategy}, about [0-9.]+ MB; --strategy or --max-memory now"
    )
    for options in ({"strategy": other}, {"max_memory": "1MB"}):
        with pytest.raises(FileError, match=message):
            run(
                Predictor(predictor.model, iters=1, device="cpu", **options), walk, tmp_path / "out"
            )
    monkeypatch.setattr("lcv.predict.memory.free_bytes", lambda _: 10**12)
    run(Predictor(predictor.model, iters=1, device="cpu"), walk, tmp_path / "out")
    assert made(tmp_path / "out") == wanted


def test_a_limit_holds_for_what_is_wanted_now(predictor, tmp_path):
    """The first run needed less: it had no backward flow."""
    walk = save_frames(tmp_path / "walk", 3, (264, 200))
    plain, more = (predictor.plan(264, 200, backward=both).bytes for both in (False, True))
    assert plain + 1 < more
    run(predictor, walk, tmp_path / "out", outputs=FLOW)
    limited = Predictor(predictor.model, iters=1, device="cpu", max_memory=plain + 1)
    both_ways = {"outputs": wanted_outputs(("flo",), backward=True), "wanted": Wanted(True)}
    with pytest.raises(FileError, match=f"about {in_words(more)}; --strategy or --max-memory now"):
        run(limited, walk, tmp_path / "out", **both_ways)
    allowed = Predictor(predictor.model, iters=1, device="cpu", max_memory=more)
    assert run(allowed, walk, tmp_path / "out", **both_ways).done == 2


def test_a_strategy_that_is_damaged_is_refused(predictor, walk, tmp_path):
    out = tmp_path / "out"
    run(predictor, walk, out, outputs=FLOW)
    (out / "flow" / "walk" / "frame_2.flo").unlink()
    for text in (
        '["magic", null, 5]',
        '"tiles"',
        '["tiles", [1], 5]',
        '["all-pairs", Infinity, 5]',
        "{",
    ):
        (out / "strategy" / "72x64.json").write_text(text)
        with pytest.raises(FileError, match=r"strategy.*(no usable strategy|is not JSON).* Choose"):
            run(predictor, walk, out, outputs=FLOW)


def outside(folder):
    """A folder with files that have the names of a job's."""
    for name in ("frame_1.flo", "frame_2.npy", ".frame_1.flo.0123456789abcdef.part", "72x64.json"):
        path = folder / "walk" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"mine")
    for path in [*(folder / "walk").iterdir()]:
        shutil.copy(path, folder)
    return files_of(folder)


@pytest.mark.parametrize(
    "link",
    [
        "flow",
        "low",
        "done",
        "strategy",
        "job.json",
        "flow/walk",
        "low/walk",
        "flow/walk/frame_1.flo",
    ],
)
@pytest.mark.parametrize("how", ["a new job", "an old one", "overwritten"])
def test_links_are_never_followed(predictor, walk, tmp_path, link, how):
    """A job folder that someone else prepared cannot make us touch files outside it."""
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    before = outside(elsewhere)
    if how == "a new job":
        out.mkdir()
    else:
        run(predictor, walk, out, **WARM)
    place = out / link
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    is_file = "." in place.name
    place.symlink_to(elsewhere / "walk" / "frame_1.flo" if is_file else elsewhere)
    (walk / "frame_3.png").write_bytes(b"no picture")
    is_inside = "/" in link
    if how == "overwritten" and is_inside:  # goes with its folder, and what it leads to stays
        run(predictor, walk, out, overwrite=True, **WARM)
    elif how == "a new job" and is_inside:
        with pytest.raises(FileError, match=r"is not empty, and .* has no job\.json"):
            run(predictor, walk, out, **WARM)
    else:
        with pytest.raises(FileError, match="is a link, which is not followed here; remove it"):
            run(predictor, walk, out, overwrite=how == "overwritten", **WARM)
    assert files_of(elsewhere) == before


def test_what_another_worker_is_deciding_is_not_swept(tmp_path):
    """Half-written files of decisions that are there are left from killed runs."""
    settings = {"lcv": "0"}
    JobFolder(tmp_path / "out", settings).keep("scale", "walk", 3.0)
    names = [f".{name}.json.0123456789abcdef.part" for name in ("walk", "run")]
    left, under_way = (tmp_path / "out" / "scale" / name for name in names)
    left.touch()
    under_way.touch()
    JobFolder(tmp_path / "out", settings).open(False, ())
    assert (left.exists(), under_way.exists()) == (False, True)


@pytest.mark.parametrize("kind", ["strategy", "scale"])
def test_what_workers_agreed_on_is_not_read_through_a_link(tmp_path, kind):
    folder = JobFolder(tmp_path / "out", {"lcv": "0"})
    assert folder.kept(kind, "walk") is None
    assert folder.keep(kind, "walk", 3.0) == folder.keep(kind, "walk", 5.0) == 3.0
    place = tmp_path / "out" / kind / "walk.json"
    assert folder.kept(kind, "walk") == 3.0
    place.symlink_to(place.rename(tmp_path / "elsewhere.json"))
    with pytest.raises(FileError, match="is a link, which is not followed here; remove it"):
        folder.kept(kind, "walk")


def test_nothing_is_swept_or_removed_through_a_link(tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "flow").symlink_to(mine)
    folder, path = JobFolder(tmp_path / "out", {"lcv": "0"}), tmp_path / "out" / "flow" / "a.flo"
    for touch in (lambda: folder.sweep([path]), lambda: folder.remove(path)):
        with pytest.raises(FileError, match="is a link, which is not followed here; remove it"):
            touch()


def test_lines_that_name_files_outside_make_us_touch_none(predictor, walk, tmp_path):
    out, mine = tmp_path / "out", tmp_path / "mine.flo"
    run(predictor, walk, out, outputs=FLOW)
    mine.write_bytes(b"mine")
    (line,) = (out / "done").glob("*.jsonl")
    names = ["../mine.flo", str(mine), "../../etc/passwd", "flow/../../mine.flo", "\0", ""]
    hostile = {"run": 99, "sequence": "../..", "pair": "../mine", "made_from": []}
    extra = json.dumps({**hostile, "outputs": dict.fromkeys(names, 4)})
    line.write_text(f"{line.read_text()}{extra}\n[]\nnull\n{'[' * 9999}\n")
    assert run(predictor, walk, out, outputs=FLOW).there == 6
    run(predictor, walk, out, outputs=FLOW, overwrite=True)
    assert mine.read_bytes() == b"mine"


def test_a_folder_with_a_job_json_of_something_else_is_left_alone(predictor, walk, tmp_path):
    """Another program may call its file so, and keep files in a folder called flow."""
    out = tmp_path / "out"
    (out / "flow").mkdir(parents=True)
    (out / "flow" / "mine.txt").write_text("mine")
    for text in ('{"name": "my job"}', "[]", "3", "damaged"):
        (out / "job.json").write_text(text)
        for overwrite in (False, True):
            with pytest.raises(FileError, match=r"job\.json: is not (from lcv|JSON)"):
                run(predictor, walk, out, overwrite=overwrite)
        assert (out / "job.json").read_text() == text
        assert (out / "flow" / "mine.txt").read_text() == "mine"


def test_a_place_where_nothing_can_be_written_is_refused_early(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    settings = {"warm_start": False}
    for name in ("file", "file/inside/deep"):
        with pytest.raises(FileError, match="file is a file, wanted a folder to write into"):
            JobFolder(tmp_path / name, settings).open(False, ())
    JobFolder(tmp_path / "new" / "deep", settings).open(False, ())
    assert not (tmp_path / "new").exists()
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(FileError, match=f"the folder {tmp_path} may not be written to"):
        JobFolder(tmp_path / "new", settings).open(False, ())


def test_the_second_run_over_280_frames_takes_under_three_seconds(tmp_path, monkeypatch):
    """Of processor time, since others use the machine too; nothing is decoded."""
    walk = tmp_path / "walk"
    walk.mkdir()
    frames = moving(7)
    for number in range(280):
        write_image(walk / f"{number:03d}.png", np.roll(frames[number % 7], number, axis=1))
    predictor = Predictor(lcv.wrap(lambda a, b: (a - b)[:, :2].contiguous()), device="cpu")
    run(predictor, walk, tmp_path / "out", scale=3.0)
    for name in ("sources.read_image", "outputs.read_flow", "outputs.read_image"):
        monkeypatch.setattr(f"lcv.predict.{name}", lambda *_: pytest.fail("decoded"))
    start = time.process_time()
    assert run(predictor, walk, tmp_path / "out", scale=3.0).there == 279
    assert time.process_time() - start < 3


def planned(tmp_path, strategy="auto"):
    """A planner, and a folder that keeps plans."""
    network = Predictor(lcv.build("raft-small"), iters=1, device="cpu", strategy=strategy)
    return JobFolder(tmp_path / "out", {"lcv": "0"}), network.planner


def test_a_kept_plan_is_allowed_up_to_the_limit(tmp_path):
    """By what it needs for what is wanted now, whatever was stored."""
    folder, planner = planned(tmp_path)
    kept, plain, more = ["on-demand", None, 7], Wanted(), Wanted(backward=True)
    needed, most = (planner.peak("on-demand", (64, 72), wanted, None) for wanted in (plain, more))
    planner.limit = needed
    plan = folder.plan(kept, 64, 72, planner, plain)
    assert plan == Plan("on-demand", 64, 72, needed, needed)
    assert planner.plan(64, 72, plain).strategy == "on-demand"
    started = f"was started with 72×64: on-demand, about {in_words(most)}; --strategy or"
    with pytest.raises(FileError, match=started):
        folder.plan(kept, 64, 72, planner, more)
    planner.limit -= 1
    with pytest.raises(FileError, match="; --strategy or --max-memory now rules that out"):
        folder.plan(kept, 64, 72, planner, plain)
    planner.costs = None
    assert folder.plan(kept, 64, 72, planner, plain).bytes == 7, "of one measured there"
    folder, planner = planned(tmp_path, strategy="on-demand")
    folder.plan(kept, 64, 72, planner, plain)
    with pytest.raises(FileError, match="; --strategy or --max-memory now rules that out"):
        folder.plan(["all-pairs", None, 1], 64, 72, planner, plain)


def test_where_things_lie(tmp_path):
    folder = JobFolder(tmp_path, {"lcv": "1", "a": "x"})
    walk = FrameFiles("walk", (), ("frame_1", "frame_2"))
    assert folder.path(FLOW[0], walk, 1) == tmp_path / "flow" / "walk" / "frame_2.flo"
    assert folder.clip_path(walk) == tmp_path / "clip" / "walk.mp4"
    path = tmp_path / "flow" / "walk" / "frame_1.flo"
    assert folder.prepare(path) == path
    assert path.parent.is_dir()
    assert (tmp_path / "job.json").read_text() == '{\n "a": "x",\n "lcv": "1"\n}\n'
    other = JobFolder(tmp_path, {"a": 24 * "y", "lcv": "1"})
    with pytest.raises(FileError, match=f"settings: a was x, and is {24 * 'y'} now\\. Choose"):
        other.prepare(path)
    other = JobFolder(tmp_path, {"a": 25 * "y", "lcv": "1"})
    with pytest.raises(FileError, match=f"settings: a was x, and is {12 * 'y'}… now\\. Choose"):
        other.prepare(path)


def recorded(tmp_path, warm_start=False):
    """A job of which the second of two pairs is done, with its low flow and that of the first."""
    tmp_path.mkdir(exist_ok=True)
    files = tuple(tmp_path / f"{n}.png" for n in range(3))
    for file in files:
        file.write_bytes(file.name.encode())
    walk = FrameFiles("walk", files, ("0", "1"))
    folder = JobFolder(tmp_path / "out", {"lcv": "1", "warm_start": warm_start})
    outputs = [folder.path(each, walk, 1) for each in (*FLOW, LOW)]
    for path in (*outputs, folder.path(LOW, walk, 0)):
        folder.prepare(path).write_bytes(b"12345")
    folder.identities(walk, 1)
    folder.record(walk, outputs, 1, notes=["tiles"])
    return folder, walk


def test_what_a_pair_was_made_from(tmp_path):
    folder, walk = recorded(tmp_path, warm_start=True)
    made_from = folder.log.pairs["walk", "1"]
    assert [each.size for each in made_from] == [5, 5, 5], "two frames and the low flow before"
    assert {*folder.log.entries} == {"flow/walk/1.flo", "low/walk/1.npy"}
    assert folder.is_done(walk, 1, (*FLOW, LOW))
    assert not folder.is_done(walk, 0, FLOW)
    folder.path(LOW, walk, 0).unlink()
    again = JobFolder(folder.root, folder.settings)
    again.open(False, ())
    assert not again.is_done(walk, 1, FLOW), "the next pair does not start from it any more"
    assert again.log.run == 2
    cold, walk = recorded(tmp_path / "cold")
    assert len(cold.log.pairs["walk", "1"]) == 2


@pytest.mark.parametrize("warm_start", [False, True])
def test_a_low_flow_is_no_frame_of_the_input(tmp_path, warm_start):
    """It is what it was, and all frames are others: another input."""
    folder, walk = recorded(tmp_path, warm_start)
    folder.check_same_input(walk)
    for file in walk.files[1:]:
        file.write_bytes(b"other")
        folder.files.forget(file)
    with pytest.raises(
        FileError, match="another input that is called 'walk': all frames have changed"
    ):
        folder.check_same_input(walk)
    folder.check_same_input(FrameFiles("run", walk.files, ("0", "1")))
    with pytest.raises(FileError, match="another input that is called 'walk'"):
        folder.check_same_input(FrameFiles("walk", walk.files, ("8", "9")))


def test_a_clip_is_known_by_all_that_it_shows(tmp_path):
    folder, walk = recorded(tmp_path)
    folder.record(walk, [folder.path(FLOW[0], walk, 1)], 0)
    stamp = folder.stamp(walk, [0, 1], 3.0, True)
    assert re.fullmatch("[0-9a-f]{20}", stamp)
    assert folder.stamp(walk, [0, 1], 3.0, True) == stamp
    others = [folder.stamp(walk, *how) for how in (([1], 3.0, True), ([0, 1], 4.0, True))]
    assert len({stamp, *others, folder.stamp(walk, [0, 1], 3.0, False)}) == 4
    clip = folder.prepare(folder.clip_path(walk))
    assert not folder.has_clip(walk, stamp)
    clip.write_bytes(b"film")
    folder.record(walk, [clip], clip=stamp)
    assert folder.has_clip(walk, stamp)
    assert not folder.has_clip(walk, others[0])
    clip.write_bytes(b"films")
    assert not folder.has_clip(walk, stamp)


def test_a_job_that_cannot_be_emptied_says_so(tmp_path, monkeypatch):
    folder, _ = recorded(tmp_path)
    monkeypatch.setattr(shutil, "rmtree", lambda *_: (_ for _ in ()).throw(OSError("busy")))
    with pytest.raises(FileError, match="out: cannot be emptied: busy"):
        folder.open(True, ())
