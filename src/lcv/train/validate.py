"""Metrics of a model in training: on held-out procedural pairs, on any dataset with truth, and,
for what learns without truth, on frames that have none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from lcv.data.synthetic.recipe import RECIPES
from lcv.data.synthetic.sequence import generate
from lcv.errors import ArgumentError, FileError
from lcv.evaluate.metrics import flow_sums, metrics_of
from lcv.evaluate.run import Readable
from lcv.evaluate.sources import records_in
from lcv.losses.census import census_loss
from lcv.models.types import in_evaluation, tensor_of
from lcv.train.batches import texture_bank
from lcv.train.config import SplitConfig, TrainConfig
from lcv.train.distributed import Processes
from lcv.train.files import list_records
from lcv.train.kept import Kept, Pair

if TYPE_CHECKING:
    from lcv.train.development import Development, PerPair

HELD_OUT_SEED = 2**31  # far from any seed of training
PAIRS = 48
AT_ONCE = 8
SAMPLES = 4
UNJUDGED = 16  # pairs without truth
LOWER_IS_BETTER = ("epe", "epe_image", "fl")
PROCEDURAL = "procedural"
DEVELOPMENT = "development"


@dataclass(frozen=True)
class Judged:
    """One pair after the network: image1 (3, h, w) in 0..255, flow and truth (2, h, w), valid
    (1, h, w) bool."""

    image: Tensor
    flow: Tensor
    truth: Tensor
    valid: Tensor


Show = Callable[[str, Judged], None]
"""Takes a name, such as procedural/0, and the pair."""


def held_out_pairs(
    config: TrainConfig, device: torch.device, first: int = 0, step: int = 1
) -> Iterator[Pair]:
    """Pairs of the training's kind with textures and scenes that it never sees.

    The same ones for every seed. first, step: begin with this batch of them, take every step-th.
    """
    data = config.data
    bank = texture_bank(data, "held-out", device)
    recipe = RECIPES[data.recipe if data.source == "procedural" else "training"]
    for begin in range(first * AT_ONCE, PAIRS, step * AT_ONCE):
        indices = range(begin, min(begin + AT_ONCE, PAIRS))
        made = generate(recipe, HELD_OUT_SEED, indices, data.size, device, textures=bank)
        valid = torch.ones_like(made.occluded)
        yield made.image1, made.image2, made.flow, valid


def read_pairs(records: Iterable[Readable], device: torch.device) -> Iterator[Pair]:
    """Records with truth as batches of one."""
    for record in records:
        sample = record.read()
        arrays = (sample.image1, sample.image2, sample.flow)
        tensors = [torch.from_numpy(np.array(a)).movedim(2, 0)[None].float() for a in arrays]
        valid = torch.from_numpy(np.array(sample.valid))[None, None]
        image1, image2, flow, valid = (x.to(device) for x in (*tensors, valid))
        yield image1, image2, flow, valid


class Validation:
    """What `validation` names, listed when a run begins, so that what is missing is found then.

    kept: shared by runs that validate on the same pairs, which are then made or read once
    """

    def __init__(self, config: TrainConfig, processes: Processes, kept: Kept | None = None) -> None:
        self.config, self.processes, self.kept = config, processes, kept
        self.records: dict[str, Sequence[Readable]] = {}
        self.without_truth: dict[str, Sequence[Readable]] = {}
        self.development: Development | None = None
        self.per_pair: PerPair | None = None
        """Of the development sets, at the last validation on them."""
        for name, where in config.validation.items() if config.validate_every else ():
            if where == DEVELOPMENT:
                from lcv.train.development import Development  # few runs are judged by it

                self.development = Development(config, processes, kept)
            if where in (PROCEDURAL, DEVELOPMENT):
                continue
            records = records_of(name, where, config)
            if isinstance(where, SplitConfig) and all(r.flow is None for r in records):
                step = -(-len(records) // UNJUDGED)
                self.without_truth[name] = records[::step]
            else:
                self.records[name] = records

    def check_best(self) -> None:
        """Refuse a `best` that no validation will give, or of which more is better.

        Else no best checkpoint would be kept, or the worst.
        """
        if not (self.config.validate_every and self.config.validation):
            return
        known = []
        for name, where in self.config.validation.items():
            numbers = ("census",) if name in self.without_truth else LOWER_IS_BETTER
            numbers = ("epe",) if where == DEVELOPMENT else numbers
            known += [f"{name}/{number}" for number in numbers]
        if self.config.best not in known:
            raise ArgumentError(
                f"best is {self.config.best!r}, wanted a number that validation gives and of which "
                f"less is better: {', '.join(known)}"
            )

    @torch.no_grad()
    def __call__(self, model: nn.Module, show: Show | None = None) -> dict[str, float]:
        """Named metrics, each under the name of its dataset: "procedural/epe", …; and
        "procedural/zero_flow_epe", the EPE of no motion at all, to compare with. Without truth,
        "films/census" and "films/zero_flow_census". The development sets give "development/epe", their
        mean, "development/street/epe", "development/street/boundary", ….

        Every process measures its share, and each is given the numbers of the whole. show: is
        given the first pairs of each dataset. Every module is left in the mode it was in.
        """
        results: dict[str, float] = {}
        with in_evaluation(model):
            for name, where in self.config.validation.items():
                if name in self.without_truth:
                    results |= self._compare_frames(model, name)
                elif where == DEVELOPMENT and self.development is not None:
                    self.per_pair = self.development(model, self._options())
                    numbers = self.per_pair.numbers()
                    results |= {f"{name}/{key}": value for key, value in numbers.items()}
                else:
                    results |= self._measure(model, name, show)
        return results

    def _options(self) -> dict[str, Any]:
        iters = self.config.validate_iters
        return {} if iters is None else {"iters": iters}

    def _measure(self, model: nn.Module, name: str, show: Show | None) -> dict[str, float]:
        device = self.processes.device
        options = self._options()
        dtype = tensor_of(model).dtype
        sums = torch.zeros(2, 8, dtype=torch.float64, device=device)
        shown = 0
        for image1, image2, truth, valid in self._share(name):
            flow = model(image1.to(dtype), image2.to(dtype), **options).flow
            sums[0] += flow_sums(flow, truth, valid)
            sums[1] += flow_sums(torch.zeros_like(flow), truth, valid)
            if show is not None:
                for i in range(min(len(flow), SAMPLES - shown)):
                    show(f"{name}/{shown}", Judged(image1[i], flow[i], truth[i], valid[i]))
                    shown += 1
        total, zero = self.processes.sum(sums)
        found = metrics_of(total)
        if found:
            found["zero_flow_epe"] = metrics_of(zero)["epe"]
        return {f"{name}/{key}": value for key, value in found.items()}

    def _compare_frames(self, model: nn.Module, name: str) -> dict[str, float]:
        """The census loss of the flow and of zero flow, mean over pairs; every pixel counts.

        Occlusions are not left out, since a network that calls everything occluded would win. What
        the network gives is told to all processes with the sums: one that has no pair of its own
        cannot see it, and would wait for ever for those that ended without them.
        """
        dtype = tensor_of(model).dtype
        sums = torch.zeros(4, dtype=torch.float64, device=self.processes.device)
        own = self.without_truth[name][self.processes.rank :: self.processes.world]
        for record in own:
            image1, image2 = self._middles(record, dtype)
            output = model(image1, image2)
            if output.backward is None:
                sums[3] = 1
                break
            nothing = torch.zeros_like(output.flow)
            sums[0] += census_loss(image1, image2, output.flow, output.backward.flow)
            sums[1] += census_loss(image1, image2, nothing, nothing)
            sums[2] += 1
        census, zero, count, one_way = self.processes.sum(sums).tolist()
        if one_way:
            raise ArgumentError(
                f"validation.{name}: its pairs have no truth, and the network gives no backward "
                f"flow to compare frames by; wanted a dataset with truth, or model.name ddflow"
            )
        return {f"{name}/census": census / count, f"{name}/zero_flow_census": zero / count}

    def _middles(self, record: Readable, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Both frames of a pair, (1, 3, h, w): what `data.size` leaves of their middle."""
        height, width = self.config.data.size

        def middle(image: np.ndarray) -> Tensor:
            top = max((image.shape[0] - height) // 2, 0)
            left = max((image.shape[1] - width) // 2, 0)
            cut = np.array(image[top : top + height, left : left + width])
            return torch.from_numpy(cut).movedim(2, 0)[None].to(self.processes.device, dtype)

        sample = record.read()
        return middle(sample.image1), middle(sample.image2)

    def _share(self, name: str) -> Iterator[Pair]:
        if self.kept is None:
            return self._fresh_share(name)
        return self.kept.pairs(f"validation {name}", lambda: self._fresh_share(name))

    def _fresh_share(self, name: str) -> Iterator[Pair]:
        rank, world, device = self.processes.rank, self.processes.world, self.processes.device
        if name not in self.records:
            return held_out_pairs(self.config, device, rank, world)
        return read_pairs(self.records[name][rank::world], device)


def records_of(name: str, where: str | SplitConfig, config: TrainConfig) -> Sequence[Any]:
    """The records of one of the datasets that `validation` names: those with truth, if any has it.

    Where none has, all of them, for a run that learns without truth.
    """
    if isinstance(where, SplitConfig):
        try:
            dataset = list_records(where, config.data, f"validation.{name}")
        except (ArgumentError, FileError) as error:
            text = str(error).removeprefix(f"validation.{name}: ")
            raise type(error)(f"validation.{name}: {text}") from error
        records = [record for record in dataset if record.flow is not None]
        if not records and config.loss.name != "unsupervised":
            raise ArgumentError(
                f"validation.{name}: no pair of {dataset.name} has truth; choose another split"
            )
        return records or list(dataset)
    if not Path(where).exists():
        raise ArgumentError(
            f"validation.{name}: there is no {where}; wanted a dataset, or the words "
            f"{PROCEDURAL} or {DEVELOPMENT}"
        )
    try:
        return records_in([where])
    except (ArgumentError, FileError) as error:
        raise type(error)(f"validation.{name}: {error}") from error
