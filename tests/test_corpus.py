"""Inputs that once failed are refused in a sentence and cheaply; text files, damaged, likewise."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lcv.data.listfile import listfile
from lcv.errors import ArgumentError, LcvError
from lcv.evaluate.compare import compare
from lcv.evaluate.metrics import METRICS, metrics_from, pair_sums
from lcv.evaluate.protocols import PROTOCOLS
from lcv.evaluate.results import DatasetResult, PairResult, Result, read_results, write_results
from lcv.evaluate.tables import comparison_table, dataset_tables
from lcv.recipes import load_stages
from lcv.train import TrainConfig
from testing.corpus import CORPUS, keep
from testing.peak import costs

MOST_BYTES, MOST_SECONDS = 200 * 10**6, 5.0
WORDS = ("", "NaN", "1e999", "-1", "null", "[]", "{}", '"', "\\u0000", "\x1b[2J", "9" * 400, "é")


def compared(path: Path) -> list[Result]:
    """What `lcv eval --compare` makes of a file, and `lcv eval` of its results."""
    results = read_results(path)
    for result in results:
        with suppress(ArgumentError):  # both are sound, and were not measured alike
            rows = compare(results[0], result, tuple(METRICS))
            comparison_table(results[0], result, rows).text().encode()
    for table in dataset_tables(results):
        table.text().encode()
    return results


TEXTS = {"results": compared, "config": load_stages, "list": listfile}


def test_no_kept_input_is_accepted_or_costs_200_mb_or_5_s():
    jobs = [(path.parent.name, path) for path in sorted(CORPUS.glob("*/*"))]
    assert len(jobs) >= 10
    for (kind, path), (outcome, growth, seconds) in zip(jobs, costs(jobs), strict=True):
        assert outcome.startswith(f"{path}: "), f"{kind} {path.name}: {outcome}"
        assert growth < MOST_BYTES, f"{kind} {path.name}: {growth / 10**6:.0f} MB ({outcome})"
        assert seconds < MOST_SECONDS, f"{kind} {path.name}: {seconds:.1f} s ({outcome})"


def whole(kind: str, folder: Path) -> Path:
    """A sound file of this kind."""
    path = folder / f"a.{'txt' if kind == 'list' else 'json'}"
    if kind == "results":
        flow, known = torch.ones(2, 2, 5), torch.ones(2, 5, dtype=torch.bool)
        pairs = tuple(PairResult(n, n, pair_sums(flow, 0 * flow, known)) for n in "ab")
        metrics = metrics_from(pair.sums for pair in pairs)
        dataset = DatasetResult(metrics, pairs, {"iters": 12, "pad": None}, {"name": "a"})
        result = Result({"made": dataset}, PROTOCOLS["raft"], {}, "A")
        write_results(path, [result, replace(result, label="B")])
    elif kind == "config":
        path.write_text(json.dumps(replace(TrainConfig(), steps=3).as_dict()), encoding="utf-8")
    else:
        for name in ("1.png", "2.png", "f.flo"):
            (folder / name).write_bytes(b"")
        path.write_text("# image1 image2 flow\n1.png 2.png f.flo\n1.png '2.png' f.flo\n")
    return path


def damaged(text: str, draw: random.Random) -> bytes:
    """One to three wounds: a letter, a word in its place, a cut, an echo, bytes that are no text."""
    content = text.encode()
    for _ in range(draw.randint(1, 3)):
        at = draw.randrange(len(content) + 1)
        kind = draw.randrange(5)
        length = draw.randrange(1, 12)
        if kind == 0:
            content = content[:at] + draw.randbytes(1) + content[at + 1 :]
        elif kind == 1:
            content = content[:at] + draw.choice(WORDS).encode() + content[at + length :]
        elif kind == 2:
            content = content[:at]
        elif kind == 3:
            content = content[:at] + content[at : at + length] * 2 + content[at + length :]
        else:
            content = content[:at] + b"[" * 10_000 + content[at:]
    return content


@pytest.mark.parametrize("kind", TEXTS)
def test_damaged_texts_are_read_or_refused_by_name(tmp_path, kind):
    path, draw, messages = whole(kind, tmp_path), random.Random(kind), []
    text = path.read_text()
    assert TEXTS[kind](path)
    for case in range(150):
        path.write_bytes(damaged(text, draw))
        try:
            TEXTS[kind](path)
        except LcvError as error:
            messages.append(str(error))
        except Exception as error:
            raise AssertionError(f"case {case}, kept as {keep(kind, path)}: {error!r}") from error
    assert len(messages) > 50, "the damage is too small"
    assert all(str(tmp_path) in message for message in messages)
