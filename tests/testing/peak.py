"""Read files in a process of their own, and tell what each cost: memory, time, and its refusal."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

# Reads each file as it is told, and prints (outcome, growth in bytes, seconds of the CPU) for each.
CHILD = """
import json, sys, time
import av, h5py, numpy, PIL.Image
import lcv
from lcv.data.formats.flow import read_flow
from lcv.data.formats.image import read_image
from lcv.data.formats.mask import read_mask
from lcv.data.formats.video import read_video
def drain(path):
    for _ in read_video(path):
        pass
readers = {"flow": read_flow, "image": read_image, "mask": read_mask, "video": drain}
jobs = json.load(sys.stdin)
if any(kind == "job" for kind, _ in jobs):
    from pathlib import Path
    from lcv.predict.folder import JobFolder
    readers["job"] = lambda path: JobFolder(Path(path), {"warm_start": False}).open(False, ())
if any(kind == "checkpoint" for kind, _ in jobs):
    from safetensors.torch import load
    from lcv.models.archive import read_checkpoint
    readers["checkpoint"] = read_checkpoint
if any(kind in ("results", "config", "list", "frames") for kind, _ in jobs):
    from lcv.cli.predict_inputs import find_inputs
    from lcv.data.listfile import listfile
    from lcv.evaluate.results import read_results
    from lcv.recipes import load_stages
    readers |= {"results": read_results, "config": load_stages, "list": listfile}
    readers["frames"] = lambda path: find_inputs([path])
def peak():  # not ru_maxrss, which a process inherits from the one that started it
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM"))
start = peak()
results = []
for kind, path in jobs:
    began = time.process_time()
    try:
        readers[kind](path)
        outcome = "read"
    except lcv.LcvError as error:
        outcome = str(error)
    results.append((outcome, peak() - start, time.process_time() - began))
print(json.dumps(results))
"""


class Cost(NamedTuple):
    """`outcome` is "read" or the refusal; `growth` of all files so far, in bytes; `seconds` of
    the CPU, which other work on the machine does not change."""

    outcome: str
    growth: int
    seconds: float


def costs(jobs: Iterable[tuple[str, Path]]) -> list[Cost]:
    """What it costs to read each (kind, path).

    kind: flow, image, mask, video, checkpoint, results, config, list; frames: a list for predict;
        job: a folder that predict resumes
    """
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        input=json.dumps([(kind, str(path)) for kind, path in jobs]),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return [Cost(*found) for found in json.loads(done.stdout)]
