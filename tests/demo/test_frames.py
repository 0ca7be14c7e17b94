"""Frames of the page: examples with truth, uploads within limits, and a sentence for what is not."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
import torch

from lcv.cost_volume.warp import warp
from lcv.data.formats.image import write_image
from lcv.data.synthetic import RECIPES
from lcv.demo import frames as module
from lcv.demo import limits
from lcv.demo.frames import EXAMPLES, Chosen, example, from_files
from lcv.errors import ArgumentError, FileError, LcvError
from testing.footage import moving, save_film


def saved(folder, *sizes):
    paths = [folder / f"{k}.png" for k in range(len(sizes))]
    for path, size in zip(paths, sizes, strict=True):
        write_image(path, moving(1, size)[0])
    return paths


def test_an_example_is_the_same_every_time_and_its_truth_explains_it():
    name = next(iter(EXAMPLES))
    chosen = example(name)
    first, second = chosen.pair(0)
    example.cache_clear()
    assert np.array_equal(first, example(name).frames[0])
    image = torch.from_numpy(second).movedim(2, 0)[None].float()
    flow = torch.from_numpy(chosen.truth).movedim(2, 0)[None]
    warped = warp(image, flow)[0].movedim(0, 2).numpy()
    seen = ~chosen.occluded
    moved = np.abs(warped - first)[seen].mean()
    still = np.abs(second.astype(float) - first)[seen].mean()
    assert moved < 0.5 * still


def test_an_example_that_is_not_there():
    with pytest.raises(ArgumentError, match="there is no example 'Nothing'; there are Gentle"):
        example("Nothing")


def test_two_pictures(tmp_path):
    paths = saved(tmp_path, (64, 72), (64, 72))
    chosen = from_files(paths)
    assert (chosen.name, chosen.note, chosen.truth) == ("0.png and 1.png", "", None)
    assert [frame.shape for frame in chosen.frames] == [(64, 72, 3)] * 2


def test_large_pictures_are_reduced_with_a_sentence(tmp_path):
    chosen = from_files(saved(tmp_path, (320, 1280), (320, 1280)))
    assert [frame.shape for frame in chosen.pair(0)] == [(160, 640, 3)] * 2
    assert chosen.about(640).startswith("Reduced from 1280×320 to 640×160 pixels")
    assert chosen.frame(0).shape == (160, 640, 3)
    # More on request.
    assert chosen.pair(0, 1024)[1].shape == (256, 1024, 3)
    assert chosen.size(1920) == chosen.pair(0, 1920)[0].shape[:2] == (320, 1280)
    assert chosen.about(1920) == ""


def test_pictures_of_two_sizes_are_refused_with_both(tmp_path):
    with pytest.raises(FileError, match="0.png is 72×64 and 1.png is 80×64 pixels; wanted two"):
        from_files(saved(tmp_path, (64, 72), (64, 80)))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "no file came"),
        (["a.png"], "a.png: one image came, wanted two"),
        (["a.png", "b.png", "c.png"], "3 files came, 0 of them videos"),
        (["a.mp4", "b.png"], "2 files came, 1 of them videos"),
    ],
)
def test_the_number_of_files(tmp_path, names, message):
    with pytest.raises(ArgumentError, match=message):
        from_files([tmp_path / name for name in names])


def test_errors_name_files_and_not_our_folder(tmp_path):
    bad = tmp_path / "letter.png"
    bad.write_text("Dear page", encoding="utf-8")
    good = saved(tmp_path, (64, 72))[0]
    with pytest.raises(LcvError) as error:
        from_files([good, bad])
    assert str(error.value).startswith("letter.png: not an image that can be read (9 bytes)")
    assert str(tmp_path) not in str(error.value)


def test_too_many_pixels_and_bytes_are_refused(tmp_path, monkeypatch):
    paths = saved(tmp_path, (64, 72), (64, 72))
    monkeypatch.setattr(limits, "MOST_PIXELS", 64 * 72 - 1)
    with pytest.raises(LcvError, match=r"^0.png: declares 72×64 .* that are allowed$"):
        from_files(paths)
    monkeypatch.setattr(limits, "MOST_BYTES", 10)
    with pytest.raises(LcvError, match="0.png: 0 MB, wanted at most"):
        from_files(paths)


def test_a_video_is_taken_up_to_a_number_of_frames(tmp_path, monkeypatch):
    video = save_film(tmp_path / "video.mp4", 5)
    monkeypatch.setattr(limits, "MOST_FRAMES", 3)
    chosen = from_files([video])
    assert len(chosen.frames) == 3
    assert chosen.note == "The first 3 frames."
    last = chosen.pair(99)
    assert np.array_equal(last[0], chosen.frames[1])
    assert np.array_equal(last[1], chosen.frames[2])


def test_videos_that_are_long_or_slow_or_no_videos_are_refused(tmp_path, monkeypatch):
    text = tmp_path / "text.mp4"
    text.write_text("Dear page, I am not a video.", encoding="utf-8")
    with pytest.raises(FileError, match="^text.mp4: not a video that can be read"):
        from_files([text])
    video = save_film(tmp_path / "video.mp4", 5)
    monkeypatch.setattr(limits, "LONGEST_VIDEO", 0.01)
    with pytest.raises(FileError, match="^video.mp4: lasts 0 s, wanted at most 0 on this page"):
        from_files([video])


def test_a_decoder_that_takes_too_long_is_ended(tmp_path, monkeypatch):
    video = save_film(tmp_path / "video.mp4", 5)
    monkeypatch.setattr(limits, "DECODE_SECONDS", 0.0)
    with pytest.raises(FileError, match="video.mp4: .*too long for this page"):
        from_files([video])


def test_examples_are_of_known_recipes():
    for each in EXAMPLES.values():
        assert each.recipe in RECIPES
        assert RECIPES[each.recipe].without_effects()
        assert (type(each.seed), type(each.index)) == (int, int)
    assert list(EXAMPLES) == ["Gentle motion", "Large motion", "Thin shapes", "Stripes"]


def test_pairs_at_both_ends_and_beyond():
    chosen = Chosen(tuple(moving(4)), "film")
    for position, first in ((-5, 0), (0, 0), (1.9, 1), (2, 2), (3, 2), (99, 2)):
        one, two = chosen.pair(position)
        assert np.array_equal(one, chosen.frames[first])
        assert np.array_equal(two, chosen.frames[first + 1])
    assert chosen.rate == 10, "frames a second where nobody says"
    assert chosen.about(640) == ""
    large = Chosen(tuple(moving(2, (100, 1000))), "large", "A note.", given=(200, 2000))
    assert large.about(640) == (
        "A note. Reduced from 2000×200 to 640×64 pixels; `lcv predict` takes any size."
    )
    assert large.about(1024).startswith("A note. Reduced from 2000×200 to 1000×100 pixels")


def test_a_video_of_one_frame_is_refused(tmp_path, monkeypatch):
    frames = moving(2)

    class Film:
        def info(self):
            return {"seconds": None, "rate": None}

        def frames(self):
            return enumerate(frames)

    monkeypatch.setattr(module, "_decoder", lambda *_, **__: contextlib.nullcontext(Film()))
    found = module._video(tmp_path / "a.mp4")
    assert (len(found.frames), found.note, found.rate) == (2, "", Chosen.rate)
    del frames[1:]
    with pytest.raises(FileError, match="a.mp4: has one frame only, wanted two at least"):
        module._video(tmp_path / "a.mp4")
