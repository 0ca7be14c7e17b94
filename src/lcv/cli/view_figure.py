"""`lcv view figure`: the figures that papers print, from flow files."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from lcv.cli import view, view_files
from lcv.cli.parser import Parser, positive, whole
from lcv.errors import ArgumentError
from lcv.words import one_line

if TYPE_CHECKING:
    import numpy as np

    from lcv.visual.figures import Known


def run(arguments: list[str]) -> int:
    chosen = _parser().parse_args(arguments)
    return int(chosen.job(chosen))


def _parser() -> argparse.ArgumentParser:
    parser = Parser("lcv view figure", description=__doc__)
    jobs = parser.add_subparsers(required=True, metavar="methods | difference")
    methods = jobs.add_parser(
        "methods",
        help="inputs and truth, then a column a method: flow, error, number",
        description="Two frames and the truth, then for every method its flow, its error map and "
        "its errors in numbers.",
    )
    _common(methods, "any number of them")
    methods.add_argument("--truth", required=True, metavar="FLOW", help="the true flow")
    view.add_style(methods)
    methods.set_defaults(job=_methods)
    apart = jobs.add_parser(
        "difference",
        help="flow by two methods, and their difference",
        description="A frame, flow by two methods, their difference in colours and its length.",
    )
    _common(apart, "two of them")
    apart.add_argument("--truth", metavar="FLOW", help="the true flow, for numbers under each")
    apart.add_argument(
        "--difference-scale",
        type=positive,
        metavar="PX",
        help="difference in full colour; by default as long as 99 %% of it, which is printed",
    )
    apart.set_defaults(job=_difference)
    return parser


def _common(parser: argparse.ArgumentParser, how_many: str) -> None:
    parser.add_argument(
        "--image", nargs="+", required=True, metavar="FRAME", help="frame 1, and frame 2 if needed"
    )
    parser.add_argument(
        "--flow",
        nargs="+",
        required=True,
        metavar="NAME=FILE",
        help=f"flow by a method, {how_many}, with the name to print (default: the file's)",
    )
    parser.add_argument("-o", "--output", required=True, help="the picture to write")
    view.add_scale(parser)
    parser.add_argument(
        "--width", type=whole, metavar="PX", help="of one picture (its own, at most 480)"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an existing picture")


def _methods(chosen: argparse.Namespace) -> int:
    from lcv.visual.figures import common_scale, methods_figure

    frames, flows, truth = _read(chosen, wanted_frames=2)
    assert truth is not None
    scale = _scale(chosen.scale, common_scale(truth, *flows.values()))
    numbers = {name: view.number_of(flow, truth) for name, flow in flows.items()}
    style = view.style_of(chosen, Path(chosen.truth))
    figure = methods_figure(
        frames, flows, truth, style=style, numbers=numbers, scale=scale, width=chosen.width
    )
    for name, number in numbers.items():
        print(one_line(f"{name}: {number}"))
    return _write(chosen, figure)


def _difference(chosen: argparse.Namespace) -> int:
    from lcv.visual.figures import common_scale, difference, difference_figure, difference_scale

    frames, flows, truth = _read(chosen, wanted_frames=1)
    if len(flows) != 2:
        raise ArgumentError(f"--flow: {len(flows)} given, wanted two, to draw their difference")
    a, b = flows.values()
    scale = _scale(chosen.scale, common_scale(a, b))
    own = _scale(chosen.difference_scale, difference_scale(difference(a, b)), "difference-scale")
    numbers = {}
    if truth is not None:
        numbers = {name: view.number_of(flow, truth) for name, flow in flows.items()}
    figure = difference_figure(
        frames[0],
        flows,
        numbers=numbers,
        scale=scale,
        apart_scale=own,
        width=chosen.width,
    )
    return _write(chosen, figure)


def _read(
    chosen: argparse.Namespace, wanted_frames: int
) -> tuple[list[np.ndarray], dict[str, Known], Known | None]:
    """All files, of one size, before anything is drawn."""
    from lcv.data.formats.image import read_image
    from lcv.files import check_output

    if Path(chosen.output).suffix.lower() not in view_files.PICTURES:
        raise ArgumentError(
            f"-o {chosen.output}: wanted a picture's name ({', '.join(view_files.PICTURES)})"
        )
    check_output(chosen.output, chosen.overwrite)
    if len(chosen.image) < wanted_frames or len(chosen.image) > 2:
        raise ArgumentError(
            f"--image: {len(chosen.image)} given, wanted frame 1"
            f"{' and frame 2' if wanted_frames == 2 else ''}"
        )
    paths = view_files.named_files(chosen.flow, "--flow")
    flows = {name: view_files.read_known(path) for name, path in paths.items()}
    first, like = next(iter(paths.values())), next(iter(flows.values()))
    for name, flow in flows.items():
        view_files.check_same_size(first, like, paths[name], flow.flow)
    frames = []
    for word in chosen.image[:wanted_frames]:
        frames.append(read_image(word))
        view_files.check_same_size(first, like, Path(word), frames[-1])
    truth = None
    if chosen.truth is not None:
        truth = view_files.read_known(Path(chosen.truth))
        view_files.check_same_size(first, like, Path(chosen.truth), truth.flow)
    return frames, flows, truth


def _scale(given: float | None, automatic: float, option: str = "scale") -> float:
    if given is not None:
        return given
    print(f"{option}: {automatic:g} px is full colour; --{option} {automatic:g} gives it again")
    return automatic


def _write(chosen: argparse.Namespace, figure: np.ndarray) -> int:
    from lcv.data.formats.image import write_image

    write_image(chosen.output, figure, overwrite=chosen.overwrite)
    print(f"{chosen.output}: {figure.shape[1]}×{figure.shape[0]} pixels")
    return 0
