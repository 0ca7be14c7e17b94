"""Means, intervals and paired differences, against hand-computed cases and scipy."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from lcv.errors import FileError
from lcv.evaluate.compare import bootstrap_interval
from lcv.studies.ablation_show import between, cells_of, heading, markdown, signed
from lcv.studies.ablation_summary import T975, student_interval, summarise
from testing.ablating import invented

VALUES = {
    "original": [3.0],
    "continued": [2.0, 2.2, 2.1],
    "rotation": [2.0, 2.21, 2.1],
    "lcv": [1.9, 2.0],
    "free": [],
}


def test_students_t_is_the_table_that_scipy_computes():
    expected = [stats.t.ppf(0.975, df) for df in range(1, len(T975) + 1)]
    np.testing.assert_allclose(T975, expected, atol=6e-5)


def test_an_interval_over_seeds():
    values = [2.0, 2.2, 2.1]
    expected = stats.t.interval(0.95, 2, np.mean(values), stats.sem(values))
    assert student_interval(values) == pytest.approx(expected, abs=1e-5)
    assert student_interval([1.0]) is None
    many = list(np.random.default_rng(0).normal(size=200))
    close = stats.t.interval(0.95, 199, np.mean(many), stats.sem(many))
    assert student_interval(many) == pytest.approx(close, abs=2e-3)


@pytest.fixture
def tables(tmp_path):
    return summarise(invented(tmp_path / "out", VALUES))


def test_differences_are_paired_by_seed_and_by_pair(tables, tmp_path):
    assert [(t.test, t.checkpoint, t.pairs) for t in tables] == [
        ("procedural", "best", 6),
        ("procedural", "last", 6),
    ]
    rows = {row.column.name: row for row in tables[0].rows}
    lcv = rows["lcv"]
    assert lcv.seeds == (0, 1)  # the third is not done, and takes part in nothing
    assert lcv.values == pytest.approx((1.9, 2.0))
    assert lcv.differences == pytest.approx((-0.1, -0.2))
    assert lcv.difference == pytest.approx(-0.15)
    assert lcv.over_seeds == pytest.approx(stats.t.interval(0.95, 1, -0.15, 0.05), abs=1e-4)
    by_pair = -0.15 * np.linspace(0.5, 1.5, 6)
    assert lcv.over_pairs == pytest.approx(bootstrap_interval(by_pair))
    scenes = summarise(invented(tmp_path / "scenes", VALUES, scenes=3))[0].rows
    assert all(row.over_pairs is None for row in scenes)  # three scenes are no sample
    assert lcv.mean_fl == pytest.approx(19.5)
    assert tables[0].spread == pytest.approx(0.1)


def test_weights_as_they_are_make_one_number_paired_with_every_seed(tmp_path):
    study = invented(tmp_path / "out", VALUES)
    # `invented` has no weights; with weights, "original" is one cell for all seeds.
    base = replace(study.base, model=replace(study.base.model, weights="some.pth"))
    (tmp_path / "out" / "cells" / "original-0").rename(tmp_path / "out" / "cells" / "original")
    rows = {row.column.name: row for row in summarise(replace(study, base=base))[0].rows}
    original = rows["original"]
    assert original.values == pytest.approx((3.0,))
    assert original.differences == pytest.approx((1.0, 0.8, 0.9))
    assert cells_of(original)[1:3] == ("all", "3.000")


def test_what_is_missing_is_shown_as_missing(tables):
    rows = {row.column.name: row for row in tables[0].rows}
    assert cells_of(rows["free"]) == ("free W", "0", "–", "–", "–", "–", "–")
    assert cells_of(rows["continued"])[4:] == ("–", "–", "–")
    assert cells_of(rows["rotation"])[0] == "P only (null control)"
    assert cells_of(rows["rotation"])[4] == "+0.0033"


def test_numbers_have_signs_that_mean_something():
    assert [signed(v) for v in (0.01234, -0.5, 0.0, -0.00001)] == [
        "+0.0123",
        "−0.5000",
        "0.0000",
        "0.0000",
    ]
    assert between((-0.1, 0.2)) == "−0.1000 … +0.2000"
    assert between(None) == between((-np.inf, np.inf)) == "–"


def test_results_of_other_pairs_are_not_compared(tmp_path):
    study = invented(tmp_path / "out", VALUES)
    path = study.folder_of(study.cell("lcv", 0)) / "result.json"
    result = json.loads(path.read_text())
    result["best"]["tests"]["procedural"]["pairs"]["names"][0] = "another"
    path.write_text(json.dumps(result))
    with pytest.raises(
        FileError, match="lcv and continued of seed 0 were not measured on the same"
    ):
        summarise(study)
    del result["best"]["tests"]["procedural"]
    path.write_text(json.dumps(result))
    with pytest.raises(FileError, match=r"result\.json: has no best result for the test"):
        markdown(study)


def test_vcn_has_no_null_control_in_its_own_form(tmp_path):
    values = {"continued": [1.0], "rotation": [1.0]}
    table = summarise(invented(tmp_path / "out", values, model="vcn"))[0]
    assert [row.null_control for row in table.rows] == [False, False]


def test_the_heading_says_when_w_has_a_rate_of_its_own(tmp_path):
    study = invented(tmp_path / "study", {"continued": [2.0], "lcv": [1.9]})
    assert "peak rate 0.0001; procedural" in heading(study)
    base = replace(study.base, optim=replace(study.base.optim, w_lr_factor=30))
    assert "peak rate 0.0001, of W 30 times that; procedural" in heading(replace(study, base=base))


def test_the_normal_distribution_follows_after_thirty_degrees_of_freedom():
    for n, t in ((2, 12.7062), (31, 2.0423), (32, 1.96)):
        values = [0.0, 1.0] * (n // 2) + [0.5] * (n % 2)
        low, high = student_interval(values)
        reach = t * float(np.std(values, ddof=1)) / n**0.5
        assert (low, high) == pytest.approx((0.5 - reach, 0.5 + reach))


def test_a_study_without_results_has_rows_without_numbers(tmp_path):
    for table in summarise(invented(tmp_path / "out", {"continued": [], "lcv": [], "free": [1.0]})):
        assert table.pairs == 6
    tables = summarise(replace(invented(tmp_path / "none", {"continued": [1.0]}), seeds=(5,)))
    assert [(table.pairs, table.spread, table.rows[0].seeds) for table in tables] == [
        (0, None, ())
    ] * 2
    assert tables[0].rows[0].difference is None


def test_a_pair_without_a_known_pixel_has_no_error_and_takes_part_in_nothing(tmp_path):
    study = invented(tmp_path / "out", {"continued": [2.0, 2.2], "lcv": [1.9, 2.0]})
    for name, value in (("continued", None), ("lcv", 9.0)):
        path = study.folder_of(study.cell(name, 0)) / "result.json"
        result = json.loads(path.read_text())
        for checkpoint in ("best", "last"):
            result[checkpoint]["tests"]["procedural"]["pairs"]["epe"][5] = value
        path.write_text(json.dumps(result))
    _, lcv = summarise(study)[0].rows
    share = np.linspace(0.5, 1.5, 6)[:5]
    assert lcv.differences == pytest.approx((-0.1 * share.mean(), -0.2 * share.mean()))
    assert lcv.over_pairs == pytest.approx(bootstrap_interval(-0.15 * share))
    assert lcv.steps == (50, 50)
    assert lcv.failed == 0
