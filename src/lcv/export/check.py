"""The check on the spot: a file's flow against the model's, on seeded pairs and on the caller's."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from lcv.data.formats.image import read_image
from lcv.data.synthetic import QUICK, generate, procedural_bank
from lcv.errors import ArgumentError, FileError
from lcv.export.sizes import Sizes, cases
from lcv.models.types import ExportRule

Run = Callable[[Tensor, Tensor], Tensor]
PairOfFiles = tuple[str | os.PathLike[str], str | os.PathLike[str]]

MOST_MEAN = 1e-3
MOST_AT_999 = 1e-2
SEED = 2020


class Pair(NamedTuple):
    """Two images (1, 3, h, w) float32, their name, and the mode of the rule they are fitted by."""

    name: str
    image1: Tensor
    image2: Tensor
    mode: str | None


@dataclass(frozen=True)
class Difference:
    """How far two flows of one pair lie apart, in pixels: |flow − model's| over all pixels.

    image: (h, w) before, given: after padding or resizing;  at_999: the 99.9 % quantile
    length: the mean |flow| of the model, so that the rest can be judged
    """

    pair: str
    image: tuple[int, int]
    given: tuple[int, int]
    mode: str | None
    mean: float
    at_999: float
    most: float
    length: float

    @property
    def is_small(self) -> bool:
        # Not a number is not small.
        return self.mean <= MOST_MEAN and self.at_999 <= MOST_AT_999

    def as_dict(self) -> dict[str, Any]:
        """Plain values of JSON, which has lists and no tuples."""
        return {**asdict(self), "image": list(self.image), "given": list(self.given)}

    def words(self) -> str:
        h, w = self.image
        return f"{h}×{w} mean {self.mean:.2g}, 99.9 % {self.at_999:.2g}, max {self.most:.2g} px"


def seeded_pairs(rule: ExportRule, sizes: Sizes) -> list[Pair]:
    """Moving textures in whole grey levels, one pair of each of the three sizes."""
    textures = procedural_bank("held-out", count=16)
    pairs = []
    for index, (height, width, mode) in enumerate(cases(rule, sizes)):
        batch = generate(QUICK, SEED, [index], (height, width), textures=textures)
        pairs.append(Pair("procedural", batch.image1.round(), batch.image2.round(), mode))
    return pairs


def read_pairs(rule: ExportRule, sizes: Sizes, files: Sequence[PairOfFiles]) -> list[Pair]:
    """The caller's own pairs, refused where the file to come will not take them."""
    pairs = []
    for paths in files:
        first, second = map(Path, paths)
        image1, image2 = (
            torch.from_numpy(np.array(read_image(path))).movedim(2, 0)[None].float()
            for path in (first, second)
        )
        if image1.shape != image2.shape:
            shapes = [f"{each.shape[2]}×{each.shape[3]}" for each in (image1, image2)]
            raise ArgumentError(
                f"{second}: this frame is {shapes[1]} and {first} is {shapes[0]}; wanted one size"
            )
        pair = Pair(f"{first.name}, {second.name}", image1, image2, rule.modes[0])
        h, w = rule.fit(image1, image2, pair.mode).image1.shape[2:]
        if not sizes.take(h, w):
            raise ArgumentError(
                f"{first}: the check cannot use it: it comes to {h}×{w} by the rule for other sizes, "
                f"and the file takes {sizes.words()}"
            )
        pairs.append(pair)
    return pairs


@torch.no_grad()
def difference(
    model: nn.Module, run: Run, rule: ExportRule, pair: Pair, iters: int | None = None
) -> Difference:
    """One pair through the model as its users call it, and through the file by the file's rule."""
    name, image1, image2, mode = pair
    options = {key: value for key, value in (("iters", iters), ("pad", mode)) if value is not None}
    truth = model(image1, image2, **options).flow
    fitted = rule.fit(image1, image2, mode)
    flow = fitted.undo(run(fitted.image1, fitted.image2))
    apart = (flow - truth).norm(dim=1).double().numpy()
    return Difference(
        pair=name,
        image=(image1.shape[2], image1.shape[3]),
        given=(fitted.image1.shape[2], fitted.image1.shape[3]),
        mode=mode,
        mean=float(apart.mean()),
        at_999=float(np.quantile(apart, 0.999)),
        most=float(apart.max()),
        length=float(truth.norm(dim=1).mean()),
    )


def second_of_two(run: Run) -> Run:
    """The same by a batch of two pairs, of which the first is the pair turned round."""

    def second(image1: Tensor, image2: Tensor) -> Tensor:
        return run(torch.cat([image2, image1]), torch.cat([image1, image2]))[1:]

    return second


def refuse_large(path: object, differences: Sequence[Difference]) -> None:
    """Refuse to write a file whose flow is not the model's."""
    bad = [each for each in differences if not each.is_small]
    if bad:
        raise FileError(
            f"{path}: not written, since its flow is not the model's: "
            f"{'; '.join(each.words() for each in bad)}; wanted at most {MOST_MEAN:g} px in the mean "
            f"and {MOST_AT_999:g} px at 99.9 %. Untrained weights can differ so, since rounding "
            f"grows in them; with trained ones, try the other lookup or format."
        )
