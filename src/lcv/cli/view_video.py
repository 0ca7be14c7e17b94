"""`lcv view video`: a video of frames and of flow by one method or several, side by side."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from lcv.cli import view, view_files
from lcv.cli.parser import Parser, positive, whole
from lcv.errors import ArgumentError, FileError
from lcv.words import counted

if TYPE_CHECKING:
    import numpy as np

DEFAULT_FPS = Fraction(10)
Flows = dict[str, list[Path]]


def run(arguments: list[str]) -> int:
    parser = Parser("lcv view video", description=__doc__)
    parser.add_argument("frames", nargs="+", help="a video, a folder of frames, or frames")
    parser.add_argument(
        "--flow",
        nargs="+",
        required=True,
        metavar="NAME=FOLDER",
        help="a folder of flows from each frame to the next, with the name to print under it; "
        "flows belong to the frames of their names, else to those of their places",
    )
    parser.add_argument(
        "-o", "--output", required=True, help="the video to write: .mp4, .webm or .gif"
    )
    view.add_scale(parser)
    parser.add_argument("--arrows", action="store_true", help="draw the first flow on the frames")
    parser.add_argument(
        "--spacing",
        type=whole,
        default=16,
        metavar="PX",
        help="from arrow to arrow (%(default)s)",
    )
    parser.add_argument(
        "--fps", type=positive, help="frames a second (the video's, or 10 for images)"
    )
    parser.add_argument("--columns", type=whole, help="pictures in a row (all)")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing video")
    chosen = parser.parse_args(arguments)

    from lcv.files import check_output
    from lcv.visual.video import ENDINGS, clip

    if Path(chosen.output).suffix.lower() not in ENDINGS:
        raise ArgumentError(f"-o {chosen.output}: wanted a video: .mp4, .webm or .gif")
    check_output(chosen.output, chosen.overwrite)
    folders = view_files.named_files(chosen.flow, "--flow")
    flows = {name: view_files.flow_files([str(path)]) for name, path in folders.items()}
    count = _common_count(folders, flows)
    frames, rate, flows = _frames(chosen.frames, flows, count)
    scale = chosen.scale
    if scale is None:
        scale = _scale_of(flows)
        print(f"scale: {scale:g} px is full colour; --scale {scale:g} draws others to compare")
    rate = rate if chosen.fps is None else Fraction(chosen.fps)
    written = 0
    with clip(chosen.output, rate, chosen.overwrite) as write:
        for page in _pages(chosen, frames, flows, scale, count):
            write(page)
            written += 1
    print(f"{chosen.output}: {counted(written, 'frame')} at {float(rate):g} a second")
    return 0


def _pages(
    chosen: argparse.Namespace,
    frames: Iterator[tuple[Path, np.ndarray]],
    flows: Flows,
    scale: float,
    count: int,
) -> Iterator[np.ndarray]:
    """One picture a flow; frames and flows are read as they are needed."""
    from lcv.visual.colours import flow_to_colour
    from lcv.visual.layout import side_by_side
    from lcv.visual.legend import px
    from lcv.visual.overlay import arrow_stretch, draw_arrows

    first, stretch = view_files.read_known(next(iter(flows.values()))[0]), 1.0
    if chosen.arrows:
        stretch = arrow_stretch(first.flow, chosen.spacing, first.valid)
    longer = "" if stretch == 1 else f", arrows {stretch:g} times as long as the motion"
    labels = [f"frame{longer}", *(f"{name}, {px(scale)} in full colour" for name in flows)]
    seen = 0
    for number, (where, image) in enumerate(islice(frames, count)):
        known = []
        for paths in flows.values():
            known.append(view_files.read_known(paths[number]))
            view_files.check_same_size(paths[number], known[-1], where, image)
        shown = image
        if chosen.arrows:
            shown = draw_arrows(image, known[0].flow, chosen.spacing, known[0].valid, stretch)
        colours = [flow_to_colour(each.flow, scale, each.valid) for each in known]
        yield side_by_side([shown, *colours], labels, chosen.columns)
        seen += 1
    _check_count(chosen.frames, seen + sum(1 for _ in frames), count)


def _frames(
    words: list[str], flows: Flows, count: int
) -> tuple[Iterator[tuple[Path, np.ndarray]], Fraction, Flows]:
    """The frames with their files, how many a second, and the flows in the frames' order.

    Images come with the flows of their names. The frames of a video have none, and are counted
    when they have been drawn.
    """
    from lcv.data.formats.image import read_image
    from lcv.data.formats.video import read_video, video_info
    from lcv.data.layouts import VIDEO_SUFFIXES

    path = Path(words[0])
    if len(words) == 1 and path.suffix.lower() in VIDEO_SUFFIXES:
        rate = video_info(path).rate
        return ((path, frame) for frame in read_video(path)), rate or DEFAULT_FPS, flows
    files = view_files.image_files(words)
    _check_count(words, len(files), count)
    files, flows = _by_name(files, flows)
    return ((file, read_image(file)) for file in files), DEFAULT_FPS, flows


def _by_name(files: list[Path], flows: Flows) -> tuple[list[Path], Flows]:
    """The frames that have flows, and the flows of each folder, in the frames' order."""
    ordered: Flows = {}
    drawn: dict[str, list[Path]] = {}
    for name, paths in flows.items():
        frames = dict(
            zip(view_files.belonging(paths, files, "--flow", spare=1), paths, strict=True)
        )
        drawn[name] = [file for file in files if file in frames]
        ordered[name] = [frames[file] for file in drawn[name]]
    first, chosen = next(iter(drawn.items()))
    for name, others in drawn.items():
        for mine, yours in zip(chosen, others, strict=True):
            if mine != yours:
                raise ArgumentError(
                    f"--flow: {first} has the flow of {mine} where {name} has that of {yours}; wanted "
                    f"flows of the same frames, under the frames' names"
                )
    return chosen, ordered


def _check_count(words: list[str], frames: int, flows: int) -> None:
    if not flows <= frames <= flows + 1:
        raise FileError(
            f"{', '.join(words)}: {frames} frames for {flows} flows; wanted as many, or one more. "
            f"Nothing was written."
        )


def _common_count(folders: dict[str, Path], flows: Flows) -> int:
    counts = {name: len(paths) for name, paths in flows.items()}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{counts[name]} in {folders[name]}" for name in counts)
        raise ArgumentError(f"--flow: the folders have different numbers of flows: {listed}")
    return next(iter(counts.values()))


def _scale_of(flows: Flows) -> float:
    """One scale for the whole video, found by reading every flow once before it is drawn."""
    from lcv.visual.figures import common_scale

    every = (path for paths in flows.values() for path in paths)
    return max(common_scale(view_files.read_known(path)) for path in every)
