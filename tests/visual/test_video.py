"""Films appear whole or not at all, the same each time, and show the frames they were given."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tracemalloc
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lcv.data.formats.video import read_video, timed_frames
from lcv.errors import ArgumentError, FileError, ShapeError
from lcv.visual.video import ENDINGS, ClipWriter, _Video, clip


def moving(count, height=38, width=54):
    """A bright square that moves to the right on a smooth ground."""
    y, x = np.mgrid[:height, :width]
    for k in range(count):
        frame = np.stack([3 * x, 4 * y, 90 + 0 * x], axis=-1).astype(np.uint8)
        frame[10:20, 4 + k : 14 + k] = (250, 30, 30)
        yield frame


def written(path, frames, fps=25, **options):
    with clip(path, fps, **options) as write:
        for frame in frames:
            write(frame)
    return path


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_film_shows_the_frames(tmp_path, ending):
    frames = list(moving(9))
    path = written(tmp_path / f"film{ending}", frames, Fraction(30000, 1001))
    seen = list(read_video(path))
    assert len(seen) == len(frames)
    *_, (last, _) = timed_frames(path)
    assert last == pytest.approx(8 * 1001 / 30000, abs=0.006)  # a GIF counts in 1/100 s
    again = written(tmp_path / f"again{ending}", frames, Fraction(30000, 1001))
    assert again.read_bytes() == path.read_bytes()
    for made, found in zip(frames, seen, strict=True):
        # Half the colours are thrown away by 4:2:0, and H.264 rounds; the square stays the square.
        assert np.abs(made.astype(int) - found).mean() < 4
        assert found[12:18, :, 0].mean(0).argmax() == pytest.approx(
            made[12:18, :, 0].mean(0).argmax(), abs=9
        )


def test_flat_colours_come_back(tmp_path):
    """HD's matrix is both used and declared: otherwise green would be some 20 levels off."""
    colours = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255], [90, 200, 40]])
    frame = np.repeat(np.repeat(colours[None].astype(np.uint8), 32, 0), 32, 1).reshape(32, -1, 3)
    path = written(tmp_path / "film.mp4", [frame] * 3)
    found = next(read_video(path))
    assert np.abs(found[16, 16::32].astype(int) - colours).max() <= 3


@pytest.mark.parametrize(("height", "width"), [(1, 1), (37, 53), (38, 53), (37, 54)])
def test_an_odd_size_becomes_even_by_repeating_the_border(tmp_path, height, width):
    frame = np.full((height, width, 3), 128, np.uint8)
    path = written(tmp_path / "film.mp4", [frame, frame])
    found = next(read_video(path))
    assert found.shape == (height + height % 2, width + width % 2, 3)
    assert np.abs(found.astype(int) - 128).max() <= 3


SCRIPT = """
import sys
import numpy as np
from lcv.visual.video import _Video, clip
y, x = np.mgrid[:86, :168]
waves = [np.sin(x / 9 + y / 17), np.sin(x / 5 - y / 7), np.cos(y / 6)]
frame = (127 + 120 * np.stack(waves, axis=-1)).astype(np.uint8)
frame[-22:] = 255
frame[:, 84:105] = 0
with clip(sys.argv[1], 25) as write:
    for k in range(6):
        write(np.roll(frame, 3 * k, 1))
"""


def test_the_same_frames_give_the_same_bytes_whatever_the_memory_held(tmp_path):
    """New memory is filled with another byte each time, so what is read unwritten shows."""
    found = set()
    for number, fill in enumerate(("0", "85", "170")):
        path = tmp_path / f"{number}.mp4"
        environment = {**os.environ, "MALLOC_PERTURB_": fill}
        subprocess.run([sys.executable, "-c", SCRIPT, str(path)], check=True, env=environment)
        found.add(hashlib.sha256(path.read_bytes()).hexdigest())
    assert len(found) == 1


def test_memory_does_not_grow_with_length(tmp_path):
    """Of Python's own; the encoder's is fixed by its look-ahead."""

    def peak(count):
        tracemalloc.start()
        written(tmp_path / f"{count}.mp4", moving(count))
        high = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return high

    peak(2)
    assert peak(80) < peak(10) + 38 * 54 * 3 * 4


def test_a_gif_shows_its_last_frame_as_long_as_the_others(tmp_path):
    written(tmp_path / "a.gif", moving(3), 10)
    with Image.open(tmp_path / "a.gif") as image:
        times = [image.seek(k) or image.info["duration"] for k in range(image.n_frames)]
    assert times == [100, 100, 100]


def test_a_failure_leaves_nothing(tmp_path):
    def cut_short():
        yield from moving(3)
        raise RuntimeError("half-way")

    with pytest.raises(RuntimeError, match="half-way"):
        written(tmp_path / "film.mp4", cut_short())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only Linux lists open files")
def test_a_failure_lets_go_of_the_file(tmp_path):
    def cut_short():
        yield from moving(9)
        raise RuntimeError("half-way")

    with pytest.raises(RuntimeError) as failure:
        written(tmp_path / "film.gif", cut_short())
    is_open = [os.path.realpath(each) for each in Path("/proc/self/fd").iterdir()]
    assert not [name for name in is_open if name.startswith(str(tmp_path))]
    assert failure.tb is not None, "which keeps the encoder alive until here"


def test_refusals(tmp_path):
    path = tmp_path / "film.mp4"
    with pytest.raises(FileError, match="not one frame was written"), clip(path, 25):
        pass
    with pytest.raises(ShapeError, match=r"frame 1 is 54×38, those before are 53×37"):
        written(path, [next(moving(1, 37, 53)), next(moving(1))])
    with pytest.raises(ShapeError, match=r"frame 0 has shape \(4, 4\) of float64"):
        written(path, [np.zeros((4, 4))])
    for fps in (0, -1, float("nan"), float("inf"), 5000, "fast"):
        with pytest.raises(ArgumentError, match="wanted frames a second"):
            written(path, [], fps)
    with pytest.raises(FileError, match=r"videos are written as .*\.gif, not '\.avi'"):
        written(tmp_path / "film.avi", [])
    with pytest.raises(ArgumentError, match="a GIF shows at most 50 frames a second, not 60"):
        written(tmp_path / "film.gif", [], 60)
    assert list(tmp_path.iterdir()) == []


def test_an_encoder_that_is_not_there_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr("av.codecs_available", {"libx264", "gif"})
    with pytest.raises(
        FileError, match=r"a\.webm: the installed av cannot encode this; write \.mp4"
    ):
        written(tmp_path / "a.webm", moving(1))
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten_unasked(tmp_path):
    path = written(tmp_path / "film.mp4", moving(2))
    before = path.read_bytes()
    with pytest.raises(FileError, match="exists already"):
        written(path, moving(3))
    assert path.read_bytes() == before
    written(path, moving(3), overwrite=True)
    assert path.read_bytes() != before


def test_a_full_disk_is_a_sentence():
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full on this system")
    film = _Video(Path("film.mp4"), Path("/dev/full"), Fraction(25))
    for frame in moving(3):
        film.write(frame)
    with pytest.raises(FileError, match=r"film\.mp4: writing failed, nothing was left behind: "):
        film.finish()
    film.close()


def test_a_clip_of_a_job_makes_its_folder_and_is_given_up_when_frames_change_their_size(tmp_path):
    path = tmp_path / "out" / "clips" / "film.mp4"
    with ClipWriter(path, Fraction(25), False) as film:
        assert not path.parent.exists()  # before the first frame there is nothing
        for frame in moving(3):
            film.write(frame)
    assert film.failed is None
    assert len(list(read_video(path))) == film.count == 3
    other = path.with_name("other.mp4")
    other.with_name(".other.mp4.1.part").touch()  # as a killed run leaves it
    with ClipWriter(other, Fraction(25), False) as film:
        for frame in (*moving(2), *moving(2, 40, 60)):
            film.write(frame)
    assert "2 were 54×38 as shown, then 60×40" in str(film.failed)
    assert list(path.parent.iterdir()) == [path]
