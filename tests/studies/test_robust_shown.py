"""A study as it is shown: tables, curves, pictures and files, exactly, of numbers made up."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from lcv.data.random import Draws
from lcv.data.record import Sample
from lcv.errors import ArgumentError, FileError
from lcv.evaluate.protocols import PROTOCOLS
from lcv.models.types import FlowOutput
from lcv.studies.blocks import Heading
from lcv.studies.patch_file import Patch
from lcv.studies.robustness import pictures as pictures_module
from lcv.studies.robustness import stress as does
from lcv.studies.robustness.harm import harms
from lcv.studies.robustness.pairs import Source, read_pair
from lcv.studies.robustness.pasted import with_patches
from lcv.studies.robustness.pictures import stress_picture
from lcv.studies.robustness.plots import curves_figure, curves_of, panels
from lcv.studies.robustness.registry import STRESSES, Pairs, Stress, seed_of
from lcv.studies.robustness.results import NONE, Study, read_study
from lcv.studies.robustness.run import Network
from lcv.studies.robustness.tables import harm_tables, level_tables, versus_tables
from lcv.studies.robustness.versus import differences
from lcv.studies.robustness.write import markdown, write_outputs
from lcv.visual.plots import NO_PLOTS, Curves, Line
from testing.networks import Stub

SETTINGS = {"protocol": {"name": "raft"}, "seed": 3, "rule": "zero", "margin": 8.0}
ABOUT = {
    "networks": {"one": {"state_sha256": "a"}, "two": {"state_sha256": "b"}},
    "stresses": {
        "gamma": {"label": "light", "unit": "γ", "neutral": 1.0, "log": True, "patch": None},
        "patch:p": {
            "label": "patch p",
            "unit": "px",
            "neutral": None,
            "log": False,
            "patch": {"network": {"state_sha256": "b"}},
        },
        "random:p": {"label": "random p", "unit": "px", "neutral": None, "log": False, "patch": {}},
    },
}


def columns(error, pairs, far=False):
    """Pairs of 100 pixels with this mean error; a tenth of them outliers, beyond 1 px."""
    found = {"pixels/all": [100] * pairs, "error/all": [100.0 * error] * pairs}
    for name, value in (("px1", 40), ("px3", 80), ("px5", 90), ("outlier", 10), ("wauc", 50)):
        found[f"{name}/all"] = [value] * pairs
    if far:
        found |= {"pixels/far": [50] * pairs, "untouched/far": [25.0] * pairs}
        found["error/far"] = [50.0 * error] * pairs
    return found


def made(scenes="abcde"):
    study = Study(SETTINGS, {}, json.loads(json.dumps(ABOUT)), {"set": list(scenes)})
    n = len(scenes)
    study.add(("set", "one", NONE, 0.0), columns(1.0, n))
    study.add(("set", "two", NONE, 0.0), columns(1.5, n))
    study.add(("set", "one", "gamma", 0.5), columns(2.0, n))
    study.add(("set", "two", "gamma", 0.5), columns(3.0, n))
    study.add(("set", "one", "gamma", 0.2), columns(4.0, n))
    study.add(("set", "two", "patch:p", 50.0), columns(2.0, n, far=True))
    study.add(("set", "two", "random:p", 50.0), columns(1.0, n, far=True))
    study.about["differences"] = differences(study)
    study.about["harm"] = harms(study)
    return study


def test_the_markdown_is_exactly_this():
    assert (
        markdown(made())
        == """\
# Robustness

Protocol `raft`, seed 3. Truth under a patch by the rule `zero`: under the patch the truth is no motion, \
and counts. EPE in px and Fl in %, means over images with 95 % bootstrap intervals over scenes.

**set (5 pairs): frames as they are**

| level | one: EPE per image | one: Fl per image | two: EPE per image | two: Fl per image |
|---|---|---|---|---|
| – | 1.000 \\[1.000, 1.000\\] | 10.000 \\[10.000, 10.000\\] | 1.500 \\[1.500, 1.500\\] \
| 10.000 \\[10.000, 10.000\\] |

**set (5 pairs): light**

| γ | one: EPE per image | one: Fl per image | two: EPE per image | two: Fl per image |
|---|---|---|---|---|
| 0.2 | 4.000 \\[4.000, 4.000\\] | 10.000 \\[10.000, 10.000\\] |  |  |
| 0.5 | 2.000 \\[2.000, 2.000\\] | 10.000 \\[10.000, 10.000\\] | 3.000 \\[3.000, 3.000\\] \
| 10.000 \\[10.000, 10.000\\] |

**set (5 pairs): patch p**

| px | two: EPE per image | two: Fl per image |
|---|---|---|
| 50 | 2.000 \\[2.000, 2.000\\] | 10.000 \\[10.000, 10.000\\] |

**set (5 pairs): random p**

| px | two: EPE per image | two: Fl per image |
|---|---|---|
| 50 | 1.000 \\[1.000, 1.000\\] | 10.000 \\[10.000, 10.000\\] |

## set: networks against each other

EPE of the first network less that of the second, px: the mean over pairs with its 95 % interval over \
scenes; below zero the first is better. Added by the stress: the same less the difference on frames as \
they are; below zero the first suffers less. Then in how many pairs it is below and above zero, and the \
p of a sign test of these counts. The test is about most pairs; a few pairs can move the mean to the \
other side. Under a patch, pixels count by the rule above. 3 of 3 intervals leave out zero; were there \
no difference anywhere, about one in twenty would, and more where scenes are few.

**set: one less two, EPE px \\[95 %\\]; pairs below : above, p**

| stress | difference | added by the stress |
|---|---|---|
| frames as they are | −0.500 \\[−0.500, −0.500\\]; 5 : 0, p 0.062 | – |
| gamma 0.5 | −1.000 \\[−1.000, −1.000\\]; 5 : 0, p 0.062 | −0.500 \\[−0.500, −0.500\\]; 5 : 0, p 0.062 |

## Harm further than 8 px outside a patch

Increase of EPE there. Random: random pixels. Matched: a random patch with the grey levels and the \
spectrum of the learned one. Differences are pair by pair, with 95 % bootstrap intervals over scenes and \
the p of a sign test.

**set: increase of EPE further than 8 px outside a patch**

| patch, on network | box | diameter px | pairs | learned px | random px | matched px | learned − random px \
\\[95 %\\], p | learned − matched px \\[95 %\\], p |
|---|---|---|---|---|---|---|---|---|
| p, two | white | 50 | 5 | 1.5000 | 0.5000 | – | +1.0000 \\[1.0000, 1.0000\\], p 0.062 | – |
"""
    )


def test_few_scenes_are_said_and_levels_of_headings_are_as_asked():
    study = made("abcd")
    text = markdown(study)
    assert "| gamma 0.5 | −1.000 \\[too few scenes\\]; 4 : 0, p 0.12 |" in text
    assert "| +1.0000 \\[too few scenes\\], p 0.12 |" in text
    assert "| 0.2 | 4.000 | 10.000 |  |  |" in text
    (folded,) = (b for b in versus_tables(study, 3) if hasattr(b, "summary"))
    assert folded.summary == "set: one against two"
    heads = [
        b for b in (*versus_tables(study, 3), *harm_tables(study, 3)) if isinstance(b, Heading)
    ]
    assert [head.level for head in heads] == [3, 3]
    (folded,) = (b for b in versus_tables(made(), 2) if hasattr(b, "summary"))
    assert folded.summary == "set: one against two (2 of 2 differences leave out zero)"
    study.about["harm"] = []
    assert harm_tables(study, 2) == []
    assert len(level_tables(study)) == 4


def test_harm_needs_far_pixels_and_a_row_needs_known_ones():
    study = made()
    key = ("set", "two", "patch:p", 50.0)
    study.add(key, {**study.cells[key], "pixels/far": [0] * 5})
    assert harms(study) == []
    for network in ("one", "two"):
        cell = study.cells["set", network, "gamma", 0.5]
        study.add(("set", network, "gamma", 0.5), {**cell, "pixels/all": [0] * 5})
    rows = {row["stress"]: row for row in differences(study)}
    assert list(rows) == [NONE, "gamma"]
    names = ("", "_interval", "_below", "_above", "_sign_test_p")
    assert [
        rows["gamma"][f"{kind}{name}"] for kind in ("difference", "added") for name in names
    ] == ([None] * 10)


def test_curves_have_points_in_order_and_a_patch_shares_its_panel_with_its_controls():
    study = made()
    gamma = curves_of(study, "set", "fl_image")[0]
    assert gamma == {
        "stress": "gamma",
        "network": "one",
        "levels": [0.2, 0.5],
        "values": pytest.approx([10.0, 10.0]),
        "intervals": [pytest.approx((10.0, 10.0))] * 2,
    }
    one, two, patch, random = curves_of(study, "set")
    assert (one["network"], two["network"], patch["stress"], random["stress"]) == (
        *("one", "two", "patch:p", "random:p"),
    )
    light, pasted = panels(study, "set")
    plain = {"low": (), "high": (), "dash": ":", "marker": "", "width": 0.7}
    assert light == Curves(
        "light",
        "γ",
        "EPE per image (px)",
        [
            Line("one", [0.2, 0.5], [4.0, 2.0], (4.0, 2.0), (4.0, 2.0)),
            Line("two", [0.5], [3.0], (3.0,), (3.0,)),
            Line("frames as they are", [0.2, 0.5], [1.0, 1.0], group="one", **plain),
            Line("frames as they are", [0.2, 0.5], [1.5, 1.5], group="two", **plain),
        ],
        log_x=True,
    )
    dash = (0, (4, 2))
    assert pasted == Curves(
        "patch p",
        "px",
        "EPE per image (px)",
        [
            Line("two", [50.0], [2.0], (2.0,), (2.0,)),
            Line("random pixels", [50.0], [1.0], group="two", dash=dash, marker="x"),
            Line("frames as they are", [50.0, 50.0], [1.5, 1.5], group="two", **plain),
        ],
    )


def test_without_intervals_or_words_a_curve_is_drawn_all_the_same():
    study = made("abcd")
    del study.about["stresses"]["gamma"]
    del study.cells["set", "one", NONE, 0.0]
    pasted, light = panels(study, "set")
    assert (light.title, light.x_label, light.log_x) == ("gamma", "level", False)
    assert light.lines[0] == Line("one", [0.2, 0.5], [4.0, 2.0])
    assert [line.group for line in light.lines] == ["", "", "two"]
    assert pasted.title == "patch p"
    key = ("set", "one", "matched:q", 9.0)
    study.add(key, columns(1.0, 4))
    (alone,) = (panel for panel in panels(study, "set") if panel.title == "patch:q")
    assert alone.lines[0].label == "random patch of the same statistics"
    assert alone.lines[0].dash == (0, (1, 1.5))


@pytest.mark.parametrize(("count", "columns"), [(4, 2), (5, 4)])
def test_a_figure_has_two_columns_and_four_where_panels_are_many(monkeypatch, count, columns):
    given = []
    monkeypatch.setattr("lcv.studies.robustness.plots.panels", lambda *words: ["panel"] * count)
    monkeypatch.setattr("lcv.studies.robustness.plots.draw", lambda *words: given.append(words))
    curves_figure(made("a"), "set")
    assert given == [(["panel"] * count, columns, "set: 1 pair", pytest.approx(3.4 * columns))]


def test_a_cell_that_is_measured_again_is_described_anew_and_stored_whole(tmp_path):
    study = made()
    key = ("set", "one", "gamma", 0.5)
    assert study.described(key)["metrics"]["epe"] == 2.0
    assert study.described(key)["intervals"]["fl_image"] == pytest.approx((10.0, 10.0))  # in %
    study.add(key, columns(7.0, 5))
    assert study.described(key)["metrics"]["epe"] == 7.0
    assert list(study.metrics(key)) == [
        *("epe", "epe_image", "fl", "fl_image", "px1", "px3", "px5", "wauc"),
    ]
    path = tmp_path / "robustness.json"
    study.save(path)
    study.save(path)
    assert read_study(path).cells == study.cells
    assert "γ" in path.read_text(encoding="utf-8")
    said = json.loads(path.read_text(encoding="utf-8"))
    said["cells"][0]["pairs"]["error/all"].pop()
    path.write_text(json.dumps(said))
    with pytest.raises(FileError, match="is damaged or of another version: ValueError"):
        read_study(path)
    study.settings = {"margin": float("nan")}
    with pytest.raises(ValueError, match="JSON compliant"):
        study.save(path)


class Shifted(Stub):
    """Flow (gain, 0) everywhere."""

    def __init__(self, gain):
        super().__init__()
        self.gain = torch.nn.Parameter(torch.tensor(float(gain)))

    def forward(self, image1, image2, **options):
        flow = torch.tensor([1.0, 0.0]).view(1, 2, 1, 1) * self.gain
        return FlowOutput(flow.expand(len(image1), 2, *image1.shape[-2:]))


class Grey:
    """A record in memory, of frames of one grey and truth (2, 0)."""

    dataset, scene = "painted", ""

    def __init__(self, name="n"):
        self.name = name

    def read(self):
        frames = [np.full((16, 24, 3), level, np.float32) for level in (100.4, 50.0)]
        flow = np.zeros((16, 24, 2), np.float32)
        flow[..., 0] = 2
        return Sample(self, *frames, flow, np.ones((16, 24), bool))


BRIGHT = Stress(
    "bright",
    "l",
    "u",
    (1.0, 2.0),
    lambda pairs, level, seed: pairs.both(lambda x: x * level + seed),
    shown=2.0,
)


@pytest.mark.parametrize("count", [1, 2])
def test_a_picture_has_a_row_a_stress_and_a_column_a_network(monkeypatch, count):
    given = []
    monkeypatch.setattr(
        pictures_module, "side_by_side", lambda *words, columns: given.append((*words, columns))
    )
    networks = [Network(f"n{gain}", Shifted(gain)) for gain in (1, 4)][:count]
    source = Source("set", [Grey("a"), Grey("b")])
    stress_picture(networks, source, [BRIGHT], PROTOCOLS["raft"], index=1, seed=300)
    ((cells, words, columns),) = given
    more = ["second less first, up to 3.0 px"] * (count - 1)
    labels = [network.label for network in networks]
    assert columns == (2 if count == 1 else 4)
    assert words == [
        *("set b", "truth, up to 2.0 px", *[""] * (columns - 2)),
        *("as it is", *labels, *more, "bright 2", *labels, *more),
    ]
    assert len(cells) == 3 * columns
    assert all(cell.shape == (16, 24, 3) and cell.dtype == np.uint8 for cell in cells)
    assert (cells[0] == 100).all()  # rounded
    assert (cells[columns] == 100).all()
    assert (cells[2 * columns] == 255).all()  # stressed, and clipped
    for blank in cells[2:columns]:
        assert (blank == 255).all()
    for wrong in (-1, 2):
        with pytest.raises(ArgumentError, match=f"pair {wrong} of 2, wanted 0 to 1"):
            stress_picture(networks, source, [], PROTOCOLS["raft"], index=wrong)


def test_the_files_of_a_study_are_named_one_by_one(tmp_path, monkeypatch):
    drawn, saved, shown = [], [], []

    def figure(study, source, metric):
        drawn.append((source, metric))
        return SimpleNamespace(savefig=lambda file, **options: saved.append(options))

    def picture(networks, source, stresses, protocol, **options):
        shown.append(([s.name for s in stresses], options))
        return np.zeros((8, 8, 3), np.uint8)

    monkeypatch.setattr("lcv.studies.robustness.write.curves_figure", figure)
    monkeypatch.setattr("lcv.studies.robustness.write.stress_picture", picture)
    study = made()
    study.groups["a b/c"] = study.groups.pop("set")
    study.cells = {("a b/c", *key[1:]): value for key, value in study.cells.items()}
    study._described.clear()
    patches = with_patches([Patch("p", torch.zeros(3, 8, 8))])
    stresses = [patches[name] for name in ("gamma", "patch:p", "random:p", "matched:p")]
    assert patches["patch:p"].shown == 100
    source = Source("a b/c", [Grey(), Grey()])
    words = (study, [], [source], stresses, PROTOCOLS["raft"], tmp_path)
    for _ in range(2):  # older files are replaced
        said = write_outputs(*words)
    assert said == [
        f"{tmp_path}/robustness.json: 7 cells, pair by pair",
        f"{tmp_path}/curves.json: the points of all curves, with intervals",
        f"{tmp_path}/robustness.md: tables",
        f"{tmp_path}/curves-a-b-c-epe_image.png: curves",
        f"{tmp_path}/curves-a-b-c-fl_image.png: curves",
        f"{tmp_path}/picture-a-b-c-0.png: stressed frames, flows, differences",
    ]
    assert drawn[:2] == [("a b/c", "epe_image"), ("a b/c", "fl_image")]
    assert saved[0] == {"format": "png", "dpi": 130}
    assert shown[0] == (["gamma", "patch:p"], {"index": 0, "seed": 0, "device": "cpu"})
    text = (tmp_path / "curves.json").read_text(encoding="utf-8")
    curves = {m: curves_of(study, "a b/c", m) for m in ("epe_image", "fl_image")}
    assert text == json.dumps({"a b/c": curves}, indent=1, ensure_ascii=False)
    assert (tmp_path / "robustness.md").read_text(encoding="utf-8") == markdown(study)
    assert len(write_outputs(*words, pictures=5)) == 7  # there are two pairs
    assert len(write_outputs(*words, pictures=0)) == 5

    def missing(*words):
        raise ModuleNotFoundError("matplotlib")

    monkeypatch.setattr("lcv.studies.robustness.write.curves_figure", missing)
    assert write_outputs(*words, pictures=0)[3:] == [NO_PLOTS]


def test_a_package_that_is_missing_is_named_with_the_pair():
    record = Grey()
    record.read = lambda: (_ for _ in ()).throw(ModuleNotFoundError("no", name="h5py"))
    with pytest.raises(FileError, match="painted, pair n: reading it needs the package h5py"):
        read_pair(record, 0, torch.device("cpu"), PROTOCOLS["raft"])


def test_fog_and_noise_are_drawn_by_stress_level_pair_and_frame():
    """Stored studies are continued with these draws, so they may not change."""
    frames = torch.full((2, 2, 3, 16, 16), 127.5)
    frames[1] += 20
    pairs = Pairs(*frames, torch.zeros(2, 2, 16, 16), torch.ones(2, 1, 16, 16) > 0, (4, 9))
    foggy = STRESSES["fog"].function(pairs, 0.6, 7)
    first, second = does.fog(*frames, 0.6, Draws(seed_of(7, "fog", 0), (4, 9)))
    assert torch.equal(foggy.image1, first)
    assert torch.equal(foggy.image2, second)
    for name, level, variance in (("variance", 0.01, 0.01), ("deviation", 0.1, 0.1**2)):
        noisy = STRESSES[f"noise-{name}"].function(pairs, level, 7)
        seed = seed_of(7, f"noise-{name}", level)
        for frame, image in enumerate((noisy.image1, noisy.image2)):
            wanted = does.noise(frames[frame], variance, seed, indices=(4, 9), frame=frame)
            assert torch.equal(image, wanted)
    alone = does.noise(frames[0], 0.01, 7)
    assert torch.equal(alone, does.noise(frames[0], 0.01, 7, indices=(0, 1), frame=0))
