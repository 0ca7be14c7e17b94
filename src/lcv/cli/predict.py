"""`lcv predict`: flow for a pair, a folder, a glob, a list, videos, a camera or a stream."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lcv.cli.parser import Parser, device_name, frames, in_options, seconds, whole
from lcv.cli.predict_words import formats_for, meaning_of, parse_scale, parse_shard
from lcv.cli.progress import same_command, says_how_to_resume
from lcv.errors import ArgumentError
from lcv.memory import parse_bytes
from lcv.models.named import check_named
from lcv.words import counted, one_line

if TYPE_CHECKING:
    from lcv.cli.predict_inputs import Inputs
    from lcv.predict.job import Summary
    from lcv.predict.outputs import Named, Output
    from lcv.visual.figures import Known

SHOWN_FAILURES = 20
# These have no effect on one pair.
FOR_MORE = ["start", "end", "every", "frames", "warm_start", "strict", "shard", "ray"]


def run(arguments: list[str]) -> int:
    """Exit codes: 0 all is done, 1 some of it could not be done and is named, 2 nothing could."""
    chosen = _parser().parse_args(arguments)
    chosen.scale = parse_scale(chosen.scale)
    chosen.shard = parse_shard(chosen.shard)
    if chosen.max_memory is not None:
        parse_bytes(chosen.max_memory)

    from lcv.cli.predict_inputs import find_inputs

    inputs = find_inputs(chosen.inputs)
    if chosen.output == "-":
        return _to_stdout(chosen, inputs)
    summary = _run(chosen, inputs)
    failures = list(summary.failures.values())
    nothing = not summary.done + summary.there
    if len(failures) == 1 and nothing:
        raise failures[0]
    if not chosen.quiet and not (failures and nothing):
        _report(chosen, summary)
    if failures:
        print(f"lcv: {in_options(_failures(chosen, inputs, summary))}", file=sys.stderr)
        return 2 if nothing else 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        "lcv predict",
        usage="lcv predict INPUT… -o OUT [options]",
        description="Optical flow. INPUT: two images; a folder of frames, or of folders or videos; "
        "a glob in quotes; a list file (`image1 image2` a line, or one frame a line); videos; "
        "camera:0; or - for a stream on the standard input. To resume a job "
        "that was interrupted, run the same command again.",
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
        help="a folder; for a pair also a file (.flo, .png …), or - for a .flo on the standard "
        "output; for one sequence also a clip (.mp4, .webm, .gif)",
    )
    network = parser.add_argument_group("the network")
    network.add_argument(
        "--model", help="its name, a file of weights, or file.py:factory (raft-large)"
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
    written.add_argument(
        "--look",
        action="store_true",
        help="one picture: frame, flow, arrows, error (by --truth, or warp error)",
    )
    written.add_argument("--truth", metavar="FLOW", help="a pair's true flow, for --look")
    written.add_argument("--overlay", action="store_true", help="frames with arrows")
    written.add_argument("--backward", action="store_true", help="flow from frame 2 to 1 as well")
    written.add_argument(
        "--occlusion", action="store_true", help="a mask by the forward-backward check"
    )
    written.add_argument(
        "--warp-error", action="store_true", help="how much frame 1 differs from frame 2 warped"
    )
    written.add_argument("--clip", action="store_true", help="a video: frame and flow side by side")
    written.add_argument(
        "--overwrite", action="store_true", help="empty the job's folder first, or replace the file"
    )
    work = parser.add_argument_group("the work")
    work.add_argument(
        "--start",
        type=seconds,
        default=seconds("0"),
        metavar="T",
        help="of a video: seconds, or as in 1:30 (its beginning)",
    )
    work.add_argument("--end", type=seconds, metavar="T", help="of a video: before this (its end)")
    work.add_argument(
        "--every", type=whole, default=1, metavar="N", help="flow from every Nth frame to the next"
    )
    work.add_argument(
        "--frames", type=frames, metavar="N", help="only the first N of each sequence"
    )
    work.add_argument(
        "--max-side",
        type=whole,
        metavar="N",
        help="compute frames with a longer side at N pixels; the flow has their full size",
    )
    work.add_argument(
        "--max-memory",
        metavar="SIZE",
        help="such as 6GB; with --ray, of each worker (what is free)",
    )
    work.add_argument(
        "--strategy", default="auto", help="auto, all-pairs, on-demand or tiles (%(default)s)"
    )
    work.add_argument("--device", type=device_name, help="cpu or cuda (a GPU if there is one)")
    work.add_argument(
        "--precision",
        default="auto",
        choices=("auto", "float32", "bf16", "fp16"),
        metavar="P",
        help="float32, bf16, fp16, or auto: fp16 for RAFT on a GPU of this machine, else float32 "
        "(%(default)s)",
    )
    work.add_argument("--shard", metavar="I/N", help="do part I of N, in a process of its own")
    work.add_argument(
        "--ray",
        nargs="?",
        const="local",
        metavar="ADDRESS",
        help="share the work among a Ray cluster's workers; without an address, on this machine",
    )
    work.add_argument("--strict", action="store_true", help="stop at the first bad frame")
    work.add_argument("--quiet", action="store_true", help="say nothing but errors")
    return parser


def _to_stdout(chosen: argparse.Namespace, inputs: Inputs) -> int:
    """The flow of one pair as .flo on the standard output, and nothing else there."""
    if not inputs.is_one_pair:
        raise ArgumentError("-o - writes the flow of one pair of images; name a folder for more")
    maps = ["format", "look", "overlay", "backward", "occlusion", "warp_error", "clip", "scale"]
    for option in _given(chosen, [*maps, "truth", "overwrite", *FOR_MORE]):
        raise ArgumentError(f"-o - writes one pair's .flo; {option} has no effect, leave it out")
    if sys.stdout.isatty():
        raise ArgumentError(
            "-o - writes a binary file, and the output is a terminal; pipe it elsewhere"
        )
    with tempfile.TemporaryDirectory() as folder:
        chosen.output = str(Path(folder) / "flow.flo")
        _run(chosen, inputs)
        sys.stdout.buffer.write(Path(chosen.output).read_bytes())
    return 0


def _run(chosen: argparse.Namespace, inputs: Inputs) -> Summary:
    place, outputs, clip = _outputs(chosen, inputs)
    truth = _truth(chosen, inputs)
    named = chosen.model or (None if chosen.weights else "raft-large")
    check_named(named, chosen.weights)

    # What can be found wrong without torch, which takes seconds to import, has been.
    from lcv.cli.predict_progress import Terminal
    from lcv.cluster import Cluster
    from lcv.models.build import network_and_weights
    from lcv.models.embedded import EMBEDDED, embedded_card
    from lcv.predict.job import Job
    from lcv.predict.matching import Wanted
    from lcv.predict.predictor import Predictor
    from lcv.predict.run import Run
    from lcv.predict.selection import Selection

    wanted = Wanted(chosen.backward, chosen.occlusion, chosen.warp_error)
    if chosen.look and truth is None:  # where the true flow is unknown
        wanted = wanted._replace(occlusion=True, warp_error=True)
    job = Job(
        inputs.sequences,
        place,
        outputs,
        wanted,
        scale=chosen.scale,
        clip=clip,
        arrows=chosen.overlay,
        warm_start=chosen.warm_start,
        shard=chosen.shard,
        strict=chosen.strict or meaning_of(chosen.output) == "file",
        overwrite=chosen.overwrite,
        truth=truth,
        selection=Selection(chosen.start, chosen.end, chosen.every, chosen.frames),
    )
    model, weights = network_and_weights(named, chosen.weights)
    options = {
        "model": model,
        "weights": weights,
        "device": chosen.device,
        "iters": chosen.iters,
        "pad": chosen.pad,
        "max_memory": chosen.max_memory,
        "strategy": chosen.strategy,
        "precision": chosen.precision,
        "max_side": chosen.max_side,
    }
    is_job = isinstance(place, Path) and not any(each.is_live for each in inputs.sequences)
    with Terminal(chosen.quiet) as terminal:
        for note in inputs.notes:
            terminal.say(note)
        own = str(weights or model)
        if own in EMBEDDED and (advice := embedded_card(own).get("advice")):
            terminal.notes.append(f"{own}: {advice}")
        predictor = Predictor(**options)
        predictor.check_warm_start(chosen.warm_start)
        if chosen.precision == "auto" and predictor.precision != "float32":
            note = f"computed in {predictor.precision}; --precision float32 is exact, slower"
            terminal.notes.append(note)
        with says_how_to_resume(wanted=is_job, overwrite=chosen.overwrite):
            if chosen.ray is None:
                return Run(predictor, job, terminal).go()
            with Cluster(chosen.ray, gpus=chosen.device != "cpu") as cluster:
                return Run(predictor, job, terminal).go(cluster, options)


def _outputs(
    chosen: argparse.Namespace, inputs: Inputs
) -> tuple[Path | Named | None, tuple[Output, ...], bool | Path]:
    """Where to, which files of a pair, and the clip; refuses what does not go together."""
    from lcv.files import check_output
    from lcv.predict.outputs import Named, wanted_outputs

    out = Path(chosen.output)
    formats = None if chosen.format is None else tuple(chosen.format.lower().split(","))
    maps = {
        name: getattr(chosen, name)
        for name in ("backward", "occlusion", "warp_error", "overlay", "look")
    }
    meaning = meaning_of(chosen.output)
    if chosen.clip and all(sequence.length == 2 for sequence in inputs.sequences):
        raise ArgumentError("--clip needs more than two frames in a row, and here are only pairs")
    if chosen.frames == 2 and (chosen.clip or meaning == "clip"):
        raise ArgumentError("--frames 2 leaves one pair, too little for a clip; take 3 or more")
    if meaning != "folder":
        _check_one_file(chosen, inputs, meaning)
    shared = "--ray" if chosen.ray else "--shard"
    if chosen.ray and chosen.shard.total > 1:
        raise ArgumentError("--ray and --shard both divide the work; leave one out")
    if any(s.is_live for s in inputs.sequences) and (chosen.ray or chosen.shard.total > 1):
        raise ArgumentError(
            f"{shared}: a camera or a pipe can be read by one process only; leave it out"
        )
    if meaning == "file":
        outputs = wanted_outputs(formats_for(out, formats, chosen.look), **maps)
        if chosen.scale is not None and all(o.what not in ("png", "look") for o in outputs):
            raise ArgumentError(
                f"-o {chosen.output}: --scale only affects pictures, and no picture is written; "
                f"leave it out, or add png to --format"
            )
        place = Named(out, outputs)
        place.check(inputs.sequences[0].files, chosen.overwrite)
        return place, outputs, chosen.clip
    if meaning == "clip":
        check_output(out, chosen.overwrite)
        return None, (), out
    if chosen.overwrite and chosen.shard.total > 1:
        raise ArgumentError(
            "--overwrite empties the folder that all shards write to; remove the folder, then run the "
            "shards without --overwrite"
        )
    return out, wanted_outputs(formats or ("flo", "png"), **maps), chosen.clip


def _truth(chosen: argparse.Namespace, inputs: Inputs) -> Known | None:
    """The true flow of the only pair, of its size."""
    from lcv.data.formats.flow import read_flow
    from lcv.data.formats.image import read_image
    from lcv.visual.figures import Known

    if chosen.truth is None:
        return None
    if not chosen.look or not inputs.is_one_pair or meaning_of(chosen.output) != "file":
        raise ArgumentError(
            "--truth needs --look, one pair of images, and a picture as output, as in -o look.png"
        )
    truth = Known(*read_flow(chosen.truth))
    (height, width), frame = truth.valid.shape, inputs.sequences[0].files[0]
    found = read_image(frame).shape
    if found[:2] != (height, width):
        raise ArgumentError(
            f"--truth {chosen.truth} is {width}×{height} pixels, but {frame} is "
            f"{found[1]}×{found[0]}; wanted the same size"
        )
    return truth


def _check_one_file(chosen: argparse.Namespace, inputs: Inputs, meaning: str) -> None:
    """Refuse what has no effect on a single file or clip."""
    refused, what = FOR_MORE, "one pair"
    if meaning == "clip":
        refused = ["format", "look", "backward", "occlusion", "warp_error", "shard", "ray"]
        what = "a clip"
        if len(inputs.sequences) != 1 or inputs.is_one_pair:
            raise ArgumentError(
                f"-o {chosen.output} names one clip, wanted one video or folder of frames for it; "
                f"name a folder and use --clip"
            )
    elif not inputs.is_one_pair:
        raise ArgumentError(
            f"-o {chosen.output} names one file, but the input is not one pair of images; name a "
            f"folder"
        )
    for option in _given(chosen, refused):
        raise ArgumentError(
            f"-o {chosen.output} names one {meaning}, and {option} has no effect on {what}; leave "
            f"it out, or name a folder"
        )


def _given(chosen: argparse.Namespace, names: list[str]) -> Iterator[str]:
    """Those of the options that the command line has."""
    defaults = {"every": 1, "shard": (1, 1)}
    for name in names:
        if (value := getattr(chosen, name)) and value != defaults.get(name):
            yield f"--{name.replace('_', '-')}"


def _report(chosen: argparse.Namespace, summary: Summary) -> None:
    """What was done, on the standard output."""
    for note, count in summary.notes.items():
        print(f"{note} ({count} pairs)" if count > 1 else note)
    parts = [f"{counted(summary.done, 'pair')} done"]
    parts += [f"{summary.there:,} done before"] if summary.there else []
    parts += [f"{len(summary.failed):,} failed"] if summary.failed else []
    if summary.there and not summary.done and not summary.failures and not summary.clips:
        before = "the pair was" if summary.there == 1 else f"all {summary.there:,} pairs were"
        parts = [f"nothing left to do: {before} done before"]
    which = "" if chosen.shard.total == 1 else f"shard {chosen.shard.number}/{chosen.shard.total}: "
    print(f"{which}{', '.join(parts)}: {chosen.output}")
    for clip in summary.clips:
        print(one_line(f"clip: {clip}"))
    if summary.scales and chosen.scale is None and not summary.there:  # else not all are known
        low, high = min(summary.scales), max(summary.scales)
        if low == high:
            print(f"full colour is {low:g} px; --scale {low:g} draws others in the same colours")
        else:
            print(
                f"full colour is {low:g} to {high:g} px; --scale {high:g} --overwrite draws all in the "
                f"same colours"
            )


def _failures(chosen: argparse.Namespace, inputs: Inputs, summary: Summary) -> str:
    """Everything that could not be done, by name, and what to do where the job can be resumed."""
    lines = [f"  {one_line(reason)}" for reason in [*summary.failures][:SHOWN_FAILURES]]
    if len(summary.failures) > SHOWN_FAILURES:
        lines.append(f"  and {len(summary.failures) - SHOWN_FAILURES} more")
    if not summary.done + summary.there:
        return "\n".join(["nothing could be done:", *lines])
    if meaning_of(chosen.output) == "folder" and not any(each.is_live for each in inputs.sequences):
        again = same_command(chosen.overwrite)
        lines.append(f"Fix this, then run {again}; finished pairs are kept.")
    return "\n".join(["these could not be done:", *lines])
