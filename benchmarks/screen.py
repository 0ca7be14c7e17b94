"""Is a change of the source or the loss worth a long run? Short ones, compared pair by pair.

    python benchmarks/screen.py OUT base gamma-85 --start FILE --textures PHOTOGRAPHS [--seeds 0 1]
    python benchmarks/screen.py OUT --compare base [--json FILE]

The first trains each variant with each seed for 6,000 steps of 12 pairs at 256×320, 6 iterations, all
from one file, and leaves OUT/VARIANT-SEED.json: the EPE of every pair of the development sets. What
is there already is not trained again, so that a few can be made at a time, on any machine. The
second compares all that there are with one of them: differences by pair, averaged over the seeds
that both have, with a bootstrap interval over the pairs. A change counts if the interval leaves 0 out.

To try something, add it to VARIANTS: settings by dotted name, and a recipe of the source if it is new.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from lcv.data.synthetic.recipe import FRAMED, FURNITURE, GENTLE, HIDDEN, RECIPES, SPACE, STREET
from lcv.data.synthetic.settings import Mixture
from lcv.errors import ArgumentError, LcvError
from lcv.evaluate.compare import bootstrap_interval
from lcv.recipes import config_from
from lcv.train import DataConfig, LossConfig, ModelConfig, OptimConfig, TrainConfig, run
from lcv.train.origin import commit_words


@dataclass(frozen=True)
class Variant:
    """settings: by dotted name, what differs from `base_config`; recipe: of the source, if not a
    ready one (those are named by data.recipe)."""

    settings: dict[str, Any] = field(default_factory=dict)
    recipe: Any = None


NO_RELIEF = [replace(kind, relief_probability=0.0) for kind in (GENTLE, SPACE, STREET)]
VARIANTS = {
    "base": Variant(),
    "mixed": Variant({"data.recipe": "mixed"}),
    "no-relief": Variant(recipe=Mixture(tuple(zip((0.35, 0.45, 0.2), NO_RELIEF, strict=True)))),
    "hidden-flat": Variant(recipe=Mixture(((0.35, HIDDEN), (0.45, SPACE), (0.2, STREET)))),
    "furniture": Variant({"data.recipe": "mixed_furniture"}),
    "mostly-furniture": Variant(
        recipe=Mixture(((0.15, GENTLE), (0.2, SPACE), (0.1, STREET), (0.55, FURNITURE)))
    ),
    "mostly-framed": Variant(
        recipe=Mixture(((0.15, GENTLE), (0.2, SPACE), (0.1, STREET), (0.55, FRAMED)))
    ),
    "no-street": Variant(recipe=Mixture(((0.45, GENTLE), (0.55, SPACE)))),
    "unseen-0": Variant(
        {
            "data.recipe": "mixed",
            "data.occluded_weight": 0.0,
            "data.out_of_frame_weight": 0.0,
        }
    ),
    "gamma-85": Variant({"data.recipe": "mixed", "loss.gamma": 0.85}),
}


def base_config() -> TrainConfig:
    return TrainConfig(
        model=ModelConfig("raft-large", inner_product="elliptical"),
        data=DataConfig(recipe="hidden", detailed=True, size=(256, 320), ahead=8),
        optim=OptimConfig(lr=2e-4, schedule="linear", warmup=0.03),
        loss=LossConfig("sequence", iters=6),
        steps=6000,
        batch=12,
        ema=0.999,
        graph=True,
        compile=True,
        save_every=10**9,
        validate_every=10**9,
        validate_iters=12,
        validation={"development": "development"},
        best="development/epe",
    )


def configured(name: str, seed: int, changes: dict[str, Any]) -> TrainConfig:
    """The run of a variant and a seed."""
    if name not in VARIANTS:
        raise ArgumentError(f"there is no variant {name!r}, wanted one of {', '.join(VARIANTS)}")
    variant = VARIANTS[name]
    if variant.recipe is not None:
        RECIPES[name] = variant.recipe
        changes = {"data.recipe": name, **changes}
    settings = base_config().as_dict()
    for dotted, value in {**variant.settings, **changes, "seed": seed}.items():
        group, _, last = dotted.rpartition(".")
        (settings[group] if group else settings)[last] = value
    return config_from(settings, f"variant {name}")


def train(output: Path, name: str, seed: int, changes: dict[str, Any], device: str | None) -> None:
    """Train one and leave its numbers; its folder is removed."""
    result, folder = output / f"{name}-{seed}.json", output / f"{name}-{seed}"
    if result.exists():
        print(f"{result}: there already")
        return
    began = time.perf_counter()
    config = configured(name, seed, {**changes, "folder": str(folder)})
    run(config, resume="auto", device=device)
    left = json.loads((folder / "development.json").read_text(encoding="utf-8"))
    seconds = round(time.perf_counter() - began, 1)
    about = {"variant": name, "seed": seed, "commit": commit_words(), "seconds": seconds}
    text = json.dumps({**about, **left, "config": config.as_dict()})
    result.write_text(text + "\n", encoding="utf-8")
    shutil.rmtree(folder)
    mean = np.mean([np.mean(row) for row in left["epe"].values()])
    print(f"{name}, seed {seed}: EPE {mean:.4f} after {seconds:.0f} s", flush=True)


def compare(output: Path, base: str) -> list[dict[str, Any]]:
    """Every variant against one: by set and over all pairs, in px and in %.

    The relative change is that of the geometric mean, in which a set of small motion counts as much
    as one of large motion.
    """
    found: dict[str, dict[int, dict[str, Any]]] = {}
    for path in sorted(output.glob("*-*.json")):
        said = json.loads(path.read_text(encoding="utf-8"))
        found.setdefault(said["variant"], {})[said["seed"]] = said
    if base not in found:
        raise ArgumentError(f"{output}: has no result of {base!r}; it has {', '.join(found)}")
    rows = []
    for name in found:
        seeds = sorted(found[name].keys() & found[base].keys())
        if name == base or not seeds:
            continue
        pairs = {s: (found[name][s], found[base][s]) for s in seeds}
        for s, (one, other) in pairs.items():
            if one["step"] != other["step"] or one["epe"].keys() != other["epe"].keys():
                raise ArgumentError(f"{name} and {base}, seed {s}, had other steps or other sets")
        sets = list(found[name][seeds[0]]["epe"])
        for kind in ("all", *sets):
            chosen = sets if kind == "all" else [kind]
            epe = np.array(
                [
                    [np.concatenate([x["epe"][k] for k in chosen]) for x in two]
                    for two in pairs.values()
                ]
            )  # (seeds, variant or base, pairs)
            change, ratio = epe[:, 0] - epe[:, 1], np.log(epe[:, 0] / epe[:, 1])
            rows.append(
                {
                    "variant": name,
                    "set": kind,
                    "seeds": seeds,
                    "epe": float(epe[:, 0].mean()),
                    "change": float(change.mean()),
                    "interval": bootstrap_interval(change.mean(0)),
                    "percent": _percent(ratio.mean()),
                    "percent_interval": [_percent(x) for x in bootstrap_interval(ratio.mean(0))],
                    "percent_by_seed": [_percent(x) for x in ratio.mean(1)],
                }
            )
    return rows


def _percent(ratio: float) -> float:
    return 100 * (math.exp(ratio) - 1)


def table(rows: list[dict[str, Any]]) -> str:
    lines = [
        "variant           set            EPE      change, px (95 %)          change, % (95 %)"
    ]
    for row in rows:
        low, high = row["interval"]
        less, more = row["percent_interval"]
        kept = "" if less <= 0 <= more else "  *"
        lines.append(
            f"{row['variant']:<17} {row['set']:<14} {row['epe']:.4f}   "
            f"{row['change']:+.4f} ({low:+.4f}, {high:+.4f})   "
            f"{row['percent']:+.2f} ({less:+.2f}, {more:+.2f}){kept}"
        )
    return "\n".join(lines)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path, help="a folder for the results")
    parser.add_argument("variants", nargs="*", help=f"of {', '.join(VARIANTS)}")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="(0)")
    parser.add_argument("--start", help="weights that all begin with")
    parser.add_argument("--textures", help="a folder of photographs")
    parser.add_argument("--set", nargs=2, action="append", default=[], metavar=("NAME", "JSON"))
    parser.add_argument("--device")
    parser.add_argument("--compare", metavar="VARIANT", help="compare all results with this one's")
    parser.add_argument("--json", type=Path, help="write the comparison there")
    options = parser.parse_intermixed_args(words)
    changes = {"model.weights": options.start, "data.textures": options.textures}
    changes |= {name: json.loads(value) for name, value in options.set}
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        for seed in options.seeds:
            for name in options.variants:
                train(options.output, name, seed, changes, options.device)
        if options.compare is not None:
            rows = compare(options.output, options.compare)
            print(table(rows))
            if options.json is not None:
                options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    except LcvError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
