"""What a cell says about its W, and which files it leaves."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from lcv.errors import ArgumentError
from lcv.inner_product import make_inner_product
from lcv.studies.ablation_cell import _keep_weights, note_failure, w_numbers
from testing.ablating import invented


def test_each_w_has_a_distance_from_i_and_one_with_axes_its_spectrum_too():
    model = nn.ModuleDict(
        {
            "one": make_inner_product("elliptical", 2, "left"),
            "two": make_inner_product("free", 2, "left"),
            "other": nn.Linear(2, 2),
        }
    )
    with torch.no_grad():
        model["one"].S_upper.fill_(1.0)
        model["one"].t.copy_(torch.tensor([0.0, 1.0]))  # λ = 1 and (π + π/2)/(π − π/2) = 3
        for parameter in model["two"].parameters():
            parameter.copy_(torch.tensor([[1.0, 2.0], [0.0, 1.0]]))
    found = w_numbers(model)
    assert list(found) == ["one", "two"]
    assert found["one"]["eigenvalues"] == [1.0, 3.0]
    assert found["one"]["distance"] == pytest.approx(2 / math.sqrt(2), rel=1e-6)
    P = model["one"].rotation().detach().double()
    angle = math.acos(float(P.trace()) / 2)  # of a turn in the plane
    assert angle > 0.1
    assert found["one"]["largest_angle"] == pytest.approx(angle, rel=1e-6)
    assert found["two"] == {"distance": pytest.approx(2 / math.sqrt(2))}


def test_eigenvalues_have_six_decimals_and_the_largest_angle_is_the_last():
    model = nn.ModuleDict({"one": make_inner_product("elliptical", 3, "left")})
    with torch.no_grad():
        model["one"].t.copy_(torch.tensor([0.123, -0.4, 0.9]))
        model["one"].S_upper.copy_(torch.tensor([0.5, 0.0, 0.0]))  # turns one plane, not all
    numbers = w_numbers(model)["one"]
    exact = torch.linalg.eigvalsh(model["one"].matrix().double()).tolist()
    assert numbers["eigenvalues"] == [round(value, 6) for value in exact]
    assert numbers["largest_angle"] > 0.1


def test_a_study_without_weights_keeps_none_of_a_cell(tmp_path):
    study = replace(invented(tmp_path / "out", {"continued": [2.0]}), keep=False)
    cell = study.cell("continued", 0)
    for name in ("weights.safetensors", "weights.json"):
        (study.folder_of(cell) / name).write_text("of the run")
    _keep_weights(study, cell, nn.Module(), {})
    names = {path.name for path in study.folder_of(cell).iterdir()}
    assert names == {"result.json", "log.jsonl"}


def test_why_a_cell_failed_is_one_line_and_the_last_reason_counts(tmp_path):
    study = invented(tmp_path / "out", {"continued": [2.0]})
    cell = study.cell("continued", 0)
    assert study.failure(cell) is None
    for reason in ("one", "two"):
        note_failure(study.folder_of(cell), ArgumentError(reason))
    assert (study.folder_of(cell) / "failure.txt").read_text() == "two\n"
    assert study.failure(cell) == "two"
