"""The parts of a report, block by block: what stands in every cell."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from lcv.data.formats.image import write_image
from lcv.errors import FileError
from lcv.evaluate.protocols import PROTOCOLS
from lcv.evaluate.results import DatasetResult, PairResult, Result
from lcv.studies import report_ablation, report_robust, report_training
from lcv.studies.blocks import Folded, Heading, Points, Row, TableBlock, Words
from lcv.studies.report import origins
from lcv.studies.report_page import page
from lcv.studies.report_robust import _picture, in_full, robustness
from lcv.studies.report_sources import Evaluation, Robustness, Training, _format_of, read_source
from lcv.studies.report_tables import everything, supervised, unsupervised, who
from lcv.studies.report_training import training
from lcv.studies.robustness.results import Study
from lcv.visual.plots import Curves, Line
from testing.ablating import invented


def measured(pairs=200, weights="w.pth", **model):
    metrics = {"epe": 1.5, "epe_image": 1.6, "fl": 10.0, "px1": 50.0}
    return DatasetResult(
        metrics,
        tuple(PairResult(str(i), str(i), {"pixels/all": 1}) for i in range(pairs)),
        {"iters": 24, "pad": "kitti"},
        {"name": "net", **model},
        {"file": weights, "sha256": "00", "published": None} if weights else None,
    )


def result(protocol="raft", **datasets):
    named = {name.replace("_", "-"): each for name, each in datasets.items()}
    return Result(named, PROTOCOLS[protocol], {}, "mine")


def test_table_1_has_a_row_for_each_network_and_says_what_differs():
    ours = result(
        sintel_clean=measured(1041), sintel_final=measured(2), kitti2015=measured(1, None)
    )
    title, table, _, differs = supervised([ours])
    assert title == Heading("Table 1: supervised")
    assert table.caption == "Sintel and KITTI 2015"
    assert table.rows[-2:] == (
        Row(("net, w.pth", "1.50", "–", "1.50, 2 pairs", "–", "–", "–", "–"), "here"),
        Row(("net", "–", "–", "–", "–", "1.60, 1 pair", "10.00, 1 pair", "–"), "here"),
    )
    assert {row.kind for row in table.rows[:-2]} == {"paper"}
    assert len(table.head) == 8
    assert differs == Points(
        (
            "net, w.pth, sintel-clean: protocol raft, 24 iterations, kitti padding, float32",
            "net, w.pth, sintel-final: 2 of 1041 pairs, protocol raft, 24 iterations, kitti padding, "
            "float32",
            "net, kitti2015: 1 of 200 pairs, protocol raft, 24 iterations, kitti padding, float32, "
            "AEPE within each image first",
        ),
        "What differs here (test columns need the benchmarks' servers)",
    )
    heading, folded = supervised([])
    assert heading == title
    assert folded.summary == "The paper's; none measured here"
    assert folded.blocks[0].rows == table.rows[:-2]


def test_table_2_is_of_networks_trained_without_labels_and_has_other_means():
    ours = result("ddflow", kitti2015=measured(200, supervised=False))
    assert len(supervised([ours])) == 2  # none of these in table 1
    _, table, differs = unsupervised([ours, result(kitti2015=measured())])
    assert table.rows[-1] == Row(("net, w.pth", "1.50", "–", "–", "–"), "here")
    assert table.rows[-2].kind == "paper"
    assert differs.lead == "What differs here"
    first, second = differs.points
    assert first.startswith("net, w.pth, kitti2015: protocol ddflow, ")
    assert first.endswith(", AEPE over all pixels")
    assert second == "net, w.pth: Fl-all on these training pairs 10.00 %"


def test_a_network_is_named_with_its_w_its_weights_and_a_warm_start():
    plain, lcv = measured(inner_product="euclidean"), measured(inner_product="elliptical")
    warm = replace(PROTOCOLS["raft"], warm_start=True)
    assert who(result(x=plain), plain) == "net, w.pth"
    assert who(result(x=lcv), lcv) == "net (elliptical), w.pth"
    assert who(replace(result(x=plain), protocol=warm), plain) == "net, w.pth, warm start"


def test_everything_measured_is_a_table_a_dataset():
    heading, words, table, folded = everything([result(x=measured(3))])
    assert heading == Heading("Everything measured")
    assert isinstance(words, Words)
    assert table == TableBlock(
        "x",
        ("network", "pairs", "protocol", "EPE, px", "EPE per image, px", "Fl-all, %", "< 1 px, %"),
        (
            Row(
                (
                    *("net, w.pth", "3", "raft, 24 iterations, kitti padding"),
                    *table.rows[0].cells[3:],
                )
            ),
        ),
    )
    assert [float(cell) for cell in table.rows[0].cells[3:]] == [1.5, 1.6, 10.0, 50.0]
    assert folded.summary == "What the names mean"
    assert [point.partition(":")[0] for point in folded.blocks[0].points] == [
        *("EPE", "EPE per image", "Fl-all", "< 1 px"),
    ]
    other = measured(1)
    del other.metrics["fl"]
    rows = everything([result(x=measured(3)), result(x=other)])[2].rows
    assert rows[1].cells[5] == "–"
    assert everything([]) == []


def test_training_runs_are_rows_and_curves_of_at_most_200_points(monkeypatch):
    given = []
    monkeypatch.setattr(
        report_training, "chart", lambda *words, **options: given.append((words, options)) or ["c"]
    )
    entries = [{"kind": "train", "step": s, "loss": 2.0 * s, "epe": 1.0 * s} for s in range(1, 402)]
    entries += [{"kind": "validation", "step": 9, "a/epe": 3.0, "a/zero": 4.0, "epe": 5.0}]
    config = {"model": {"name": "net", "inner_product": None}, "steps": 500, "optim": {"lr": 2e-4}}
    run = Training("run", config, tuple(entries))
    heading, table, drawn = training([run, Training("empty", {}, ())])
    assert heading == Heading("Training")
    assert drawn == "c"
    assert table.rows == (
        Row(("run", "net", "–", "401 of 500", "–", "0.0002", "–", "–", "401.000")),
        Row(("empty", "–", "–", "0 of –", "–", "–", "–", "–", "–")),
    )
    assert len(table.head) == 9
    (((panels, caption), options),) = given
    assert caption == "Training error; Loss; Validation error"
    assert options == {"columns": 2}
    steps = (*range(1, 402, 3), 401)  # every third of 401, and the last
    error, loss, validation = panels
    assert error == Curves("Training error", "steps", "EPE, px", [Line("run", steps, steps)])
    assert loss.lines[0].y == tuple(2 * step for step in steps)
    assert (loss.title, loss.y_label) == ("Loss", "loss")
    assert validation == Curves(
        "Validation error", "steps", "EPE, px", [Line("run, a", (9,), (3.0,))]
    )
    assert training([]) == []
    few = Training("few", {}, tuple(entries[:200]))
    training([few])
    assert len(given[-1][0][0][0].lines[0].x) == 200


def test_the_ablation_has_three_rows_a_test_and_everything_in_full(tmp_path, monkeypatch):
    given = []
    monkeypatch.setattr(report_ablation, "chart", lambda *words: given.append(words) or [])
    study = invented(tmp_path / "out", {"continued": [2.0], "lcv": [1.9], "lcv-factor": []})
    source = read_source(study.folder)
    title, table, _, differs, head, *full = report_ablation.ablation([source])
    assert title == Heading("Table 3: ablation")
    assert table.rows[2] == Row(
        (
            *("paper: Δ AEPE to continued, px", "−0.060", "–", "−0.011"),
            *("−0.068", "−0.075", "−0.041", "−0.072"),
        ),
        "paper",
    )
    none = ["–"] * 4
    assert [row.cells for row in table.rows[3:]] == [
        ("raft-small, procedural: Fl-all %", "–", "20.00", *none, "19.00"),
        ("raft-small, procedural: AEPE px", "–", "2.000", *none, "1.900"),
        ("raft-small, procedural: Δ AEPE, px", "–", "–", *none, "−0.100"),
    ]
    assert table.rows[3].kind == "here"
    (said,) = differs.points
    assert said.endswith("reported; means over 1 seed, AEPE averaged over pairs.")
    assert head == Heading("In full: out", 3)
    best, folded, notes = full
    assert best.caption == "procedural, best checkpoint (6 pairs)"
    assert (folded.summary, folded.blocks[0].caption) == (
        "Last checkpoint",
        "procedural, last checkpoint (6 pairs)",
    )
    assert len(notes.points) == 3
    ((panels, caption),) = given
    assert len(panels) == 3
    assert caption.startswith("out: Δ EPE to “continued”: procedural, best checkpoint (6 pairs); ")


def test_robustness_in_full_and_its_rows(tmp_path, monkeypatch):
    given = []
    monkeypatch.setattr(
        report_robust, "chart", lambda *words, **options: given.append((words, options)) or []
    )
    about = {"stresses": {n: {"label": n, "unit": "u"} for n in ("gamma", "patch:p")}}
    settings = {"protocol": {"name": "raft"}, "seed": 4, "rule": "ignore", "margin": 32.0}
    study = Study(settings, {}, about, {"set": ["a", "b"]})
    columns = {"pixels/all": [100] * 2, "error/all": [123.456] * 2}
    columns |= {f"{name}/all": [12.0] * 2 for name in ("outlier", "px1", "px3", "px5", "wauc")}
    for stress, levels in (("gamma", (0.2, 0.3)), ("patch:p", (50.0, 100.0))):
        for level in levels:
            study.add(("set", "net", stress, level), columns)
    source = Robustness("mine", study)
    blocks = robustness([source])
    gamma, _, noise, _, patch, _ = blocks[1:7]
    assert gamma.caption == "Illumination, γ"
    assert gamma.head == ("method", "0.2", "0.3", "0.4", "0.5", "0.7", "1", "2", "3")
    assert noise.head[0] == "method (levels as printed)"
    nothing = ["–"] * 6
    assert gamma.rows[4:] == (
        Row(("net, set: Fl-all %", "12.0", "12.0", *nothing), "here"),
        Row(("net, set: EPE px", "1.235", "1.235", *nothing), "here"),
    )
    assert gamma.rows[0].cells[:3] == ("paper, VCN: Fl-all %", "16.8", "9.9")
    assert gamma.rows[3].cells[:3] == ("paper, VCN+LCV: AEPE px", "3.232", "1.866")
    assert patch.rows[4].cells[0] == "net, set, patch:p: Fl-all %"
    assert blocks[7].points[1:] == (
        "mine: set (2 pairs); protocol raft, seed 4.",
        "mine: patch sizes are diameters; pixels under the patch are not counted.",
    )
    assert blocks[8] == Heading("In full: mine", 3)
    (((panels, caption), options),) = given
    assert (len(panels), caption, options) == (2, "set (2 pairs): gamma; patch:p", {"columns": 2})
    assert in_full(source) == [Heading("In full: mine", 3)]
    title, folded = robustness([])
    assert title == blocks[0] == Heading("Table 4: robustness")
    assert isinstance(folded, Folded)
    assert len(folded.blocks) == 6


@pytest.mark.parametrize(
    ("width", "shown"), [(1500, (1500, 10)), (1501, (1500, 10)), (3000, (1500, 5))]
)
def test_a_picture_is_a_jpeg_of_at_most_1500_pixels(tmp_path, width, shown):
    write_image(tmp_path / "picture-set-0.png", np.full((10, width, 3), 200, np.uint8))
    picture = _picture(tmp_path / "picture-set-0.png")
    assert picture.kind == "image/jpeg"
    assert picture.caption == "Stressed frames, flows and their difference (set-0)"
    assert Image.open(io.BytesIO(picture.content)).size == shown


def test_where_numbers_come_from(tmp_path):
    origin = {"commit": "0123456789abcdef", "modified": True, "torch": "2", "device": "d"}
    eval_ = Evaluation("e", (Result({"x": measured()}, PROTOCOLS["raft"], origin, ""),) * 2)
    run = Training("t", {"model": {"name": "net"}}, ())
    study = Study(
        {}, {}, {"networks": {"a": {}, "b": {}}, "provenance": {**origin, "modified": False}}
    )
    ablation = read_source(invented(tmp_path / "out", {"continued": [2.0], "lcv": []}).folder)
    heading, table = origins([eval_, run, Training("u", {}, ()), Robustness("r", study), ablation])
    assert heading == Heading("Where it comes from")
    assert table == TableBlock(
        "Sources",
        ("source", "made by", "what", "commit", "torch", "machine"),
        (
            Row(("e", "lcv eval", "result: x", "0123456789ab (changed)", "2", "d")),
            Row(("t", "lcv train", "net", "–", "–", "–")),
            Row(("u", "lcv train", "network", "–", "–", "–")),
            Row(("r", "lcv robust", "a, b", "0123456789ab", "2", "d")),
            Row(("out", "lcv ablate", "raft-small, 2 columns", "–", "–", "none")),
        ),
    )


def test_a_page_links_to_its_main_headings():
    text = page("T & t", "sub<", [Heading("One"), Heading("Deeper", 3), Heading("Two")])
    assert (
        '<nav><ul><li><a href="#one">One</a></li><li><a href="#two">Two</a></li></ul></nav>' in text
    )
    assert "<title>T &amp; t</title>" in text
    assert "<header><h1>T &amp; t</h1><p>sub&lt;</p>" in text
    assert text.endswith('<h2 id="two">Two</h2>\n</main>\n</body>\n</html>\n')


def test_sources_are_known_by_their_files(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "log.jsonl").write_text(json.dumps({"kind": "train", "step": 1}) + "\n")
    assert read_source(folder) == Training("run", {}, ({"kind": "train", "step": 1},))
    assert read_source(folder / "log.jsonl", "named").name == "named"
    (folder / "log.jsonl").write_text(json.dumps({"kind": "train"}) + "\n")
    with pytest.raises(FileError, match=r"log\.jsonl is not the log of a training run of ours"):
        read_source(folder)
    (folder / "log.jsonl").write_text("{\n{\n")
    with pytest.raises(FileError, match="run: its log cannot be read"):
        read_source(folder)
    (tmp_path / "study.json").write_text("{}")
    with pytest.raises(FileError, match=r"study\.json"):
        read_source(tmp_path / "study.json")
    (tmp_path / "robustness.json").write_text("{}")
    with pytest.raises(FileError, match=r"robustness\.json"):
        read_source(tmp_path / "robustness.json")


def test_the_format_of_a_file_that_cannot_be_read_is_no_other_kind(tmp_path):
    with pytest.raises(FileError, match="cannot be read: it is not an ordinary file"):
        _format_of(tmp_path)
    (tmp_path / "a.json").write_text("no JSON")
    assert _format_of(tmp_path / "a.json") is None
    (tmp_path / "a.json").write_text('{"format": "a kind"}')
    assert _format_of(tmp_path / "a.json") == "a kind"
