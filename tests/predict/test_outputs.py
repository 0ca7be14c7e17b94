"""Files of a pair: every format reads back, and names do not fall on each other."""

from __future__ import annotations

import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch

import lcv
from lcv.data.formats.image import read_image
from lcv.data.formats.kitti import read_kitti
from lcv.data.formats.mask import read_mask
from lcv.errors import ArgumentError, FileError
from lcv.predict.folder import JobFolder
from lcv.predict.outputs import (
    FORMATS,
    KINDS,
    LOOK,
    LOW,
    Drawing,
    Named,
    Output,
    stored_panel,
    wanted_outputs,
)
from lcv.predict.result import FlowResult
from lcv.predict.sources import FrameFiles
from lcv.visual.colours import flow_to_colour
from lcv.visual.look import look
from lcv.visual.overlay import draw_arrows
from lcv.visual.panel import panel, panel_of_pictures

SEQUENCE = FrameFiles("walk", (), ("frame_1",))
MAPS = {"overlay": True, "occlusion": True, "warp_error": True, "look": True}
EVERYTHING = wanted_outputs(FORMATS, backward=True, **MAPS)


@pytest.fixture
def result():
    rng = np.random.default_rng(0)
    error = rng.uniform(0, 300, (20, 30)).astype(np.float32)
    error[0, 0] = np.nan
    return FlowResult(
        flow=rng.normal(0, 9, (20, 30, 2)).astype(np.float32),
        backward=rng.normal(0, 9, (20, 30, 2)).astype(np.float32),
        occluded=rng.random((20, 30)) < 0.5,
        warp_error=error,
    )


@pytest.fixture
def image():
    return np.random.default_rng(1).integers(0, 256, (20, 30, 3), dtype=np.uint8)


def saved(folder: Path, result: FlowResult, image: np.ndarray) -> dict[Output, Path]:
    place = JobFolder(folder, {})
    paths = {output: place.path(output, SEQUENCE, 0) for output in EVERYTHING}
    for output, path in paths.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        Drawing(result, image, 12.5).write(path, output, overwrite=False)
    return paths


def test_every_output_reads_back(tmp_path, result, image):
    for output, path in saved(tmp_path, result, image).items():
        flow = result.backward if output.backward else result.flow
        if output.what in ("flo", "pfm", "npy", "npz", "flo5"):
            assert np.array_equal(lcv.read_flow(path)[0], flow)
        elif output.what == "kitti":
            # The format's steps are 1/64, so that rounding moves a value by half of that.
            assert np.abs(read_kitti(path)[0] - flow).max() <= 1 / 128
        elif output.what == "png":
            assert np.array_equal(read_image(path), flow_to_colour(flow, 12.5))
        elif output.what == "overlay":
            assert np.array_equal(read_image(path), draw_arrows(image, flow, spacing=16, stretch=1))
        elif output.what == "occluded":
            assert np.array_equal(read_mask(path) == 255, result.occluded)
        elif output.what == "look":
            maps = {"warp_error": result.warp_error, "occluded": result.occluded}
            assert np.array_equal(read_image(path), look(image, flow, 12.5, **maps))
        else:
            wanted = np.minimum(255, np.rint(4 * np.nan_to_num(result.warp_error)))
            assert np.array_equal(read_mask(path), wanted)


def test_no_two_outputs_have_one_name(tmp_path):
    for place in (Named(tmp_path / "out.flo", EVERYTHING), JobFolder(tmp_path, {})):
        paths = [place.path(output, SEQUENCE, 0) for output in EVERYTHING]
        assert all(a != b for a, b in combinations(paths, 2))
    assert {output.kind for output in EVERYTHING} | {"low"} == {*KINDS}


def test_a_file_is_not_replaced_unasked(tmp_path, result, image):
    saved(tmp_path, result, image)
    with pytest.raises(FileError, match="exists already"):
        saved(tmp_path, result, image)


def test_companions_of_a_named_file_lie_beside_it(tmp_path):
    outputs = wanted_outputs(("flo",), backward=True, **MAPS)
    named = Named(tmp_path / "out.flo", outputs)
    assert [named.path(output).name for output in outputs] == [
        "out.flo",
        "out_backward.flo",
        "out_overlay.png",
        "out_occluded.png",
        "out_warp_error.png",
        "out_look.png",
    ]
    assert Named(Path("a.jpg"), (LOOK,)).path(LOOK) == Path("a.jpg")
    named.check((), overwrite=False)
    (tmp_path / "out_overlay.png").touch()
    with pytest.raises(FileError, match="out_overlay.png: exists already"):
        named.check((), overwrite=False)


def test_an_unknown_format_lists_the_known_ones():
    message = "unknown format 'exr'; the formats are flo, npy, pfm, npz, flo5, kitti, png"
    with pytest.raises(ArgumentError, match=message):
        wanted_outputs(("flo", "exr"))


@pytest.mark.parametrize(
    ("name", "formats", "names"),
    [
        ("a.flo", ("flo", "png"), ["a.flo", "a.png", "a_overlay.png"]),
        ("a.jpg", ("flo", "png"), ["a.flo", "a.jpg", "a_overlay.png"]),
        ("a.PNG", ("png",), ["a.PNG", "a_overlay.png"]),
        ("a.png", ("kitti",), ["a.png", "a_overlay.png"]),
        ("a.flo", ("flo", "kitti", "npy"), ["a.flo", "a_kitti.png", "a.npy", "a_overlay.png"]),
    ],
)
def test_names_beside_a_named_file(name, formats, names):
    outputs = wanted_outputs(formats, overlay=True)
    named = Named(Path("folder", name), outputs)
    assert [named.path(output) for output in outputs] == [Path("folder", n) for n in names]


def test_a_name_that_cannot_be_written_is_refused_early(tmp_path, monkeypatch):
    outputs = wanted_outputs(("flo",))
    named = Named(tmp_path / "a.flo", outputs)
    (tmp_path / "a.flo").touch()
    with pytest.raises(FileError, match="is the input .* itself"):
        named.check([tmp_path / "a.flo"], overwrite=True)
    named.check((), overwrite=True)
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(FileError, match="may not be written to"):
        named.check((), overwrite=True)


def test_what_is_asked_for_in_order(monkeypatch):
    assert wanted_outputs(("png", "flo", "png"), backward=True, look=True, warp_error=True) == (
        Output("picture", "png"),
        Output("backward_picture", "png", True),
        Output("flow", "flo"),
        Output("backward", "flo", True),
        Output("warp_error", "warp_error"),
        Output("look", "look"),
    )
    assert wanted_outputs(("kitti",), backward=True)[1] == Output("backward_kitti", "kitti", True)
    assert wanted_outputs((), overlay=True, occlusion=True) == (
        Output("overlay", "overlay"),
        Output("occluded", "occluded"),
    )
    assert [output.ending for output in (LOW, LOOK, Output("flow", "npz"))] == [
        ".npy",
        ".png",
        ".npz",
    ]
    monkeypatch.setitem(sys.modules, "h5py", None)
    assert wanted_outputs(("flo",)) == (Output("flow", "flo"),)
    with pytest.raises(FileError, match="^format flo5: .* need h5py, which is not installed"):
        wanted_outputs(("flo", "flo5"))


def test_the_low_flow_is_stored_as_it_is(tmp_path, result, image):
    low = torch.arange(12, dtype=torch.bfloat16).reshape(1, 2, 2, 3)
    Drawing(result, image, 3.0, low).write(tmp_path / "low.npy", LOW, overwrite=False)
    found = np.load(tmp_path / "low.npy")
    assert found.dtype == np.float32
    assert np.array_equal(found, np.arange(12).reshape(1, 2, 2, 3))


def test_a_clip_is_drawn_from_the_best_file_there_is(tmp_path, result, image):
    paths = {output.what: path for output, path in saved(tmp_path, result, image).items()
             if not output.backward}  # fmt: skip
    exact = panel(image, result.flow, 12.5, True)
    assert np.array_equal(stored_panel(image, paths, 12.5, True), exact)
    kitti = {name: paths[name] for name in ("kitti", "png", "overlay")}
    rounded = panel(image, read_kitti(paths["kitti"])[0], 12.5, False)
    assert np.array_equal(stored_panel(image, kitti, 12.5, False), rounded)
    drawn = {name: paths[name] for name in ("png", "overlay")}
    picture, overlay = read_image(paths["png"]), read_image(paths["overlay"])
    for files, arrows, left in (
        (drawn, True, overlay),
        (drawn, False, image),
        ({"png": paths["png"]}, True, image),
    ):
        wanted = panel_of_pictures(left, picture, 12.5)
        assert np.array_equal(stored_panel(image, files, 12.5, arrows), wanted)
