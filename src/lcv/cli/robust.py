"""`lcv robust`: flow under stress, network by network."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lcv.cli.parser import Parser, count, device_name, not_negative, whole
from lcv.cli.progress import one_bar_or_lines, says_how_to_resume
from lcv.errors import ArgumentError
from lcv.files import make_folder
from lcv.models.named import check_named

if TYPE_CHECKING:
    from lcv.studies.robustness.run import Network


def run(arguments: list[str]) -> int:
    if arguments[:1] == ["learn"]:
        from lcv.cli import robust_learn

        return robust_learn.run(arguments[1:])
    return _study(_parser().parse_args(arguments))


class _Model(argparse.Action):
    """`--model` opens a network; the `--weights` after it are its own."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        models = list(namespace.models or [])
        if option == "--weights":
            # After a --model they are its own; else they say their network themselves.
            if models and models[-1][1] is None:
                models[-1] = (models[-1][0], values)
            else:
                models.append((None, values))
        else:
            models.append((values, None))
        namespace.models = models


def add_models(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model",
        dest="models",
        action=_Model,
        metavar="M",
        help="a network's name, a file of weights, or file.py:factory",
    )
    parser.add_argument(
        "--weights",
        dest="models",
        action=_Model,
        metavar="W",
        help="of the --model before, or alone: a file or a published name; without, our own",
    )


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        "lcv robust",
        description="The error of flow on disturbed frames: illumination, noise, a patch, blur, "
        "JPEG, fog, changing light. All networks see the same frames. The same command continues a "
        "stopped run; levels, stresses and networks can be added later.",
        epilog="`lcv robust learn --help`: learn a patch against a network.",
    )
    add_models(parser)
    parser.add_argument(
        "--data",
        nargs="+",
        required=True,
        metavar="PLACE",
        help="benchmark, a folder or list file, or NAME=PLACE:PLACE…; each has its own curves",
    )
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER", help="made if missing")
    parser.add_argument(
        "--stress",
        nargs="+",
        metavar="NAME",
        help="gamma, noise-variance, …; patch, with --patch (all)",
    )
    parser.add_argument(
        "--levels", nargs="+", default=[], metavar="NAME=A,B…", help="in place of a stress's own"
    )
    parser.add_argument(
        "--patch", nargs="+", default=[], metavar="FILE", help="learned patches, or any pictures"
    )
    parser.add_argument(
        "--rule", default="zero", help="truth under a patch: zero, ignore or truth (%(default)s)"
    )
    parser.add_argument(
        "--margin",
        type=not_negative,
        default=32.0,
        help="far from a patch is this many px outside it (%(default)s)",
    )
    parser.add_argument("--limit", type=whole, metavar="N", help="first N pairs of each dataset")
    parser.add_argument("--protocol", default="raft", help="as for `lcv eval` (%(default)s)")
    parser.add_argument("--iters", type=whole, help="in place of the protocol's iterations")
    parser.add_argument("--seed", type=int, default=0, help="of all draws (%(default)s)")
    parser.add_argument("--batch", type=whole, help="pairs at once (8 on a GPU, else 1)")
    parser.add_argument(
        "--device", type=device_name, help="cuda or cpu; the GPU where there is one"
    )
    parser.add_argument(
        "--pictures", type=count, default=1, metavar="N", help="pairs to draw of each (%(default)s)"
    )
    parser.add_argument("--overwrite", action="store_true", help="measure everything again")
    return parser


def _study(chosen: argparse.Namespace) -> int:
    check_models(chosen.models)

    from lcv.evaluate.protocols import find_protocol
    from lcv.studies.patch_file import load_patch
    from lcv.studies.robustness.pairs import open_source
    from lcv.studies.robustness.pasted import with_patches
    from lcv.studies.robustness.registry import PATCH_KINDS, choose
    from lcv.studies.robustness.run import run_study
    from lcv.studies.robustness.write import write_outputs

    protocol = find_protocol(chosen.protocol).changed(chosen.iters)
    known = with_patches([load_patch(file) for file in chosen.patch], chosen.rule, chosen.margin)
    names = chosen.stress
    if names and chosen.patch and not any(word.partition(":")[0] in PATCH_KINDS for word in names):
        names = [*names, *PATCH_KINDS]  # a patch is given to be used
    stresses = choose(known, names, _levels(chosen.levels))
    device = device_or_gpu(chosen.device)
    sources = [open_source(word, chosen.limit, device) for word in chosen.data]
    networks = networks_of(chosen.models)
    folder = Path(chosen.output)
    make_folder(folder)
    with one_bar_or_lines() as progress, says_how_to_resume():
        study = run_study(
            networks,
            sources,
            stresses,
            protocol,
            folder,
            seed=chosen.seed,
            rule=chosen.rule,
            margin=chosen.margin,
            batch=chosen.batch or (8 if device.startswith("cuda") else 1),
            device=device,
            overwrite=chosen.overwrite,
            progress=progress,
        )
    for line in write_outputs(
        study,
        networks,
        sources,
        stresses,
        protocol,
        folder,
        pictures=chosen.pictures,
        seed=chosen.seed,
        device=device,
    ):
        print(line)
    return 0


def check_models(models: Sequence[tuple[str | None, str | None]] | None) -> None:
    if not models:
        raise ArgumentError("missing: --model M or --weights FILE, a network to put under stress")
    for named, weights in models:
        check_named(named, weights)


def networks_of(models: Sequence[tuple[str | None, str | None]]) -> list[Network]:
    from lcv.evaluate.entrants import Entrant
    from lcv.models.build import find, load, network_and_weights
    from lcv.provenance import weights_words
    from lcv.studies.robustness.run import Network

    networks = []
    for named, given in models:
        name, weights = network_and_weights(named, given)
        model = load(name, weights)
        label = Entrant(name, {} if weights is None else {"": str(weights)}).label
        spec = getattr(model, "spec", None)
        words = {
            "model": {"name": name} if spec is None else dict(spec.as_dict()),
            "weights": None if weights is None else weights_words(find(weights)),
        }
        networks.append(Network(label, model, words))
    return networks


def device_or_gpu(asked: str | None) -> str:
    """What was asked for; else the GPU where there is one."""
    import torch

    return asked or ("cuda" if torch.cuda.is_available() else "cpu")


def _levels(words: Sequence[str]) -> dict[str, list[float]]:
    found = {}
    for word in words:
        name, _, numbers = word.partition("=")
        try:
            found[name] = [float(number) for number in numbers.split(",")]
        except ValueError:
            raise ArgumentError(
                f"--levels {word}: wanted a stress and its levels, as in gamma=0.2,0.5,1"
            ) from None
    return found
