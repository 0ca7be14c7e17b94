"""Run the study: every network on the same stressed frames, source by source, level by level."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lcv.errors import ArgumentError
from lcv.evaluate.calling import call_options, evaluating, stored
from lcv.evaluate.metrics import measures
from lcv.evaluate.protocols import Protocol, Setting
from lcv.models.types import tensor_of
from lcv.provenance import provenance, state_sha256
from lcv.studies.robustness.harm import harms
from lcv.studies.robustness.pairs import Source
from lcv.studies.robustness.registry import MARGIN, Pairs, Stress
from lcv.studies.robustness.results import NONE, Columns, Study, continued
from lcv.studies.robustness.versus import differences

FILE = "robustness.json"
SAVED_EVERY = 10.0
"""Seconds; the file grows to megabytes, and writing it can take longer than measuring a level."""
Progress = Callable[[str, int, int], None]
PLAIN = Stress(NONE, "frames as they are", "", (0.0,), lambda pairs, level, seed: pairs, shown=0.0)
_DECIMALS = 6


@dataclass
class Network:
    """A network under study.

    words: how it was built and which weights it has, as plain values of JSON
    """

    label: str
    model: nn.Module
    words: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sha256 = state_sha256(self.model)


def run_study(
    networks: Sequence[Network],
    sources: Sequence[Source],
    stresses: Sequence[Stress],
    protocol: Protocol,
    folder: Path,
    *,
    seed: int = 0,
    rule: str = "zero",
    margin: float = MARGIN,
    batch: int = 1,
    device: torch.device | str = "cpu",
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Study:
    """Measure every network under every stress and level, and keep all of it in `folder`.

    Cells in the folder's file are kept if the settings are the same; `overwrite` starts over. The
    file is written every `SAVED_EVERY` seconds and at the end, also of a run that was stopped.
    progress: called with what is measured, levels done, and their number
    """
    device = torch.device(device)
    _check(networks, sources, protocol)
    _try(stresses, seed)
    for network in networks:
        network.model.to(device)
    path = Path(folder) / FILE
    wanted = _described(networks, sources, stresses, protocol, seed, rule, margin)
    study = wanted if overwrite else continued(path, wanted)
    # Frames as they are come first: all else is compared with them.
    levels = [(stress, level) for stress in (PLAIN, *stresses) for level in stress.levels]
    work = [(source, *each) for source in sources for each in levels]
    saved = time.monotonic()
    try:
        with ExitStack() as stack:
            for network in networks:
                stack.enter_context(evaluating(network.model, protocol.precision))
            for done, (source, stress, level) in enumerate(work):
                if progress is not None:
                    progress(f"{source.label}, {stress.name} {level:g}", done, len(work))
                missing = [n for n in networks if not _known(study, source, n, stress, level)]
                if missing:
                    found = _measure(missing, source, stress, level, protocol, seed, batch, device)
                    for label, columns in found.items():
                        study.add((source.label, label, stress.name, level), columns)
                if time.monotonic() - saved > SAVED_EVERY:
                    study.save(path)
                    saved = time.monotonic()
    except BaseException:
        if study.cells:
            study.save(path)
        raise
    study.about["harm"] = harms(study)
    study.about["differences"] = differences(study)
    study.save(path)
    if progress is not None:
        progress("done", len(work), len(work))
    return study


def _known(study: Study, source: Source, network: Network, stress: Stress, level: float) -> bool:
    """Whether the cell has been measured, or changes nothing: then it is that of the plain frames."""
    key = source.label, network.label, stress.name, level
    if key in study.cells:
        return True
    plain = study.cells.get((source.label, network.label, NONE, 0.0))
    if plain is None or level != stress.neutral:
        return False
    study.add(key, plain)
    return True


def _measure(
    networks: Sequence[Network],
    source: Source,
    stress: Stress,
    level: float,
    protocol: Protocol,
    seed: int,
    batch: int,
    device: torch.device,
) -> dict[str, Columns]:
    """One level on one source: the sums of every pair, by network."""
    found: dict[str, Columns] = {network.label: {} for network in networks}
    for pairs in source.batches(batch, device, protocol):
        stressed = stress.function(pairs, level, seed)
        setting = protocol.setting(source.records[pairs.indices[0]].dataset)
        for network in networks:
            flow = _flow(network, stressed, source, setting, protocol)
            columns, _ = _sums(flow, stressed)
            if stressed.far is not None:
                untouched = _flow(network, pairs, source, setting, protocol)
                far = (stressed.far & pairs.valid)[:, 0]
                columns["untouched/far"] = _total(_sums(untouched, pairs)[1], far)
            for name, values in columns.items():
                found[network.label].setdefault(name, []).extend(values)
    return found


def _flow(
    network: Network, pairs: Pairs, source: Source, setting: Setting, protocol: Protocol
) -> Tensor:
    """Flow (b, 2, h, w) as the protocol calls the network and stores what it gives."""
    options = call_options(network.model, setting)
    flow = network.model(pairs.image1, pairs.image2, **options).flow
    if not bool(flow.isfinite().all()):
        raise ArgumentError(
            f"{network.label}: its flow is not a number on {source.label}, pair "
            f"{source.records[pairs.indices[0]].name}; look at its weights"
        )
    return stored(flow, protocol.storage)


def _sums(flow: Tensor, pairs: Pairs) -> tuple[Columns, Tensor]:
    """Every measure over all known pixels of each pair, the error of the far ones, and all errors."""
    valid = pairs.valid[:, 0]
    values, _ = measures(torch.where(pairs.valid, flow, 0), torch.where(pairs.valid, pairs.flow, 0))
    columns = {"pixels/all": _total(torch.ones_like(values["error"]), valid)}
    columns |= {f"{name}/all": _total(value, valid) for name, value in values.items()}
    if pairs.far is not None:
        far = (pairs.far & pairs.valid)[:, 0]
        columns["pixels/far"] = _total(torch.ones_like(values["error"]), far)
        columns["error/far"] = _total(values["error"], far)
    return columns, values["error"]


def _total(values: Tensor, where: Tensor) -> list[float]:
    """Sums over the chosen pixels of each pair."""
    sums = torch.where(where, values.double(), 0).sum((1, 2)).tolist()
    return [round(value, _DECIMALS) for value in sums]


def _check(networks: Sequence[Network], sources: Sequence[Source], protocol: Protocol) -> None:
    for kind, labels in (
        ("networks", [n.label for n in networks]),
        ("sources", [s.label for s in sources]),
    ):
        if not labels:
            raise ArgumentError(f"robustness: there are no {kind}, wanted at least one")
        twice = sorted({label for label in labels if labels.count(label) > 1})
        if twice:
            raise ArgumentError(f"robustness: two {kind} are called {twice[0]!r}, wanted each once")
    if protocol.precision == "float64" or protocol.warm_start:
        raise ArgumentError(
            "robustness: pairs are stressed and measured alone, in float32 or less; wanted a "
            "protocol without warm start and float64"
        )


def _try(stresses: Sequence[Stress], seed: int) -> None:
    """Every level once on a small grey pair, so that a wrong one is refused at the start."""
    grey = torch.full((1, 3, 128, 128), 100.0)
    known = torch.ones_like(grey[:, :1], dtype=torch.bool)
    pair = Pairs(grey, grey, torch.zeros_like(grey[:, :2]), known, (0,))
    for stress in stresses:
        for level in stress.levels:
            stress.function(pair, level, seed)


def _described(
    networks: Sequence[Network],
    sources: Sequence[Source],
    stresses: Sequence[Stress],
    protocol: Protocol,
    seed: int,
    rule: str,
    margin: float,
) -> Study:
    settings = {"protocol": protocol.as_dict(), "seed": seed, "rule": rule, "margin": margin}
    identities = {f"network {n.label}": n.sha256 for n in networks}
    codes = ((n.label, n.words.get("model", {}).get("source")) for n in networks)
    identities |= {f"factory of {label}": source for label, source in codes if source is not None}
    identities |= {f"source {s.label}": s.fingerprint for s in sources}
    identities |= {f"patch {s.patch.name}": s.patch.sha256 for s in stresses if s.patch is not None}
    device = tensor_of(networks[0].model).device
    about: dict[str, Any] = {
        "provenance": provenance(device=device),
        "networks": {n.label: {**n.words, "state_sha256": n.sha256} for n in networks},
        "sources": {s.label: [f"{r.dataset}/{r.name}" for r in s.records] for s in sources},
        "stresses": {
            s.name: {
                "label": s.label,
                "unit": s.unit,
                "neutral": s.neutral,
                "log": s.log,
                "patch": None if s.patch is None else dict(s.patch.card),
            }
            for s in stresses
        },
    }
    return Study(settings, identities, about, {s.label: s.groups for s in sources})
