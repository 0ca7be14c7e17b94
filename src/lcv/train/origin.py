"""Where a run's weights come from, for their card: the file they began with, and what was done.

Only the name and the hash of that file, never its path: a card goes wherever the weights go.
"""

from __future__ import annotations

from typing import Any

from lcv.models.build import find
from lcv.models.cards import Card, card_from
from lcv.provenance import provenance
from lcv.train.config import TrainConfig


def start_of(config: TrainConfig, notes: list[str]) -> Card | None:
    """The card of the weights that a run begins with; None where they are random.

    notes: what there was to say when they were read, and all that is kept of notes: others are
    about the old weights, as their scores are
    """
    if config.model.weights is None:
        return None
    card = card_from(find(config.model.weights), [])
    return Card(data=card.data, licence=card.licence, notes=notes, source=card.source)


def card_of(
    config: TrainConfig, start: Card | None, scores: dict[str, Any], notes: list[str]
) -> Card:
    """The card of the weights that a run ends with.

    scores: of the last validation, by what it was; notes: what changed on the way
    """
    data = " + ".join(f"{p.weight}×{p.dataset}" for p in config.data.parts)
    data = data or f"procedural {config.data.recipe}"
    before = start or Card()
    return Card(
        data=f"{before.data}; then {data}" if before.data else data,
        recipe=recipe_words(config, start),
        commit=commit_words(),
        seed=config.seed,
        licence=before.licence,
        scores=scores,
        notes=[*before.notes, *notes],
        source=before.source,
    )


def recipe_words(config: TrainConfig, start: Card | None) -> str:
    """`from random weights, 1000 steps of 2 pairs at 96×128, 4 iterations, …`"""
    height, width = config.data.size
    name = start.source["file"] if start is not None and start.source else "random weights"
    loss = config.loss.name
    return ", ".join(
        [
            f"from {name}",
            f"{_count(config.steps, 'step')} of {_count(config.batch, 'pair')} at {height}×{width}",
            *([] if config.loss.iters is None else [_count(config.loss.iters, "iteration")]),
            f"{loss} loss" + (f" ({config.loss.stage})" if loss == "unsupervised" else ""),
            f"{config.optim.optimiser}, {config.optim.schedule} to {config.optim.lr:g}",
            config.precision,
        ]
    )


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
