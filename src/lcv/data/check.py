"""Find what is wrong with a dataset before it costs a day: decode all of it and judge its truth."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from lcv.data import truth_test
from lcv.data.check_pairs import judge_pair, pairs_to_test
from lcv.data.check_report import PartReport, Problem, Report, SurveyReport
from lcv.data.dataset import Holdout, Part, Survey, missing_files
from lcv.data.inspection import (
    Facts,
    FrameFacts,
    TruthFacts,
    inspect,
    inspect_frame,
    inspect_map,
    inspect_truth,
    inspect_video,
)
from lcv.data.layouts import IMAGE_SUFFIXES
from lcv.data.recognise import recognise
from lcv.data.record import FrameRef, Record
from lcv.errors import FileError
from lcv.threads import cores

MAX_PAIRS = 200
SUSPICIOUS = 0.3
Progress = Callable[[str, int, int], None]


def check(
    root: str | os.PathLike[str],
    *,
    workers: int | None = None,
    max_pairs: int = MAX_PAIRS,
    progress: Progress | None = None,
) -> Report:
    """Recognise the layout, count, decode every file, and test the truth against its corruptions.

    workers: threads that decode; as many as there are cores, up to 8, if not given. Memory is
        that of a few pairs a worker.
    max_pairs: pairs a part whose truth is tested, spread evenly over it; the same every time.
    progress: called with what is being done, how much of it is done, and how much there is.

    A partial copy is reported, not failed. Wrong are: a file that cannot be decoded or is missing
    from a pair, sizes that disagree, a frame in both train and validation, and truth that zero
    flow or one of its own corruptions beats over a part of the dataset.
    """
    workers = workers or min(8, cores())
    tell = progress or (lambda what, done, total: None)
    surveys, problems, notes = [], [], []
    with ThreadPoolExecutor(workers) as pool:
        for folder, kind in recognise(root):
            try:
                found = kind.survey(folder)
            except FileError as error:
                problems.append(Problem(str(folder), str(error)))
                continue
            report, wrong, remarks = _check_survey(found, pool, workers, max_pairs, tell)
            surveys.append(report)
            problems += wrong
            notes += remarks
    return Report(str(root), surveys, problems, notes)


def _check_survey(
    survey: Survey, pool: ThreadPoolExecutor, workers: int, max_pairs: int, tell: Progress
) -> tuple[SurveyReport, list[Problem], list[str]]:
    records = [record for part in survey.parts for record in part.dataset]
    problems: dict[str, Problem] = {}
    for record, path in missing_files(records):
        reason = f"missing, though other files of the pair {record.name!r} are here"
        problems.setdefault(str(path), Problem(str(path), reason))
    jobs = {p: job for p, job in _jobs(records).items() if str(p) not in problems}
    facts: dict[Path, Facts] = {}
    steps = _ahead(pool, [partial(inspect, p, job) for p, job in jobs.items()], 2 * workers)
    for done, fact in enumerate(steps, start=1):
        facts[fact.path] = fact
        tell(f"{survey.kind}: decoding", done, len(jobs))
        if fact.error is not None:
            problems[str(fact.path)] = Problem(str(fact.path), fact.error)
    wrong = list(problems.values())
    wrong += _lengths_that_disagree(records, facts)
    wrong += _sizes_that_disagree(records, facts)
    broken = {problem.where for problem in wrong}
    wrong += _duplicates(survey.holdouts, facts)
    reports, notes = [], []
    for part in survey.parts:
        report = _count(part, facts)
        where = f"{survey.kind} {part.label} in {survey.root}"
        if not report.pairs:
            notes.append(f"{where}: no pairs")
        chosen = pairs_to_test(part, broken, max_pairs)
        tests = [partial(judge_pair, *arguments) for arguments in chosen]
        results = []
        for done, result in enumerate(_ahead(pool, tests, workers), start=1):
            results.append(result)
            tell(f"{survey.kind} {part.label}: truth against its corruptions", done, len(chosen))
        report.truth_test = truth_test.pool(results)
        report.pairs_tested = len(chosen)
        wrong += _judge(where, report, part, facts)
        report.suspicious = [
            f"{record.name}: {min(lost, key=lost.__getitem__)}"
            for (record, _, _), result in zip(chosen, results, strict=True)
            if (lost := {k: d.share for k, d in result.items() if d.lost and d.share < SUSPICIOUS})
        ]
        reports.append(report)
    return SurveyReport(survey.kind, str(survey.root), reports), wrong, notes


def _ahead(
    pool: ThreadPoolExecutor, calls: Iterable[Callable[[], Any]], limit: int
) -> Iterator[Any]:
    """Results in the order of the calls, at most `limit` of them under way: memory stays bounded."""
    waiting: deque[Future[Any]] = deque()
    for call in calls:
        waiting.append(pool.submit(call))
        if len(waiting) >= limit:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _jobs(records: Iterable[Record]) -> dict[Path, Callable[[Path], Facts]]:
    """How each file is to be read; a file of several pairs is read once."""
    jobs: dict[Path, Callable[[Path], Facts]] = {}
    for r in records:
        for frame in (r.image1, r.image2):
            if isinstance(frame, FrameRef):
                jobs[frame.video] = inspect_video
            else:
                jobs[frame] = inspect_frame
        for truth in (r.flow, r.backward, r.noc):
            if truth is not None:
                jobs[truth] = partial(inspect_truth, step=r.step, disparity=r.disparity)
        for values in (r.occlusions, r.invalid, r.objects):
            if values is not None:
                jobs[values] = inspect_map
    return jobs


def _sizes_that_disagree(records: Iterable[Record], facts: dict[Path, Facts]) -> list[Problem]:
    problems: dict[str, Problem] = {}
    for record in records:
        first, *others = record.files()
        wanted = facts[first].size if first in facts else None
        for path in others:
            found = facts[path].size if path in facts else None
            if wanted and found and found != wanted:
                reason = (
                    f"is {found[0]}×{found[1]} pixels, but {first} is {wanted[0]}×{wanted[1]}; "
                    f"the files of a pair must have one size"
                )
                problems.setdefault(str(path), Problem(str(path), reason))
    return list(problems.values())


def _lengths_that_disagree(records: Iterable[Record], facts: dict[Path, Facts]) -> list[Problem]:
    declared: dict[Path, int] = {}
    for record in records:
        if isinstance(record.image2, FrameRef):
            video = record.image2.video
            declared[video] = max(declared.get(video, 0), record.image2.index + 1)
    return [
        Problem(str(video), f"declares {count} frames, but {fact.frames} can be decoded")
        for video, count in declared.items()
        if isinstance(fact := facts.get(video), FrameFacts)
        and fact.error is None
        and fact.frames != count
    ]


def _duplicates(holdouts: Iterable[Holdout], facts: dict[Path, Facts]) -> list[Problem]:
    problems: dict[tuple[Path, Path], Problem] = {}
    for holdout in holdouts:
        known: dict[bytes, Path] = {}
        for path in _frame_files(holdout.train):
            fact = facts.get(path)
            if isinstance(fact, FrameFacts) and fact.digest and not fact.flat:
                known.setdefault(fact.digest, path)
        for path in _frame_files(holdout.validation):
            fact = facts.get(path)
            if isinstance(fact, FrameFacts) and fact.digest in known:
                original = known[fact.digest]
                reason = f"a validation frame with the same content as the train frame {original}"
                problem = Problem(str(path), f"{reason} ({holdout.label})")
                problems.setdefault((path, original), problem)
    return list(problems.values())


def _frame_files(records: Iterable[Record]) -> list[Path]:
    frames = (frame for r in records for frame in (r.image1, r.image2))
    return list(dict.fromkeys(frame for frame in frames if isinstance(frame, Path)))


def _count(part: Part, facts: dict[Path, Facts]) -> PartReport:
    report = PartReport(part.label, len(part.dataset), part.expected)
    videos = {r.image1.video for r in part.dataset if isinstance(r.image1, FrameRef)}
    for path in (*_frame_files(part.dataset), *sorted(videos)):
        fact = facts.get(path)
        if isinstance(fact, FrameFacts) and fact.size is not None:
            report.frames += fact.frames
            report.sizes[f"{fact.size[0]}×{fact.size[1]}"] += 1
            report.depths[fact.depth] += 1
    for path in dict.fromkeys(r.flow for r in part.dataset if r.flow is not None):
        fact = facts.get(path)
        if isinstance(fact, TruthFacts) and fact.size is not None:
            report.add_truth(fact)
    report.frames_without_truth = _without_truth(part)
    return report


def _without_truth(part: Part) -> int:
    """Frames in the folders of this part that no pair with truth uses."""
    used = set(_frame_files(r for r in part.dataset if r.flow is not None))
    named = _frame_files(part.dataset)
    others = {path for r in part.dataset for path in r.files()[2:]}
    there = {
        folder / entry
        for folder in {path.parent for path in named}
        if folder.is_dir()
        for entry in os.listdir(folder)
        if Path(entry).suffix.lower() in IMAGE_SUFFIXES
    }
    return len((there | set(named)) - used - others)


def _judge(where: str, report: PartReport, part: Part, facts: dict[Path, Facts]) -> list[Problem]:
    lost = {rival: duel for rival, duel in report.truth_test.items() if duel.lost}
    if lost:
        best = min(lost, key=lambda rival: lost[rival].share)
        share = lost[best].share
        others = [rival for rival in lost if rival != best]
        also = f"; it also loses against {', '.join(others)}" if others else ""
        return [
            Problem(
                where,
                f"the truth explains the frames worse than {_phrase(best)}: it wins at "
                f"{share:.0%} of {lost[best].pixels} pixels{also}",
            )
        ]
    moving = any(_differ(record, facts) for record in part.dataset)
    if report.truths and report.known and report.largest == 0 and moving:
        return [Problem(where, "the truth is zero everywhere, though the frames differ")]
    return []


def _phrase(rival: str) -> str:
    if rival == truth_test.ZERO:
        return rival
    if rival in (truth_test.NEXT, truth_test.PREVIOUS):
        side = "next" if rival == truth_test.NEXT else "previous"
        return f"it explains the {side} pair (truth shifted by one frame)"
    return f"with {rival}"


def _differ(record: Record, facts: dict[Path, Facts]) -> bool:
    pair = [facts.get(f) if isinstance(f, Path) else None for f in (record.image1, record.image2)]
    digests = [fact.digest for fact in pair if isinstance(fact, FrameFacts)]
    return len(set(digests)) == 2
