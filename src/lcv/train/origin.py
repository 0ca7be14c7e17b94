"""Where a run's weights come from, for their card: the file they began with, and what was done.

Only the name and the hash of that file, never its path: a card goes wherever the weights go.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lcv.models.build import find
from lcv.models.cards import Card, card_from
from lcv.provenance import provenance
from lcv.train.config import TrainConfig


def start_of(config: TrainConfig, notes: list[str]) -> Card | None:
    """The card of the weights that a run begins with; None where they are random.

    notes: what there was to say when they were read, and all that is kept of notes: others are
    about the old weights, as their scores are. Its recipe is kept, for the whole history.
    """
    if config.model.weights is None:
        return None
    card = card_from(find(config.model.weights), [])
    return replace(card, notes=notes, scores={}, seed=None, progress=None)


def card_of(
    config: TrainConfig, start: Card | None, step: int, scores: dict[str, Any], notes: list[str]
) -> Card:
    """The card of the weights that a run has after a step.

    scores: of the last validation, by what it was; notes: what changed on the way
    """
    data = " + ".join(f"{p.weight}×{p.dataset}" for p in config.data.parts)
    data = data or f"procedural {config.data.recipe}"
    before, commit = start or Card(), commit_words()
    recipe = recipe_words(config, step)
    if before.recipe:
        other = f" (commit {before.commit})" if before.commit not in ("", commit) else ""
        recipe = f"{before.recipe}{other}; then {recipe}"
    else:
        recipe = f"from {before.source['file'] if before.source else 'random weights'}, {recipe}"
    if before.data.endswith(data):
        data = before.data
    elif before.data:
        data = f"{before.data}; then {data}"
    return Card(
        data=data,
        recipe=recipe,
        commit=commit,
        seed=config.seed,
        licence=before.licence,
        scores=scores,
        notes=[*before.notes, *notes],
        source=before.source,
        progress={"stage": config.name, "step": step, "steps": config.steps},
    )


def recipe_words(config: TrainConfig, step: int) -> str:
    """`1000 steps of 2 pairs at 96×128, 4 iterations, …`; step: how far it came"""
    loss, optim, (height, width) = config.loss.name, config.optim, config.data.size
    first, steps = config.first_step, _count(config.steps, "step")
    if first or step < config.steps:
        steps = f"steps {first + 1} to {step} of {config.steps}"
    unseen = config.data.occluded_weight, config.data.out_of_frame_weight
    rates = (
        f"{optim.lr:g} to {optim.lr_end:g}" if optim.schedule == "linear" else f"to {optim.lr:g}"
    )
    words = [
        f"{steps} of {_count(config.batch, 'pair')} at {height}×{width}",
        first and "fresh moments of the optimiser",
        config.loss.iters is not None and _count(config.loss.iters, "iteration"),
        f"{loss} loss" + (f" ({config.loss.stage})" if loss == "unsupervised" else ""),
        unseen != (1, 1) and f"hidden pixels count {unseen[0]:g}, departed ones {unseen[1]:g}",
        f"{optim.optimiser}, {optim.schedule} {rates}",
        config.ema and f"weights averaged ({config.ema:g})",
        config.precision,
    ]
    return ", ".join(word for word in words if word)


def commit_words() -> str:
    """The commit of our checkout, and whether files differed from it; empty where there is none."""
    found = provenance()
    if found["commit"] is None:
        return ""
    return f"{found['commit']}, with changes" if found["modified"] else str(found["commit"])


def last_scores(entries: list[dict[str, Any]], config: TrainConfig) -> dict[str, Any]:
    """The numbers of the last validation in a log, under the words that say how they came to be."""
    validations = [entry for entry in entries if entry["kind"] == "validation"]
    if not validations:
        return {}
    last = validations[-1]
    iters = config.validate_iters
    how = "" if iters is None else f", {_count(iters, 'iteration')}"
    numbers = {name: value for name, value in last.items() if "/" in name}
    return {f"validation after step {last['step']}{how}": numbers}


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number != 1)}"
