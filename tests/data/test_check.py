"""`check` passes what is right, and names what is wrong and why."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lcv.data.check import _lengths_that_disagree, check
from lcv.data.check_report import PartReport, Problem, Report, SurveyReport
from lcv.data.formats.flow import read_flow, write_flow
from lcv.data.formats.image import read_image, write_image
from lcv.data.inspection import FrameFacts, TruthFacts
from lcv.data.record import FrameRef, Record
from lcv.data.synthetic import QUICK, procedural_bank, write_dataset
from lcv.data.truth_test import NEXT, PREVIOUS, Duel
from testing import datasets as fake
from testing.shared import shared

SWAPPED = "u and v swapped"
CORRUPTIONS = {
    SWAPPED: lambda flow: np.ascontiguousarray(flow[..., ::-1]),
    "v negated": lambda flow: flow * np.array([1, -1], np.float32),
}


def wrong(root: Path) -> list[tuple[str, str]]:
    report = check(root, workers=2)
    assert not report.fine
    return [(problem.where, problem.reason) for problem in report.problems]


@pytest.fixture
def chairs(tmp_path) -> Path:
    """A copy of the real pairs that can be spoilt."""
    source = shared("data", "chairs", "data")
    (tmp_path / "data").mkdir()
    for path in source.iterdir():
        shutil.copyfile(path, tmp_path / "data" / path.name)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "kind", "pairs"),
    [
        ("chairs", "FlyingChairs", 2),
        ("middlebury", "Middlebury", 4),
        ("kitti2015", "KITTI 2015", 1),
        ("sintel", "Sintel", 1),
        ("stereo", "Middlebury stereo", 1),
        ("video", "videos without truth", 328),
    ],
)
def test_every_real_dataset_is_fine(name, kind, pairs):
    report = check(shared("data", name), workers=2)
    assert report.problems == []
    assert [survey.kind for survey in report.surveys] == [kind]
    [part] = report.surveys[0].parts
    assert part.pairs == pairs
    assert part.suspicious == []
    decided = [duel for duel in part.truth_test.values() if duel.decided]
    assert len(decided) == {"video": 0, "stereo": 5}.get(name, 6)


def test_a_stereo_flow_cannot_lose_the_sign_of_v_and_that_is_said():
    text = check(shared("data", "stereo")).text()
    assert "skipped: v negated (leaves the flow as it is)" in text


def test_a_partial_copy_is_reported_and_not_failed():
    text = check(shared("data", "sintel")).text()
    assert "training/clean: 1 pair (partial: a full copy has 1,041)" in text
    assert text.endswith("verdict: fine")


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_corrupted_truth_of_real_chairs(chairs, name):
    for path in (chairs / "data").glob("*.flo"):
        write_flow(path, CORRUPTIONS[name](read_flow(path)[0]), overwrite=True)
    [(where, reason)] = wrong(chairs)
    assert where == f"FlyingChairs data in {chairs}"
    assert reason.startswith(f"the truth explains the frames worse than with {name}: it wins at")


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_corrupted_truth_of_a_moving_texture(tmp_path, name):
    fake.chairs(tmp_path, 3, corrupt=CORRUPTIONS[name])
    [(where, reason)] = wrong(tmp_path)
    assert where == f"FlyingChairs data in {tmp_path}"
    assert f"worse than with {name}" in reason


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """Procedural sequences with changing motion, as `lcv data make` writes them."""
    folder = tmp_path_factory.mktemp("made") / "set"
    bank = procedural_bank(count=16, size=256)
    write_dataset(folder, QUICK, 1, 3, (96, 128), frames=5, textures=bank)
    return folder


def spoil(made: Path, folder: Path, corrupt) -> Path:
    """A copy of the procedural set; `corrupt` takes a scene's flows, in order, and gives others."""
    shutil.copytree(made, folder)
    for scene in (folder / "training/flow").iterdir():
        paths = sorted(scene.iterdir())
        flows = corrupt([read_flow(path)[0] for path in paths])
        for path, flow in zip(paths, flows, strict=True):
            write_flow(path, flow, overwrite=True)
    return folder


def test_procedural_pairs_are_fine(made):
    report = check(made)
    assert report.problems == []
    assert [survey.kind for survey in report.surveys] == ["procedural pairs"]
    for part in report.surveys[0].parts:
        assert part.pairs == part.pairs_tested == 12
        assert all(duel.decided for duel in part.truth_test.values())


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_corrupted_truth_of_procedural_pairs(made, tmp_path, name):
    root = spoil(made, tmp_path / "x", lambda flows: [CORRUPTIONS[name](flow) for flow in flows])
    found = dict(wrong(root))
    assert set(found) == {f"procedural pairs training/{p} in {root}" for p in ("clean", "final")}
    for reason in found.values():
        assert f"worse than with {name}" in reason


@pytest.mark.parametrize(("shift", "side"), [(1, "next"), (-1, "previous")])
def test_truth_of_procedural_sequences_shifted_by_one_frame(made, tmp_path, shift, side):
    def shifted(flows):
        last = len(flows) - 1
        return [flows[min(max(t + shift, 0), last)] for t in range(len(flows))]

    for reason in dict(wrong(spoil(made, tmp_path / "x", shifted))).values():
        assert f"worse than it explains the {side} pair (truth shifted by one frame)" in reason


def test_frames_in_reverse_order(chairs):
    data = chairs / "data"
    for number in ("00001", "00002"):
        (data / f"{number}_img1.ppm").rename(data / "x")
        (data / f"{number}_img2.ppm").rename(data / f"{number}_img1.ppm")
        (data / "x").rename(data / f"{number}_img2.ppm")
    [(_, reason)] = wrong(chairs)
    assert "frames in reverse order" in reason


@pytest.mark.parametrize(("shift", "side"), [(1, "next"), (-1, "previous")])
def test_truth_shifted_by_one_frame(tmp_path, shift, side):
    fake.sequence_list(tmp_path)
    assert check(tmp_path).fine
    film = fake.Film(0, frames=7)
    for t in range(max(0, -shift), 5):
        flow = film.flow(t + shift, t + 1 + shift)
        write_flow(tmp_path / f"train_{t:03d}.flo", flow, overwrite=True)
    [(where, reason)] = wrong(tmp_path)
    assert where == f"list of pairs train.txt in {tmp_path}"
    assert f"worse than it explains the {side} pair (truth shifted by one frame)" in reason


@pytest.mark.parametrize(("t", "fine"), [(0, False), (1, True), (2, False)])
def test_frames_around_a_single_pair_are_tried_too(tmp_path, t, fine):
    fake.middlebury(tmp_path, ["Venus", "Grove2"])
    for seed, scene in enumerate(("Venus", "Grove2")):
        film = fake.Film(seed)
        for number in range(4):
            path = tmp_path / scene / f"frame{9 + number:02d}.png"
            write_image(path, film.frame(number), overwrite=True)
        flow = film.flow(t, t + 1)
        write_flow(tmp_path / scene / "flow10.flo", flow, overwrite=True)
    report = check(tmp_path)
    assert report.fine == fine
    test = report.surveys[0].parts[0].truth_test
    assert [name for name, duel in test.items() if duel.blind] == [NEXT, PREVIOUS]
    if not fine:
        assert f"the {'previous' if t == 0 else 'next'} pair" in report.problems[0].reason


def test_truth_of_zeros(tmp_path):
    fake.chairs(tmp_path, 2, corrupt=np.zeros_like)
    [(_, reason)] = wrong(tmp_path)
    assert reason == "the truth is zero everywhere, though the frames differ"


def test_zero_truth_of_still_frames_is_fine(tmp_path):
    fake.chairs(tmp_path, 2, corrupt=np.zeros_like)
    for path in (tmp_path / "data").glob("*_img1.ppm"):
        shutil.copyfile(path, path.with_name(path.name.replace("img1", "img2")))
    assert check(tmp_path).fine


def test_a_truncated_png(tmp_path):
    fake.kitti(tmp_path, [0, 1])
    path = tmp_path / "training/image_2/000001_11.png"
    path.write_bytes(path.read_bytes()[:-400])
    [(where, reason)] = wrong(tmp_path)
    assert where == str(path)
    assert reason


def test_a_flow_png_of_eight_bits(tmp_path):
    fake.kitti(tmp_path, [0, 1])
    path = tmp_path / "training/flow_occ/000001_10.png"
    Image.fromarray(np.full((*fake.SIZE, 3), 128, np.uint8)).save(path)
    [(where, reason)] = wrong(tmp_path)
    assert where == str(path)
    assert "8" in reason
    assert "16" in reason


def test_a_missing_frame(tmp_path):
    fake.sintel(tmp_path, {"alley_1": 4}, maps=False)
    path = tmp_path / "training/clean/alley_1/frame_0003.png"
    path.unlink()
    [(where, reason)] = wrong(tmp_path)
    assert where == str(path)
    assert reason.startswith("missing, though other files of the pair 'clean/alley_1/frame_000")


def test_a_train_frame_repeated_in_validation(tmp_path):
    fake.chairs(tmp_path, 3, split="1\n1\n2\n")
    assert check(tmp_path).fine
    data = tmp_path / "data"
    # Under another name and in another format: its content is what tells.
    (data / "00003_img2.ppm").unlink()
    write_image(data / "00003_img2.png", read_image(data / "00001_img1.ppm"))
    found = dict(wrong(tmp_path))
    reason = found[str(data / "00003_img2.png")]
    assert f"the same content as the train frame {data / '00001_img1.ppm'}" in reason
    assert "FlyingChairs_train_val.txt" in reason


def test_frames_of_one_colour_are_not_copies(tmp_path):
    fake.chairs(tmp_path, 3, split="1\n1\n2\n")
    for number in (1, 3):
        path = tmp_path / f"data/0000{number}_img1.ppm"
        write_image(path, np.zeros((*fake.SIZE, 3), np.uint8), overwrite=True)
    assert not any("content" in problem.reason for problem in check(tmp_path).problems)


def test_sizes_that_disagree(tmp_path):
    fake.chairs(tmp_path, 2)
    path = tmp_path / "data/00002_flow.flo"
    write_flow(path, np.ones((96, 72, 2), np.float32), overwrite=True)
    [(where, reason)] = wrong(tmp_path)
    assert where == str(path)
    assert "is 72×96 pixels, but" in reason


def test_a_broken_split_file_is_named(tmp_path):
    fake.chairs(tmp_path, 2, split="1\n")
    [(where, reason)] = wrong(tmp_path)
    assert where == str(tmp_path)
    assert "FlyingChairs_train_val.txt: has 1 lines, but there is a pair numbered 2" in reason


def test_one_bad_pair_among_good_ones_is_suspicious(tmp_path):
    fake.chairs(tmp_path, 4)
    path = tmp_path / "data/00002_flow.flo"
    write_flow(path, CORRUPTIONS["v negated"](read_flow(path)[0]), overwrite=True)
    report = check(tmp_path)
    assert report.fine
    assert report.surveys[0].parts[0].suspicious == ["00002: v negated"]


def test_outliers_ranges_and_frames_without_truth(tmp_path):
    fake.sintel(tmp_path, {"alley_1": 4}, maps=False)
    flows = tmp_path / "training/flow/alley_1"
    flow, _ = read_flow(flows / "frame_0001.flo")
    flow[0, 0] = (500, -2)
    valid = np.ones(fake.SIZE, bool)
    valid[: fake.SIZE[0] // 2, 1:] = False
    write_flow(flows / "frame_0001.flo", flow, valid, overwrite=True)
    (flows / "frame_0003.flo").unlink()
    part = check(tmp_path).surveys[0].parts[0]
    assert part.high[0] == 500
    assert part.frames_without_truth == 1
    assert (part.truths, part.pairs) == (2, 2)
    assert part.sizes == {"96×72": 3}
    assert part.known < part.pixels
    assert len(part.outliers) == 1
    assert "frame_0001.flo: a motion of 500 pixels, longer than the diagonal" in part.outliers[0]


def test_no_more_pairs_are_tested_than_asked_and_always_the_same(tmp_path):
    fake.chairs(tmp_path, 5)
    first, second = (check(tmp_path, max_pairs=2, workers=w) for w in (1, 3))
    assert first.surveys[0].parts[0].pairs_tested == 2
    assert first.as_dict() == second.as_dict()


def test_the_report_is_json_and_progress_is_told(tmp_path):
    fake.kitti(tmp_path, [0], [1])
    told = []
    report = check(tmp_path, progress=lambda what, done, total: told.append((what, done, total)))
    data = json.loads(json.dumps(report.as_dict(), allow_nan=False))
    assert data["verdict"] == "fine"
    training, testing = data["datasets"][0]["parts"]
    assert training["truth_depths"] == {"16 bit": 1}
    assert training["truth_test"]["zero flow"]["result"] == "won"
    assert training["partial"] is True
    assert testing["frames_without_truth"] == 2
    assert testing["truth_test"] == {}
    decoding = [(done, total) for what, done, total in told if what.endswith("decoding")]
    assert decoding == [(i, 7) for i in range(1, 8)]


def test_a_part_says_in_a_few_lines_what_was_found():
    part = PartReport("train", 2, 3, frames=4, truths=2, known=5, pixels=10)
    part.sizes["64×48"], part.depths["8 bit"], part.truth_depths["float32"] = 4, 4, 2
    part.low, part.high, part.largest = (-1.0, 0.0), (2.0, 3.5), 4.0
    part.frames_without_truth, part.pairs_tested = 1, 2
    part.outliers = [f"{k}.flo: far" for k in range(22)]
    part.suspicious = ["2.flo: odd"]
    part.truth_test = {NEXT: Duel(200, 180.0), PREVIOUS: Duel(200, 20.0), "zero": Duel(3, 2.0)}
    assert part.lines() == [
        "train: 2 pairs (partial: a full copy has 3)",
        "  frames: 4, 64×48, 8 bit",
        "  frames without truth: 1",
        "  truth: 2 flows, float32, 50.0% valid",
        "  range: u -1.00 to 2.00, v 0.00 to 3.50, largest motion 4.00 pixels",
        *(f"  outlier: {k}.flo: far" for k in range(20)),
        "  outlier: … and 2 more (--json lists all)",
        "  truth wins (2 pairs tested) against: frames of the next pair 90.0%",
        "  truth loses against: frames of the previous pair 10.0%",
        "  skipped: zero (differs from the truth at 3 pixels only)",
        "  suspicious pair: 2.flo: odd",
    ]


def test_a_flow_is_counted_and_odd_ones_are_named():
    part = PartReport("train", 3)
    part.add_truth(TruthFacts(Path("a"), (30, 40), "float32", pixels=10))
    part.add_truth(fact := TruthFacts(Path("b"), (30, 40), "float32", pixels=10, known=4))
    part.add_truth(
        replace(fact, path=Path("c"), depth="16 bit", low=(-2, -3), high=(4, 5), largest=50.1)
    )
    part.add_truth(replace(fact, low=(1, 1), high=(2, 2), largest=50.0))
    assert part.outliers == [
        "a: no pixel has a known flow",
        "c: a motion of 50 pixels, longer than the diagonal",
    ]
    assert (part.truths, part.pixels, part.known) == (4, 40, 12)
    assert part.truth_depths == {"float32": 3, "16 bit": 1}
    assert (part.low, part.high, part.largest) == ((-2, -3), (4, 5), 50.1)


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ({}, "none"),
        ({"8 bit": 4}, "8 bit"),
        ({"a": 1, "b": 2000}, "b (2,000), a (1)"),
        ({"a": 4, "b": 3, "c": 2}, "a (4), b (3), c (2)"),
        ({"a": 4, "b": 3, "c": 2, "d": 1, "e": 1}, "a (4), b (3), c (2) and 2 other kinds"),
    ],
)
def test_what_there_is_most_of(counts, words):
    part = PartReport("train", 1)
    part.sizes.update(counts)
    assert part.lines()[1] == f"  frames: 0, {words}, none"


def test_a_part_in_plain_values():
    part = PartReport("train", 2, 3)
    plain = part.as_dict()
    for name in ("valid_share", "u_range", "v_range", "largest_motion"):
        assert plain[name] is None
    assert plain["partial"] is True
    assert [PartReport("train", n, e).completeness for n, e in ((2, None), (3, 3), (4, 3))] == [
        "no known total",
        "complete",
        "more than known: a full copy has 3",
    ]
    assert [PartReport("train", n, e).as_dict()["partial"] for n, e in ((2, None), (3, 3))] == [
        False,
        False,
    ]
    part.frames, part.pairs_tested, part.truths, part.known, part.pixels = 4, 2, 1, 5, 20
    part.low, part.high, part.largest = (-1.0, 0.0), (2.0, 3.5), 4.0
    part.truth_test = {NEXT: Duel(200, 180.0), PREVIOUS: Duel(200, 20.0), "zero": Duel(0, 0.0)}
    plain = part.as_dict()
    assert (plain["frames"], plain["pairs_tested"], plain["truths"]) == (4, 2, 1)
    assert (plain["valid_share"], plain["largest_motion"]) == (0.25, 4.0)
    assert (plain["u_range"], plain["v_range"]) == ([-1.0, 2.0], [0.0, 3.5])
    assert plain["truth_test"] == {
        NEXT: {"pixels": 200, "truth_wins": 0.9, "result": "won"},
        PREVIOUS: {"pixels": 200, "truth_wins": 0.1, "result": "lost"},
        "zero": {"pixels": 0, "truth_wins": None, "result": "skipped: leaves the flow as it is"},
    }


def test_the_counts_of_a_small_dataset(tmp_path):
    fake.kitti(tmp_path, [0], [1])
    report = check(tmp_path)
    training, _ = report.as_dict()["datasets"][0]["parts"]
    height, width = fake.SIZE
    assert training["frames"] == 2
    assert training["sizes"] == {f"{width}×{height}": 2}
    assert training["frame_depths"] == {"8 bit": 2}
    assert report.notes == []


def test_a_film_that_is_shorter_than_it_declares():
    film = Path("a.mp4")
    records = [Record(str(k), FrameRef(film, k), FrameRef(film, k + 1), None) for k in (1, 0)]
    for frames, wrong in ((3, []), (2, ["declares 3 frames, but 2 can be decoded"])):
        facts = {film: FrameFacts(film, (4, 4), "video", frames=frames)}
        found = _lengths_that_disagree(records, facts)
        assert [problem.reason for problem in found] == wrong
    facts = {film: FrameFacts(film, error="damaged")}
    assert _lengths_that_disagree(records, facts) == []


def test_a_part_without_pairs_is_noted(tmp_path):
    fake.kitti(tmp_path, [0])
    (tmp_path / "testing" / "image_2").mkdir(parents=True, exist_ok=True)
    notes = check(tmp_path).notes
    assert notes == [f"KITTI 2015 testing in {tmp_path}: no pairs"]


def test_the_whole_report_in_words():
    part = PartReport("train", 1)
    wrong = [Problem(f"{k}.png", "is cut") for k in range(22)]
    report = Report("r", [SurveyReport("KITTI", "r/k", [part])], wrong, ["no pairs"])
    assert report.text().split("\n") == [
        "KITTI in r/k",
        "  train: 1 pair (no known total)",
        "    frames: 0, none, none",
        "note: no pairs",
        *(f"wrong: {k}.png: is cut" for k in range(20)),
        "wrong: … and 2 more (--json lists all)",
        "verdict: wrong (22 found)",
    ]
    plain = report.as_dict()
    assert plain["problems"][1] == {"where": "1.png", "reason": "is cut"}
    assert (plain["root"], plain["verdict"], plain["notes"]) == ("r", "wrong", ["no pairs"])
    assert plain["datasets"] == [{"kind": "KITTI", "root": "r/k", "parts": [part.as_dict()]}]
    assert Report("r", [], []).text() == "verdict: fine"
    assert Report("r", [], []).as_dict()["verdict"] == "fine"
