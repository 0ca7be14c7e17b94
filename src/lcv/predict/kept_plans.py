"""A job keeps to the plan it was begun with: another strategy or other tiles give other bits.

What is free when a job is taken up again, or on the machine of another shard, need not be what was
free at first. The plan for each size of frame is therefore written into the job's file by whoever
comes to that size first, and holds for all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from lcv.errors import FileError, LcvError
from lcv.predict.manifest import OR_ANEW, Manifest
from lcv.predict.memory import in_words
from lcv.predict.pairs import Wanted
from lcv.predict.planner import Plan
from lcv.predict.tiles import Tiling

if TYPE_CHECKING:
    from lcv.predict.predictor import Predictor


def known_plan(
    predictor: Predictor, manifest: Manifest, size: tuple[int, int], wanted: Wanted
) -> Plan | None:
    """The job's plan for frames of this size, (H, W), if somebody has come to it.

    Its memory is predicted anew: it is this machine's, and of what is wanted now.
    """
    said = manifest.content["plans"].get(_name(size))
    if said is None:
        return None
    tiling = None
    if said["tiling"] is not None:
        tops, lefts, height, width, coarse = said["tiling"]
        tiling = Tiling(tuple(tops), tuple(lefts), height, width, (coarse[0], coarse[1]))
    most = predictor.planner.peak(said["strategy"], size, wanted, tiling)
    return Plan(said["strategy"], *size, most, predictor.max_memory, tiling)


def keep_plan(predictor: Predictor, manifest: Manifest, plan: Plan, wanted: Wanted) -> Plan:
    """The job's plan for frames of this size: this one, unless another process was first.

    From now on it is also the predictor's.
    """
    size = plan.height, plan.width
    said = _as_json(plan)
    if _name(size) not in manifest.content["plans"]:
        manifest.change(lambda content: content["plans"].setdefault(_name(size), said))
    if manifest.content["plans"][_name(size)] != said:
        another = known_plan(predictor, manifest, size, wanted)
        assert another is not None
        plan = another
    _check(predictor, manifest, plan, _name(size))
    for asked in {wanted, Wanted()}:
        predictor.planner.keep(plan, asked)
    return plan


def _name(size: tuple[int, int]) -> str:
    return f"{size[1]}×{size[0]}"


def out_of_memory(error: MemoryError | RuntimeError, label: str) -> LcvError:
    """What to say where a plan did not hold, because others took the memory; else the error."""
    said = str(error)
    known = isinstance(error, MemoryError | torch.OutOfMemoryError)
    if not known and "allocate memory" not in said:
        raise error
    return LcvError(
        f"{label}: memory ran out. Something else may have taken what was free at the start: say "
        f"--max-memory with less than was planned, and --overwrite, since that gives other bits"
    )


def _check(predictor: Predictor, manifest: Manifest, plan: Plan, name: str) -> None:
    asked, limit = predictor.strategy, predictor.max_memory
    if asked not in ("auto", plan.strategy):
        raise FileError(
            f"{manifest.path.parent}: its frames of {name} are computed by {plan.strategy}, and "
            f"here --strategy is {asked}. {OR_ANEW}"
        )
    if limit is not None and plan.bytes is not None and plan.bytes > limit:
        raise FileError(
            f"{manifest.path.parent}: its frames of {name} are computed by {plan.strategy} in "
            f"{in_words(plan.bytes)}, and here --max-memory is {in_words(limit)}. Allow more. {OR_ANEW}"
        )


def _as_json(plan: Plan) -> dict[str, Any]:
    tiling = None
    if plan.tiling is not None:
        tiling = [list(each) if isinstance(each, tuple) else each for each in plan.tiling]
    return {"strategy": plan.strategy, "tiling": tiling}
