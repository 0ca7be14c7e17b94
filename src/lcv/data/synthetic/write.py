"""Write procedural sequences to disk in Sintel's layout, so that any reader of Sintel reads them.

folder/training/clean/<scene>/frame_0001.png          without effects
folder/training/final/<scene>/frame_0001.png          with the recipe's effects, if it has any
folder/training/flow/<scene>/frame_0001.flo           to the next frame
folder/training/occlusions/<scene>/frame_0001.png     255 where hidden in the next frame or gone
folder/recipe.json                                    what made it
"""

from __future__ import annotations

import json
from dataclasses import asdict
from os import PathLike
from pathlib import Path

import torch
from torch import Tensor

from lcv.data.synthetic.sequence import generate_sequence
from lcv.data.synthetic.settings import Mixture, Recipe
from lcv.errors import ArgumentError, FileError
from lcv.files import make_folder, read_json, write_text


def write_dataset(
    folder: str | PathLike[str],
    recipe: Recipe | Mixture,
    seed: int,
    count: int,
    size: tuple[int, int],
    *,
    frames: int = 2,
    first: int = 0,
    batch: int = 4,
    device: torch.device | str = "cpu",
    textures: Tensor | None = None,
    overwrite: bool = False,
) -> None:
    """Write the sequences first … first + count − 1 of this recipe and seed.

    The scene of index 7 is "scene_000007", so parts of one recipe, seed, size and number of frames
    that are written separately fit together; a folder with scenes of another is refused, since
    frames and truth of both would get mixed. A file that is there already is an error unless
    `overwrite`.
    """
    if count < 1 or batch < 1 or first < 0:
        raise ArgumentError(
            f"write_dataset: count is {count}, batch {batch} and first {first}; wanted count and "
            f"batch of 1 or more, first of 0 or more"
        )
    if not str(folder):
        raise ArgumentError("write_dataset: the folder has no name; say where to write")
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ArgumentError(
            f"write_dataset: device {device!r} cannot be used here: {reason}"
        ) from None
    folder = Path(folder)
    about = {
        "recipe": asdict(recipe),
        "seed": seed,
        "size": list(size),
        "frames": frames,
        "textures": "procedural" if textures is None else "own",
    }
    _claim(folder, about)
    plain = recipe.without_effects()
    passes = {"clean": plain} if recipe == plain else {"clean": plain, "final": recipe}
    for start in range(first, first + count, batch):
        indices = range(start, min(start + batch, first + count))
        for name, variant in passes.items():
            made = generate_sequence(
                variant, seed, indices, size, device, frames=frames, textures=textures
            )
            _write_images(folder, name, indices, made.images, overwrite)
        _write_truth(folder, indices, made.flow, made.occluded, overwrite)


def _claim(folder: Path, about: dict[str, object]) -> None:
    """Make the folder ours: recipe.json is written before any scene, and must agree if it is there."""
    path = folder / "recipe.json"
    make_folder(folder)
    if not path.exists():
        write_text(path, json.dumps(about, indent=2) + "\n")
        return
    said, wanted = read_json(path, "what `lcv data make` wrote"), json.loads(json.dumps(about))
    differing = [key for key in wanted if said.get(key) != wanted[key]]
    if differing:
        raise FileError(
            f"{path}: the scenes here were made with another {', '.join(differing)}; writing into "
            f"them would mix frames and truth of both. Choose another folder."
        )


def _scene_folder(folder: Path, kind: str, index: int) -> Path:
    place = folder / "training" / kind / f"scene_{index:06d}"
    place.mkdir(parents=True, exist_ok=True)
    return place


def _write_images(folder: Path, name: str, indices: range, images: Tensor, overwrite: bool) -> None:
    from lcv.data.formats.image import write_image

    levels = images.round().byte().permute(0, 1, 3, 4, 2).contiguous().cpu().numpy()
    for index, frames in zip(indices, levels, strict=True):
        place = _scene_folder(folder, name, index)
        for number, frame in enumerate(frames, start=1):
            write_image(place / f"frame_{number:04d}.png", frame, overwrite=overwrite)


def _write_truth(
    folder: Path, indices: range, flow: Tensor, occluded: Tensor, overwrite: bool
) -> None:
    from lcv.data.formats.flow import write_flow
    from lcv.data.formats.mask import write_mask

    flows = flow.permute(0, 1, 3, 4, 2).contiguous().cpu().numpy()
    masks = occluded[:, :, 0].cpu().numpy()
    for k, index in enumerate(indices):
        flow_place = _scene_folder(folder, "flow", index)
        mask_place = _scene_folder(folder, "occlusions", index)
        for step in range(flows.shape[1]):
            name = f"frame_{step + 1:04d}"
            write_flow(flow_place / f"{name}.flo", flows[k, step], overwrite=overwrite)
            write_mask(mask_place / f"{name}.png", masks[k, step], overwrite=overwrite)
