"""An ablation as it is shown: the whole table, the panels of its plot, the text of a terminal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lcv.errors import ArgumentError
from lcv.evaluate.compare import bootstrap_interval
from lcv.studies.ablation_cell import note_failure
from lcv.studies.ablation_show import (
    between,
    heading,
    markdown,
    notes_of,
    panels,
    print_tables,
    spread_words,
    table_blocks,
    title_of,
    write,
)
from lcv.studies.ablation_summary import summarise
from lcv.train.config import PartConfig
from lcv.visual.plots import NO_PLOTS, Bar, Bars, Curves, Line
from testing.ablating import invented

VALUES = {
    "original": [3.0],
    "continued": [2.0, 2.2],
    "rotation": [2.0, 2.21],
    "lcv": [1.9],
    "free": [],
}


def over_pairs(difference):
    """By the bootstrap: a pair's difference is the mean times 0.5 … 1.5, see `invented`."""
    return between(bootstrap_interval(difference * np.linspace(0.5, 1.5, 6)))


TABLE = f"""\
| column | seeds | EPE, px | Fl-all, % | Δ EPE to continued, px | 95 % over seeds | 95 % over pairs |
|---|---|---|---|---|---|---|
| original | all | 3.000 | 30.00 | +1.0000 | – | {over_pairs(1.0)} |
| continued | 2 | 2.100 ± 1.271 | 21.00 | – | – | – |
| free W | 0, 1 failed | – | – | – | – | – |
| P only (null control) | 2 | 2.105 ± 1.334 | 21.05 | +0.0050 | −0.0585 … +0.0685 | {over_pairs(0.005)} |
| full LCV | 1 | 1.900 | 19.00 | −0.1000 | – | {over_pairs(-0.1)} |

The standard deviation of “continued” over seeds is 0.1414 px. “P only” computes the same function: \
its difference, +0.0050 px (by seed: 0.0000, +0.0100), is what rounding errors grow to."""


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:  # to measure it would take a second
        patch.setattr("lcv.studies.ablation_study.null_controls", lambda *_: ("rotation",))
        study = invented(tmp_path_factory.mktemp("show") / "out", VALUES)
    failed = study.folder_of(study.cell("free", 1))
    failed.mkdir()
    note_failure(failed, ArgumentError("diverged"))
    # Without weights "original" has a cell a seed; only the first is there.
    return study


def test_the_whole_table(study):
    text = markdown(study)
    best = text.partition("**procedural, best checkpoint (6 pairs)**\n\n")[2]
    last = text.partition("**procedural, last checkpoint (6 pairs)**\n\n")[2]
    assert best.startswith(TABLE)
    assert last.startswith(TABLE)
    assert text.startswith(
        "# Ablation\n\nraft-small, 100 steps of 6 at 256×320, bf16, peak rate 0.0001; procedural pairs "
        "(training), validation and test with textures never trained on; seeds 0, 1. 6 of 10 cells "
        "are done; missing: free, seed 0; original, seed 1; free, seed 1; lcv, seed 1.\n\nEPE is "
        "averaged over pairs; lower is better.\n\n"
    )
    assert text.endswith(
        "- original: the weights as they are\n"
        "- continued: trained on without W: what the others are compared with\n"
        "- free W: any matrix, neither symmetric nor positive\n"
        "- P only: Λ = I, W computed as PᵀP\n- full LCV: W = PᵀΛP\n"
    )


def test_null_controls_are_muted_and_words_follow_a_table_where_there_are_any(study):
    table = summarise(study)[0]
    shown, words = table_blocks(table)
    assert [row.kind for row in shown.rows] == ["", "", "", "muted", ""]
    assert words.text == spread_words(table)
    alone = replace(table, rows=(table.rows[0],))
    assert spread_words(alone) == ""
    assert len(table_blocks(alone)) == 1
    assert title_of(replace(table, pairs=1)) == "procedural, best checkpoint (1 pair)"


def test_the_plot_has_differences_of_trained_columns_and_validation(study):
    best, last, curves = panels(study)
    for panel, checkpoint in ((best, "best"), (last, "last")):
        assert isinstance(panel, Bars)
        title = f"Δ EPE to “continued”: procedural, {checkpoint} checkpoint (6 pairs)"
        assert (panel.title, panel.x_label) == (title, "px; dots are seeds, bars 95 % over seeds")
        rotation, lcv = panel.bars
        assert lcv == Bar("full LCV", pytest.approx(-0.1), None, (pytest.approx(-0.1),), False)
        assert (rotation.label, rotation.muted) == ("P only", True)
        assert rotation.interval == pytest.approx((-0.05853, 0.06853), abs=1e-5)
        assert rotation.dots == pytest.approx((0.0, 0.01))
    lines = [
        Line("original", [50, 100], [6.0, 3.0]),
        Line("continued", [50, 100], pytest.approx([4.2, 2.1])),
        Line("P only", [50, 100], pytest.approx([4.21, 2.105])),
        Line("full LCV", [50, 100], pytest.approx([3.8, 1.9])),
    ]
    assert curves == Curves("Validation, mean over seeds", "steps", "EPE, px", lines)


def test_a_terminal_gets_the_same_numbers(study, capsys):
    print_tables(study)
    said = capsys.readouterr().out
    assert said.startswith(heading(study))
    for line in TABLE.splitlines()[2:7]:
        for cell in line.strip("|").split("|"):
            assert said.count(cell.strip()) >= 2  # at both checkpoints
    assert said.count("The standard deviation of “continued” over seeds is 0.1414 px.") == 2
    assert "procedural, best checkpoint (6 pairs)" in said


def test_a_study_of_files_names_its_datasets_and_a_whole_one_misses_nothing(tmp_path):
    study = invented(tmp_path / "out", {"continued": [2.0]})
    assert heading(study).endswith("seeds 0. 1 of 1 cells are done.")
    parts = (PartConfig("sintel", "raft-sintel"), PartConfig("kitti2015", "raft-kitti"))
    data = replace(study.base.data, source="files", parts=parts)
    files = replace(study, base=replace(study.base, data=data))
    assert "; sintel + kitti2015, whole scenes held out; seeds 0." in heading(files)
    assert list(notes_of(study).points) == [
        "continued: trained on without W: what the others are compared with"
    ]


def test_what_is_written_is_named_and_a_missing_plot_is_excused(study, monkeypatch):
    monkeypatch.setattr("lcv.studies.ablation_show.svg", lambda panels: f"{len(panels)} panels")
    assert write(study) == ["table.md", "plot.svg"]
    assert (study.folder / "plot.svg").read_text() == "3 panels"
    assert (study.folder / "table.md").read_text(encoding="utf-8") == markdown(study)
    monkeypatch.setattr("lcv.studies.ablation_show.svg", lambda panels: None)
    (study.folder / "plot.svg").unlink()
    assert write(study) == ["table.md", NO_PLOTS]
    assert not (study.folder / "plot.svg").exists()
    monkeypatch.setattr("lcv.studies.ablation_show.panels", lambda study: [])
    assert write(study) == ["table.md"]
