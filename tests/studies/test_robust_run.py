"""The study: numbers that can be made by hand, the same frames for all, and continuing a run."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from lcv.data.formats.image import read_image
from lcv.data.record import Sample
from lcv.errors import ArgumentError, FileError
from lcv.evaluate.compare import sign_test
from lcv.evaluate.protocols import PROTOCOLS
from lcv.models.types import FlowOutput
from lcv.studies.patch_file import Patch
from lcv.studies.robustness.harm import harm_of, harms
from lcv.studies.robustness.pairs import Source, open_source
from lcv.studies.robustness.pasted import with_patches
from lcv.studies.robustness.plots import curves_figure, curves_of
from lcv.studies.robustness.registry import choose
from lcv.studies.robustness.results import LEAST_SCENES, NONE, Study, interval, read_study
from lcv.studies.robustness.run import FILE, Network, run_study
from lcv.studies.robustness.versus import (
    about_differences,
    difference_words,
    differences,
    leave_out_zero,
)
from lcv.studies.robustness.write import markdown, write_outputs
from testing import datasets as fake
from testing.networks import Stub
from testing.painted import texture

H, W = 72, 96
RAFT = PROTOCOLS["raft"]
PATCH = Patch("p", texture(20, 20)[0].clamp(0, 255).round(), {"network": {"state_sha256": "x"}})


class Bright(Stub):
    """Flow (gain·mean brightness, 0): every stress of the brightness shows in its error at once."""

    def __init__(self, gain=0.01):
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(gain))
        self.seen = []

    def forward(self, image1, image2, **options):
        self.seen.append((image1, image2))
        mean = image1.mean((1, 2, 3)) * self.gain
        flow = torch.zeros(len(image1), 2, *image1.shape[-2:])
        flow[:, 0] = mean[:, None, None]
        return FlowOutput(flow)


class Painted:
    """A record in memory; its truth is (1, 0), and its left 8 columns are unknown."""

    dataset = "painted"
    scene = ""

    def __init__(self, index, size=(H, W)):
        self.name = f"{index}"
        self.index, self.size = index, size

    def read(self):
        images = [
            texture(*self.size, 2 * self.index + k)[0].clamp(0, 255).permute(1, 2, 0).numpy()
            for k in (0, 1)
        ]
        flow = np.zeros((*self.size, 2), np.float32)
        flow[..., 0] = 1
        valid = np.ones(self.size, bool)
        valid[:, :8] = False
        return Sample(self, *images, flow, valid)


def source(count=6, label="painted"):
    return Source(label, [Painted(index) for index in range(count)])


def study_of(
    folder, *, networks=None, names=("gamma",), levels=None, count=6, protocol=RAFT, **options
):
    chosen = choose(with_patches([PATCH], margin=options.get("margin", 8.0)), names, levels)
    networks = networks or [Network("bright", Bright())]
    options.setdefault("margin", 8.0)
    return run_study(networks, [source(count)], chosen, protocol, folder, **options)


def test_the_error_is_the_one_made_by_hand(tmp_path):
    study = study_of(tmp_path, levels={"gamma": [0.5, 1.0]})
    per_pair = []
    for index in range(6):
        image = texture(H, W, 2 * index)[0].clamp(0, 255)
        dark = 255 * (image / 255) ** 2
        per_pair.append(abs(0.01 * dark.mean().item() - 1))
    found = study.means(("painted", "bright", "gamma", 0.5), "error")
    assert found == pytest.approx(per_pair, rel=1e-5)
    key = ("painted", "bright", "gamma", 0.5)
    assert study.metrics(key)["epe_image"] == pytest.approx(sum(per_pair) / 6, rel=1e-5)
    assert study.cells[key]["pixels/all"] == [H * (W - 8)] * 6
    low, high = study.interval(key, "epe_image")
    assert low < study.metrics(key)["epe_image"] < high


def test_the_neutral_level_is_the_cell_without_stress(tmp_path):
    model = Bright()
    study = study_of(
        tmp_path, networks=[Network("bright", model)], levels={"gamma": [1.0]}, count=2
    )
    assert len(model.seen) == 2
    assert (
        study.cells["painted", "bright", "gamma", 1.0]
        == study.cells["painted", "bright", NONE, 0.0]
    )


@pytest.mark.parametrize("name", ["noise-variance", "fog", "patch", "random", "matched"])
def test_networks_see_the_same_frames_at_any_batch(tmp_path, name):
    level = 30.0 if name in ("patch", "random", "matched") else 0.1
    seen = []
    for batch in (1, 4):
        models = [Bright(0.01), Bright(0.02)]
        (tmp_path / f"{batch}").mkdir()
        study_of(
            tmp_path / f"{batch}",
            networks=[Network(f"n{k}", m) for k, m in enumerate(models)],
            names=[name],
            levels={name: [level]},
            batch=batch,
            count=5,
        )
        for model in models:
            # Frames as they are come first, then the stressed ones; a patched batch is followed by
            # the same one without its patch.
            patched = level == 30.0
            batches = len(model.seen) // (3 if patched else 2)
            stressed = model.seen[batches:][:: 2 if patched else 1]
            assert sum(len(second) for _, second in stressed) == 5
            seen.append(torch.cat([second for _, second in stressed]))
    for other in seen[1:]:
        # Fog and patches are sums in another order of vector lanes.
        assert torch.allclose(other, seen[0], atol=64 * 255 * 2**-23)
    assert not torch.equal(seen[0][0], seen[0][1])


def test_harm_is_the_increase_of_far_error_pair_by_pair(tmp_path):
    kinds = ["patch", "random", "matched"]
    study = study_of(tmp_path, names=kinds, levels={kind: [30] for kind in kinds})
    key = ("painted", "bright", "patch:p", 30.0)
    columns = study.cells[key]
    untouched = study.means(("painted", "bright", NONE, 0.0), "error")
    for k, value in enumerate(harm_of(study, key)):
        n = columns["pixels/far"][k]
        # The flow of this network is one number a pair, so its error is the same far and near.
        assert columns["untouched/far"][k] / n == pytest.approx(untouched[k], rel=1e-5)
        assert value == pytest.approx(columns["error/far"][k] / n - untouched[k], abs=1e-5)
        assert 0 < n < columns["pixels/all"][k]
    [row] = study.about["harm"]
    assert row["box"] == "black"
    assert row["pairs"] == 6
    assert row["harm"] == pytest.approx(sum(harm_of(study, key)) / 6)
    for kind in kinds[1:]:
        control = harm_of(study, ("painted", "bright", f"{kind}:p", 30.0))
        assert row[f"{kind}_harm"] == pytest.approx(sum(control) / 6)
        beyond = row[f"harm_beyond_{kind}"]
        assert beyond == pytest.approx(row["harm"] - row[f"{kind}_harm"])
        low, high = row[f"harm_beyond_{kind}_interval"]
        assert low <= beyond <= high
    assert row["random_harm"] != row["matched_harm"]


def test_the_second_control_may_be_left_out_and_the_first_may_not(tmp_path):
    levels = {"patch": [30], "random": [30], "matched": [30]}
    chosen = choose(with_patches([PATCH]), ["patch", "matched"], levels)
    study = run_study([Network("bright", Bright())], [source(5)], chosen, RAFT, tmp_path)
    assert study.about["harm"] == []
    chosen = choose(with_patches([PATCH]), ["random"], levels)
    study = run_study([Network("bright", Bright())], [source(5)], chosen, RAFT, tmp_path)
    [row] = study.about["harm"]  # what was measured before is there still
    assert row["matched_harm"] is not None
    (tmp_path / "other").mkdir()
    chosen = choose(with_patches([PATCH]), ["patch", "random"], levels)
    study = run_study([Network("bright", Bright())], [source(5)], chosen, RAFT, tmp_path / "other")
    [row] = study.about["harm"]
    assert row["harm_beyond_matched"] is None
    assert row["harm_beyond_random"] is not None
    assert "| – |" in markdown(study)


def test_a_patch_is_white_box_for_the_network_of_its_card(tmp_path):
    network = Network("bright", Bright())
    mine = Patch("p", PATCH.pixels, {"network": {"state_sha256": network.sha256}})
    other = Network("other", Bright(0.02))
    chosen = choose(with_patches([mine]), ["patch", "random"], {"patch": [30], "random": [30]})
    study = run_study([network, other], [source(2)], chosen, RAFT, tmp_path)
    assert [(row["network"], row["box"]) for row in harms(study)] == [
        ("bright", "white"),
        ("other", "black"),
    ]


def test_networks_are_held_against_each_other_pair_by_pair(tmp_path):
    """Flow is gain·mean brightness, so errors are |gain·mean − 1|, by hand from the frames seen."""
    networks = [Network("one", Bright(0.01)), Network("two", Bright(0.02))]
    study = study_of(
        tmp_path,
        networks=networks,
        names=("gamma", "patch", "random"),
        levels={"gamma": [0.5, 1], "patch": [30]},
    )
    # Levels in the order measured: as they are, γ 0.5; γ 1 is the first again and is not run.
    means = [frames.mean((1, 2, 3)).double() for frames, _ in networks[0].model.seen[:12]]
    plain, dark = torch.cat(means[:6]), torch.cat(means[6:])
    apart = {
        name: (0.01 * m - 1).abs() - (0.02 * m - 1).abs()
        for name, m in (("none", plain), ("gamma", dark))
    }
    rows = {(r["stress"], r["level"]): r for r in study.about["differences"]}
    assert list(rows) == [("none", 0.0), ("gamma", 0.5), ("patch:p", 30.0)]
    row = rows["gamma", 0.5]
    assert (row["source"], row["first"], row["second"]) == ("painted", "one", "two")
    assert row["difference"] == pytest.approx(float(apart["gamma"].mean()), abs=1e-5)
    added = apart["gamma"] - apart["none"]
    assert row["added"] == pytest.approx(float(added.mean()), abs=1e-5)
    low, high = row["added_interval"]
    assert float(added.min()) - 1e-5 <= low < row["added"] < high <= float(added.max()) + 1e-5
    above = int((apart["gamma"] > 0).sum())
    assert row["difference_sign_test_p"] == sign_test([1] * above + [-1] * (6 - above))
    assert (row["difference_below"], row["difference_above"]) == (6 - above, above)
    assert rows["none", 0.0]["added"] is None
    assert read_study(tmp_path / FILE).about["differences"] == json.loads(
        json.dumps(study.about["differences"])
    )


def test_a_network_that_was_not_measured_at_a_level_has_no_row_there(tmp_path):
    one, two = Network("one", Bright(0.01)), Network("two", Bright(0.02))
    study_of(tmp_path, networks=[one], levels={"gamma": [0.5]}, count=3)
    study = study_of(tmp_path, networks=[one, two], levels={"gamma": [0.7]}, count=3)
    rows = study.about["differences"]
    assert [(r["stress"], r["level"]) for r in rows] == [("none", 0.0), ("gamma", 0.7)]
    assert all(r["difference_interval"] is None for r in rows)  # three scenes are too few
    assert leave_out_zero(rows, "difference") == (0, 0)
    assert "leave out zero" not in about_differences(rows)
    assert difference_words({}, "added") == "–"


def test_a_few_pairs_can_draw_the_mean_to_the_other_side_of_most_of_them():
    """And pairs of one scene are drawn together: five scenes of two pairs, one of them extreme."""
    errors = {"one": [1.1] * 8 + [1.0, 1.0], "two": [1.0] * 8 + [6.0, 6.0]}
    scenes = [str(i // 2) for i in range(10)]
    about = {"stresses": {}, "networks": {}}
    study = Study({}, {}, about, {"set": scenes})
    for name, values in errors.items():
        study.add(("set", name, NONE, 0.0), {"error/all": values, "pixels/all": [1] * 10})
    (row,) = differences(study)
    assert row["difference"] == pytest.approx(-0.92)
    assert (row["difference_below"], row["difference_above"]) == (2, 8)
    apart = [a - b for a, b in zip(errors["one"], errors["two"], strict=True)]
    assert row["difference_interval"] == interval(apart, scenes)
    assert row["difference_interval"] != interval(apart, list(map(str, range(10))))
    assert "−0.920" in difference_words(row, "difference")
    assert "; 2 : 8, p 0.11" in difference_words(row, "difference")


def test_intervals_without_zero_are_counted_beside_what_chance_gives():
    spans = [(-1.0, 1.0), (0.5, 1.0), (-2.0, -1.0), (0.0, 1.0), None]
    rows = [{"difference_interval": span, "added_interval": None} for span in spans]
    assert leave_out_zero(rows, "difference") == (2, 4)
    assert "2 of 4 intervals leave out zero" in about_differences(rows)


def test_a_stopped_run_goes_on_and_measures_nothing_twice(tmp_path):
    class Stops(Bright):
        def forward(self, image1, image2, **options):
            if len(self.seen) == 7:
                raise KeyboardInterrupt
            return super().forward(image1, image2, **options)

    levels = {"gamma": [0.3, 0.5, 2.0]}
    with pytest.raises(KeyboardInterrupt):
        study_of(tmp_path, networks=[Network("bright", Stops())], levels=levels, count=3)
    kept = read_study(tmp_path / FILE).cells
    assert [key[3] for key in kept] == [0.0, 0.3]
    model = Bright()
    study = study_of(tmp_path, networks=[Network("bright", model)], levels=levels, count=3)
    assert len(model.seen) == 6
    for key, columns in kept.items():
        assert study.cells[key] == columns
    (tmp_path / "anew").mkdir()
    whole = study_of(tmp_path / "anew", levels=levels, count=3)
    assert whole.cells == study.cells


def test_networks_stresses_and_levels_can_be_added(tmp_path):
    study_of(tmp_path, levels={"gamma": [0.5]}, count=2)
    model = Bright()
    two = [Network("bright", model), Network("two", Bright(0.02))]
    study = study_of(
        tmp_path,
        networks=two,
        names=["gamma", "blur"],
        levels={"gamma": [0.5, 2], "blur": [1]},
        count=2,
    )
    assert len(model.seen) == 4  # gamma 2 and blur 1, of two pairs
    assert len(study.cells) == 2 * (1 + 2 + 1)
    back = read_study(tmp_path / FILE)
    assert back.cells == study.cells
    assert set(back.about["networks"]) == {"bright", "two"}
    assert set(back.about["stresses"]) == {"gamma", "blur"}


def test_a_changed_setting_is_refused_and_overwrite_begins_anew(tmp_path):
    study_of(tmp_path, levels={"gamma": [0.5]}, count=2)
    before = (tmp_path / FILE).read_bytes()
    with pytest.raises(
        ArgumentError, match=r"then and now differ in seed \(0 and 1\)\. .*--overwrite"
    ):
        study_of(tmp_path, levels={"gamma": [0.5]}, count=2, seed=1)
    with pytest.raises(ArgumentError, match="network bright is not the one it was"):
        study_of(tmp_path, networks=[Network("bright", Bright(0.5))], count=2)
    with pytest.raises(ArgumentError, match="source painted has 3 pairs, and had 2"):
        study_of(tmp_path, levels={"gamma": [0.5]}, count=3)
    with pytest.raises(ArgumentError) as caught:
        study_of(tmp_path, levels={"gamma": [0.5]}, count=2, protocol=RAFT.changed(7))
    assert "differ in protocol.settings.chairs.iters (24 and 7). Give" in str(caught.value)
    assert (tmp_path / FILE).read_bytes() == before
    study = study_of(tmp_path, levels={"gamma": [2.0]}, count=3, seed=1, overwrite=True)
    assert {key[3] for key in study.cells} == {0.0, 2.0}


def test_progress_is_told_level_by_level_and_the_file_is_saved_on_the_way(tmp_path, monkeypatch):
    """Every ten seconds: here each look at the clock takes six."""
    clock, told, saves = iter(range(0, 1000, 6)), [], []
    monkeypatch.setattr("lcv.studies.robustness.run.time.monotonic", lambda: next(clock))
    save = Study.save

    def noted(study, path):
        saves.append(len(study.cells))
        save(study, path)

    monkeypatch.setattr(Study, "save", noted)
    levels = {"gamma": [0.3, 0.5, 2.0]}
    study_of(tmp_path, levels=levels, count=1, progress=lambda *words: told.append(words))
    assert told == [
        ("painted, none 0", 0, 4),
        ("painted, gamma 0.3", 1, 4),
        ("painted, gamma 0.5", 2, 4),
        ("painted, gamma 2", 3, 4),
        ("done", 4, 4),
    ]
    assert saves == [2, 4, 4]  # on the way, on the way, at the end


def test_every_level_is_tried_on_a_grey_pair_and_networks_go_to_the_device(tmp_path):
    tried, went = [], []

    def look(pairs, level, seed):
        tried.append((pairs, level, seed))
        return pairs

    class Goes(Bright):
        def to(self, *where, **options):
            went.append(where)
            return super().to(*where, **options)

    stress = replace(choose(with_patches([]), ["blur"])[0], function=look, levels=(1.0, 2.0))
    run_study([Network("n", Goes())], [source(1)], [stress], RAFT, tmp_path, seed=5)
    (pair, *_), (again, *_) = tried[:2]
    assert pair is again
    assert [each[1:] for each in tried[:2]] == [(1.0, 5), (2.0, 5)]
    assert torch.equal(pair.image1, torch.full((1, 3, 128, 128), 100.0))
    assert torch.equal(pair.image2, pair.image1)
    assert torch.equal(pair.flow, torch.zeros(1, 2, 128, 128))
    assert torch.equal(pair.valid, torch.ones(1, 1, 128, 128, dtype=torch.bool))
    assert pair.indices == (0,)
    assert (torch.device("cpu"),) in went


def test_sums_have_six_decimals(tmp_path):
    cells = study_of(tmp_path, levels={"gamma": [0.5]}, count=2).cells
    sums = cells["painted", "bright", "gamma", 0.5]["error/all"]
    assert sums == [round(value, 6) for value in sums]
    assert sums != [round(value, 5) for value in sums]


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"format": "lcv evaluation 1"}', '{"format": "lcv robustness 1"}']
)
def test_a_file_that_is_not_ours_is_refused_and_left(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    with pytest.raises(FileError, match=FILE):
        study_of(tmp_path)
    assert (tmp_path / FILE).read_text() == text


def test_flow_that_is_no_number_is_named(tmp_path):
    with pytest.raises(ArgumentError, match="bright: its flow is not a number on painted, pair 0"):
        study_of(tmp_path, networks=[Network("bright", Bright(float("nan")))])


def test_a_level_that_cannot_be_is_refused_before_anything_is_measured(tmp_path):
    model = Bright()
    with pytest.raises(ArgumentError, match="gamma: g is -1.0"):
        study_of(tmp_path, networks=[Network("bright", model)], levels={"gamma": [-1, 1]})
    assert model.seen == []
    assert not (tmp_path / FILE).exists()


def test_labels_must_differ_and_there_must_be_some(tmp_path):
    with pytest.raises(ArgumentError, match="two networks are called 'a'"):
        study_of(tmp_path, networks=[Network("a", Bright()), Network("a", Bright())])
    with pytest.raises(ArgumentError, match="there are no sources"):
        run_study([Network("a", Bright())], [], [], RAFT, tmp_path)
    with pytest.raises(ArgumentError, match="no pair with truth"):
        Source("empty", [])
    for changes in ({"warm_start": True}, {"precision": "float64"}):
        with pytest.raises(ArgumentError, match="wanted a protocol without warm start and float64"):
            study_of(tmp_path, protocol=replace(RAFT, **changes))


def test_few_scenes_have_no_interval():
    values = [float(k) for k in range(LEAST_SCENES)]
    assert interval(values, ["a"] * LEAST_SCENES) is None
    assert interval(values[:-1], list("abcd")) is None
    low, high = interval(values, list("abcde"))
    assert 0 <= low < 2 < high <= 4
    assert interval([*values[:-1], None], list("abcde")) is None


def test_everything_is_written_and_json_is_strict(tmp_path):
    networks = [Network("bright", Bright()), Network("two", Bright(0.02))]
    sources = [source()]
    chosen = choose(
        with_patches([PATCH]),
        ["gamma", "patch", "random"],
        {"gamma": [0.5, 1], "patch": [30], "random": [30]},
    )
    study = run_study(networks, sources, chosen, RAFT, tmp_path)
    lines = write_outputs(study, networks, sources, chosen, RAFT, tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        FILE,
        "curves.json",
        "robustness.md",
        "curves-painted-epe_image.png",
        "curves-painted-fl_image.png",
        "picture-painted-0.png",
    }
    assert len(lines) == 6
    picture = read_image(tmp_path / "picture-painted-0.png")
    assert np.array_equal(picture[:H, :W], np.rint(sources[0].records[0].read().image1))

    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    said = json.loads((tmp_path / FILE).read_text(), parse_constant=refuse)
    assert said["settings"]["rule"] == "zero"
    assert said["settings"]["protocol"]["name"] == "raft"
    assert said["provenance"]["torch"]
    assert str(tmp_path) not in (tmp_path / FILE).read_text()
    curves = json.loads((tmp_path / "curves.json").read_text())
    gamma = next(c for c in curves["painted"]["epe_image"] if c["stress"] == "gamma")
    assert gamma["levels"] == [0.5, 1.0]
    text = markdown(study)
    assert "two: EPE per image" in text
    assert "## painted: networks against each other" in text
    assert "**painted: bright less two, EPE px" in text
    assert "| stress | difference | added by the stress |" in text
    (dark,) = (r for r in study.about["differences"] if r["stress"] == "gamma")
    words = " | ".join(difference_words(dark, name) for name in ("difference", "added"))
    assert f"| gamma 0.5 | {words} |" in text.replace("\\", "")
    assert "| p, bright | black | 30 | 6 |" in text
    assert "\n## Harm further than 32 px outside a patch\n" in text  # benchmarks/robustness.sh


def test_curves_and_their_figure_hold_every_network_and_share_patch_panels(tmp_path):
    networks = [Network("bright", Bright()), Network("two", Bright(0.02))]
    study = study_of(
        tmp_path,
        networks=networks,
        names=["gamma", "patch", "random"],
        levels={"gamma": [0.5], "patch": [30], "random": [30]},
    )
    curves = curves_of(study, "painted")
    assert [(c["stress"], c["network"]) for c in curves] == [
        (s, n) for s in ("gamma", "patch:p", "random:p") for n in ("bright", "two")
    ]
    figure = curves_figure(study, "painted")
    visible = [axis for axis in figure.axes if axis.get_visible()]
    assert len(visible) == 2
    # Controls measured at one size alone would be lines of no length.
    crosses = [line for line in visible[1].lines if line.get_marker() == "x"]
    assert len(crosses) == len(networks)


def test_level_0_has_a_place_on_a_logarithmic_axis(tmp_path):
    levels = {"noise-variance": [0, 0.001, 0.01]}
    study = study_of(tmp_path, names=["noise-variance"], levels=levels)
    (axis,) = (axis for axis in curves_figure(study, "painted").axes if axis.get_visible())
    places = axis.transData.transform([(level, 0) for level in levels["noise-variance"]])[:, 0]
    assert axis.get_xscale() == "symlog"
    assert 0.2 < (places[1] - places[0]) / (places[2] - places[1]) < 1


def test_labels_of_a_figure_are_neither_cut_nor_printed_over_each_other(tmp_path):
    names = [f"a network with a rather long name, weights-{k}.safetensors" for k in (1, 2)]
    study = study_of(
        tmp_path,
        networks=[Network(name, Bright(0.02 * k)) for k, name in enumerate(names)],
        names=["gamma"],
        levels={"gamma": [0.2, 0.9, 0.95, 1.05, 1.1, 3]},
    )
    figure = curves_figure(study, "painted")
    figure.savefig(tmp_path / "figure.png")
    (axis,) = (axis for axis in figure.axes if axis.get_visible())
    spans = [t.get_window_extent() for t in axis.get_xticklabels() if t.get_text()]
    assert len(spans) >= 3
    assert all(a.x1 <= b.x0 for a, b in pairwise(spans))
    legend = figure.legends[0].get_window_extent()
    assert 0 <= legend.x0 < legend.x1 <= figure.bbox.width


def test_sources_by_name_of_several_places_and_their_fingerprint(tmp_path):
    fake.chairs(tmp_path / "a", 2)
    fake.middlebury(tmp_path / "b", ["Venus"])
    both = open_source(f"real={tmp_path / 'a'}:{tmp_path / 'b'}")
    assert both.label == "real"
    assert len(both) == 3
    assert open_source(str(tmp_path / "a")).label == "a"
    assert (
        open_source(str(tmp_path / "a"), limit=1).fingerprint
        != open_source(str(tmp_path / "a")).fingerprint
    )
    before = both.fingerprint
    truth = next(record for record in both.records if record.dataset == "middlebury").flow
    content = bytearray(truth.read_bytes())
    content[-1] ^= 1  # another truth under the same name, of the same size
    truth.write_bytes(content)
    assert both.fingerprint != before
    with pytest.raises(FileError, match="no such file or folder"):
        open_source(str(tmp_path / "c"))
    device = torch.device("cpu")
    sizes = [len(pairs.indices) for pairs in both.batches(4, device, RAFT)]
    again = [pairs.indices for pairs in both.batches(4, device, RAFT)]
    assert sizes == [2, 1]
    assert again == [(0, 1), (2,)]
