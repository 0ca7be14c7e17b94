"""`lcv predict` as a user meets it: results, sentences for what is wrong, nothing left behind."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import re
import resource
import shlex
import signal
import struct
import subprocess
import sys
import time
import zlib
from argparse import Namespace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import av
import numpy as np
import pytest
import torch
from PIL import Image

import lcv
from lcv.cli import main as cli
from lcv.cli import predict as verb
from lcv.cli.predict_inputs import Inputs, find_inputs
from lcv.cli.predict_words import formats_for, meaning_of, parse_scale, parse_shard
from lcv.data.formats.image import write_image
from lcv.errors import ArgumentError
from lcv.predict.outputs import Drawing, Named, wanted_outputs
from lcv.predict.result import FLOWS, FlowResult
from lcv.predict.result import PICTURES as PICTURE_ENDINGS
from lcv.predict.selection import Shard
from predict.small_jobs import made
from testing.extras import needs
from testing.footage import files_of, moving, save_film, save_frames, save_weights
from testing.shared import shared

COMMAND = [sys.executable, "-m", "lcv.cli.main", "predict"]


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """Options that make a pair cost a hundredth of a second."""
    weights = save_weights(tmp_path_factory.mktemp("weights") / "small.safetensors")
    return ["--model", "raft-small", "--weights", str(weights), "--iters", "1", "--device", "cpu"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in, with two good frames."""
    save_frames(tmp_path, 2)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def one_thread():
    """As in the processes that tests start, since sums over threads round in their own way."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield {**os.environ, "OMP_NUM_THREADS": "1"}
    torch.set_num_threads(before)


def predict(*words, code=0) -> None:
    assert cli.main(["predict", *map(str, words)]) == code


def refused(capsys, *words, code=2) -> str:
    """What is said; the standard output stays empty and no traceback is shown."""
    predict(*words, code=code)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    *_, last = captured.err.strip().splitlines()
    assert last.startswith("lcv: ")
    return last


def test_help_takes_less_than_half_a_second():
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        done = subprocess.run([*COMMAND, "--help"], check=True, capture_output=True, text=True)
        seconds.append(time.perf_counter() - start)
    assert "camera:0" in done.stdout
    assert min(seconds) < 0.5


@pytest.mark.parametrize(
    ("name", "model", "weights"),
    [
        ("raft-small__sintel_0010__12", "raft-small", "raft-small"),
        ("raft-sintel__rubberwhale1__32", "raft-large", "raft-sintel"),
    ],
)
def test_the_golden_flow(tmp_path, name, model, weights):
    """With the tolerance of tests/models/test_raft_golden.py."""
    with np.load(shared("golden", f"{name}.npz")) as golden:
        truth, stride = golden["flow"], int(golden["stride"])
        frames = [shared("golden", "frames", str(golden[key])) for key in ("frame1", "frame2")]
        options = ["--pad", str(golden["pad"]), "--iters", int(golden["iters"])]
    out = tmp_path / "out.flo"
    file = shared("weights", f"{weights}.pth")
    predict(*frames, "-o", out, "--model", model, "--weights", file, *options)
    flow, _ = lcv.read_flow(out)
    difference = np.linalg.norm(flow[::stride, ::stride].transpose(2, 0, 1) - truth, axis=0)
    assert difference.mean() <= 2e-4
    assert (difference <= 5e-3).mean() >= 0.999


def test_embedded_weights_by_default(folder, capsys):
    """They know motion when they see it: 3 to the right and 1 down, most of it in view."""
    first, second = moving(2, (160, 192))
    for name, frame in (("a.png", first), ("b.png", second)):
        write_image(folder / name, frame)
    predict("a.png", "b.png", "-o", "out.flo", "--model", "raft-small", "--iters", 6)
    assert "published weights" not in capsys.readouterr().err
    large = ["a.png", "b.png", "-o", "large", "--format", "flo", "--iters", 1, "--device", "cpu"]
    predict(*large)
    said = capsys.readouterr().err
    assert said.count("raft-large: on driving scenes like KITTI's, published weights") == 1
    assert "--weights raft-sintel" in said
    predict(*large)
    captured = capsys.readouterr()
    assert "nothing left to do" in captured.out
    assert "published weights" not in captured.err, "no advice where nothing is computed"
    flow, _ = lcv.read_flow("out.flo")
    assert np.abs(np.median(flow, axis=(0, 1)) - (3, 1)).max() < 0.5


def test_a_pair_with_everything(folder, network, capsys):
    predict(
        *("frame_1.png", "frame_2.png", "-o", "out.flo", "--format", "flo,kitti,pfm,npy,npz,png"),
        *("--overlay", "--backward", "--occlusion", "--warp-error", *network),
    )
    captured = capsys.readouterr()
    assert "1 pair done: out.flo" in captured.out
    assert "--scale" in captured.out
    assert re.search(r"^arrows are [\d.]+ times as long as the motion$", captured.out, re.MULTILINE)
    assert "72×64" in captured.err, "the plan is said before the work"
    made = {path.name for path in folder.iterdir()} - {"frame_1.png", "frame_2.png"}
    flows = {"flo", "pfm", "npy", "npz", "png"}
    assert made == {
        *(f"out.{ending}" for ending in flows),
        *(f"out_backward.{ending}" for ending in flows - {"png"}),
        *("out_kitti.png", "out_backward_kitti.png", "out_backward_picture.png"),
        *("out_overlay.png", "out_occluded.png", "out_warp_error.png"),
    }


@pytest.mark.parametrize("kind", ["grey", "sixteen bits", "jpeg", "tiff", "odd size"])
def test_any_sensible_picture(folder, network, kind):
    first, second = moving(2, (67, 75) if kind == "odd size" else (64, 72))
    for name, rgb in (("a", first), ("b", second)):
        if kind == "grey":
            Image.fromarray(rgb[:, :, 0]).save(folder / f"{name}.png")
        elif kind == "sixteen bits":
            Image.fromarray(rgb[:, :, 0].astype(np.uint16) * 257).save(folder / f"{name}.png")
        elif kind == "jpeg":
            Image.fromarray(rgb).save(folder / f"{name}.png", "JPEG")
        elif kind == "tiff":
            Image.fromarray(rgb).save(folder / f"{name}.tif", compression="tiff_lzw")
        else:
            write_image(folder / f"{name}.png", rgb)
    ending = "tif" if kind == "tiff" else "png"
    predict(f"a.{ending}", f"b.{ending}", "-o", "out.npy", *network)
    assert np.load("out.npy").shape == (*first.shape[:2], 2)


def test_a_clip_alone(folder, network, capsys):
    save_film(folder / "film.mkv", 5)
    predict("film.mkv", "-o", "flow.mp4", *network, "--quiet")
    assert capsys.readouterr().out == ""
    with av.open("flow.mp4") as container:
        assert sum(1 for _ in container.decode(video=0)) == 4
    assert not (folder / "job.json").exists()
    said = refused(capsys, "film.mkv", "-o", "flow.mp4", *network)
    assert "flow.mp4: exists already" in said
    said = refused(capsys, "film.mkv", "-o", "other.mp4", "--backward", *network)
    assert (
        "names one clip, and --backward has no effect on a clip; leave it out, or name a folder"
        in said
    )


@pytest.mark.parametrize(("animation", "clip"), [("a.webp", "flow.gif"), ("a.apng", "flow.webm")])
def test_an_animation_in_and_a_clip_out(folder, network, animation, clip):
    first, *rest = map(Image.fromarray, moving(4))
    first.save(animation, save_all=True, append_images=rest, duration=100, lossless=True)
    predict(animation, "-o", clip, *network)
    with av.open(clip) as container:
        assert container.format.name.startswith({"flow.gif": "gif", "flow.webm": "matroska"}[clip])
        times = [frame.time for frame in container.decode(video=0)]
    assert times == pytest.approx([0, 0.1, 0.2])


def test_a_look(folder, network, capsys):
    pair = ["frame_1.png", "frame_2.png"]
    predict(*pair, "-o", "look.png", "--look", "--scale", "4", *network)
    assert lcv.read_image("look.png").shape[1] == 2 * 360 + 8, "72 pixels grow by a whole factor"
    predict(*pair, "-o", "flow.flo", "--look", *network)
    names = {path.name for path in folder.iterdir()}
    assert names == {*pair, "look.png", "flow.flo", "flow_look.png"}
    predict(*pair, "-o", "known.png", "--look", "--truth", "flow.flo", *network)
    capsys.readouterr()
    lcv.write_flow("small.flo", np.zeros((2, 3, 2), np.float32))
    text = refused(capsys, *pair, "-o", "a.png", "--look", "--truth", "small.flo", *network)
    assert "--truth small.flo is 3×2 pixels, but frame_1.png is 72×64" in text
    text = refused(capsys, *pair, "-o", "a.png", "--truth", "flow.flo", *network)
    assert "--truth needs --look, one pair of images, and a picture as output" in text
    text = refused(capsys, *pair, "-o", "a", "--look", "--truth", "flow.flo", *network)
    assert "--truth needs --look" in text, "a folder of outputs is no picture"


def test_the_standard_output(folder, network):
    pair = ["frame_1.png", "frame_2.png"]
    predict(*pair, "-o", "out.flo", *network)
    done = subprocess.run([*COMMAND, *pair, "-o", "-", *network], capture_output=True, check=True)
    content = (folder / "out.flo").read_bytes()
    assert len(done.stdout) == len(content)
    piped, stored = (np.frombuffer(each[12:], np.float32) for each in (done.stdout, content))
    assert np.abs(piped - stored).max() < 1e-3, "threads may differ"
    assert {path.name for path in folder.iterdir()} == {*pair, "out.flo"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a.png", "b.png", "--format", "png"], "--format has no effect"),
        (["a.png", "b.png", "--warp-error"], "--warp-error has no effect"),
        (
            ["a.png", "b.png", "--frames", "2"],
            "-o - writes one pair's .flo; --frames has no effect",
        ),
        *(
            (
                ["a.png", "b.png", *each.split()],
                f"-o - writes one pair's .flo; {each.split()[0]} has",
            )
            for each in ("--start 1", "--end 1", "--every 2", "--shard 1/2", "--truth a.flo")
        ),
        (["film.mp4"], "-o - writes the flow of one pair of images"),
    ],
)
def test_what_does_not_go_to_the_standard_output(folder, network, capsys, words, message):
    (folder / "film.mp4").touch()
    for name, number in (("a.png", 1), ("b.png", 2)):
        (folder / f"frame_{number}.png").rename(folder / name)
    assert message in refused(capsys, *words, "-o", "-", *network)


MISTAKES = """
nope.png frame_2.png -o x.flo
frame_1.png frame_2.png -o x.xyz
frame_1.png frame_2.png -o frame_1.png
frame_1.png frame_2.png -o no/x.flo
frame_1.png frame_2.png -o x --format tga
frame_1.png frame_2.png -o x --clip
film.mp4 -o x --clip --frames 2
film.mp4 -o x.mp4 --frames 2
frame_1.png frame_2.png -o x.flo --frames 3
frame_1.png frame_2.png -o x.flo --shard 3/2
frame_1.png frame_2.png -o x.flo --scale 0
frame_1.png frame_2.png -o x.flo --precision half
frame_1.png frame_2.png -o x.flo --max-memory lots
frame_1.png frame_2.png -o x.png --look --truth nope.flo
list.txt -o x
"""


def test_mistakes_are_told_before_torch_is_imported(folder):
    (folder / "list.txt").write_text("frame_1.png nope.png\n")
    (folder / "film.mp4").touch()
    lines = MISTAKES.strip().splitlines()
    script = (
        "import sys; from lcv.cli.main import main\n"
        "for line in sys.argv[1:]: print(main(['predict', *line.split()]), 'torch' in sys.modules)"
    )
    command = [sys.executable, "-c", script, *lines]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["2 False"] * len(lines), done.stderr


def test_part_of_a_video(folder, network, capsys):
    """0.2 s … 0.8 s of ten frames a second, every third: frames 2 and 5."""
    save_film(folder / "a.mp4", 12)
    part = ["--start", "0.2", "--end", "0:00.8", "--every", "3"]
    predict("a.mp4", "-o", "out", *part, "--format", "flo", *network)
    assert [path.name for path in (folder / "out" / "flow" / "a").iterdir()] == ["000002.flo"]
    capsys.readouterr()
    text = refused(capsys, "a.mp4", "-o", "late", "--start", "9", *network)
    assert "fewer than two frames lie between --start and --end; it lasts 1.2 s" in text
    text = refused(capsys, "frame_1.png", "frame_2.png", "-o", "a.flo", "--every", "2", *network)
    assert "-o a.flo names one file, and --every has no effect on one pair; leave it out" in text


def bad_png(folder: Path) -> bytes:
    return (folder / "frame_2.png").read_bytes()


def jpeg(folder: Path) -> bytes:
    memory = io.BytesIO()
    Image.open(folder / "frame_2.png").save(memory, "JPEG")
    return memory.getvalue()


def declared(width: int, height: int) -> bytes:
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    return b"\x89PNG\r\n\x1a\n" + chunk


def png(height: int, width: int) -> bytes:
    memory = io.BytesIO()
    Image.fromarray(moving(1, (height, width))[0]).save(memory, "PNG")
    return memory.getvalue()


PICTURES = {
    "empty file": (lambda _: b"", r"bad.png: not an image that can be read (0 bytes); wanted PNG"),
    "truncated PNG": (
        lambda folder: bad_png(folder)[:-40],
        "bad.png: damaged PNG: its IDAT chunk declares",
    ),
    "truncated JPEG": (
        lambda folder: jpeg(folder)[:-300],
        "bad.png: cut JPEG: it ends inside its coded data, without the end marker; fetch the file",
    ),
    "text named .png": (
        lambda _: b"these are words and no picture\n",
        "bad.png: not an image that can be read (31 bytes); wanted PNG, JPEG, PPM, PGM, WebP, BMP or TIFF",
    ),
    "PNG signature only": (
        lambda folder: bad_png(folder)[:8],
        "bad.png: damaged PNG: it ends after its signature, without the end chunk (IEND): it is cut",
    ),
    "30,000×30,000 declared": (
        lambda _: declared(30_000, 30_000),
        "bad.png: declares 30000×30000 pixels, more than the 268435456 that are allowed",
    ),
    "frames of different size": (lambda _: png(80, 96), "frame_1.png is 72×64"),
}


@pytest.mark.parametrize("case", PICTURES)
def test_a_picture_that_cannot_be_used(folder, network, capsys, case):
    make, message = PICTURES[case]
    (folder / "bad.png").write_bytes(make(folder))
    before = files_of(folder)
    said = refused(capsys, "frame_1.png", "bad.png", "-o", "out.flo", *network)
    assert message in said
    if case == "frames of different size":
        assert "bad.png is 96×80" in said
        assert "flow needs both of one size" in said
    assert files_of(folder) == before


@pytest.mark.parametrize("size", [(1, 1), (56, 72)])
@pytest.mark.parametrize("out", ["out.flo", "out"])
def test_a_picture_below_the_networks_least(tmp_path, network, capsys, monkeypatch, size, out):
    save_frames(tmp_path, 2, size)
    monkeypatch.chdir(tmp_path)
    before = files_of(tmp_path)
    said = refused(capsys, "frame_1.png", "frame_2.png", "-o", out, *network)
    assert f"frame_1.png is {size[1]}×{size[0]} pixels; raft-small needs at least 57×57" in said
    assert "Enlarge the frames first" in said
    assert files_of(tmp_path) == before


def silent_film(path: Path) -> None:
    """Sound alone."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("pcm_s16le", rate=8000, layout="mono")
        sound = av.AudioFrame.from_ndarray(np.zeros((1, 800), np.int16), "s16", "mono")
        sound.rate = 8000
        container.mux(stream.encode(sound))
        container.mux(stream.encode(None))


INPUTS = {
    "folder with one frame": ("single", "single: has one image only, frame_1.png; flow needs at"),
    "empty folder": ("empty", "empty: no frames in this folder, nor two in one inside it; wanted"),
    "glob that matches nothing": (
        "*.tiff",
        "*.tiff: no file matches this pattern; correct it, or name the folder",
    ),
    "video with no video stream": ("sound.mkv", "sound.mkv: has no video stream, only audio"),
    "video cut in the middle": (
        "cut.mp4",
        "cut.mp4: cut video: its parts reach to byte ",
    ),
    "empty video": ("nothing.mp4", "nothing.mp4: not a video that can be read (0 bytes)"),
    "missing file": ("none.mp4", "none.mp4: there is no such file or folder; wanted two images"),
}


@pytest.mark.parametrize("case", INPUTS)
def test_an_input_that_cannot_be_used(folder, network, capsys, case):
    word, message = INPUTS[case]
    (folder / "empty").mkdir()
    save_frames(folder / "single", 1)
    if case == "video with no video stream":
        silent_film(folder / "sound.mkv")
    if case == "video cut in the middle":
        film = save_film(folder / "cut.mp4", 8)
        film.write_bytes(film.read_bytes()[: film.stat().st_size // 2])
    (folder / "nothing.mp4").touch()
    before = files_of(folder)
    assert message in refused(capsys, word, "-o", "out", *network)
    assert files_of(folder) == before


def test_an_output_that_exists(folder, network, capsys):
    (folder / "out.flo").write_text("mine")
    words = ("frame_1.png", "frame_2.png", "-o", "out.flo", *network)
    said = refused(capsys, *words)
    assert "out.flo: exists already; choose another name or use --overwrite" in said
    assert (folder / "out.flo").read_text() == "mine"
    predict(*words, "--overwrite")
    lcv.read_flow("out.flo")


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("frame_1.png/out", "frame_1.png is a file, wanted a folder to write into"),
        ("frame_1.png/out.flo", "frame_1.png is a file, wanted a folder to write into"),
        ("none/out.flo", "the folder none does not exist; make it first"),
        ("/proc/none/out", "cannot be made: No such file or directory"),
        ("/proc/out.flo", "/proc/out.flo: cannot write here: No such file or directory"),
        ("out.jpeg2000", "nothing is written with the ending '.jpeg2000', wanted .flo, .pfm"),
        ("out.avi", "or .mp4, .webm, .gif for a clip; for a folder of this name, end it"),
    ],
)
def test_an_output_that_cannot_be_written(folder, network, capsys, out, message):
    before = files_of(folder)
    assert message in refused(capsys, "frame_1.png", "frame_2.png", "-o", out, *network)
    assert files_of(folder) == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--iters", "0"], "--iters is '0', wanted a whole number of 1 or more; `lcv pre"),
        (["--iters", "many"], "--iters is 'many', wanted a whole number"),
        (["--scale", "0"], "--scale is '0', wanted auto, or a positive number"),
        (["--scale", "wide"], "--scale is 'wide', wanted auto, or a positive number"),
        (
            ["--format", "flo,exr"],
            "unknown format 'exr'; the formats are flo, npy, pfm, npz, flo5, kitti",
        ),
        (["--pad", "chairs"], "--pad: unknown mode 'chairs'; the modes are sintel, kitti"),
        (
            ["--precision", "float8"],
            "--precision is 'float8', wanted auto, float32, bf16 or fp16",
        ),
        (["--strategy", "magic"], "--strategy: unknown strategy 'magic' for raft-small; there are"),
        (["--device", "abacus"], "--device is 'abacus', wanted cpu, cuda, or cuda:N"),
        (["--model", "raft-huge"], "raft-huge"),
        (["--shard", "3/2"], "--shard is '3/2', wanted i/n with i from 1 to n"),
        (["--frames", "1"], "--frames is '1', wanted a whole number of 2 or more"),
        (["--colour"], "there is no option --colour; `lcv predict --help` lists all options"),
        (["--max-memory", "1MB"], "lcv: --max-memory is 1 MB, but raft-small needs at least "),
        (
            ["--max-memory", "lots"],
            "lcv: --max-memory is 'lots', wanted a number of bytes or a text such",
        ),
    ],
)
def test_an_option_that_cannot_be_used(folder, network, capsys, words, message):
    before = files_of(folder)
    said = refused(capsys, "frame_1.png", "frame_2.png", "-o", "out", *network, *words)
    assert message in said
    assert files_of(folder) == before


@pytest.mark.parametrize(
    "words", [["--frames", 2], ["--warm-start"], ["--strict"], ["--scale", 5]], ids=str
)
def test_an_option_without_effect_on_a_file_is_refused(folder, network, capsys, words):
    before = files_of(folder)
    said = refused(capsys, "frame_1.png", "frame_2.png", "-o", "out.flo", *network, *words)
    assert str(words[0]) in said
    assert "leave it out" in said
    assert files_of(folder) == before


def test_what_was_done_is_said(folder, network, capsys):
    walk = save_frames(folder / "walk", 4)
    words = ("walk", "-o", "out", *network, "--scale", 5)
    predict(*words)
    assert "3 pairs done: out" in capsys.readouterr().out
    write_image(walk / "frame_2.png", moving(1, seed=3)[0], overwrite=True)
    predict(*words)
    assert "2 pairs done, 1 done before: out" in capsys.readouterr().out
    predict(*words)
    assert "nothing left to do: all 3 pairs were done before: out" in capsys.readouterr().out


def test_an_output_that_is_an_input_is_refused_always(folder, network, capsys):
    save_film(folder / "film.mp4", 3)
    before = files_of(folder)
    for words in (
        ("frame_1.png", "frame_2.png", "-o", "frame_2.png"),
        ("film.mp4", "-o", "film.mp4"),
    ):
        for more in ((), ("--overwrite",)):
            said = refused(capsys, *words, *network, *more)
            assert "itself, and inputs are never written to" in said or not more
    assert files_of(folder) == before
    assert "an empty name" in refused(capsys, "", "-o", "out", *network)


def test_no_output_was_named(folder, capsys):
    said = refused(capsys, "frame_1.png", "frame_2.png")
    assert "missing: -o/--output OUT (a folder;" in said


def test_many_pairs_do_not_fit_one_file(folder, network, capsys):
    save_frames(folder / "walk", 3)
    said = refused(capsys, "walk", "-o", "out.flo", *network)
    assert "-o out.flo names one file, but the input is not one pair of images" in said


def test_weights_of_another_model(folder, network, capsys):
    said = refused(
        capsys, "frame_1.png", "frame_2.png", "-o", "out", *network, "--model", "raft-large"
    )
    assert "these are weights of raft-small, wanted those of raft-large" in said


class Trap:
    """A pickle that would make a file where it is loaded."""

    def __reduce__(self):
        return os.system, ("touch sprung",)


def test_weights_that_are_a_pickle_with_code(folder, network, capsys):
    for name, content in (("plain.pth", pickle.dumps(Trap(), protocol=2)), ("torch.pth", None)):
        if content is None:
            torch.save({"state_dict": Trap()}, folder / name)
        else:
            (folder / name).write_bytes(content)
        said = refused(
            capsys, "frame_1.png", "frame_2.png", "-o", "out", *network, "--weights", name
        )
        assert name in said
    assert not (folder / "sprung").exists()
    assert not (folder / "out").exists()


def test_weights_with_nan(folder, network, capsys):
    model = lcv.build("raft-small")
    with torch.no_grad():
        model.fnet.conv1.weight[0, 0, 0, 0] = float("nan")
    lcv.save(model, folder / "nan.safetensors")
    said = refused(
        capsys, "frame_1.png", "frame_2.png", "-o", "out", *network, "--weights", "nan.safetensors"
    )
    assert "nan.safetensors" in said
    assert "NaN" in said
    assert not (folder / "out").exists()


@pytest.mark.parametrize("out", ["out.flo", "out"])
def test_a_disk_that_fills_while_writing(folder, network, capsys, out):
    """By a limit on file sizes, below that of a flow."""
    before = files_of(folder)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        said = refused(capsys, "frame_1.png", "frame_2.png", "-o", out, *network)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert ".flo: writing failed, nothing was left behind" in said
    assert "File too large" in said
    left = {name for name in files_of(folder) if name not in before}
    assert left <= {
        *("out", "out/job.json", "out/flow", "out/strategy", "out/strategy/72x64.json"),
    }
    predict("frame_1.png", "frame_2.png", "-o", out, *network)


def test_one_bad_frame_is_named_at_the_end_and_stops_nothing(folder, network, capsys):
    walk = save_frames(folder / "walk", 6)
    (walk / "frame_3.png").write_bytes(b"no picture")
    predict("walk", "-o", "out", *network, code=1)
    captured = capsys.readouterr()
    assert "3 pairs done, 2 failed: out" in captured.out
    assert "lcv: these could not be done:\n  walk/frame_3.png: not an image" in captured.err
    assert "Fix this, then run the same command; finished pairs are kept." in captured.err
    predict("walk", "-o", "out", *network, code=1)
    assert "0 pairs done, 3 done before, 2 failed: out" in capsys.readouterr().out
    said = refused(capsys, "walk", "-o", "strict", *network, "--strict")
    assert "walk/frame_3.png: not an image" in said


def test_a_job_that_is_killed_and_started_again_gives_the_same_files(folder, network, one_thread):
    """kill −9, in the middle of a clip and of a warm start."""
    save_film(folder / "film.mp4", 40)
    words = ["film.mp4", *network, "--clip", "--overlay", "--warm-start"]
    predict(*words, "-o", "whole")
    process = subprocess.Popen([*COMMAND, *words, "-o", "out", "--quiet"], env=one_thread)
    fifth = folder / "out" / "overlay" / "film" / "000004.png"
    deadline = time.monotonic() + 120
    while not fifth.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    flows = len(list((folder / "out" / "flow" / "film").glob("*.flo")))
    assert 5 <= flows < 39
    assert not (folder / "out" / "clip" / "film.mp4").exists()
    predict(*words, "-o", "out")
    assert made(folder / "out") == made(folder / "whole")


def test_two_shards_at_the_same_time_give_the_files_of_one_process(folder, network, one_thread):
    save_frames(folder / "walk", 9)
    words = ["walk", *network]
    predict(*words, "-o", "one")
    command = [*COMMAND, *words, "-o", "two", "--quiet", "--shard"]
    shards = [subprocess.Popen([*command, f"{i}/2"], env=one_thread) for i in (1, 2)]
    assert [shard.wait(timeout=300) for shard in shards] == [0, 0]
    assert made(folder / "two") == made(folder / "one")


def test_a_stream_ends_well_when_it_is_interrupted(folder, network, one_thread):
    """Pictures one after another on the standard input, whose sender never ends."""
    command = [*COMMAND, "-", *network, "-o", "out", "--clip"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=one_thread, text=False
    )
    for frame in moving(16):
        memory = io.BytesIO()
        Image.fromarray(frame).save(memory, "PNG")
        process.stdin.write(memory.getvalue())
    process.stdin.flush()
    pictures = folder / "out" / "picture" / "stdin"
    deadline = time.monotonic() + 120
    while not (pictures / "000004.png").exists() and time.monotonic() < deadline:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    said = process.stdout.read().decode()
    process.stdin.close()
    assert process.wait() == 0
    done = len(list(pictures.glob("*.png")))
    assert 5 <= done <= 15
    assert f"{done} pairs done: out" in said
    with av.open(str(folder / "out" / "clip" / "stdin.mp4")) as container:
        assert sum(1 for _ in container.decode(video=0)) == done


def peak_memory(words: list[str], environment: dict[str, str]) -> int:
    """VmHWM of a process that predicts, in kilobytes."""
    program = (
        "import sys; from lcv.cli.main import main; assert main(sys.argv[1:]) == 0; "
        "print([line for line in open('/proc/self/status') if line.startswith('VmHWM')])"
    )
    command = [sys.executable, "-c", program, "predict", *words, "--quiet"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return int(done.stdout.split()[1])


def test_memory_does_not_grow_with_length(folder, network, one_thread):
    """120 more frames and flows of 128×160 would be 27 MB, were they kept."""
    save_film(folder / "film.mp4", 160, (128, 160))
    words = ["film.mp4", *network, "--format", "flo", "--clip", "--scale", "5"]
    short = peak_memory([*words, "-o", "short", "--frames", "40"], one_thread)
    long = peak_memory([*words, "-o", "long"], one_thread)
    assert len(list((folder / "long" / "flow" / "film").iterdir())) == 159
    assert long - short < 9_000


@pytest.mark.parametrize(
    ("file", "formats", "names"),
    [
        ("out.flo", None, ["out.flo"]),
        ("out.png", None, ["out.png"]),
        ("out.png", ("kitti",), ["out.png"]),
        ("out.jpg", None, ["out.jpg"]),
        ("out.PPM", ("png", "flo"), ["out.PPM", "out.flo"]),
        ("out.flo", ("flo", "png", "kitti"), ["out.flo", "out.png", "out_kitti.png"]),
    ],
)
def test_a_named_file_is_the_name_that_was_given(tmp_path, file, formats, names):
    outputs = wanted_outputs(formats_for(tmp_path / file, formats))
    named = Named(tmp_path / file, outputs)
    assert [named.path(output).name for output in outputs] == names


@pytest.mark.parametrize(
    ("file", "formats", "message"),
    [
        ("out.jpg", ("flo",), "has the ending '.jpg', but --format asks for flo"),
        ("out.flo", ("png",), "has the ending '.flo', but --format asks for png"),
    ],
)
def test_a_name_that_says_something_else_is_refused(file, formats, message):
    with pytest.raises(ArgumentError, match=message):
        formats_for(Path(file), formats)


@pytest.mark.parametrize("ending", [*FLOWS, *PICTURE_ENDINGS])
def test_a_result_and_a_command_know_the_same_endings(tmp_path, ending):
    if ending == ".flo5":
        needs("h5py")
    name = str(tmp_path / f"out{ending}")
    assert meaning_of(name) == "file"
    (output,) = wanted_outputs(formats_for(Path(name), None))
    result = FlowResult(np.random.default_rng(0).normal(0, 9, (20, 30, 2)).astype(np.float32))
    path = Named(Path(name), (output,)).path(output)
    Drawing(result, np.zeros((20, 30, 3), np.uint8), 9.0).write(path, output, False)
    result.save(tmp_path / f"saved{ending}", max_flow=9.0)
    assert Path(name).read_bytes() == (tmp_path / f"saved{ending}").read_bytes()


def test_what_a_name_asks_for(tmp_path):
    for name in ("out", "out/", "out.jpg2/", "run-1.5", ".out", "a.b/out"):
        assert meaning_of(name) == "folder"
    (tmp_path / "old.avi").mkdir()
    assert meaning_of(str(tmp_path / "old.avi")) == "folder"
    assert meaning_of("a/out.MP4") == "clip"
    for name in ("x.avi", "x.tiff", "a/x.exr", "x.flow"):
        with pytest.raises(
            ArgumentError,
            match=r"wanted \.flo, .*\.png, .* or \.mp4, \.webm, \.gif for a clip; for",
        ):
            meaning_of(name)
    with pytest.raises(ArgumentError, match="-o is an empty name, wanted a file or a folder"):
        meaning_of("")


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "1/0", "-1/2", "1/2/3", ""])
def test_a_share_that_is_none_is_refused(text):
    with pytest.raises(ArgumentError, match=r"--shard is .*, wanted i/n with i from 1 to n"):
        parse_shard(text)


def test_a_share():
    assert parse_shard("2/3") == Shard(2, 3)
    assert parse_shard(None) == Shard()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--overwrite", "--shard", "1/2"], "--overwrite empties the folder that all shards write"),
        (["--ray", "--shard", "1/2"], "--ray and --shard both divide the work; leave one out"),
    ],
)
def test_options_that_do_not_go_together(folder, network, capsys, words, message):
    assert message in refused(capsys, "frame_1.png", "frame_2.png", "-o", "out", *network, *words)


def test_a_stream_is_not_divided(folder, network, capsys):
    said = refused(capsys, "-", "-o", "out", *network, "--shard", "1/2")
    assert "--shard: a camera or a pipe can be read by one process only" in said


DOCS = Path(__file__).parents[2] / "docs" / "predict.md"


def examples(language: str) -> str:
    return re.search(rf"```{language}\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)[1]


def test_the_examples_of_the_docs_run_as_written(folder, network, monkeypatch, capsys):
    """But for a camera and ffmpeg; with a quicker network."""
    for number in (1, 2):
        (folder / f"frame_{number}.png").rename(folder / f"frame{number}.png")
    for name in ("frames", "shots/a", "shots/b"):
        save_frames(folder / name, 3)
    (folder / "pairs.txt").write_text("frame1.png frame2.png\nframes/frame_1.png frame2.png\n")
    for name in ("walk", "run"):
        save_film(folder / f"{name}.mp4", 3)
    lines = [
        line for line in examples("bash").splitlines() if not re.match(r"ffmpeg|.*camera", line)
    ]
    assert len(lines) == 7
    for line in lines:
        words = shlex.split(line, comments=True)
        assert words[:2] == ["lcv", "predict"]
        predict(*words[2:], *network)
        made_now = folder / words[words.index("-o") + 1]
        assert made_now.is_file() or (made_now / "job.json").is_file()
    assert (folder / "videos" / "clip" / "run.mp4").is_file()
    (folder / "flow.flo").unlink()
    monkeypatch.setattr(lcv, "Predictor", partial(lcv.Predictor, iters=1))
    exec(examples("python").replace("raft-large", "raft-small"), {})
    assert "1920×1080: on-demand" in capsys.readouterr().out
    lcv.read_flow("flow.flo")


def asked(*words: str) -> tuple[Namespace, Inputs]:
    """What `run` makes of the words before any work."""
    chosen = verb._parser().parse_args(words)
    chosen.scale, chosen.shard = parse_scale(chosen.scale), parse_shard(chosen.shard)
    return chosen, find_inputs(chosen.inputs)


def test_one_flow_on_the_standard_output_and_not_on_a_terminal(folder, monkeypatch):
    ran, terminal = [], False

    def run(chosen, inputs):
        ran.append(inputs)
        Path(chosen.output).write_bytes(b"flow of it")

    monkeypatch.setattr(verb, "_run", run)
    stream = SimpleNamespace(isatty=lambda: terminal, buffer=io.BytesIO())
    monkeypatch.setattr(verb.sys, "stdout", stream)
    chosen, inputs = asked("frame_1.png", "frame_2.png", "-o", "-")
    assert verb._to_stdout(chosen, inputs) == 0
    assert stream.buffer.getvalue() == b"flow of it"
    assert ran == [inputs]
    assert not Path(chosen.output).exists()
    terminal = True
    with pytest.raises(ArgumentError, match="-o - writes a binary file, and the output is a term"):
        verb._to_stdout(*asked("frame_1.png", "frame_2.png", "-o", "-"))
    assert len(ran) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("frame_1.png frame_2.png -o x --clip", "--clip needs more than two frames in a row, and"),
        ("walk -o x --clip --frames 2", "--frames 2 leaves one pair, too little for a clip; take"),
        ("walk -o x.mp4 --frames 2", "--frames 2 leaves one pair, too little for a clip; take 3"),
        ("frame_1.png frame_2.png -o x.mp4", "-o x.mp4 names one clip, wanted one video or fold"),
        ("walk run -o x.mp4", "-o x.mp4 names one clip, wanted one video or folder of frames"),
        ("walk -o x.flo", "-o x.flo names one file, but the input is not one pair of images"),
    ],
)
def test_a_clip_or_a_file_that_the_input_does_not_fit(folder, words, message):
    for name in ("walk", "run"):
        save_frames(folder / name, 3)
    with pytest.raises(ArgumentError, match=re.escape(message)):
        verb._outputs(*asked(*words.split()))


class Fake:
    """Stands for a network and its run, and keeps what they were given."""

    precision = "fp16"

    def __init__(self):
        self.told = []

    def predictor(self, **options):
        self.options = options
        return self

    def check_warm_start(self, wanted):
        self.told.append(wanted)

    def run(self, predictor, job, terminal):
        assert predictor is self
        self.terminal = terminal
        return SimpleNamespace(go=lambda *words: (job.place, *words))


@pytest.mark.parametrize("precision", ["auto", "fp16"])
def test_how_a_run_is_begun(folder, monkeypatch, capsys, precision):
    """What was decided on the way is said; the work is shared where a cluster is named."""
    for name in ("walk/a", "walk/b"):
        save_frames(folder / name, 2)
    save_frames(folder / "walk/c", 1)
    fake, clusters = Fake(), []

    def cluster(address, gpus):
        clusters.append((address, gpus))
        return contextlib.nullcontext(address)

    monkeypatch.setattr("lcv.predict.predictor.Predictor", fake.predictor)
    monkeypatch.setattr("lcv.predict.run.Run", fake.run)
    monkeypatch.setattr("lcv.cluster.Cluster", cluster)
    monkeypatch.setattr("lcv.models.embedded.embedded_card", lambda name: {"advice": f"of {name}"})
    words = ["walk", "-o", "out", "--model", "raft-small", "--precision", precision]
    assert verb._run(*asked(*words)) == (Path("out"),)
    assert clusters == []
    begun = verb._run(*asked(*words, "--ray", "here", "--warm-start"))
    assert begun == (Path("out"), "here", fake.options)
    verb._run(*asked(*words, "--ray", "here", "--device", "cpu"))
    assert clusters == [("here", True), ("here", False)]
    assert fake.told == [False, True, False]
    assert fake.options["precision"] == precision
    notes = ["raft-small: of raft-small"]
    notes += ["computed in fp16; --precision float32 is exact, slower"] * (precision == "auto")
    assert fake.terminal.notes == notes
    left_out = "walk: left out, having one frame only: c\n"
    assert capsys.readouterr().err == 3 * left_out
