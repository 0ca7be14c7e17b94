"""`lcv robust learn`: a picture that harms a network's flow wherever it is pasted."""

from __future__ import annotations

import argparse
from pathlib import Path

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
        default=(368, 496),
        metavar=("HEIGHT", "WIDTH"),
        help="of procedural pairs (368 496)",
    )
    parser.add_argument("--recipe", default="moderate", help="of procedural pairs (%(default)s)")
    parser.add_argument("--steps", type=whole, default=1000, help="updates (%(default)s)")
    parser.add_argument("--batch", type=whole, default=8, help="pairs an update (%(default)s)")
    parser.add_argument("--rate", type=positive, default=6.0, help="in grey levels (%(default)s)")
    parser.add_argument("--side", type=whole, default=100, help="of the picture (%(default)s)")
    parser.add_argument(
        "--diameters",
        type=positive,
        nargs=2,
        default=(80.0, 125.0),
        metavar=("LOW", "HIGH"),
        help="that it is pasted with (80 125)",
    )
    parser.add_argument("--rotation", type=float, default=10.0, help="degrees (%(default)s)")
    parser.add_argument("--margin", type=not_negative, default=32.0, help="px (%(default)s)")
    parser.add_argument("--objective", default="change", help="change or cosine (%(default)s)")
    parser.add_argument("--iters", type=whole, help="of the network (its own)")
    parser.add_argument("--seed", type=int, default=0, help="of all draws (%(default)s)")
    parser.add_argument(
        "--device", type=device_name, help="cuda or cpu; the GPU where there is one"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an existing patch")
    return parser


def _learn(chosen: argparse.Namespace) -> int:
    from lcv.provenance import provenance
    from lcv.studies.patch import PatchConfig, frames_of, learn_patch
    from lcv.studies.patch_file import check_patch_output, save_patch

    if len(chosen.models) != 1:
        raise ArgumentError(f"lcv robust learn: {len(chosen.models)} networks, wanted one --model")
    low, high = chosen.diameters
    if low > high:
        raise ArgumentError(f"--diameters is {low:g} {high:g}, wanted the smaller one first")
    check_patch_output(chosen.output, chosen.overwrite)
    config = PatchConfig(
        chosen.side,
        tuple(chosen.diameters),
        chosen.rotation,
        chosen.margin,
        chosen.objective,
        chosen.steps,
        chosen.batch,
        chosen.rate,
        chosen.iters,
        chosen.seed,
        chosen.recipe,
    )
    device = robust.device_or_gpu(chosen.device)
    [network] = robust.networks_of(chosen.models)
    model = network.model.to(device)
    frames = frames_of(chosen.data, config, tuple(chosen.size), device)
    with one_bar_or_lines(every=25) as progress:
        pixels, values = learn_patch(
            model,
            frames,
            config,
            lambda done, total, value: progress(f"objective {value:.3f}", done, total),
        )
    tenth = max(1, len(values) // 10)
    card = {
        "network": {"label": network.label, **network.words, "state_sha256": network.sha256},
        "data": chosen.data if chosen.data == "procedural" else Path(chosen.data).name,
        "config": config.as_dict(),
        "objective_first": sum(values[:tenth]) / tenth,
        "objective_last": sum(values[-tenth:]) / tenth,
        "provenance": provenance(device=device),
    }
    save_patch(chosen.output, pixels, card, chosen.overwrite)
    print(
        f"{chosen.output}: a patch learned against {network.label} in {len(values)} steps; the "
        f"objective rose from {card['objective_first']:.3f} to {card['objective_last']:.3f}. "
        f"Try it with `lcv robust --patch {chosen.output} …`"
    )
    return 0
