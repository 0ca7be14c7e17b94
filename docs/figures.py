"""Draw the pictures of the documentation: `python docs/figures.py [FOLDER]`."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
import interpolate
import track_points
from first_steps import figure_1

import lcv
from lcv.cli.main import main as command
from lcv.data.augment import DDFLOW, RAFT_CHAIRS, RAFT_KITTI, augment, batch_of
from lcv.data.formats.image import write_image
from lcv.data.formats.video import read_video
from lcv.data.synthetic import MODERATE, TRAINING, generate, generate_sequence
from lcv.data.synthetic.development import DEVELOPMENT
from lcv.data.synthetic.recipe import FRAMED, FURNITURE, GENTLE, HIDDEN, STREET
from lcv.visual.colours import flow_to_colour
from lcv.visual.plots import Curves, Line, draw
from lcv.visual.video import clip

PICTURES = Path(__file__).parent / "pictures"
SIZE = (208, 312)
VIEW_SIZE = (240, 384)
# What docs/view.md shows, as it says it is made: the picture, and the words after `lcv`.
VIEWS = {
    "view-flow.png": "view lcv/1.flo",
    "view-sintel.png": "view lcv/1.flo --truth truth/1.flo --limit 3",
    "view-kitti.png": "view lcv/1.flo --truth truth/1.flo --style kitti",
    "view-difference.png": "view lcv/1.flo --against vanilla/1.flo",
    "view-arrows.png": "view lcv/1.flo --image frames/1.png --spacing 20",
    "view-methods.jpg": "view figure methods --image frames/1.png frames/2.png --flow "
    "vanilla=vanilla/1.flo LCV=lcv/1.flo --truth truth/1.flo --limit 3 --width 240",
    "view-two-methods.jpg": "view figure difference --image frames/1.png --flow "
    "vanilla=vanilla/1.flo LCV=lcv/1.flo --truth truth/1.flo --width 320",
    "view-film.mp4": "view video frames --flow LCV=lcv truth=truth --arrows",
}
# EPE in px over the GPU minutes of training, as docs/results.md tells it.
OURS, BEFORE = "ours_large, from random weights", "the recipe before it, with its warm start"
MIDDLEBURY = {
    OURS: ([9, 14, 19, 22, 28, 36, 41], [0.340, 0.312, 0.294, 0.293, 0.297, 0.285, 0.286]),
    BEFORE: ([30, 36, 45], [0.472, 0.412, 0.402]),
}
DEVELOPMENT_SETS = {
    OURS: ([7, 11, 14, 20, 22, 28, 41], [1.681, 1.394, 1.134, 1.098, 1.104, 1.015, 0.908]),
    BEFORE: ([45], [1.180]),
}
# Photographs and maps are kept as JPEG, which is a quarter of the size.
INSPECTED = {"spectrum": ".png", "angles": ".png", "vectors": ".png", "features": ".jpg"}
Row = tuple[str, list[tuple[str, np.ndarray]]]


def picture(image: torch.Tensor) -> np.ndarray:
    """(3, h, w) in 0 … 255 → (h, w, 3) uint8."""
    return image.round().clamp(0, 255).byte().movedim(0, 2).numpy()


def colours(flow: torch.Tensor, valid: torch.Tensor | None = None) -> np.ndarray:
    """(2, h, w) → (h, w, 3); unknown flow is black."""
    known = None if valid is None else valid[0].numpy()
    return flow_to_colour(flow.movedim(0, 2).numpy(), valid=known)


def mask(values: torch.Tensor) -> np.ndarray:
    """(1, 1, h, w) bool → (h, w, 3), white where true."""
    return np.repeat(255 * values[0, 0].numpy()[..., None].astype(np.uint8), 3, 2)


def sources() -> Iterator[Row]:
    """One pair of every kind of scene, and a sequence."""
    kinds = {
        "training": (TRAINING, 3, 1),
        "moderate": (MODERATE, 5, 1),
        "hidden": (HIDDEN, 8, 1),
        "gentle": (GENTLE, 5, 2),
        "space, forward": (DEVELOPMENT["forward"], 5, 4),
        "space, sideways": (DEVELOPMENT["sideways"], 5, 3),
        "street": (STREET, 5, 1),
        "furniture": (FURNITURE, 1, 3),
        "framed": (FRAMED, 1, 3),
        "cylinders": (DEVELOPMENT["cylinders"], 5, 1),
    }
    for name, (recipe, seed, index) in kinds.items():
        made = generate(recipe, seed, [index], SIZE)
        yield (
            name,
            [
                ("frame 1", picture(made.image1[0])),
                ("frame 2", picture(made.image2[0])),
                ("flow", colours(made.flow[0])),
                ("occluded", mask(made.occluded)),
                ("moves by itself", mask(made.independent)),
            ],
        )
    film = generate_sequence(MODERATE, 8, [0], SIZE, frames=3)
    flows = [("flow 1 → 2", colours(film.flow[0, 0])), ("flow 2 → 3", colours(film.flow[0, 1]))]
    frames = [(f"frame {t + 1}", picture(film.images[0, t])) for t in range(3)]
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


def write_scene() -> None:
    """A procedural film in the folder we are in, with its true flow and that of two networks."""
    film = generate_sequence(MODERATE, 32, [1], VIEW_SIZE, frames=3)
    flows = {"truth": list(film.flow[0])}
    for folder, name in (("vanilla", "raft-small-vanilla"), ("lcv", "raft-small")):
        model = lcv.load(name)
        with torch.inference_mode():
            flows[folder] = [
                model(film.images[:, t], film.images[:, t + 1]).flow[0] for t in range(2)
            ]
    for folder in ("frames", *flows):
        Path(folder).mkdir()
    for t, image in enumerate(film.images[0], start=1):
        write_image(f"frames/{t}.png", picture(image))
    for folder, found in flows.items():
        for t, flow in enumerate(found, start=1):
            lcv.write_flow(f"{folder}/{t}.flo", flow.movedim(0, 2).numpy())


def examples(folder: Path) -> Iterator[Path]:
    """What two of the examples draw of a procedural film; docs/examples.md shows it."""
    film = generate_sequence(MODERATE, 32, [1], VIEW_SIZE, frames=9)
    with tempfile.TemporaryDirectory() as scene:
        video = Path(scene, "film.mp4")
        with clip(video, 10) as write:
            for image in film.images[0]:
                write(picture(image))
        track_points.main(str(video), Path(scene, "tracks.png"))
        interpolate.main(str(video), Path(scene, "between.mp4"))
        for name in ("tracks", "between"):
            target = folder / f"example-{name}.jpg"
            write_image(target, lcv.read_image(Path(scene, f"{name}.png")), overwrite=True)
            yield target


def views(folder: Path) -> Iterator[Path]:
    """The gallery of `lcv view` and `lcv inspect`, drawn by these commands themselves."""
    here = Path.cwd()
    folder = folder.resolve()
    with tempfile.TemporaryDirectory() as scene:
        os.chdir(scene)
        try:
            write_scene()
            for name, words in VIEWS.items():
                _run(f"{words} -o {name}")
                if name.endswith(".mp4"):
                    shown = name.replace(".mp4", ".jpg")
                    write_image(shown, next(iter(read_video(name))))
                    name = shown
                yield Path(shutil.move(name, folder / name))
            _run("inspect raft-small --image frames/1.png -o inspected")
            for name, ending in INSPECTED.items():
                target = folder / f"inspect-{name}{ending}"
                write_image(target, lcv.read_image(f"inspected/{name}.png"), overwrite=True)
                yield target
        finally:
            os.chdir(here)


def learning_curve(path: Path) -> Path:
    """How fast our RAFT-large learned, by two recipes."""
    panels = []
    for title, lines in (("Middlebury, 4", MIDDLEBURY), ("development sets", DEVELOPMENT_SETS)):
        drawn = [Line(label, *points, marker="o") for label, points in lines.items()]
        panels.append(Curves(title, "minutes on one H200", "EPE, px", drawn))
    draw(panels, columns=2).savefig(path, dpi=130)
    return path


def _run(words: str) -> None:
    if command(words.split()):
        raise SystemExit(f"lcv {words} failed")


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    print(figure_1(folder))
    print(draw_rows(list(sources()), folder / "sources.png"))
    print(draw_rows(list(augmentations()), folder / "augmentations.png"))
    print(learning_curve(folder / "learning-curve.png"))
    for path in (*views(folder), *examples(folder)):
        print(path)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES)
