"""`lcv view`: pictures of flow, of its errors and differences; figures and videos of several."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lcv.cli import view_files
from lcv.cli.parser import Parser, positive, whole
from lcv.errors import ArgumentError
from lcv.words import one_line

if TYPE_CHECKING:
    import numpy as np

    from lcv.visual.figures import ErrorStyle, Known

MORE = """\
one flow or many, in one of four ways:
  lcv view flow.flo -o flow.png                       colours, with the wheel and its scale
  lcv view flow.flo --truth gt.png -o error.png       error map
  lcv view flow.flo --against other.flo -o diff.png   difference of two flows
  lcv view flow.flo --image frame.png -o arrows.png   arrows on the frame
several flows, or a folder of them, are drawn into a folder.

figures and videos have options of their own:
  lcv view figure methods --help       inputs, flow and error of methods, a number under each
  lcv view figure difference --help    flow by two methods, and their difference
  lcv view video --help                frames and flows side by side
"""


def run(arguments: list[str]) -> int:
    """Exit codes: 0 drawn, 2 an input that cannot be drawn, said in a sentence."""
    if arguments[:1] == ["figure"]:
        from lcv.cli import view_figure

        return view_figure.run(arguments[1:])
    if arguments[:1] == ["video"]:
        from lcv.cli import view_video

        return view_video.run(arguments[1:])
    return _pictures(_parser().parse_args(arguments))


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        "lcv view",
        description=__doc__,
        epilog=MORE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("flow", nargs="+", help="flow files of any format, folders, patterns")
    parser.add_argument("-o", "--output", required=True, help="a picture; for several, a folder")
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--truth", nargs="+", metavar="FLOW", help="draw the error against this")
    way.add_argument("--against", nargs="+", metavar="FLOW", help="draw the difference from this")
    way.add_argument("--image", nargs="+", metavar="FRAME", help="draw arrows on frame 1")
    add_scale(parser)
    parser.add_argument(
        "--bare", action="store_true", help="no legend: the pixels of the flow only"
    )
    add_style(parser)
    parser.add_argument(
        "--noc", nargs="+", metavar="FLOW", help="KITTI's flow_noc: the rest is drawn darker"
    )
    parser.add_argument(
        "--spacing", type=whole, default=16, metavar="PX", help="from arrow to arrow (%(default)s)"
    )
    parser.add_argument(
        "--stretch",
        type=positive,
        help="arrows this many times as long (chosen so that they are seen)",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace pictures that are there")
    return parser


def add_scale(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--scale",
        type=positive,
        metavar="PX",
        help="motion in full colour (99 %% of the motion of all inputs is below it; printed)",
    )


def add_style(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--style",
        choices=("sintel", "kitti"),
        help="of error maps; by default kitti for a truth in KITTI's .png, else sintel",
    )
    parser.add_argument("--limit", type=positive, metavar="PX", help="sintel's error in white (10)")


def style_of(chosen: argparse.Namespace, truth: Path) -> ErrorStyle:
    from lcv.visual.error_maps import SINTEL_LIMIT
    from lcv.visual.figures import ErrorStyle

    name = chosen.style or ("kitti" if truth.suffix.lower() == ".png" else "sintel")
    if name == "kitti" and chosen.limit is not None:
        raise ArgumentError("--limit belongs to --style sintel; KITTI's colours are fixed")
    return ErrorStyle(name, SINTEL_LIMIT if chosen.limit is None else chosen.limit)


def number_of(flow: Known, truth: Known) -> str:
    """The errors of one flow in words, from the one place where they are measured."""
    import torch

    from lcv.evaluate.metrics import flow_sums, metrics_of

    a, b = (torch.from_numpy(x.flow).movedim(2, 0)[None] for x in (flow, truth))
    valid = torch.from_numpy(flow.valid & truth.valid)[None, None]
    found = metrics_of(flow_sums(a, b, valid))
    if not found:
        return "nothing known"
    return f"EPE {found['epe']:.3g} px, Fl {found['fl']:.3g} %"


def _pictures(chosen: argparse.Namespace) -> int:
    from lcv.data.formats.image import write_image
    from lcv.files import make_folder

    flows = view_files.flow_files(chosen.flow)
    paths = view_files.targets(flows, chosen.output, chosen.overwrite)
    if chosen.truth is None and (chosen.style or chosen.limit or chosen.noc):
        raise ArgumentError("--style, --limit and --noc draw errors, so they need --truth")
    if chosen.scale is not None and (chosen.truth or chosen.image):
        raise ArgumentError("--scale is of colours; an error map has --limit, arrows --stretch")
    if chosen.truth is not None:
        drawn = _errors(chosen, flows)
    elif chosen.against is not None:
        drawn = _differences(chosen, flows)
    elif chosen.image is not None:
        drawn = _arrows(chosen, flows)
    else:
        drawn = _colours(chosen, flows)
    for path, (picture, words) in zip(paths, drawn, strict=True):
        # Not before: what cannot be drawn leaves no empty folder behind.
        make_folder(path.parent)
        write_image(path, picture, overwrite=chosen.overwrite)
        print(one_line(f"{path}: {words}"))
    return 0


Drawn = Iterator[tuple["np.ndarray", str]]


def _colours(chosen: argparse.Namespace, flows: list[Path]) -> Drawn:
    from lcv.visual.colours import flow_to_colour
    from lcv.visual.figures import common_scale, flow_picture

    scale = chosen.scale
    if scale is None:
        # Every file is read twice, so that any number of them fits in memory.
        scale = max(common_scale(view_files.read_known(path)) for path in flows)
        print(f"scale: {scale:g} px is full colour; --scale {scale:g} draws others to compare")
    for path in flows:
        flow = view_files.read_known(path)
        bare = chosen.bare
        picture = (
            flow_to_colour(flow.flow, scale, flow.valid) if bare else flow_picture(flow, scale)
        )
        yield picture, f"flow of {path}, {scale:g} px in full colour"


def _errors(chosen: argparse.Namespace, flows: list[Path]) -> Drawn:
    from lcv.visual.figures import error_picture

    truths = view_files.belonging(flows, view_files.flow_files(chosen.truth), "--truth")
    seen: list[Path | None] = [None] * len(flows)
    if chosen.noc is not None:
        seen = [*view_files.belonging(flows, view_files.flow_files(chosen.noc), "--noc")]
    style = style_of(chosen, truths[0])
    if style.name == "sintel" and chosen.noc is not None:
        raise ArgumentError("--noc belongs to --style kitti; Sintel's style has no darker half")
    for path, where, noc in zip(flows, truths, seen, strict=True):
        flow, truth = view_files.read_known(path), view_files.read_known(where)
        view_files.check_same_size(path, flow, where, truth.flow)
        visible = None
        if noc is not None:
            visible = view_files.read_known(noc).valid
            view_files.check_same_size(path, flow, noc, visible)
        number = number_of(flow, truth)
        if chosen.bare:
            picture = style.draw(flow, truth, visible)
        else:
            picture = error_picture(flow, truth, style, number, visible)
        yield picture, f"{number} against {where}, in {style.name}'s style"


def _differences(chosen: argparse.Namespace, flows: list[Path]) -> Drawn:
    from lcv.visual.colours import flow_to_colour
    from lcv.visual.figures import difference, difference_picture, difference_scale, mean_length

    others = view_files.belonging(flows, view_files.flow_files(chosen.against), "--against")

    def pairs() -> Iterator[tuple[Path, Known, Known]]:
        for path, other in zip(flows, others, strict=True):
            a, b = view_files.read_known(path), view_files.read_known(other)
            view_files.check_same_size(path, a, other, b.flow)
            yield other, a, b

    scale = chosen.scale
    if scale is None:
        scale = max(difference_scale(difference(a, b)) for _, a, b in pairs())
        print(f"scale: a difference of {scale:g} px is full colour; give it again with --scale")
    for other, a, b in pairs():
        apart = difference(a, b)
        if chosen.bare:
            picture = flow_to_colour(apart.flow, scale, apart.valid)
        else:
            picture = difference_picture(a, b, scale)
        yield picture, f"mean difference {mean_length(apart):.3g} px from {other}"


def _arrows(chosen: argparse.Namespace, flows: list[Path]) -> Drawn:
    from lcv.data.formats.image import read_image
    from lcv.visual.overlay import draw_arrows

    frames = view_files.belonging(flows, view_files.image_files(chosen.image), "--image", spare=1)
    stretch = chosen.stretch or _stretch(flows[0], chosen.spacing)
    longer = "" if stretch == 1 else f", {stretch:g} times as long as the motion"
    for path, where in zip(flows, frames, strict=True):
        flow, image = view_files.read_known(path), read_image(where)
        view_files.check_same_size(path, flow, where, image)
        picture = draw_arrows(image, flow.flow, chosen.spacing, flow.valid, stretch)
        yield picture, f"arrows every {chosen.spacing} px{longer}"


def _stretch(path: Path, spacing: int) -> float:
    """Of the arrows of all pictures, so that they compare: from the first flow."""
    from lcv.visual.overlay import arrow_stretch

    first = view_files.read_known(path)
    return arrow_stretch(first.flow, spacing, first.valid)
