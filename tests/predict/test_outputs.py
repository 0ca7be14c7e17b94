"""Files of a pair: every format reads back, damage is seen, names do not fall on each other."""

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
from lcv.files import whole_file
from lcv.predict.outputs import (
    ENDINGS,
    EXACT,
    FILES,
    KINDS,
    Folder,
    Named,
    Output,
    formats_for,
    is_left_of,
    is_whole,
    leftovers,
    meaning_of,
    sweep,
    wanted_outputs,
    write_output,
)
from lcv.predict.result import FlowResult
from lcv.visual.colours import flow_to_colour
from lcv.visual.overlay import draw_arrows
from testing.extras import needs

EVERYTHING = wanted_outputs(ENDINGS, backward=True, overlay=True, occlusion=True, warp_error=True)


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
    place = Folder(folder)
    paths = {output: place.path(output, "walk", "frame_1") for output in EVERYTHING}
    for output, path in paths.items():
        write_output(path, output, result, image, 12.5, overwrite=False)
    return paths


def test_every_output_reads_back(tmp_path, result, image):
    for output, path in saved(tmp_path, result, image).items():
        flow = result.backward if output.backward else result.flow
        if output.what in EXACT:
            assert np.array_equal(lcv.read_flow(path)[0], flow)
        elif output.what == "kitti":
            # The format's steps are 1/64, so that rounding moves a value by half of that.
            assert np.abs(read_kitti(path)[0] - flow).max() <= 1 / 128
        elif output.what == "png":
            assert np.array_equal(read_image(path), flow_to_colour(flow, 12.5))
        elif output.what == "overlay":
            assert np.array_equal(read_image(path), draw_arrows(image, flow, spacing=16))
        elif output.what == "occluded":
            assert np.array_equal(read_mask(path) == 255, result.occluded)
        else:
            wanted = np.minimum(255, np.rint(np.nan_to_num(result.warp_error)))
            assert np.array_equal(read_mask(path), wanted)


def test_no_two_outputs_have_one_name(tmp_path):
    named = Named(tmp_path / "out.flo", EVERYTHING)
    for place in (Folder(tmp_path).path, lambda o, *_: named.path(o)):
        paths = [place(output, "walk", "frame_1") for output in EVERYTHING]
        assert all(a != b for a, b in combinations(paths, 2))
    assert {output.kind for output in EVERYTHING} == set(KINDS)


def test_damage_is_seen(tmp_path, result, image):
    for output, path in saved(tmp_path, result, image).items():
        whole = path.read_bytes()
        assert is_whole(path, output)
        for broken in (b"", whole[:-1], whole[: len(whole) // 2], b"text\n" * 20):
            path.write_bytes(broken)
            assert not is_whole(path, output), (output, len(broken))
        path.unlink()
        assert not is_whole(path, output)
        path.mkdir()
        assert not is_whole(path, output)


def test_a_file_is_not_replaced_unasked(tmp_path, result, image):
    saved(tmp_path, result, image)
    with pytest.raises(FileError, match="exists already"):
        saved(tmp_path, result, image)


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


def test_companions_of_a_named_file_lie_beside_it(tmp_path):
    outputs = wanted_outputs(("flo",), backward=True, overlay=True, occlusion=True, warp_error=True)
    named = Named(tmp_path / "out.flo", outputs)
    assert [named.path(output).name for output in outputs] == [
        "out.flo",
        "out_backward.flo",
        "out_overlay.png",
        "out_occluded.png",
        "out_warp_error.png",
    ]
    named.check(overwrite=False)
    (tmp_path / "out_overlay.png").touch()
    with pytest.raises(FileError, match="out_overlay.png: exists already"):
        named.check(overwrite=False)


@pytest.mark.parametrize(
    ("file", "formats", "message"),
    [
        ("out.xyz", None, "nothing is written with the ending '.xyz', wanted .flo, .pfm"),
        ("out.jpg", ("flo",), "has the ending '.jpg', but --format asks for flo"),
        ("out.flo", ("png",), "has the ending '.flo', but --format asks for png"),
    ],
)
def test_a_name_that_says_something_else_is_refused(file, formats, message):
    with pytest.raises(ArgumentError, match=message):
        formats_for(Path(file), formats)


@pytest.mark.parametrize("ending", FILES)
def test_a_result_and_a_command_know_the_same_endings(tmp_path, result, image, ending):
    if ending == ".flo5":
        needs("h5py")
    name = str(tmp_path / f"out{ending}")
    assert meaning_of(name) == "file"
    (output,) = wanted_outputs(formats_for(Path(name), None))
    write_output(Named(Path(name), (output,)).path(output), output, result, image, 9.0, False)
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
            ArgumentError, match=r"wanted \.flo, .*\.png, .* or \.mp4 for a clip; for"
        ):
            meaning_of(name)


def test_an_unknown_format_lists_the_known_ones():
    message = "unknown format 'exr'; the formats are flo, kitti, pfm, flo5, npy, npz, png"
    with pytest.raises(ArgumentError, match=message):
        wanted_outputs(("flo", "exr"))


def test_a_place_where_nothing_can_be_written_is_refused_early(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    for name in ("file", "file/inside/deep"):
        with pytest.raises(FileError, match="file is a file, wanted a folder for the outputs"):
            Folder(tmp_path / name).check()
    Folder(tmp_path / "new" / "deep").check()
    assert not (tmp_path / "new").exists()
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(FileError, match=f"the folder {tmp_path} may not be written to"):
        Folder(tmp_path / "new").check()


def test_leftovers_are_told_from_files_of_others(tmp_path):
    names = [".a.flo.0123456789abcdef.part", ".b.flo.0123456789abcdef.part", ".part", "a.part"]
    for name in (*names, "a.flo"):
        (tmp_path / name).touch()
    found = sorted(leftovers(tmp_path))
    assert [path.name for path in found] == names[:2]
    assert [is_left_of(path, {"a.flo"}) for path in found] == [True, False]
    assert list(leftovers(tmp_path / "none")) == []
    long = "n" * 60 + ".flo"
    with whole_file(tmp_path / long) as temporary:
        assert is_left_of(temporary, {long})
        assert not is_left_of(temporary, {"n" * 61 + ".flo"}), "of another that begins alike"
    sweep(tmp_path / "b.flo")
    assert [path.name for path in leftovers(tmp_path)] == names[:1]
