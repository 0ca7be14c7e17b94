"""Records: outputs are those of the frames that are there, and only a job's own are removed."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

import lcv
from lcv.data.formats.image import write_image
from lcv.errors import FileError
from lcv.predict import Predictor
from lcv.predict.cuts import glance, is_cut
from lcv.predict.outputs import wanted_outputs
from lcv.predict.pairs import Wanted
from lcv.predict.shards import Shard
from lcv.predict.sources import FrameFiles, fingerprint
from predict.small_jobs import FLOW, Killed, change, run
from testing.footage import files_of, moving, save_film, save_frames

MORE = wanted_outputs(("flo", "png", "npy", "kitti"), backward=True, overlay=True)


def flows(root):
    """The flows in a folder, by their pair's number."""
    found = (root / "flow").rglob("*.flo")
    return {int(path.stem.rpartition("_")[2]): path.read_bytes() for path in found}


@pytest.mark.parametrize("frame", [1, 4, 7])
def test_a_pair_whose_frames_changed_is_made_again_and_no_other(predictor, walk, tmp_path, frame):
    out = tmp_path / "out"
    settings = {"scale": 3.0, "clip": True}
    run(predictor, walk, out, **settings)
    before = {path: path.stat().st_mtime_ns for path in (out / "flow").rglob("*.flo")}
    change(walk / f"frame_{frame}.png")
    summary = run(predictor, walk, out, **settings)
    touched = {n for n in (frame - 1, frame) if 1 <= n <= 6}
    assert (summary.done, summary.changed, summary.there) == (
        len(touched),
        len(touched),
        6 - len(touched),
    )
    for path, when in before.items():
        assert (path.stat().st_mtime_ns != when) == (int(path.stem[6:]) in touched)
    run(predictor, walk, tmp_path / "fresh", **settings)
    assert files_of(out) == files_of(tmp_path / "fresh"), "the clip shows the new flow too"
    again = run(predictor, walk, out, **settings)
    assert (again.done, again.changed, again.there) == (0, 0, 6)


@pytest.mark.parametrize("number", range(1, 9))
def test_a_kill_while_changed_pairs_are_made_again_leaves_nothing_old(
    predictor, walk, tmp_path, dies_at, monkeypatch, number
):
    settings = {"scale": 3.0, "clip": True}
    run(predictor, walk, tmp_path / "out", **settings)
    change(walk / "frame_4.png")
    run(predictor, walk, tmp_path / "fresh", **settings)
    dies_at(number)
    try:
        run(predictor, walk, tmp_path / "out", **settings)
    except Killed:
        pass
    else:
        assert number > 6, "a record, two flows, two pictures and a clip"
    monkeypatch.undo()
    run(predictor, walk, tmp_path / "out", **settings)
    assert files_of(tmp_path / "out") == files_of(tmp_path / "fresh")


def test_frames_that_moved_up_are_new_pairs_under_old_names(predictor, walk, tmp_path):
    """Without frame 4, the pair frame_3 is another one."""
    run(predictor, walk, tmp_path / "out", outputs=FLOW)
    (walk / "frame_4.png").unlink()
    assert run(predictor, walk, tmp_path / "out", outputs=FLOW).changed == 1
    run(predictor, walk, tmp_path / "fresh", outputs=FLOW)
    fresh = flows(tmp_path / "fresh")
    assert {n: flow for n, flow in flows(tmp_path / "out").items() if n != 4} == fresh


def test_a_changed_time_alone_changes_nothing(predictor, walk, tmp_path):
    run(predictor, walk, tmp_path / "out")
    for path in walk.iterdir():
        shutil.copy(path, tmp_path / "copy.png")
        (tmp_path / "copy.png").replace(path)
    summary = run(predictor, walk, tmp_path / "out")
    assert (summary.done, summary.there) == (0, 6)


def test_a_frame_that_cannot_be_found_costs_nothing_that_is_there(predictor, walk, tmp_path):
    listed = tmp_path / "list.txt"
    listed.write_text("".join(f"walk/frame_{n}.png\n" for n in range(1, 8)))
    run(predictor, listed, tmp_path / "out", outputs=FLOW)
    before = flows(tmp_path / "out")
    (walk / "frame_4.png").rename(tmp_path / "elsewhere.png")
    run(predictor, listed, tmp_path / "out", outputs=FLOW)
    assert flows(tmp_path / "out") == before
    (tmp_path / "elsewhere.png").rename(walk / "frame_4.png")
    change(walk / "frame_4.png")
    assert run(predictor, listed, tmp_path / "out", outputs=FLOW).changed == 2


@pytest.mark.parametrize("shards", [1, 2])
def test_pairs_of_a_list_are_told_apart_one_by_one(predictor, walk, tmp_path, shards):
    pairs = [
        f"walk/frame_{n}.png walk/frame_{m}.png\n" for n, m in ((1, 3), (2, 5), (4, 6), (6, 7))
    ]
    (tmp_path / "list.txt").write_text("".join(pairs))

    def all_shards(root):
        done = [
            run(predictor, tmp_path / "list.txt", root, scale=3.0, shard=Shard(i + 1, shards))
            for i in range(shards)
        ]
        return sum(each.done for each in done), sum(each.there for each in done)

    assert all_shards(tmp_path / "out") == (4, 0)
    change(walk / "frame_6.png")
    assert all_shards(tmp_path / "out") == (2, 2)
    all_shards(tmp_path / "fresh")
    assert files_of(tmp_path / "out") == files_of(tmp_path / "fresh")


def test_more_pairs_without_a_name_are_added(predictor, walk, tmp_path):
    first = [walk / "frame_1.png", walk / "frame_2.png"]
    run(predictor, first, tmp_path / "out")
    assert run(predictor, [walk / "frame_3.png", walk / "frame_4.png"], tmp_path / "out").done == 1
    assert run(predictor, first, tmp_path / "out").there == 1
    other = save_frames(tmp_path / "other", 2, seed=4)
    with pytest.raises(FileError, match="already has outputs of another input .* 'frame_1'"):
        run(predictor, [other / "frame_1.png", other / "frame_2.png"], tmp_path / "out")


def test_each_file_is_read_once_for_its_hash(predictor, walk, tmp_path, monkeypatch):
    read = []
    monkeypatch.setattr(
        "lcv.predict.records.fingerprint", lambda path: read.append(path) or fingerprint(path)
    )
    pairs = [f"walk/frame_{n}.png walk/frame_{m}.png\n" for n in range(1, 8) for m in (2, 5, 7)]
    (tmp_path / "list.txt").write_text("".join(pairs))
    run(predictor, tmp_path / "list.txt", tmp_path / "out", outputs=FLOW)
    assert len(read) == len(set(read)) == 7


def test_another_film_of_the_same_name_is_refused(predictor, tmp_path):
    """Also one that begins alike and has the same size."""
    film = save_film(tmp_path / "walk.mkv", 4)
    run(predictor, film, tmp_path / "out")
    before = files_of(tmp_path / "out")
    content = bytearray(film.read_bytes())
    content[-1] ^= 1
    film.write_bytes(content)
    with pytest.raises(FileError, match="another input that is called 'walk', or most of this one"):
        run(predictor, film, tmp_path / "out")
    assert files_of(tmp_path / "out") == before
    assert run(predictor, film, tmp_path / "out", overwrite=True).done == 3


WARM = {"outputs": FLOW, "warm_start": True}


@pytest.mark.parametrize("frame", [1, 3, 4, 7])
def test_a_warm_start_is_redone_from_the_changed_frame_on(predictor, walk, tmp_path, frame):
    """To the end, where nothing resets it."""
    run(predictor, walk, tmp_path / "out", **WARM)
    pixels = lcv.read_image(walk / f"frame_{frame}.png").copy()
    pixels[20:40, 20:40] = 128  # a change, but no other scene
    write_image(walk / f"frame_{frame}.png", pixels, overwrite=True)
    summary = run(predictor, walk, tmp_path / "out", **WARM)
    assert summary.changed == 6 - max(frame - 2, 0)
    run(predictor, walk, tmp_path / "fresh", **WARM)
    assert files_of(tmp_path / "out") == files_of(tmp_path / "fresh")


def test_a_warm_start_is_redone_up_to_the_next_scene(predictor, walk, tmp_path):
    for number, image in enumerate(moving(4, seed=11), start=8):
        write_image(walk / f"frame_{number}.png", image)
    seen = [
        glance(predictor.take(frame).image)
        for frame in map(as_frame_of, (walk / "frame_7.png", walk / "frame_8.png"))
    ]
    assert is_cut(*seen), "or this test shows nothing"
    run(predictor, walk, tmp_path / "out", **WARM)
    pixels = lcv.read_image(walk / "frame_3.png").copy()
    pixels[20:40, 20:40] = 128
    write_image(walk / "frame_3.png", pixels, overwrite=True)
    # Pairs 2 … 6; pair 7 spans the cut and starts from zero, now as before.
    assert run(predictor, walk, tmp_path / "out", **WARM).changed == 5
    run(predictor, walk, tmp_path / "fresh", **WARM)
    assert files_of(tmp_path / "out") == files_of(tmp_path / "fresh")


def as_frame_of(path):
    from lcv.predict.frames import as_frame

    return as_frame(lcv.read_image(path), path.name)


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
    gone = {"taken away": 4, "first taken away": 1}.get(how)
    found = {n: flow for n, flow in flows(tmp_path / "out").items() if n != gone}
    assert found == flows(tmp_path / "fresh")


def test_fewer_frames_do_not_hide_a_change_from_a_warm_start(predictor, walk, tmp_path):
    run(predictor, walk, tmp_path / "out", **WARM)
    change(walk / "frame_1.png")
    run(predictor, walk, tmp_path / "out", frames=3, **WARM)
    run(predictor, walk, tmp_path / "out", **WARM)
    run(predictor, walk, tmp_path / "fresh", **WARM)
    assert flows(tmp_path / "out") == flows(tmp_path / "fresh")


def test_beginning_anew_with_fewer_outputs_leaves_none_of_the_old(predictor, walk, tmp_path):
    """Or a later run with all of them would take the old for new."""
    out, settings = tmp_path / "out", {"outputs": MORE, "wanted": Wanted(backward=True)}
    run(predictor, walk, out, scale=3.0, clip=True, **settings)
    for path in out.rglob("*.*"):
        if path.suffix in (".png", ".npy", ".flo") and path.stem == "frame_2":
            shutil.copy(out / path.relative_to(out).parent / f"frame_1{path.suffix}", path)
    old = sum(path.is_file() for path in out.rglob("*")) - 2
    assert run(predictor, walk, out, outputs=FLOW, overwrite=True).removed == old
    run(predictor, walk, tmp_path / "flow alone", outputs=FLOW)
    assert files_of(out / "flow") == files_of(tmp_path / "flow alone" / "flow")
    assert not (out / "picture").exists()
    run(predictor, walk, out, scale=3.0, **settings)
    run(predictor, walk, tmp_path / "fresh", scale=3.0, **settings)
    assert files_of(out) == files_of(tmp_path / "fresh")


def test_beginning_anew_removes_what_this_job_made_of_these_inputs_alone(predictor, walk, tmp_path):
    run_ = save_frames(tmp_path / "run", 3, seed=2)
    out = tmp_path / "out"
    run(predictor, [walk, run_], out)
    mine = [out / "flow" / "walk" / "mine.flo", out / "picture" / "own.png", out / "clip" / "a.mp4"]
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"mine")
    others = files_of(out / "flow" / "run")
    two = Predictor(predictor.model, iters=2, device="cpu")
    summary = run(two, walk, out, overwrite=True, outputs=FLOW)
    assert summary.removed == 12
    assert all(path.read_bytes() == b"mine" for path in mine)
    assert files_of(out / "flow" / "run") == others
    run(two, walk, tmp_path / "fresh", outputs=FLOW)
    assert flows(tmp_path / "fresh") == {
        int(p.stem[6:]): p.read_bytes() for p in (out / "flow" / "walk").glob("frame_*.flo")
    }
    # What stayed was made with other settings, and is not taken for new.
    with pytest.raises(
        FileError, match="its outputs of 'run' are of another job: there iters is 1"
    ):
        run(two, run_, out, outputs=FLOW)
    assert files_of(out / "flow" / "run") == others


def test_beginning_anew_that_is_broken_off_goes_on_without_being_told_again(
    predictor, walk, tmp_path, dies_at, monkeypatch
):
    sources = [walk, save_frames(tmp_path / "run", 3, seed=2)]
    run(predictor, sources, tmp_path / "out")
    two = Predictor(predictor.model, iters=2, device="cpu")
    dies_at(4)
    with pytest.raises(Killed):
        run(two, sources, tmp_path / "out", overwrite=True)
    monkeypatch.undo()
    run(two, sources, tmp_path / "out")
    run(two, sources, tmp_path / "fresh")
    assert files_of(tmp_path / "out") == files_of(tmp_path / "fresh")


def test_shards_that_begin_anew_give_the_files_of_one_run(predictor, walk, tmp_path):
    run(predictor, walk, tmp_path / "out", outputs=MORE, wanted=Wanted(backward=True))
    two = Predictor(predictor.model, iters=2, device="cpu")
    for index in (2, 1):
        run(two, walk, tmp_path / "out", shard=Shard(index, 2), overwrite=True)
    run(two, walk, tmp_path / "fresh")
    assert files_of(tmp_path / "out") == files_of(tmp_path / "fresh")


@pytest.mark.parametrize("source", ["frames", "list"])
def test_folders_of_shards_are_brought_together(predictor, walk, tmp_path, source):
    """Copied over each other, in whichever order, they are one job."""
    if source == "list":
        pairs = [f"walk/frame_{n}.png walk/frame_{m}.png\n" for n, m in ((1, 3), (2, 5), (4, 7))]
        (tmp_path / "list.txt").write_text("".join(pairs))
    words = walk if source == "frames" else tmp_path / "list.txt"
    settings = {"scale": 3.0, "clip": source == "frames"}
    run(predictor, words, tmp_path / "one", **settings)
    for index in (1, 2):
        run(predictor, words, tmp_path / f"shard {index}", shard=Shard(index, 2), **settings)
    for order in ((1, 2), (2, 1)):
        root = tmp_path / f"{order[0]} first"
        for index in order:
            shutil.copytree(tmp_path / f"shard {index}", root, dirs_exist_ok=True)
        assert run(predictor, words, root, **settings).done == 0
        found, wanted = files_of(root), files_of(tmp_path / "one")
        found.pop("job.json"), wanted.pop("job.json")
        assert found == wanted


def test_a_film_begun_anew_loses_all_that_was_made_of_it(predictor, tmp_path):
    film = save_film(tmp_path / "walk.mkv", 6)
    run(predictor, film, tmp_path / "out")
    save_film(film, 3, seed=4)
    assert run(predictor, film, tmp_path / "out", overwrite=True, outputs=FLOW).removed == 10
    run(predictor, film, tmp_path / "fresh", outputs=FLOW)
    assert files_of(tmp_path / "out") == files_of(tmp_path / "fresh")


@pytest.mark.parametrize("warm_start", [False, True])
@pytest.mark.parametrize("source", ["frames", "film"])
def test_formats_and_kinds_are_added_to_a_job(predictor, walk, tmp_path, warm_start, source):
    """Only what is missing is written, and the end is that of one run that was asked for all."""
    source = walk if source == "frames" else save_film(tmp_path / "walk.mkv", 5)
    out = tmp_path / "out"
    run(predictor, source, out, outputs=FLOW, warm_start=warm_start)
    times = {path: path.stat().st_mtime_ns for path in out.rglob("*.flo")}
    more = {
        "outputs": MORE,
        "wanted": Wanted(backward=True),
        "clip": True,
        "warm_start": warm_start,
    }
    run(predictor, source, out, **more)
    assert {path: path.stat().st_mtime_ns for path in times} == times
    run(predictor, source, tmp_path / "fresh", **more)
    assert files_of(out) == files_of(tmp_path / "fresh")
    # Fewer than before are all there, and the scale stays that of the pictures.
    assert run(predictor, source, out, outputs=FLOW, warm_start=warm_start).done == 0
    with pytest.raises(FileError, match=r"there scale is auto, here 5\.0"):
        run(predictor, source, out, scale=5.0, **more)
    assert files_of(out) == files_of(tmp_path / "fresh")


@pytest.mark.parametrize("shards", [1, 2])
def test_a_clip_is_made_again_with_arrows(predictor, walk, tmp_path, shards):
    outputs = wanted_outputs(("flo",), overlay=True)
    ask = {"scale": 3.0, "clip": True, "outputs": outputs}
    run(predictor, walk, tmp_path / "out", scale=3.0, clip=True, outputs=FLOW)
    for index in range(shards):
        shard = Shard(index + 1, shards)
        run(predictor, walk, tmp_path / "out", shard=shard, arrows=True, **ask)
    run(predictor, walk, tmp_path / "fresh", arrows=True, **ask)
    assert files_of(tmp_path / "out") == files_of(tmp_path / "fresh")
    plain = files_of(tmp_path / "fresh")["clip/walk.mp4"]
    run(predictor, walk, tmp_path / "out", **ask)
    assert files_of(tmp_path / "out")["clip/walk.mp4"] != plain


def test_what_a_record_does_not_tell_of_is_not_taken_for_the_jobs(predictor, walk, tmp_path):
    out = tmp_path / "out"
    run(predictor, walk, out, outputs=FLOW)
    own = out / "picture" / "walk" / "frame_2.png"
    own.parent.mkdir(parents=True)
    shutil.copy(walk / "frame_2.png", own)
    before = files_of(out)
    with pytest.raises(FileError, match=r"frame_2\.png: exists already, but .*walk\.json does not"):
        run(predictor, walk, out)
    assert files_of(out) == before
    run(predictor, walk, out, overwrite=True)
    run(predictor, walk, tmp_path / "fresh")
    assert files_of(out) == files_of(tmp_path / "fresh")


def test_a_damaged_record_is_said(predictor, walk, tmp_path):
    run(predictor, walk, tmp_path / "out")
    path = tmp_path / "out" / "made" / "walk.json"
    sound = json.loads(path.read_text())
    outside = {**sound, "outputs": ["../*.png"]}
    for damage in ("{", "[]", json.dumps(outside), json.dumps({**sound, "pairs": [1]}), "\0"):
        path.write_text(damage)
        with pytest.raises(FileError, match=r"walk\.json: is damaged, so that nobody knows"):
            run(predictor, walk, tmp_path / "out")
    run(predictor, walk, tmp_path / "out", overwrite=True)
    run(predictor, walk, tmp_path / "fresh")
    assert files_of(tmp_path / "out") == files_of(tmp_path / "fresh")


def test_the_hashes_of_a_pair_are_those_of_all_bytes_of_its_frames(tmp_path):
    files = []
    for number in range(3):
        files.append(tmp_path / f"{number}")
        files[-1].write_bytes(np.full(3 << 20, number, np.uint8).tobytes())
    sequence = FrameFiles("a", tuple(files), ("0", "1"))
    one, two, three = map(fingerprint, files)
    assert sequence.made_from(fingerprint, None, False) == {
        "0": f"{one} {two}",
        "1": f"{two} {three}",
    }
    assert sequence.made_from(fingerprint, 1, True) == {"0": f"- {one} {two}"}
    with files[0].open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"!")
    assert fingerprint(files[0]) != one
    assert fingerprint(tmp_path / "none") == fingerprint(tmp_path) == "?"
