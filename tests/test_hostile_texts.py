"""Results, configurations and lists made to be large in memory or slow, though small as files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
import torch

from lcv.data import listfile
from lcv.evaluate.metrics import pair_sums
from lcv.evaluate.protocols import PROTOCOLS
from lcv.evaluate.results import (
    FORMAT,
    DatasetResult,
    PairResult,
    Result,
    read_results,
    write_results,
)
from lcv.files import SMALL
from testing.peak import costs

MOST_BYTES, MOST_SECONDS = 200 * 10**6, 5.0
MILLION = 10**6


def hostile_json() -> Iterator[tuple[str, str]]:
    """(name, text): far too many values, then as many as may be, then long ones."""
    yield "brackets", "[" * 50 * MILLION
    yield "nested", '{"a":' * MILLION
    yield "numbers", '{"format": "lcv evaluation 1", "results": [' + "1.5," * 12 * MILLION + "1]}"
    yield "empty", '{"a": [' + "{}," * 16 * MILLION + "{}]}"
    yield "names", "{" + "".join(f'"{n:x}":0,' for n in range(2 * MILLION)) + '"":0}'
    yield "lists", '{"a": [' + f"{'[' * 300}{']' * 300}," * 4300 + "0]}"
    yield "texts", '{"a": [' + '"😀",' * (MILLION * 5 // 4) + "0]}"
    yield "digits", '{"steps": ' + "9" * 10 * MILLION + "}"
    yield "string", '{"format": "😀' + "x" * 20 * MILLION + '"}'


def hostile_configs() -> Iterator[tuple[str, str]]:
    """(name, text): below the limit of a configuration's size."""
    yield "nested", '{"a":' * 150_000
    yield "stages", '{"stages": [' + "1," * 400_000 + "1]}"
    yield "steps", '{"steps": "' + "x" * 900_000 + '"}'
    yield "numbers", '{"seed": [' + "1," * 400_000 + "1]}"


def hostile_results() -> Iterator[tuple[str, str]]:
    """(name, text): sound but for a long name or a great many settings, met again and again."""
    pair = {"name": "", "scene": "", "sums": {}}
    call = {"iters": None, "pad": None}
    dataset = {"metrics": {}, "pairs": [], "settings": call, "model": {}}
    setting = call | {"headline": []}
    name, names = "x" * 4 * MILLION, [f"y{n}" for n in range(20_000)]
    cases: dict[str, tuple[dict[str, object], dict[str, object]]] = {
        "dataset": ({name: dataset | {"pairs": [pair] * 100_000}}, {"*": setting}),
        "setting": ({}, {name: setting | {"headline": ["epe"] * 200_000}}),
        "settings": (
            {f"x{n}": dataset for n in range(60_000)},
            dict.fromkeys([*names, "x"], setting),
        ),
    }
    for case, (datasets, settings) in cases.items():
        protocol = PROTOCOLS["raft"].as_dict() | {"settings": settings}
        result = {"protocol": protocol, "provenance": {}, "datasets": datasets}
        yield case, json.dumps({"format": FORMAT, "results": [result]})


def hostile_lists() -> Iterator[tuple[str, str]]:
    """(name, text)"""
    yield "lines", "a b\n" * 12 * MILLION
    yield "words", "ab " * 16 * MILLION
    yield "quotes", "'a' " * 4 * MILLION
    yield "comment", "#" * 50 * MILLION
    yield "empty", "\n" * 20 * MILLION


def refused_cheaply(kind: str, texts: Iterable[tuple[str, str]], folder: Path) -> None:
    jobs = []
    for name, text in texts:
        path = folder / f"{name}.{'json' if kind in ('results', 'config') else 'txt'}"
        path.write_text(text, encoding="utf-8")
        jobs.append((kind, path))
    for (_, path), (outcome, growth, seconds) in zip(jobs, costs(jobs), strict=True):
        assert outcome.startswith(f"{path}:"), f"{path.name}: {outcome[:200]}"
        assert len(outcome) < 500, f"{path.name}: {outcome[:200]}"
        assert growth < MOST_BYTES, f"{path.name}: {growth / MILLION:.0f} MB ({outcome})"
        assert seconds < MOST_SECONDS, f"{path.name}: {seconds:.1f} s ({outcome})"
        path.unlink()


def test_no_hostile_json_costs_200_mb_or_5_s(tmp_path):
    refused_cheaply("results", hostile_json(), tmp_path)


def test_no_hostile_configuration_costs_200_mb_or_5_s(tmp_path):
    small = dict(hostile_configs())
    assert all(len(text) < SMALL for text in small.values())
    large = ("large", '{"steps": 1' + " " * SMALL + "}")
    refused_cheaply("config", [*small.items(), large], tmp_path)


def test_no_hostile_results_cost_200_mb_or_5_s(tmp_path):
    refused_cheaply("results", hostile_results(), tmp_path)


@pytest.mark.parametrize("kind", ["list", "frames"])
def test_no_hostile_list_costs_200_mb_or_5_s(kind, tmp_path):
    refused_cheaply(kind, hostile_lists(), tmp_path)


def test_a_text_of_empty_lines_is_soon_no_list(tmp_path, monkeypatch):
    monkeypatch.setattr(listfile, "MOST_LINES", 5)
    (tmp_path / "a.txt").write_text("\n" * 6 + "a.png b.png\n")
    assert not listfile.is_list(tmp_path / "a.txt")
    (tmp_path / "a.txt").write_text("\n" * 5 + "a.png b.png\n")
    assert listfile.is_list(tmp_path / "a.txt")


def test_results_of_many_pairs_are_no_bomb(tmp_path):
    """They have more values than any small file may, and more bytes to each."""
    flow, known = torch.ones(2, 2, 5), torch.ones(2, 5, dtype=torch.bool)
    sums = pair_sums(flow, 0 * flow, known)
    pairs = tuple(PairResult(str(n), "", sums) for n in range(40_000))
    dataset = DatasetResult({}, pairs, {"iters": 12, "pad": None}, {"name": "a"})
    write_results(tmp_path / "a.json", [Result({"made": dataset}, PROTOCOLS["raft"], {}, "A")])
    assert sum(map((tmp_path / "a.json").read_text().count, "{[:,")) > 1.3 * MILLION
    assert len(read_results(tmp_path / "a.json")[0].datasets["made"].pairs) == 40_000
