"""Files of a pair: every format reads back, and names do not fall on each other."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import lcv
from lcv.data.formats.image import read_image
from lcv.data.formats.kitti import read_kitti
from lcv.data.formats.mask import read_mask
from lcv.errors import ArgumentError, FileError
from lcv.predict.folder import JobFolder
from lcv.predict.outputs import FORMATS, KINDS, LOOK, Drawing, Named, Output, wanted_outputs
from lcv.predict.result import FlowResult
from lcv.predict.sources import FrameFiles
from lcv.visual.colours import flow_to_colour
from lcv.visual.look import look
from lcv.visual.overlay import draw_arrows

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
