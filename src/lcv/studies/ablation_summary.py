"""An ablation in numbers: means, intervals, and paired differences to "continued".

For every test and checkpoint (best, last) and every column:

    value       the metric averaged over seeds; its interval is Student's over seeds
    difference  to "continued" of the same seed, averaged over seeds; its first interval is
                Student's over seeds, its second the bootstrap's over pairs (whole scenes), each
                pair's difference being averaged over seeds first

The two intervals answer two questions: would other seeds say the same, and would other pairs?
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lcv.errors import FileError
from lcv.studies.ablation_study import Study
from lcv.studies.columns import REFERENCE, Column
from lcv.studies.robustness.results import interval

CHECKPOINTS = ("best", "last")
# Student's t, 97.5 %, for 1 … 30 degrees of freedom; beyond, the normal's.
T975 = (
    *(12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281),
    *(2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860),
    *(2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423),
)
NORMAL975 = 1.9600
Interval = tuple[float, float]


@dataclass(frozen=True)
class Row:
    """One column under one test and checkpoint. EPE in px averaged over pairs, Fl-all in %.

    seeds: those that are finished; values, fl: one a seed
    differences: EPE less that of "continued", one a seed that both have; empty for "continued"
    over_seeds: 95 % of their mean, None with one seed; over_pairs: by the bootstrap, None with
        few scenes
    """

    column: Column
    seeds: tuple[int, ...]
    values: tuple[float, ...]
    fl: tuple[float, ...]
    steps: tuple[int, ...]
    null_control: bool
    differences: tuple[float, ...] = ()
    over_seeds: Interval | None = None
    over_pairs: Interval | None = None
    failed: int = 0

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def mean_fl(self) -> float:
        return float(np.mean(self.fl))

    @property
    def interval(self) -> Interval | None:
        return student_interval(self.values)

    @property
    def difference(self) -> float | None:
        return float(np.mean(self.differences)) if self.differences else None


@dataclass(frozen=True)
class Table:
    """The rows of one test at one checkpoint."""

    test: str
    checkpoint: str
    pairs: int
    rows: tuple[Row, ...]

    @property
    def spread(self) -> float | None:
        """The deviation of "continued" over seeds, to compare differences with."""
        values = next((row.values for row in self.rows if row.column.name == REFERENCE), ())
        return float(np.std(values, ddof=1)) if len(values) > 1 else None


def student_interval(values: Sequence[float]) -> Interval | None:
    """mean ± t·s/√n, which holds the mean in 95 % of cases if values are normal; None for one."""
    n = len(values)
    if n < 2:
        return None
    t = T975[n - 2] if n - 2 < len(T975) else NORMAL975
    mean, reach = float(np.mean(values)), t * float(np.std(values, ddof=1)) / math.sqrt(n)
    return mean - reach, mean + reach


def summarise(study: Study) -> list[Table]:
    """What is known so far; columns without a finished cell have rows without numbers."""
    tables = []
    for test in study.tests:
        for checkpoint in CHECKPOINTS:
            found = {c.name: _results(study, c, checkpoint, test) for c in study.columns}
            reference = found.get(REFERENCE, {})
            rows = tuple(_row(study, c, found[c.name], reference) for c in study.columns)
            pairs = next((len(r.epe) for by_seed in found.values() for r in by_seed.values()), 0)
            tables.append(Table(test, checkpoint, pairs, rows))
    return tables


@dataclass(frozen=True)
class _Result:
    """A cell under one test and checkpoint. epe, names, scenes: of each pair; fl: over all."""

    epe: np.ndarray
    names: list[str]
    scenes: list[str]
    fl: float
    step: int


def _results(study: Study, column: Column, checkpoint: str, test: str) -> dict[int, _Result]:
    """By seed, of the cells that are finished."""
    results = {}
    for seed in study.seeds:
        cell = study.cell(column.name, seed)
        result = study.result(cell)
        if result is None:
            continue
        try:
            measured = result[checkpoint]["tests"][test]
            pairs, step = measured["pairs"], int(result[checkpoint]["step"])
            epe = np.array(pairs["epe"], dtype=np.float64)
            fl = float(measured["metrics"]["fl"])
            results[seed] = _Result(epe, pairs["names"], pairs["scenes"], fl, step)
        except (KeyError, TypeError, ValueError) as error:
            raise FileError(
                f"{study.folder_of(cell) / 'result.json'}: has no {checkpoint} result for the test "
                f"{test!r} ({error}); remove the file to measure the cell again"
            ) from None
    return results


def _row(
    study: Study, column: Column, mine: dict[int, _Result], reference: dict[int, _Result]
) -> Row:
    cells = {study.cell(column.name, seed) for seed in study.seeds}
    # One cell that serves all seeds is one number, though it is paired with each of them.
    own = [mine[s] for s in dict.fromkeys(study.cell(column.name, seed).seed for seed in mine)]
    row = Row(
        column,
        tuple(mine),
        tuple(float(np.nanmean(result.epe)) for result in own),
        tuple(result.fl for result in own),
        tuple(result.step for result in own),
        column.name in study.null,
        failed=sum(study.result(c) is None and study.failure(c) is not None for c in cells),
    )
    both = [seed for seed in mine if seed in reference]
    if column.name == REFERENCE or not both:
        return row
    for seed in both:
        if mine[seed].names != reference[seed].names:
            raise FileError(
                f"{study.folder}: {column.name} and {REFERENCE} of seed {seed} were not measured "
                f"on the same pairs; the test's data have changed between them"
            )
    by_pair = np.stack([mine[seed].epe - reference[seed].epe for seed in both])
    known = ~np.isnan(by_pair).any(0)  # a pair without a known pixel has no error
    by_pair = by_pair[:, known]
    scenes = [scene for scene, here in zip(mine[both[0]].scenes, known, strict=True) if here]
    differences = tuple(by_pair.mean(1).tolist())
    return replace(
        row,
        differences=differences,
        over_seeds=student_interval(differences),
        over_pairs=interval(by_pair.mean(0).tolist(), scenes),
    )
