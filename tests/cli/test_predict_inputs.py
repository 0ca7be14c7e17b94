"""Words on a command line, and the frames they mean."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lcv.cli import predict_inputs
from lcv.cli.predict_inputs import find_inputs
from lcv.data.formats.decoder import Source
from lcv.data.formats.image import write_image
from lcv.errors import ArgumentError, FileError
from lcv.predict.sources import Live, Video
from testing.footage import moving, save_film, save_frames


def outline(inputs) -> list[tuple[str, list[str], list[str]]]:
    """(name, files, names of pairs) of every sequence."""
    return [
        (each.name, [path.name for path in each.files], list(each.names))
        for each in inputs.sequences
    ]


def test_two_images_are_a_pair_in_the_order_given(tmp_path):
    save_frames(tmp_path, 2)
    words = [str(tmp_path / "frame_2.png"), str(tmp_path / "frame_1.png")]
    inputs = find_inputs(words)
    assert outline(inputs) == [("", ["frame_2.png", "frame_1.png"], ["frame_2"])]
    assert inputs.is_one_pair


def test_a_folder_is_read_in_natural_order(tmp_path):
    folder = save_frames(tmp_path / "walk", 11)
    (folder / "notes.txt").write_text("not a frame")
    numbers = range(1, 12)
    wanted = [f"frame_{n}.png" for n in numbers]
    inputs = find_inputs([str(folder)])
    assert outline(inputs) == [("walk", wanted, [f"frame_{n}" for n in numbers[:-1]])]
    assert not inputs.is_one_pair


def test_many_images_and_a_glob_mean_the_folder_they_come_from(tmp_path, monkeypatch):
    folder = save_frames(tmp_path / "walk", 11)
    files = sorted(str(path) for path in folder.iterdir())
    whole = find_inputs([str(folder)])
    assert find_inputs(files) == whole
    assert find_inputs([f"{folder}/frame_*.png"]) == whole
    save_frames(tmp_path / "run", 3)
    several = find_inputs([f"{tmp_path}/*/frame_?.png"])
    assert [(name, len(files)) for name, files, _ in outline(several)] == [("run", 3), ("walk", 9)]
    monkeypatch.chdir(folder)
    assert find_inputs(["."]).sequences[0].name == "walk"


def test_a_folder_of_folders_is_a_sequence_each(tmp_path):
    for name in ("cave_10", "cave_2"):
        save_frames(tmp_path / name, 2)
    save_frames(tmp_path / "lonely", 1)
    inputs = find_inputs([str(tmp_path)])
    assert [name for name, _, _ in outline(inputs)] == ["cave_2", "cave_10"]
    (note,) = inputs.notes
    assert "one frame only: lonely" in note


def test_pairs_by_their_endings_are_not_chained(tmp_path):
    for scene in range(3):
        for ending in (10, 11):
            write_image(tmp_path / f"{scene:06d}_{ending}.png", moving(1)[0])
    inputs = find_inputs([str(tmp_path)])
    assert outline(inputs)[1] == ("", ["000001_10.png", "000001_11.png"], ["000001"])
    assert len(inputs.sequences) == 3
    assert "taken as 3 pairs by the file names" in inputs.notes[0]


def test_a_list_chains_lines_that_share_a_frame(tmp_path):
    save_frames(tmp_path / "a", 4)
    (tmp_path / "list.txt").write_text(
        "# walk\n"
        "a/frame_1.png a/frame_2.png\n"
        "a/frame_2.png a/frame_3.png truth.flo\n"
        '"a/frame_4.png" a/frame_1.png\n'
    )
    assert outline(find_inputs([str(tmp_path / "list.txt")])) == [
        ("", ["frame_1.png", "frame_2.png", "frame_3.png"], ["a/frame_1", "a/frame_2"]),
        ("", ["frame_4.png", "frame_1.png"], ["a/frame_4"]),
    ]


def test_a_list_whose_first_frames_repeat_names_its_lines(tmp_path):
    (tmp_path / "in" / "x").mkdir(parents=True)
    for name in ("a.png", "in/a.png", "in/b.png", "in/c.png"):
        (tmp_path / name).touch()
    outside, tmp_path = tmp_path / "a.png", tmp_path / "in"
    (tmp_path / "list.txt").write_text("a.png b.png\na.png c.png\n")
    names = [names for _, _, names in outline(find_inputs([str(tmp_path / "list.txt")]))]
    assert names == [["000001_a"], ["000002_a"]]
    for first in ("../a.png", "x/../../a.png", str(outside)):
        (tmp_path / "list.txt").write_text(f"{first} b.png\n")
        (sequence,) = find_inputs([str(tmp_path / "list.txt")]).sequences
        assert sequence.names == ("000001_a",), "outputs stay in their folder"


def test_a_frame_that_a_list_names_and_is_not_there(tmp_path):
    (tmp_path / "a.png").touch()
    (tmp_path / "list.txt").write_text("# mine\na.png b.png\na.png c.png\n")
    message = r"list.txt:2: names .*b.png, and there is no such file"
    with pytest.raises(FileError, match=message):
        find_inputs([str(tmp_path / "list.txt")])


def test_a_list_of_single_frames_is_a_sequence_in_its_order(tmp_path):
    for name in "abc":
        (tmp_path / f"{name}.png").touch()
    (tmp_path / "list.txt").write_text("c.png\na.png\nb.png\n")
    assert outline(find_inputs([str(tmp_path / "list.txt")])) == [
        ("list", ["c.png", "a.png", "b.png"], ["c", "a"])
    ]


def test_videos_of_one_name_are_told_apart(tmp_path):
    paths = [tmp_path / "a" / "x.mp4", tmp_path / "b" / "x.mp4"]
    for path in paths:
        path.parent.mkdir()
        path.touch()
    names = [each.name for each in find_inputs([str(path) for path in paths]).sequences]
    assert names == ["a/x.mp4", "b/x.mp4"]
    for name in ("x.avi", "y.mp4"):
        (tmp_path / "a" / name).touch()
    inputs = find_inputs([str(tmp_path / "a")])
    assert [each.name for each in inputs.sequences] == ["a/x.avi", "a/x.mp4", "y"]
    assert predict_inputs._with_folder(Path("/x.mp4")) == "x.mp4", "the root has no name"
    assert all(isinstance(each, Video) for each in inputs.sequences)


def test_frames_of_one_stem_have_pairs_of_different_names(tmp_path):
    for name in ("a.png", "a.ppm", "b.png"):
        write_image(tmp_path / name, moving(1)[0])
    ((_, _, names),) = outline(find_inputs([str(tmp_path)]))
    assert names == ["a.png", "a.ppm"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "there is no input; wanted two images"),
        (["none.png", "frame_1.png"], "none.png: there is no such file or folder; wanted two"),
        (["frame_1.png", "."], r"frame_1.png is an image and \. is not"),
        (["*.tif"], r"\*\.tif: no file matches this pattern"),
        (["w*.txt"], "matches 1 file, the first words.txt, but no image, video or folder"),
        (["https://example.org/a.mp4"], "addresses are not opened; .* through a pipe: ffmpeg -i"),
        (["camera:x"], "camera:x: wanted camera:0, camera:1 and so on"),
        (["camera:99"], r"camera:99: there is no /dev/video99; found "),
        (["empty"], "empty: no frames in this folder, nor two in one inside it; wanted images"),
        (["single"], "single: has one image only, frame_1.png; flow needs at least two frames"),
        (["frame_1.png"], "frame_1.png: is one image only; flow needs two, so name a second one"),
        (["single/*"], r"single/.: .*frame_1.png is the only image of its folder here"),
        (["mixed"], r"mixed: has images \(a.png\) and videos \(b.mp4\); choose one kind"),
        (["mixed/*"], r"has images \(a.png\) and videos \(b.mp4\); choose one kind"),
        (["words.txt"], r"words.txt:2: 4 words, wanted `image1 image2` on every line"),
        (["empty.txt"], "empty.txt: names no frames; wanted lines of `image1 image2`"),
        (["binary.txt"], "binary.txt: not a text file"),
        (["short.txt"], "short.txt: names one frame only"),
        (["frame_1.png", "frame_2.png", "-"], "frame_1.png is an image and - is not"),
        (["-", "-"], "two inputs have the name 'stdin'"),
    ],
)
def test_what_means_nothing_is_a_sentence(tmp_path, monkeypatch, words, message):
    save_frames(tmp_path, 2)
    save_frames(tmp_path / "single", 1)
    save_frames(tmp_path / "mixed", 1)
    (tmp_path / "mixed" / "frame_1.png").rename(tmp_path / "mixed" / "a.png")
    (tmp_path / "mixed" / "b.mp4").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "words.txt").write_text("words.txt words.txt\na b c d\n")
    (tmp_path / "empty.txt").write_text("# nothing\n")
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe\x00\x01")
    (tmp_path / "short.txt").write_text("frame_1.png\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ArgumentError, FileError), match=message):
        find_inputs(words)


@pytest.mark.parametrize("name", ["..", "."])
@pytest.mark.parametrize("ending", [".mp4", ".txt", ".pipe"])
def test_inputs_whose_outputs_would_lie_outside_their_folder_are_refused(
    tmp_path, monkeypatch, name, ending
):
    """The name of a video without its ending is that of a folder."""
    monkeypatch.chdir(tmp_path)
    if ending == ".pipe":
        os.mkfifo(f"{name}{ending}")
    elif ending == ".mp4":
        save_film(tmp_path / f"{name}{ending}", 3)
    else:
        save_frames(tmp_path, 3)
        (tmp_path / f"{name}{ending}").write_text("frame_1.png\nframe_2.png\n")
    with pytest.raises(ArgumentError, match=rf"would lie in a folder called '{name}'; rename"):
        find_inputs([f"{name}{ending}"])


def test_inputs_whose_outputs_would_overwrite_each_other_are_refused(tmp_path, monkeypatch):
    """A pair called walk/frame_1 would lie in the folder of a sequence called walk."""
    save_frames(tmp_path / "walk", 4)
    save_frames(tmp_path / "run", 4)
    (tmp_path / "list.txt").write_text("walk/frame_1.png walk/frame_2.png\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentError, match="two inputs have the name 'walk', so their outputs"):
        find_inputs(["list.txt", "walk"])
    with pytest.raises(ArgumentError, match="two inputs have the name 'walk/frame_1'"):
        find_inputs(["list.txt", "list.txt"])
    names = [each.name for each in find_inputs(["list.txt", "run"]).sequences]
    assert names == ["", "run"]


def test_a_name_with_the_letters_of_a_pattern_is_a_name_first(tmp_path):
    folder = save_frames(tmp_path / "take[1]", 2)
    assert find_inputs([str(folder)]).sequences[0].length == 2


@pytest.mark.parametrize("way", ["folder", "folders", "glob"])
def test_a_link_to_nothing_is_a_frame_that_cannot_be_read(tmp_path, way):
    folder = save_frames(tmp_path / "all" / "walk", 5)
    whole = find_inputs([str(folder)])
    (folder / "frame_3.png").rename(tmp_path / "away.png")
    (folder / "frame_3.png").symlink_to(tmp_path / "elsewhere.png")
    word = {"folder": folder, "folders": folder.parent, "glob": f"{folder}/*.png"}[way]
    inputs = find_inputs([str(word)])
    assert inputs == whole
    (sequence,) = inputs.sequences
    with pytest.raises(FileError, match=r"walk/frame_3\.png"):
        [frame.image for frame in sequence.frames()]


def test_a_file_that_may_not_be_looked_at_is_not_called_missing(monkeypatch):
    def refuse(path, **_):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(predict_inputs.Path, "stat", refuse)
    with pytest.raises(PermissionError, match="a.png"):
        find_inputs(["locked/a.png", "b.png"])


def test_an_empty_name_is_no_input():
    for word in ("", " "):
        with pytest.raises(ArgumentError, match="an empty name; wanted two images"):
            find_inputs([word])


def test_a_glob_of_videos_is_a_sequence_each(tmp_path):
    paths = [tmp_path / name for name in ("v2.mp4", "v10.avi")]
    for path in paths:
        path.touch()
    inputs = find_inputs([f"{tmp_path}/v*"])
    assert inputs.sequences == (Video("v2", paths[0]), Video("v10", paths[1]))


def test_a_camera_and_pipes(tmp_path, monkeypatch):
    monkeypatch.setattr(predict_inputs.Path, "exists", lambda path: str(path) == "/dev/video3")
    pipe = str(tmp_path / "frames.y4m")
    os.mkfifo(pipe)
    for word, name, source in (
        ("camera:3", "camera3", Source("camera", "camera:3")),
        ("-", "stdin", Source("pipe", "-")),
        (pipe, "frames", Source("pipe", pipe)),
    ):
        (live,) = find_inputs([word]).sequences
        assert isinstance(live, Live)
        assert (live.name, live.source) == (name, source)


def test_folders_of_one_name_are_told_apart(tmp_path):
    folders = [save_frames(tmp_path / name / "left", 3) for name in ("a", "b")]
    inputs = find_inputs([str(folder) for folder in folders])
    frames = ["frame_1.png", "frame_2.png", "frame_3.png"]
    assert outline(inputs) == [
        ("a/left", frames, ["frame_1", "frame_2"]),
        ("b/left", frames, ["frame_1", "frame_2"]),
    ]
    assert [each.files[0].parent for each in inputs.sequences] == folders


def test_lists_of_one_name_are_told_apart_by_where_they_begin(tmp_path):
    for name in ("a", "b"):
        for frame in ("x/1.png", "y/2.png"):
            (tmp_path / name / frame).parent.mkdir(parents=True)
            (tmp_path / name / frame).touch()
        (tmp_path / name / "walk.txt").write_text("x/1.png\ny/2.png\n")
    inputs = find_inputs([str(tmp_path / name / "walk.txt") for name in ("a", "b")])
    files = ["1.png", "2.png"]
    assert outline(inputs) == [("a/x", files, ["1"]), ("b/x", files, ["1"])]
