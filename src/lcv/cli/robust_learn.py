"""`lcv robust learn`: learn a picture that disturbs a network's flow wherever it is pasted."""

from __future__ import annotations

import argparse
from dataclasses import fields
from pathlib import Path
from typing import Any

from lcv.cli import robust
from lcv.cli.parser import Parser, device_name, not_negative, positive, whole
from lcv.cli.progress import one_bar_or_lines
from lcv.errors import ArgumentError


def run(arguments: list[str]) -> int:
    return _learn(_parser().parse_args(arguments))


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        "lcv robust learn",
        description="Learn a universal patch against a network by gradient ascent, on procedural "
        "pairs that the benchmark does not have or on the frames of a dataset.",
    )
    robust.add_models(parser)
    parser.add_argument("-o", "--output", required=True, metavar="FILE.png", help="and FILE.json")
    parser.add_argument(
        "--data", default="procedural", help="procedural, or a folder of pairs (%(default)s)"
    )
    parser.add_argument(
        "--size",
        type=whole,
        nargs=2,
        default=(256, 384),
        metavar=("HEIGHT", "WIDTH"),
        help="of procedural pairs (256 384)",
    )
    parser.add_argument("--recipe", default="training", help="of procedural pairs (%(default)s)")
    parser.add_argument("--steps", type=whole, default=1500, help="updates (%(default)s)")
    parser.add_argument("--batch", type=whole, default=4, help="pairs an update (%(default)s)")
    parser.add_argument("--rate", type=positive, default=6.0, help="in grey levels (%(default)s)")
    parser.add_argument("--side", type=whole, default=100, help="of the picture (%(default)s)")
    parser.add_argument(
        "--diameters",
        type=positive,
        nargs=2,
        default=(97.5, 102.5),
        metavar=("LOW", "HIGH"),
        help="that it is pasted with (97.5 102.5)",
    )
    parser.add_argument("--rotation", type=float, default=5.0, help="degrees (%(default)s)")
    parser.add_argument("--margin", type=not_negative, default=32.0, help="px (%(default)s)")
    parser.add_argument(
        "--near",
        type=not_negative,
        default=0.5,
        help="share of the objective that pixels within the margin take part in (%(default)s)",
    )
    parser.add_argument(
        "--objective", help="error (for procedural pairs), change (for a dataset) or cosine"
    )
    parser.add_argument(
        "--start",
        default="noise",
        metavar="WORD|PICTURE",
        help="noise, stripes, checks, or a picture to begin with (%(default)s)",
    )
    parser.add_argument("--pool", type=whole, default=256, help="procedural pairs (%(default)s)")
    parser.add_argument(
        "--iters", type=whole, default=8, help="of networks that iterate (%(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of all draws (%(default)s)")
    parser.add_argument(
        "--device", type=device_name, help="cuda or cpu; the GPU where there is one"
    )
    parser.add_argument(
        "--graph", action="store_true", help="record a step and replay it; CUDA, pairs of one size"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an existing patch")
    return parser


def _learn(chosen: argparse.Namespace) -> int:
    robust.check_models(chosen.models)
    if len(chosen.models) != 1:
        raise ArgumentError(f"lcv robust learn: {len(chosen.models)} networks, wanted one --model")

    from lcv.provenance import provenance
    from lcv.studies.patch import STARTS, PatchConfig, learn_patch
    from lcv.studies.patch_file import check_patch_output, load_patch, save_patch
    from lcv.studies.patch_frames import dataset_frames, procedural_frames

    low, high = chosen.diameters
    if low > high:
        raise ArgumentError(f"--diameters is {low:g} {high:g}, wanted the smaller one first")
    check_patch_output(chosen.output, chosen.overwrite)
    procedural = chosen.data == "procedural"
    picture = None if chosen.start in STARTS else load_patch(chosen.start).pixels
    told: dict[str, Any] = {
        **{each.name: getattr(chosen, each.name, None) for each in fields(PatchConfig)},
        "sizes": tuple(chosen.diameters),
        "objective": chosen.objective or ("error" if procedural else "change"),
        "start": chosen.start if picture is None else Path(chosen.start).name,
    }
    config = PatchConfig(**told)
    if config.objective == "error" and not procedural:
        raise ArgumentError(
            f"--objective error needs truth, which is not read of --data {chosen.data}; wanted "
            f"--objective change, or --data procedural"
        )
    device = robust.device_or_gpu(chosen.device)
    if chosen.graph and not device.startswith("cuda"):
        raise ArgumentError(f"--graph needs CUDA, and the device is {device}; leave it out")
    [network] = robust.networks_of(chosen.models)
    model = network.model.to(device)
    if procedural:
        frames = procedural_frames(
            config.recipe,
            config.batch,
            tuple(chosen.size),
            pool=config.pool,
            seed=config.seed,
            device=device,
        )
    else:
        frames = dataset_frames(chosen.data, seed=config.seed, device=device)
    with one_bar_or_lines(every=25) as progress:
        pixels, values = learn_patch(
            model,
            frames,
            config,
            lambda done, total, value: progress(f"objective {value:.3f}", done, total),
            start=picture,
            graph=chosen.graph,
        )
    tenth = max(1, len(values) // 10)
    card = {
        "network": {"label": network.label, **network.words, "state_sha256": network.sha256},
        "data": chosen.data if procedural else Path(chosen.data).name,
        "config": config.as_dict(),
        "objective_first": sum(values[:tenth]) / tenth,
        "objective_last": sum(values[-tenth:]) / tenth,
        "provenance": provenance(device=device),
    }
    save_patch(chosen.output, pixels, card, chosen.overwrite)
    print(
        f"{chosen.output}: a patch learned against {network.label} in {len(values)} steps; the "
        f"objective went from {card['objective_first']:.3f} to {card['objective_last']:.3f}. "
        f"Try it with `lcv robust --patch {chosen.output} …`"
    )
    return 0
