"""Draw the pictures of the documentation: `python docs/figures.py [FOLDER]`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from first_steps import figure_1

from lcv.data.augment import DDFLOW, RAFT_CHAIRS, RAFT_KITTI, augment, batch_of
from lcv.data.synthetic import BENCHMARK, MODERATE, QUICK, TRAINING, generate, generate_sequence
from lcv.visual.colours import flow_to_colour

PICTURES = Path(__file__).parent / "pictures"
SIZE = (208, 312)
Row = tuple[str, list[tuple[str, np.ndarray]]]


def picture(image: torch.Tensor) -> np.ndarray:
    """(3, h, w) in 0 … 255 → (h, w, 3) uint8."""
    return image.round().clamp(0, 255).byte().movedim(0, 2).numpy()


def colours(flow: torch.Tensor, valid: torch.Tensor | None = None) -> np.ndarray:
    """(2, h, w) → (h, w, 3); unknown flow is black."""
    known = None if valid is None else valid[0].numpy()
    return flow_to_colour(flow.movedim(0, 2).numpy(), valid=known)


def sources() -> Iterator[Row]:
    """One pair of every ready recipe, and a sequence."""
    recipes = {"training": TRAINING, "benchmark": BENCHMARK, "moderate": MODERATE, "quick": QUICK}
    for seed, (name, recipe) in enumerate(recipes.items(), start=3):
        made = generate(recipe, seed, [1], SIZE)
        yield (
            name,
            [
                ("frame 1", picture(made.image1[0])),
                ("frame 2", picture(made.image2[0])),
                ("flow", colours(made.flow[0])),
                ("occluded", np.repeat(255 * made.occluded[0, 0].numpy()[..., None], 3, 2)),
            ],
        )
    film = generate_sequence(MODERATE, 8, [0], SIZE, frames=3)
    flows = [("flow 1 → 2", colours(film.flow[0, 0])), ("flow 2 → 3", colours(film.flow[0, 1]))]
    frames = [(f"frame {t + 1}", picture(film.images[0, t])) for t in (0, 2)]
    yield "sequence", [*frames, *flows]


def augmentations() -> Iterator[Row]:
    """One pair, as it is made and as every recipe of augmentation changes it."""
    made = generate(TRAINING.without_effects(), 21, [4], SIZE)
    valid = torch.ones_like(made.occluded)
    sparse = torch.rand(valid.shape, generator=torch.Generator().manual_seed(0)) < 0.3
    rows = [("as made", None, valid), ("RAFT, dense", RAFT_CHAIRS, valid)]
    rows += [("RAFT, sparse", RAFT_KITTI, sparse), ("DDFlow", DDFLOW, valid)]
    for name, recipe, known in rows:
        batch = batch_of(made.image1, made.image2, torch.tensor([7]), made.flow, known)
        if recipe is not None:
            batch = augment(batch, recipe.with_crop((160, 240)), seed=5)
        yield (
            name,
            [
                ("frame 1", picture(batch.image1[0])),
                ("frame 2", picture(batch.image2[0])),
                ("flow", colours(batch.flow[0], batch.valid[0])),
            ],
        )


def draw_rows(rows: list[Row], path: Path) -> Path:
    """Rows of labelled pictures."""
    columns = max(len(cells) for _, cells in rows)
    figure = Figure(figsize=(2.9 * columns, 2.05 * len(rows)), layout="constrained")
    axes = figure.subplots(len(rows), columns, squeeze=False)
    for line, (name, cells) in zip(axes, rows, strict=True):
        for axis in line:
            axis.set_axis_off()
        for axis, (title, image) in zip(line, cells, strict=False):
            axis.imshow(image)
            axis.set_title(title, fontsize=8, color="#22303c")
        line[0].text(
            -0.04, 0.5, name, rotation=90, ha="right", va="center", transform=line[0].transAxes
        )
    figure.savefig(path, dpi=80, metadata={"Software": None}, pil_kwargs={"optimize": True})
    return path


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    print(figure_1(folder))
    print(draw_rows(list(sources()), folder / "sources.png"))
    print(draw_rows(list(augmentations()), folder / "augmentations.png"))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES)
