"""`lcv inspect`: what a network has learned in its W, as numbers and as pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lcv.cli.parser import Parser, count, whole
from lcv.errors import FileError

if TYPE_CHECKING:
    from torch import nn

    from lcv.visual.inspection import Level

WITHOUT = (
    "needs matplotlib, which is not installed: pip install 'lcv-flow[report]'; "
    "all numbers are in inspect.json"
)


def run(arguments: list[str]) -> int:
    parser = Parser(
        "lcv inspect",
        description="The learned W: its spectrum, condition, distance from I, the angles of P, and "
        "the directions it weighs most and least; with --image, the features of a frame along "
        "them. Writes pictures and inspect.json, which holds every number.",
    )
    parser.add_argument(
        "model", help="a network with embedded weights, a file of weights, or file.py:factory"
    )
    parser.add_argument("--weights", help="a file, or the name of a published checkpoint")
    parser.add_argument("--image", metavar="FRAME", help="draw feature maps over this frame")
    parser.add_argument(
        "--channels",
        nargs=2,
        type=count,
        metavar=("I", "J"),
        help="for the two vectors of figure 1 (the two that W ties most)",
    )
    parser.add_argument(
        "--count", type=whole, default=3, help="directions at each end (%(default)s)"
    )
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER", help="where to write")
    parser.add_argument("--overwrite", action="store_true", help="replace files that are there")
    chosen = parser.parse_args(arguments)

    import json

    from lcv.data.formats.image import read_image, write_image
    from lcv.files import make_folder, whole_file, write_text
    from lcv.models.build import spec_of
    from lcv.models.embedded import EMBEDDED
    from lcv.visual.inspection import inspect_model

    folder = Path(chosen.output)
    _check_folder(folder, chosen.overwrite)
    frame = None if chosen.image is None else read_image(chosen.image)
    if chosen.weights == chosen.model and chosen.model in EMBEDDED:  # its own, said twice
        chosen.weights = None
    model, weights = _load(chosen.model, chosen.weights)
    levels = inspect_model(model, None if chosen.channels is None else tuple(chosen.channels))
    spec = spec_of(model)
    # Embedded weights are called by their own name, which can be another than their network's.
    embedded = chosen.weights is None and chosen.model in EMBEDDED
    name = chosen.model if embedded else spec.name
    print(_headline(name, spec.inner_product, levels))
    drawn, notes = _pictures(model, levels, frame, chosen.count)
    about = {
        "name": name,
        "model": spec.as_dict(),
        "weights": weights,
        "image": None if chosen.image is None else Path(chosen.image).name,
        "levels": {key or "W": level.as_dict(chosen.count) for key, level in levels.items()},
        "pictures": [*drawn],
        "notes": notes,
    }
    make_folder(folder)
    text = json.dumps(about, indent=1, allow_nan=False) + "\n"
    write_text(folder / "inspect.json", text, chosen.overwrite)
    for file, picture in drawn.items():
        if hasattr(picture, "savefig"):
            with whole_file(folder / file, chosen.overwrite) as temporary:
                picture.savefig(temporary, format="png", dpi=110, metadata={"Software": None})
        else:
            write_image(folder / file, picture, overwrite=chosen.overwrite)
    for which, level in levels.items():
        print(". ".join([_line(which, level), *level.notes]))
    for note in notes:
        print(note)
    print(f"{folder}: inspect.json, {', '.join(drawn)}")
    return 0


def _check_folder(folder: Path, overwrite: bool) -> None:
    """Refuse before the work what would be refused after it."""
    from lcv.files import check_output

    if not folder.exists():
        return
    if not folder.is_dir():
        raise FileError(f"{folder}: is a file, wanted a folder to write into")
    for path in (folder / "inspect.json", *folder.glob("*.png")):
        if path.name == "inspect.json" or path.stem.split("-")[0] in PICTURES:
            check_output(path, overwrite)


def _load(name: str, weights: str | None) -> tuple[nn.Module, dict[str, str] | None]:
    """The network as its file has it: where there is no W, none is put in."""
    import lcv
    from lcv.models.archive import read_checkpoint
    from lcv.models.build import find, from_checkpoint
    from lcv.models.embedded import EMBEDDED, embedded_file
    from lcv.models.factory import is_factory
    from lcv.models.families import as_found
    from lcv.models.published import sha256_of
    from lcv.models.registry import check_name
    from lcv.models.weights import model_of
    from lcv.provenance import weights_words

    if is_factory(name):
        model = lcv.load(name, weights)
        return model, None if weights is None else weights_words(find(weights))
    if weights is not None:
        check_name(name)
        source = find(weights)
        checkpoint = read_checkpoint(source)
        kind = model_of(checkpoint).inner_product or "euclidean"
        model, _ = from_checkpoint(checkpoint, name, kind)
    else:
        if name not in EMBEDDED and "." not in name and not Path(name).exists():
            lcv.load(name)  # which says what is missing
        source = embedded_file(name) if name in EMBEDDED else find(name)
        model, _ = as_found(read_checkpoint(source))
    return model, {"file": source.name, "sha256": sha256_of(source)}


PICTURES = ("spectrum", "angles", "matrix", "features", "vectors")


def _pictures(
    model: nn.Module, levels: dict[str, Level], frame: Any, count: int
) -> tuple[dict[str, Any], list[str]]:
    """Pictures by file name, arrays or matplotlib's, and what there is to say about them."""
    from lcv.visual import weight_pictures as draw
    from lcv.visual.inspection import features_of

    drawn: dict[str, Any] = {"spectrum.png": draw.spectrum_chart(levels)}
    notes = []
    angles = draw.angles_chart(levels)
    if angles is not None:
        drawn["angles.png"] = angles
    for name, level in levels.items():
        drawn[_file("matrix", name)] = draw.matrix_picture(level)
    if frame is not None:
        import torch

        image = torch.from_numpy(frame).movedim(2, 0)[None].float()
        for name, features in features_of(model, image).items():
            drawn[_file("features", name)] = draw.eigen_feature_figure(
                frame, features, levels[name], count
            )
    for name, level in levels.items():
        if not level.has_ellipse:
            notes.append(f"{_file('vectors', name)}: not drawn, W is no inner product there")
            continue
        try:
            drawn[_file("vectors", name)] = draw.channel_plane_figure(level)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] != "matplotlib":
                raise
            notes.append(f"{_file('vectors', name)}: {WITHOUT}")
    return drawn, notes


def _file(kind: str, level: str) -> str:
    return f"{kind}-{level}.png" if level else f"{kind}.png"


def _headline(name: str, kind: str, levels: dict[str, Level]) -> str:
    if kind == "euclidean":
        return f"{name} is a plain network without W; the numbers are those of W = I"
    if all(level.is_identity for level in levels.values()):
        return f"{name} with {kind} W = I: it has not been trained yet"
    return (
        f"{name} with {kind} W, {len(levels)} of them" if len(levels) > 1 else f"{name}, {kind} W"
    )


def _line(name: str, level: Level) -> str:
    lam = level.summary.eigenvalues
    words = f"{f'level {name}' if name else 'W'}: {len(lam)} channels, eigenvalues "
    words += f"{_near_one(float(lam[0]))} to {_near_one(float(lam[-1]))}, "
    if level.positive:
        words += f"condition {_near_one(float(level.summary.condition))}, "
    words += f"distance from I {level.summary.distance:.3g}"
    if level.angles:
        words += f", P turns by up to {float(level.summary.angles[-1].rad2deg()):.3g} degrees"
    return words


def _near_one(value: float) -> str:
    """A number of which it matters how far it is from 1: 1 + 2.1e-05, 1, 0.83."""
    apart = value - 1
    if apart == 0 or abs(apart) >= 0.01:
        return f"{value:.3g}"
    return f"1 {'+' if apart > 0 else '−'} {abs(apart):.2g}"
