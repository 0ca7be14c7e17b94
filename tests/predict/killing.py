"""A program that kills jobs: `python -m predict.killing FRAMES FOLDER`, run by test_run.py.

Each job runs in a process of its own, which ends at one moment as after SIGKILL: nothing is caught,
closed or removed. Then it is run again to its end. Prints, by moment, whether the job was killed
there, and whether its files are those of a job that was not; all as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import torch

from lcv import files
from lcv.predict.done_log import DoneLog
from predict.small_jobs import PLAIN, made, quick_predictor, run

SETTINGS = {**PLAIN, "clip": True, "warm_start": True}
# "after X": X has its name; "before X": it is written under its temporary name. The lines are counted.
MOMENTS = (
    "after job.json",
    "after 72x64.json",
    "before frame_1.flo",
    "after frame_1.flo",
    "before line 1",  # the outputs of pair 1 are in place, and no line lists them
    "before line 4",
    "torn line 3",
    "after line 2",
    "before walk.mp4",
    "after walk.mp4",
    "before line 7",  # the clip's
)


def die_at(moment: str) -> None:
    """Let this process end at a moment."""
    publish, append, lines = files._publish, DoneLog.append, [0]

    def here(event: str) -> None:
        if event == moment:
            os._exit(9)

    def dying_publish(temporary: Path, path: Path, overwrite: bool) -> None:
        here(f"before {path.name}")
        publish(temporary, path, overwrite)
        here(f"after {path.name}")

    def dying_append(log: DoneLog, *arguments, **more) -> None:
        lines[0] += 1
        here(f"before line {lines[0]}")
        size = log.own.stat().st_size if log.own.exists() else 0
        append(log, *arguments, **more)
        if moment == f"torn line {lines[0]}":
            os.truncate(log.own, (size + log.own.stat().st_size) // 2)
            os._exit(9)
        here(f"after line {lines[0]}")

    files._publish, DoneLog.append = dying_publish, dying_append  # type: ignore[assignment]


def in_a_process(work) -> int:
    """What a process that does this work ends with."""
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(frames: str, home: str) -> None:
    torch.set_num_threads(1)
    predictor, folder = quick_predictor(), Path(home)

    def job(root: str, moment: str | None = None):
        def work() -> None:
            if moment is not None:
                die_at(moment)
            run(predictor, frames, folder / root, **SETTINGS)

        return work

    assert in_a_process(job("whole")) == 0
    whole, found = made(folder / "whole"), {}
    for moment in MOMENTS:
        was_killed = in_a_process(job(moment, moment)) == 9
        done = in_a_process(job(moment)) == 0
        found[moment] = was_killed, done and made(folder / moment) == whole
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
