"""`lcv view`, as a user types it: what is drawn, what is printed, and what is refused."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lcv
from data.formats.samples import save_clip
from lcv.cli import view_files
from lcv.cli.main import main
from lcv.cli.view import number_of
from lcv.data.formats.image import write_image
from lcv.data.formats.video import read_video, video_info
from lcv.errors import ArgumentError
from lcv.visual import figures
from lcv.visual.colours import flow_to_colour
from lcv.visual.error_maps import kitti_error_map, sintel_error_map
from lcv.visual.overlay import draw_arrows

H, W = 48, 64


def flow_of(seed, size=3.0):
    return (size * np.random.default_rng(seed).standard_normal((H, W, 2))).astype(np.float32)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """a.flo, b.flo, truth.flo, a frame, and folders of three flows and four frames."""
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(("a", "b", "truth")):
        lcv.write_flow(f"{name}.flo", flow_of(seed))
    valid = np.random.default_rng(9).random((H, W)) < 0.4
    lcv.write_flow("truth.png", flow_of(2), valid)
    (tmp_path / "flows").mkdir()
    (tmp_path / "frames").mkdir()
    for k in range(4):
        frame = np.random.default_rng(20 + k).integers(0, 255, (H, W, 3), dtype=np.uint8)
        write_image(f"frames/f{k}.png", frame)
        if k < 3:
            lcv.write_flow(f"flows/f{k}.flo", flow_of(10 + k, 1.0 + k))
    return tmp_path


def view(*words):
    return main(["view", *map(str, words)])


def refused(capsys, *words):
    """The sentence with which these words are refused."""
    assert view(*words) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("lcv: ")
    assert captured.err.count("\n") == 1
    return captured.err


def test_the_printed_scale_gives_the_same_picture_again(files, capsys):
    assert view("a.flo", "-o", "one.png") == 0
    scale = re.search(r"--scale (\S+)", capsys.readouterr().out)[1]
    assert view("a.flo", "-o", "two.png", "--scale", scale) == 0
    assert (files / "one.png").read_bytes() == (files / "two.png").read_bytes()
    picture = lcv.read_image("one.png")
    assert np.array_equal(picture[:H, :W], flow_to_colour(flow_of(0), float(scale)))
    assert picture.shape[1] > W


def test_bare_is_the_flow_and_nothing_else(files):
    assert view("a.flo", "-o", "bare.png", "--bare", "--scale", 4) == 0
    assert np.array_equal(lcv.read_image("bare.png"), flow_to_colour(flow_of(0), 4))


def test_many_go_to_a_folder_on_one_scale(files, capsys):
    assert view("flows", "-o", "out", "--bare") == 0
    printed = capsys.readouterr().out
    scale = float(re.search(r"--scale (\S+)", printed)[1])
    for k in range(3):
        found = lcv.read_image(f"out/f{k}.png")
        assert np.array_equal(found, flow_to_colour(flow_of(10 + k, 1.0 + k), scale))
    assert view("a.flo", "-o", "alone/") == 0
    assert (files / "alone" / "a.png").exists()
    assert view("flows/f*.flo", "-o", "matched") == 0
    assert len(list((files / "matched").iterdir())) == 3


def test_a_folder_with_pictures_of_its_flows_gives_the_flows(files):
    assert view("flows", "-o", "flows") == 0
    assert view("flows", "-o", "flows", "--overwrite") == 0
    assert len(list((files / "flows").iterdir())) == 6


def test_a_job_s_folder_gives_its_flows(files):
    job = files / "job" / "flow" / "walk"
    job.parent.mkdir(parents=True)
    (files / "flows").rename(job)
    (files / "job" / "picture").mkdir()
    assert view("job", "-o", "out", "--bare") == 0
    assert sorted(path.name for path in (files / "out").iterdir()) == ["f0.png", "f1.png", "f2.png"]


@pytest.mark.parametrize("style", ["sintel", "kitti", None])
def test_errors(files, capsys, style):
    words = ["--style", style] if style else []
    assert view("a.flo", "--truth", "truth.png", "-o", "e.png", "--bare", *words) == 0
    flow, valid = lcv.read_flow("truth.png")
    drawn = sintel_error_map if style == "sintel" else kitti_error_map
    assert np.array_equal(lcv.read_image("e.png"), drawn(flow_of(0), flow, valid))
    epe = np.hypot(*np.moveaxis(flow_of(0) - flow, 2, 0))[valid].mean()
    assert f"EPE {epe:.3g} px, Fl " in capsys.readouterr().out


def test_a_dense_truth_is_drawn_as_sintel_does_with_the_limit_given(files):
    assert view("a.flo", "--truth", "truth.flo", "-o", "e.png", "--limit", 4) == 0
    wanted = sintel_error_map(flow_of(0), flow_of(2), limit=4)
    assert np.array_equal(lcv.read_image("e.png")[:H, :W], wanted)


def test_what_is_not_in_noc_is_darker(files):
    lcv.write_flow("noc.png", flow_of(2), np.zeros((H, W), bool))
    assert view("a.flo", "--truth", "truth.png", "-o", "e.png", "--bare") == 0
    assert view("a.flo", "--truth", "truth.png", "--noc", "noc.png", "-o", "n.png", "--bare") == 0
    assert np.array_equal(lcv.read_image("n.png"), lcv.read_image("e.png") // 2)


def test_a_difference(files, capsys):
    assert view("a.flo", "--against", "b.flo", "-o", "d.png", "--scale", 5) == 0
    wanted = flow_to_colour(flow_of(0) - flow_of(1), 5)
    assert np.array_equal(lcv.read_image("d.png")[:H, :W], wanted)
    assert "mean difference" in capsys.readouterr().out


def test_arrows_for_a_folder_with_one_frame_more(files, capsys):
    assert view("flows", "--image", "frames", "-o", "out", "--spacing", 8) == 0
    assert "arrows every 8 px, 2 times as long as the motion" in capsys.readouterr().out
    wanted = draw_arrows(lcv.read_image("frames/f1.png"), flow_of(11, 2.0), 8, stretch=2)
    assert np.array_equal(lcv.read_image("out/f1.png"), wanted)


def test_the_figure_of_methods(files, capsys):
    words = ["--image", "frames/f0.png", "frames/f1.png", "--flow", "mine=a.flo", "b.flo"]
    assert view("figure", "methods", *words, "--truth", "truth.flo", "-o", "fig.png") == 0
    printed = capsys.readouterr().out
    assert re.search(r"^mine: EPE \S+ px, Fl \S+ %$", printed, re.M)
    assert re.search(r"^b: EPE ", printed, re.M)
    assert lcv.read_image("fig.png").shape[1] == 4 * 256 + 18  # 64 pixels grow to 256


def test_the_figure_of_a_difference(files, capsys):
    words = ["--image", "frames/f0.png", "--flow", "a.flo", "b.flo", "-o", "fig.png"]
    assert view("figure", "difference", *words, "--truth", "truth.flo", "--width", 100) == 0
    assert lcv.read_image("fig.png").shape[1] == 3 * 100 + 12
    printed = capsys.readouterr().out
    scales = re.findall(r"--(?:difference-)?scale \S+", printed)
    assert len(scales) == 2
    again = [word for scale in scales for word in scale.split()]
    words[-1] = "same.png"
    assert view("figure", "difference", *words, "--truth", "truth.flo", "--width", 100, *again) == 0
    assert (files / "fig.png").read_bytes() == (files / "same.png").read_bytes()


@pytest.mark.parametrize("source", ["frames", "film.mp4"])
def test_a_film_side_by_side(files, source, capsys):
    if source == "film.mp4":
        from lcv.visual.video import clip

        with clip(source, 12) as write:
            for k in range(4):
                write(lcv.read_image(f"frames/f{k}.png"))
    assert view("video", source, "--flow", "x=flows", "y=flows", "-o", "out.mp4", "--arrows") == 0
    frames = list(read_video("out.mp4"))
    assert len(frames) == 3
    assert frames[0].shape[1] == 3 * W + 8
    assert video_info("out.mp4").rate == (10 if source == "frames" else 12)
    assert "3 frames" in capsys.readouterr().out


def drawn_with(monkeypatch):
    """The pages of a film of frames and flows, in place of the film."""
    pages = []
    real = view_files.check_same_size

    def check(flow, of_flow, frame, image):
        pages.append((frame.stem, flow.stem))
        real(flow, of_flow, frame, image)

    monkeypatch.setattr(view_files, "check_same_size", check)
    return pages


def test_flows_of_a_film_belong_to_the_frames_of_their_names(files, monkeypatch, capsys):
    """The flow of frame 0 is missing; place by place, each of the others would be a frame late."""
    lcv.write_flow("flows/f3.flo", flow_of(0))
    (files / "flows" / "f0.flo").unlink()
    pages = drawn_with(monkeypatch)
    assert view("video", "frames", "--flow", "flows", "-o", "out.mp4") == 0
    assert pages == [("f1", "f1"), ("f2", "f2"), ("f3", "f3")]
    assert len(list(read_video("out.mp4"))) == 3


def test_flows_of_other_names_belong_to_the_frames_of_their_places(files, monkeypatch):
    for k in range(3):
        (files / "flows" / f"f{k}.flo").rename(files / "flows" / f"flow{k + 1}.flo")
    pages = drawn_with(monkeypatch)
    assert view("video", "frames", "--flow", "flows", "-o", "out.mp4") == 0
    assert pages == [("f0", "flow1"), ("f1", "flow2"), ("f2", "flow3")]


def test_two_flows_of_one_name_belong_to_the_frames_of_their_places(files, monkeypatch):
    lcv.write_flow("flows/f0.pfm", flow_of(0))
    (files / "flows" / "f2.flo").unlink()
    pages = drawn_with(monkeypatch)
    assert view("video", "frames", "--flow", "flows", "-o", "out.mp4") == 0
    assert pages == [("f0", "f0"), ("f1", "f0"), ("f2", "f1")]


def test_nothing_is_overwritten_unasked(files, capsys):
    assert view("a.flo", "-o", "one.png") == 0
    before = (files / "one.png").read_bytes()
    assert "exists already" in refused(capsys, "b.flo", "-o", "one.png")
    assert (files / "one.png").read_bytes() == before
    assert view("b.flo", "-o", "one.png", "--overwrite") == 0
    assert (files / "one.png").read_bytes() != before


REFUSALS = [
    ("none.flo -o x.png", "none.flo: there is no such file"),
    ("a.flo", "missing: -o/--output (a picture; for several, a folder); `lcv view --help`"),
    ("a.flo -o x.gif", "-o x.gif: wanted a picture's name (.png, .jpg, .jpeg, .ppm), or a folder"),
    ("a.flo b.flo -o x.png", "is the name of one picture, but there are 2 flows"),
    ("a.flo flows/../a.flo -o x", "a.flo would both be drawn as x/a.png"),
    ("q*.flo -o x", "q*.flo: no file matches this pattern"),
    ("frames/f0.png -o x.png", "this is a picture, not a KITTI flow"),
    ("a.flo -o no/x.png", "the folder no does not exist; make it first"),
    ("a.flo b.flo -o a.flo", "a.flo is a file, wanted a folder"),
    ("a.flo --scale 0 -o x.png", "--scale is '0', wanted a number above 0"),
    ("a.flo --scale nan -o x.png", "--scale is 'nan', wanted a number above 0"),
    ("a.flo --style kitti -o x.png", "need --truth"),
    ("a.flo --truth b.flo --against b.flo -o x.png", "--against does not go together with --truth"),
    ("a.flo --truth b.flo --style blue -o x.png", "--style is 'blue', wanted sintel or kitti"),
    ("a.flo --truth b.flo --style kitti --limit 3 -o x.png", "--limit belongs to --style sintel"),
    ("a.flo --truth b.flo --noc b.flo -o x.png", "--noc belongs to --style kitti"),
    ("a.flo --truth small.flo -o x.png", "small.flo: is 5×4 pixels, but a.flo is 64×48"),
    ("a.flo --against small.flo -o x.png", "small.flo: is 5×4 pixels, but a.flo is 64×48"),
    ("small.flo --image frames/f0.png -o x.png", "frames/f0.png: is 64×48 pixels, but small.flo"),
    ("a.flo --truth b.flo --scale 3 -o x.png", "--scale is of colours; an error map has --limit"),
    ("a.flo --truth b.flo truth.flo -o x.png", "--truth: 2 files for 1 flows"),
    ("flows --truth a.flo -o x", "--truth: 1 files for 3 flows, and not the same names"),
    ("a.flo --image frames -o x.png", "--image: 4 files for 1 flows"),
    ("frames/../empty -o x", "no flow files in this folder"),
    ("figure", "missing: methods | difference"),
    ("figure methods --image f.png --flow a.flo --truth b.flo -o x.png", "wanted frame 1 and"),
    ("figure difference --flow a.flo b.flo -o x.png", "missing: --image"),
    ("figure difference --image frames/f0.png --flow a.flo -o x.png", "1 given, wanted two"),
    ("figure difference --image frames/f0.png --flow a.flo a.flo -o x.png", "both called 'a'"),
    ("figure difference --image frames/f0.png --flow =a.flo b.flo -o x.png", "wanted NAME=FILE"),
    ("figure difference --image frames/f0.png --flow a.flo b.flo -o x.mp4", "a picture's name"),
    ("figure difference --image f.png --flow a.flo -o frames/f0.png", "f0.png: exists already"),
    (
        "figure difference --image frames/f0.png --flow a.flo small.flo -o x.png",
        "small.flo: is 5×4",
    ),
    (
        "figure difference --image frames/f0.png --flow small.flo small2.flo -o x.png",
        "f0.png: is 64×48",
    ),
    (
        "figure methods --image frames/f0.png frames/f1.png --flow a.flo --truth small.flo -o x.png",
        "small.flo: is 5×4",
    ),
    ("video frames --flow flows -o x.avi", "wanted a video: .mp4, .webm or .gif"),
    ("video frames --flow one=flows two=short -o x.mp4", "3 in flows, 1 in short"),
    (
        "flows both -o x",
        "flows/f0.flo and both/f0.flo would both be drawn as x/f0.png; draw them one",
    ),
    ("both -o x", "as x/f0.png; draw them one kind at a time, as 'both/*.flo'"),
    ("video frames --flow short -o x.mp4", "frames: 4 frames for 1 flows; wanted as many, or one"),
    ("video frames --flow two -o x.mp4", "frames: 4 frames for 2 flows; wanted as many, or one"),
    ("video film.mkv --flow short -o x.mp4", "film.mkv: 4 frames for 1 flows; wanted as many, or"),
    (
        "video frames --flow one=flows two=later -o x.mp4",
        "--flow: one has the flow of frames/f0.png where two has that of frames/f1.png; wanted flows",
    ),
    ("video frames/f0.png --flow flows -o x.mp4", "1 frames for 3 flows"),
    ("video none --flow flows -o x.mp4", "none: there is no such file"),
]


@pytest.mark.parametrize(("words", "sentence"), REFUSALS, ids=[words for words, _ in REFUSALS])
def test_refusals(files, capsys, words, sentence):
    for name in ("small.flo", "small2.flo"):
        lcv.write_flow(name, np.zeros((4, 5, 2), np.float32))
    for folder in ("empty", "short", "two", "both", "later"):
        (files / folder).mkdir()
    for name in (
        "short/f0.flo",
        "two/f0.flo",
        "two/f1.flo",
        "both/f0.flo",
        "both/f0.npz",
        *(f"later/f{k}.flo" for k in (1, 2, 3)),
    ):
        lcv.write_flow(name, flow_of(0))
    save_clip(files / "film.mkv", [lcv.read_image(f"frames/f{k}.png") for k in range(4)])
    before = sorted(files.rglob("*"))
    assert sentence in refused(capsys, *words.split())
    assert sorted(files.rglob("*")) == before


def test_help_loads_nothing_heavy():
    script = (
        "import sys\n"
        "from lcv.cli.main import main\n"
        "for words in (['view'], ['view', 'figure', 'methods'], ['view', 'video'], ['inspect']):\n"
        "    try:\n        main([*words, '--help'])\n"
        "    except SystemExit as end:\n        assert end.code == 0\n"
        "assert not {'torch', 'numpy', 'PIL', 'av', 'matplotlib'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


def known(*names):
    return [view_files.read_known(Path(name)) for name in names]


def test_pictures_with_legends_are_those_of_the_library(files, capsys):
    a, b, truth = known("a.flo", "b.flo", "truth.flo")
    assert view("a.flo", "--scale", 4, "-o", "flow.png") == 0
    assert np.array_equal(lcv.read_image("flow.png"), figures.flow_picture(a, 4.0))
    assert view("a.flo", "--against", "b.flo", "-o", "apart.png") == 0
    apart = figures.difference(a, b)
    scale = figures.difference_scale(apart)
    assert np.array_equal(lcv.read_image("apart.png"), figures.difference_picture(a, b, scale))
    assert view("a.flo", "--against", "b.flo", "--bare", "--scale", 2, "-o", "bare.png") == 0
    assert np.array_equal(lcv.read_image("bare.png"), flow_to_colour(apart.flow, 2.0, apart.valid))
    assert view("a.flo", "--truth", "truth.flo", "-o", "error.png") == 0
    number, style = number_of(a, truth), figures.ErrorStyle("sintel", 10.0)
    picture = figures.error_picture(a, truth, style, number, None)
    assert np.array_equal(lcv.read_image("error.png"), picture)
    mean = figures.mean_length(apart)
    assert capsys.readouterr().out.splitlines() == [
        "flow.png: flow of a.flo, 4 px in full colour",
        f"scale: a difference of {scale:g} px is full colour; give it again with --scale",
        f"apart.png: mean difference {mean:.3g} px from b.flo",
        f"bare.png: mean difference {mean:.3g} px from b.flo",
        f"error.png: {number} against truth.flo, in sintel's style",
    ]


def test_figures_are_those_of_the_library(files, capsys):
    a, b, truth = known("a.flo", "b.flo", "truth.flo")
    frames = [lcv.read_image(f"frames/f{k}.png") for k in range(2)]
    flows = {"one": a, "b": b}
    given = ["--image", "frames/f0.png", "frames/f1.png", "--flow", "one=a.flo", "b.flo"]
    numbers = {name: number_of(flow, truth) for name, flow in flows.items()}
    assert view("figure", "methods", *given, "--truth", "truth.flo", "-o", "m.png") == 0
    scale = figures.common_scale(truth, a, b)
    style = figures.ErrorStyle("sintel", 10.0)
    picture = figures.methods_figure(
        frames, flows, truth, style=style, numbers=numbers, scale=scale, width=None
    )
    assert np.array_equal(lcv.read_image("m.png"), picture)
    assert capsys.readouterr().out.splitlines() == [
        f"scale: {scale:g} px is full colour; --scale {scale:g} gives it again",
        *(f"{name}: {number}" for name, number in numbers.items()),
        f"m.png: {picture.shape[1]}×{picture.shape[0]} pixels",
    ]
    for more, said in (([], {}), (["--truth", "truth.flo", "--overwrite"], numbers)):
        options = [*more, "--scale", 5, "--difference-scale", 2, "--width", 90, "-o", "d.png"]
        assert view("figure", "difference", *given, *options) == 0
        picture = figures.difference_figure(
            frames[0], flows, numbers=said, scale=5.0, apart_scale=2.0, width=90
        )
        assert np.array_equal(lcv.read_image("d.png"), picture)
    assert "full colour" not in capsys.readouterr().out


def test_errors_in_numbers():
    valid = np.array([[True, True, False]])
    flow, truth = (
        figures.Known(np.float32([values]), valid)
        for values in ([(1, 0), (4, 4), (9, 9)], [(0, 0), (0, 0), (0, 0)])
    )
    # Errors of 1 and 5.66; the last pixel is not known.
    assert number_of(flow, truth) == "EPE 3.33 px, Fl 50 %"
    nothing = figures.Known(truth.flow, ~np.ones((1, 3), bool))
    assert number_of(flow, nothing) == "nothing known"


def test_what_belongs_to_a_flow():
    flows = [Path(f"flow/{name}.flo") for name in "ab"]
    named = [Path(f"truth/{name}.png") for name in "cba"]
    assert view_files.belonging(flows, named, "--truth") == [named[2], named[1]]
    others = [Path(f"truth/{name}.png") for name in "xyz"]
    assert view_files.belonging(flows, others[:2], "--truth") == others[:2]
    assert view_files.belonging(flows, others, "--image", spare=1) == others[:2]
    for wrong, spare in ((others, 0), (others[:1], 0), (others[:1], 1), ([*others, *others], 1)):
        with pytest.raises(ArgumentError, match=rf"--x: {len(wrong)} files for 2 flows"):
            view_files.belonging(flows, wrong, "--x", spare)
