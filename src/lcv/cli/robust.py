"""`lcv robust`: flow under stress, network by network; `lcv robust learn`: a patch that harms it."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lcv.errors import ArgumentError

if TYPE_CHECKING:
    from lcv.studies.robustness.run import Network


def run(arguments: list[str]) -> int:
    if arguments[:1] == ["learn"]:
        return _learn(_learn_parser().parse_args(arguments[1:]))
    return _study(_parser().parse_args(arguments))


class _Model(argparse.Action):
    """`--model` opens a network; the `--weights` after it are its own."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        models = list(namespace.models or [])
        if option == "--weights":
            if not models:
                parser.error("--weights belong to the --model before them; give that first")
            if models[-1][1] is not None:
                parser.error(f"--model {models[-1][0]} has two --weights, wanted one")
            models[-1] = (models[-1][0], values)
        else:
            models.append((values, None))
        namespace.models = models


def _with_models(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model", dest="models", action=_Model, required=True, metavar="M", help="a network's name"
    )
    parser.add_argument(
        "--weights",
        dest="models",
        action=_Model,
        metavar="W",
        help="of the --model before: a file or a published name; without, our own",
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "lcv robust",
        description="The error of flow when frames suffer: illumination, noise, a patch, blur, "
        "JPEG, fog, changing light. All networks see the same stressed frames. A run that was "
        "stopped goes on where it was; levels, stresses and networks can be added later.",
        epilog="`lcv robust learn --help`: learn a patch against a network.",
    )
    _with_models(parser)
    parser.add_argument(
        "--data",
        nargs="+",
        required=True,
        metavar="PLACE",
        help="benchmark, a folder or list file, or NAME=PLACE:PLACE…; each gets curves of its own",
    )
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER", help="made if missing")
    parser.add_argument(
        "--stress", nargs="+", metavar="NAME", help="gamma, noise-variance, patch, … (all)"
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
        type=float,
        default=32.0,
        help="far from a patch is this many px outside it (%(default)s)",
    )
    parser.add_argument(
        "--limit", type=_positive, metavar="N", help="first N pairs of each dataset"
    )
    parser.add_argument("--protocol", default="raft", help="as for `lcv eval` (%(default)s)")
    parser.add_argument("--iters", type=_positive, help="in place of the protocol's iterations")
    parser.add_argument("--seed", type=int, default=0, help="of all draws (%(default)s)")
    parser.add_argument("--batch", type=_positive, help="pairs at once (8 on a GPU, else 1)")
    parser.add_argument("--device", help="cuda or cpu; the GPU where there is one")
    parser.add_argument(
        "--pictures", type=int, default=1, metavar="N", help="pairs to draw of each (%(default)s)"
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="measure and write everything anew"
    )
    return parser


def _learn_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "lcv robust learn",
        description="Learn a universal patch against a network by gradient ascent, on procedural "
        "pairs that the benchmark does not have or on the frames of a dataset.",
    )
    _with_models(parser)
    parser.add_argument("-o", "--output", required=True, metavar="FILE.png", help="and FILE.json")
    parser.add_argument(
        "--data", default="procedural", help="procedural, or a folder of pairs (%(default)s)"
    )
    parser.add_argument(
        "--size",
        type=_positive,
        nargs=2,
        default=(368, 496),
        metavar=("HEIGHT", "WIDTH"),
        help="of procedural pairs (368 496)",
    )
    parser.add_argument("--recipe", default="moderate", help="of procedural pairs (%(default)s)")
    parser.add_argument("--steps", type=_positive, default=1000, help="updates (%(default)s)")
    parser.add_argument("--batch", type=_positive, default=8, help="pairs an update (%(default)s)")
    parser.add_argument("--rate", type=float, default=6.0, help="in grey levels (%(default)s)")
    parser.add_argument("--side", type=_positive, default=100, help="of the picture (%(default)s)")
    parser.add_argument(
        "--diameters",
        type=float,
        nargs=2,
        default=(80.0, 125.0),
        metavar=("LOW", "HIGH"),
        help="that it is pasted with (80 125)",
    )
    parser.add_argument("--rotation", type=float, default=10.0, help="degrees (%(default)s)")
    parser.add_argument("--margin", type=float, default=32.0, help="px (%(default)s)")
    parser.add_argument("--objective", default="change", help="change or cosine (%(default)s)")
    parser.add_argument("--iters", type=_positive, help="of the network (its own)")
    parser.add_argument("--seed", type=int, default=0, help="of all draws (%(default)s)")
    parser.add_argument("--device", help="cuda or cpu; the GPU where there is one")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing patch")
    return parser


def _study(chosen: argparse.Namespace) -> int:
    from lcv.evaluate.protocols import find_protocol
    from lcv.studies.patch_file import load_patch
    from lcv.studies.robustness.pairs import open_source
    from lcv.studies.robustness.registry import choose, with_patches
    from lcv.studies.robustness.run import run_study
    from lcv.studies.robustness.write import write_outputs

    protocol = find_protocol(chosen.protocol).changed(chosen.iters)
    known = with_patches([load_patch(file) for file in chosen.patch], chosen.rule, chosen.margin)
    stresses = choose(known, chosen.stress, _levels(chosen.levels))
    device = _device(chosen.device)
    sources = [open_source(word, chosen.limit, device) for word in chosen.data]
    networks = _networks(chosen.models)
    folder = Path(chosen.output)
    _made(folder)
    with _progress() as progress:
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


def _learn(chosen: argparse.Namespace) -> int:
    from lcv.provenance import provenance
    from lcv.studies.patch import PatchConfig, frames_of, learn_patch
    from lcv.studies.patch_file import check_patch_output, save_patch

    if len(chosen.models) != 1:
        raise ArgumentError(f"lcv robust learn: {len(chosen.models)} networks, wanted one --model")
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
    device = _device(chosen.device)
    [network] = _networks(chosen.models)
    model = network.model.to(device)
    frames = frames_of(chosen.data, config, tuple(chosen.size), device)
    with _progress(every=25) as progress:
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


def _networks(models: Sequence[tuple[str, str | None]]) -> list[Network]:
    from lcv.evaluate.entrants import Entrant
    from lcv.models.build import find, load
    from lcv.provenance import weights_words
    from lcv.studies.robustness.run import Network

    networks = []
    for name, weights in models:
        model = load(name, weights)
        label = Entrant(name, {} if weights is None else {"": weights}).label
        spec = getattr(model, "spec", None)
        words = {
            "model": {"name": name} if spec is None else dict(spec.as_dict()),
            "weights": None if weights is None else weights_words(find(weights)),
        }
        networks.append(Network(label, model, words))
    return networks


def _device(asked: str | None) -> str:
    import torch

    device = asked or ("cuda" if torch.cuda.is_available() else "cpu")
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise ArgumentError("--device cuda: there is no GPU that torch can use here; wanted cpu")
    return device


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


def _made(folder: Path) -> None:
    from lcv.errors import FileError

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder}: cannot be made: {error.strerror}") from None


@contextmanager
def _progress(every: int = 1) -> Iterator[Callable[[str, int, int], None]]:
    """A bar on a terminal with rich, a line now and then elsewhere; on stderr."""
    rich_progress: Any = None
    if sys.stderr.isatty():
        try:
            from rich import progress as rich_progress
        except ImportError:
            rich_progress = None
    if rich_progress is None:
        start = time.monotonic()

        def say(what: str, done: int, total: int) -> None:
            if done % every == 0 or done == total:
                print(f"{done}/{total}  {time.monotonic() - start:.0f} s  {what}", file=sys.stderr)

        yield say
        return
    from rich.console import Console

    columns = (
        "{task.description}",
        rich_progress.BarColumn(),
        rich_progress.MofNCompleteColumn(),
        rich_progress.TimeRemainingColumn(),
    )
    with rich_progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def tell(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)

        yield tell


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return int(text)
