"""`lcv predict`: flow for a pair, a folder, a glob, a list, videos, a camera or a stream."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lcv.cli.parser import Parser, device_name, frames, in_options, whole
from lcv.errors import ArgumentError, LcvError

if TYPE_CHECKING:
    from lcv.predict.inputs import Inputs
    from lcv.predict.job import Summary
    from lcv.predict.predictor import Predictor
    from lcv.predict.shards import Shard

SHOWN_FAILURES = 20
SHOWN_LEFT = 5


def run(arguments: list[str]) -> int:
    """Exit codes: 0 all is done, 1 some of it could not be done and is named, 2 nothing could."""
    chosen = _parser().parse_args(arguments)
    _check(chosen)

    from lcv.predict.inputs import find_inputs
    from lcv.predict.shards import shard_of, wait_for_all

    shard = shard_of(chosen.shard)
    inputs = find_inputs(chosen.inputs)
    summary = _run(chosen, inputs, shard)
    wait_for_all()
    if summary.failures and not summary.done + summary.there:
        raise summary.failures[0] if len(summary.failures) == 1 else LcvError(_failures(summary))
    if not chosen.quiet:
        _report(chosen, summary, shard)
    if summary.failures:
        print(f"lcv: {in_options(_failures(summary))}", file=sys.stderr)
    return 1 if summary.failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        "lcv predict",
        usage="lcv predict INPUT… -o OUT [options]",
        description="Optical flow. INPUT: two images; a folder of frames, or of folders or videos; "
        "a glob in quotes; a list file (`image1 image2` a line, or one frame a line); videos; "
        "camera:0; or - for a stream on the standard input. A job that was broken off goes on where "
        "it was: give the same command again.",
        epilog="Exit codes: 0 all is done; 1 some pairs could not be done, and are named; 2 nothing "
        "could be done; 130 interrupted.",
    )
    parser.add_argument(
        "inputs", nargs="+", metavar="INPUT", help="two images, a folder, a video, …"
    )
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="OUT",
        help="a folder; for a pair also a file (.flo, .png …); for one sequence also a clip (.mp4)",
    )
    network = parser.add_argument_group("the network")
    network.add_argument(
        "--model", default="raft-large", help="its name, or file.py:factory (%(default)s)"
    )
    network.add_argument(
        "--weights", metavar="FILE", help="a checkpoint, or a published one's name (embedded ones)"
    )
    network.add_argument("--iters", type=whole, metavar="N", help="iterations of RAFT (20)")
    network.add_argument("--pad", metavar="MODE", help="RAFT's padding: sintel (default) or kitti")
    network.add_argument(
        "--warm-start",
        action="store_true",
        help="begin each pair where the last one ended (RAFT); reset at scene cuts and files' ends",
    )
    written = parser.add_argument_group("what is written")
    written.add_argument(
        "--format",
        metavar="LIST",
        help="of flo, kitti, pfm, flo5, npy, npz (flow) and png (picture), with commas (flo,png; "
        "for a file what its ending says)",
    )
    written.add_argument(
        "--scale",
        default="auto",
        metavar="PIXELS",
        help="the motion drawn in full colour, or auto: from pairs all over a sequence (%(default)s)",
    )
    written.add_argument("--overlay", action="store_true", help="frames with arrows")
    written.add_argument("--backward", action="store_true", help="flow from frame 2 to 1 as well")
    written.add_argument(
        "--occlusion", action="store_true", help="a mask by the forward-backward check"
    )
    written.add_argument(
        "--warp-error", action="store_true", help="how badly frame 2 explains frame 1"
    )
    written.add_argument("--clip", action="store_true", help="a video: frame and flow side by side")
    written.add_argument(
        "--overwrite", action="store_true", help="begin anew, replace what is there"
    )
    work = parser.add_argument_group("the work")
    work.add_argument(
        "--frames", type=frames, metavar="N", help="only the first N of each sequence"
    )
    work.add_argument("--max-memory", metavar="SIZE", help="such as 6GB (what is free)")
    work.add_argument(
        "--strategy", default="auto", help="auto, all-pairs, on-demand or tiles (%(default)s)"
    )
    work.add_argument("--device", type=device_name, help="cpu or cuda (a GPU if there is one)")
    work.add_argument("--precision", default="float32", help="float32 or bf16 (%(default)s)")
    work.add_argument("--shard", metavar="I/N", help="do part I of N; torchrun splits by itself")
    work.add_argument("--strict", action="store_true", help="stop at the first bad frame")
    work.add_argument("--quiet", action="store_true", help="say nothing but errors")
    return parser


def _check(chosen: argparse.Namespace) -> None:
    """What can be told before anything is loaded."""
    from lcv.predict.scale import parse_scale

    chosen.scale = parse_scale(chosen.scale)


def _run(chosen: argparse.Namespace, inputs: Inputs, shard: Shard) -> Summary:
    from lcv.predict.console import Terminal
    from lcv.predict.job import Job
    from lcv.predict.jobs import Run
    from lcv.predict.outputs import Folder, Named, formats_for, meaning_of, wanted_outputs
    from lcv.predict.pairs import Wanted
    from lcv.predict.shards import device_of
    from lcv.predict.single import run_pair
    from lcv.predict.sources import FrameFiles

    out = Path(chosen.output)
    formats = None if chosen.format is None else tuple(chosen.format.lower().split(","))
    wanted = Wanted(chosen.backward, chosen.occlusion, chosen.warp_error)
    maps = {**wanted._asdict(), "overlay": chosen.overlay}
    if chosen.clip and all(sequence.length == 2 for sequence in inputs.sequences):
        raise ArgumentError("--clip needs more than two frames in a row, and here are only pairs")
    meaning = meaning_of(chosen.output)
    is_file, is_clip = meaning == "file", meaning == "clip"
    if is_file:
        outputs = wanted_outputs(formats_for(out, formats), **maps)
        _check_named(chosen, inputs, shard)
        if chosen.scale is not None and all(output.what != "png" for output in outputs):
            raise ArgumentError(
                f"-o {chosen.output}: --scale is that of a picture, and none is asked for; leave it "
                f"out, or add png to --format"
            )
        (pair,) = inputs.sequences
        read = pair.files if isinstance(pair, FrameFiles) else ()
        Named(out, outputs).check(chosen.overwrite, read)
    elif is_clip:
        outputs = ()
        _check_clip(chosen, inputs, shard)
    else:
        outputs = wanted_outputs(formats or ("flo", "png"), **maps)
        Folder(out).check()
    with Terminal(chosen.quiet) as terminal:
        for note in inputs.notes:
            terminal.say(note)
        predictor = _predictor(chosen, device_of(chosen.device))
        predictor.check_warm_start(chosen.warm_start)
        if is_file:
            (pair,) = inputs.sequences
            assert isinstance(pair, FrameFiles)
            place, overwrite = Named(out, outputs), chosen.overwrite
            return run_pair(predictor, pair, place, wanted, chosen.scale, overwrite, terminal)
        job = Job(
            inputs.sequences,
            None if is_clip else out,
            outputs,
            wanted,
            scale=chosen.scale,
            clip=out if is_clip else chosen.clip,
            arrows=chosen.overlay,
            warm_start=chosen.warm_start,
            shard=shard,
            strict=chosen.strict,
            overwrite=chosen.overwrite,
            frames=chosen.frames,
        )
        return Run(predictor, job, terminal).go()


def _predictor(chosen: argparse.Namespace, device: str | None) -> Predictor:
    from lcv.predict.predictor import Predictor

    return Predictor(
        chosen.model,
        chosen.weights,
        device=device,
        iters=chosen.iters,
        pad=chosen.pad,
        max_memory=chosen.max_memory,
        strategy=chosen.strategy,
        precision=chosen.precision,
    )


def _check_named(chosen: argparse.Namespace, inputs: Inputs, shard: Shard) -> None:
    if not inputs.is_one_pair:
        raise ArgumentError(
            f"-o {chosen.output} names one file, but the input is not one pair of images; name a "
            f"folder"
        )
    if not shard.is_all:
        raise ArgumentError(
            f"-o {chosen.output} names one file, which cannot be split over {shard.count} "
            f"processes; leave --shard or torchrun out, or name a folder"
        )
    for name in ("frames", "warm_start", "strict"):
        if getattr(chosen, name):
            raise ArgumentError(
                f"-o {chosen.output} names one file, of one pair, to which "
                f"--{name.replace('_', '-')} means nothing; leave it out, or name a folder"
            )


def _check_clip(chosen: argparse.Namespace, inputs: Inputs, shard: Shard) -> None:
    from lcv.files import check_output

    check_output(chosen.output, chosen.overwrite)
    if len(inputs.sequences) != 1 or inputs.is_one_pair or not shard.is_all:
        raise ArgumentError(
            f"-o {chosen.output} names one clip, wanted one video or folder of frames for it, and "
            f"no --shard; name a folder and say --clip"
        )
    more = ("format", "backward", "occlusion", "warp_error")
    for name in more:
        if getattr(chosen, name):
            raise ArgumentError(
                f"-o {chosen.output} names a clip, which has no place for --{name.replace('_', '-')}; "
                f"name a folder and say --clip"
            )


def _report(chosen: argparse.Namespace, summary: Summary, shard: Shard) -> None:
    """What was done, on the standard output."""
    for note, count in summary.notes.items():
        print(f"{note} ({count} pairs)" if count > 1 else note)
    parts = ["1 pair done" if summary.done == 1 else f"{summary.done} pairs done"]
    if summary.changed:
        parts[0] += f" ({summary.changed} redone because their frames changed)"
    parts += [f"{summary.there} there already"] if summary.there else []
    parts += [f"{summary.failed} failed"] if summary.failed else []
    which = "" if shard.is_all else f"shard {shard}: "
    print(f"{which}{', '.join(parts)}: {chosen.output}")
    if summary.removed:
        print(f"{summary.removed} old file{'s' * (summary.removed > 1)} removed")
    if summary.left:
        count, names = sum(summary.left.values()), [*summary.left]
        more = f" and {len(names) - SHOWN_LEFT} more" if len(names) > SHOWN_LEFT else ""
        what = "1 output stays" if count == 1 else f"{count} outputs stay"
        shown = f"{', '.join(names[:SHOWN_LEFT])}{more}"
        print(f"{what} of frames that the input no longer has: {shown}")
    for clip in summary.clips:
        print(f"clip: {clip}")
    if summary.scales and chosen.scale is None:
        low, high = min(summary.scales), max(summary.scales)
        if low == high:
            print(f"full colour is {low:g} pixels; --scale {low:g} draws others alike")
        else:
            print(f"full colour is {low:g} to {high:g} pixels; --scale {high:g} draws all alike")


def _failures(summary: Summary) -> str:
    """Everything that could not be done, by name."""
    reasons = [str(error) for error in summary.failures]
    lines = [f"  {reason}" for reason in reasons[:SHOWN_FAILURES]]
    if len(reasons) > SHOWN_FAILURES:
        lines.append(f"  and {len(reasons) - SHOWN_FAILURES} more")
    if not summary.done + summary.there:
        return "\n".join(["nothing could be done:", *lines])
    hint = "Mend or remove that, and give the same command again: what is done is kept."
    return "\n".join(["all is done but for this:", *lines, hint])
