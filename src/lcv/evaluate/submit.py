"""Write a benchmark's submission: a folder with its files and nothing else, and the same zipped.

Nothing appears under its name before everything is written and the archive has passed its own check.
Until then the files lie in OUT.part. An interrupted run goes on: finished pairs are not computed again.
"""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import nn

from lcv.data.formats.flow import write_flow
from lcv.data.formats.kitti import SCALE
from lcv.errors import ArgumentError, FileError
from lcv.evaluate.calling import (
    Caller,
    evaluating,
    image_tensor,
    usable_device,
    warm_units,
)
from lcv.evaluate.finished import Finished, forget, settings_of
from lcv.evaluate.protocols import PROTOCOLS, Protocol
from lcv.evaluate.run import read_ahead
from lcv.evaluate.submission import PATTERNS, Layout, layout_of, official_faults
from lcv.evaluate.submission_check import (
    KITTI_RANGE,
    SINTEL_LIMIT,
    check_submission,
    range_fault,
)
from lcv.files import check_output, whole_file
from lcv.models.types import FlowModel, tensor_of
from lcv.models.wrap import as_flow_model

Progress = Callable[[str, int, int], None]
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Submission:
    """What was written. clipped: pixels brought back into range, where that was allowed."""

    folder: Path
    archive: Path
    files: int
    clipped: int
    warm_start: bool


def write_submission(
    kind: str,
    model: nn.Module,
    data: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    protocol: Protocol = PROTOCOLS["raft"],
    warm_start: bool | None = None,
    device: torch.device | str | None = None,
    partial: bool = False,
    clip: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Submission:
    """The flow of every test pair, as the benchmark of this kind wants it.

    output:     the folder; the archive is beside it, with the ending .zip
    protocol:   iterations and padding, by default RAFT's
    warm_start: start from the flow of the pair before; by default for Sintel, where the network
                can (RAFT's own submission)
    partial:    take a test set that is not whole, for a trial; no server accepts it
    clip:       bring flow that is out of range to its nearest end, instead of refusing it
    """
    model = as_flow_model(model, "the model")
    layout = layout_of(kind, data)
    if not partial:
        faults = official_faults(kind, layout.records)
        if faults:
            place, text = faults[0]
            raise ArgumentError(
                f"{Path(data)}: this is not the whole test set: {place} {text}. Fetch the rest, "
                f"or use --partial for a trial that no server accepts."
            )
    if warm_start is None:
        warm_start = kind == "sintel" and cast(FlowModel, model).takes_flow_init
    folder = Path(output)
    folder = folder.with_suffix("") if folder.suffix == ".zip" else folder
    archive = folder.with_name(f"{folder.name}.zip")
    check_output(archive, overwrite)
    _check_folder(folder, kind, overwrite)
    if device is not None:
        model.to(usable_device(device))
    part = folder.with_name(f"{folder.name}.part")
    _check_folder(part, kind, overwrite=True)
    log = Finished(part, [*settings_of(model, protocol), warm_start])
    try:
        part.mkdir(exist_ok=True)
        with evaluating(model, protocol.precision) as network:
            clipped = _write_files(part, log, layout, network, protocol, warm_start, clip, progress)
        with whole_file(archive, overwrite) as temporary:
            _pack(part, list(layout.records), temporary)
            _must_pass(temporary, layout, official=not partial)
        if folder.is_dir():
            shutil.rmtree(folder)
        part.rename(folder)
    except OSError as error:
        raise FileError(f"{folder}: writing failed: {error}") from error
    finally:
        with suppress(OSError):
            part.rmdir()  # unless there is something in it
    forget(part)
    return Submission(folder, archive, len(layout.records), clipped, warm_start)


def _check_folder(folder: Path, kind: str, overwrite: bool) -> None:
    """Refuse a folder that is there, unless it is an old submission that may be replaced."""
    if not os.path.lexists(folder):
        return
    if not overwrite or not folder.is_dir() or folder.is_symlink():
        raise FileError(f"{folder}: exists already; choose another name or use --overwrite")
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if not path.is_dir() and not PATTERNS[kind].fullmatch(name):
            raise FileError(
                f"{folder}: holds {name}, which is no part of a submission, so it is not "
                f"replaced; choose another name"
            )


def _write_files(
    folder: Path,
    log: Finished,
    layout: Layout,
    model: nn.Module,
    protocol: Protocol,
    warm_start: bool,
    clip: bool,
    progress: Progress | None,
) -> int:
    names, records = list(layout.records), list(layout.records.values())
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        if path.relative_to(folder).as_posix() not in layout.records:
            path.unlink()  # of another part of the test set
    known = [
        log.get(each) if (folder / n).is_file() else None for n, each in layout.records.items()
    ]
    units = warm_units(records, warm_start)
    units = [unit for unit in units if None in [known[index] for index in unit]]
    firsts, order = {unit[0] for unit in units}, [index for unit in units for index in unit]
    call = Caller(model, warm_start)
    device = tensor_of(model).device
    clipped = sum(known[index] for index in {*range(len(records))} - {*order})
    for done, (index, sample) in enumerate(read_ahead(records, order), start=1):
        image1, image2 = (image_tensor(image, device) for image in (sample.image1, sample.image2))
        output = call(image1, image2, protocol.setting(layout.kind), index in firsts)
        flow = output.flow[0].permute(1, 2, 0).float().cpu().numpy()
        if not np.isfinite(flow).all():
            raise ArgumentError(
                f"{names[index]}: the network's flow is not a number at "
                f"{int((~np.isfinite(flow).all(-1)).sum())} pixels; look at its weights"
            )
        flow, changed = _in_range(layout.kind, names[index], flow, clip)
        clipped += changed
        target = folder / names[index]
        target.parent.mkdir(parents=True, exist_ok=True)
        write_flow(target, flow, overwrite=True)
        log.add(records[index], changed)
        if progress is not None:
            progress(layout.kind, done, len(order))
    return clipped


def _in_range(kind: str, name: str, flow: np.ndarray, clip: bool) -> tuple[np.ndarray, int]:
    """Flow that the benchmark can hold, and how many of its pixels had to be changed for that."""
    if kind == "sintel":
        high = np.nextafter(np.float32(SINTEL_LIMIT), np.float32(0))
        low = -high
    else:
        # One step inside the format's range: its very ends are what an overflow looks like.
        low, high = (
            np.float32(end) for end in (KITTI_RANGE[0] + 1 / SCALE, KITTI_RANGE[1] - 1 / SCALE)
        )
    inside = np.clip(flow, low, high)
    changed = int((inside != flow).any(-1).sum())
    if changed and not clip:
        fault = range_fault(kind, flow) or f"{changed} pixels are at the end of the format's range"
        raise ArgumentError(f"{name}: {fault}. Say --clip to bring it to the end of the range.")
    return inside, changed


def _pack(folder: Path, names: list[str], path: Path) -> None:
    """A zip archive of these files in this order; the same files give the same bytes."""
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            member = zipfile.ZipInfo(name, _LONG_AGO)
            member.external_attr = 0o644 << 16
            packed = name.endswith(".png")  # compressed as it is
            member.compress_type = zipfile.ZIP_STORED if packed else zipfile.ZIP_DEFLATED
            with (folder / name).open("rb") as file, archive.open(member, "w") as inside:
                shutil.copyfileobj(file, inside)


def _must_pass(archive: Path, layout: Layout, official: bool) -> None:
    faults = check_submission(archive, layout.kind, sizes=layout.sizes(), official=official)
    if faults:
        more = f" (and {len(faults) - 1} more faults)" if len(faults) > 1 else ""
        raise FileError(f"the submission does not pass its own check: {faults[0]}{more}")
