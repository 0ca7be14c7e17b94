"""The columns of the ablation: the paper's seven (its table 3), then ours.

A column changes only the fields below, so any network, data and schedule can be ablated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lcv.errors import ArgumentError
from lcv.train.config import TrainConfig
from lcv.words import did_you_mean

if TYPE_CHECKING:  # `lcv ablate --help` lists the columns, and needs no torch for that
    from lcv.models.types import FlowModel

REFERENCE = "continued"
"""The column that the others are compared with, pair by pair and seed by seed."""


@dataclass(frozen=True)
class Column:
    """One way to train on from the same weights.

    name, label:   in a command and a folder; in a table
    inner_product: a key of `lcv.inner_product.INNER_PRODUCTS`
    options:       options of the network's builder that differ: form
    optim:         fields of `OptimConfig` that differ
    starts_at:     share of the steps during which W stays at I
    trained:       whether it is trained at all;  paper: whether it is one of the paper's
    """

    name: str
    label: str
    inner_product: str = "euclidean"
    options: dict[str, Any] = field(default_factory=dict, hash=False)
    optim: dict[str, Any] = field(default_factory=dict, hash=False)
    starts_at: float = 0.0
    trained: bool = True
    paper: bool = True
    note: str = ""


LEFT, FACTOR = {"form": "left"}, {"form": "factor"}
ours = partial(Column, paper=False)
COLUMNS = (
    Column("original", "original", trained=False, note="the weights as they are"),
    Column(
        "continued", "continued", note="trained on without W: what the others are compared with"
    ),
    Column("free", "free W", "free", LEFT, note="any matrix, neither symmetric nor positive"),
    Column("diagonal", "Λ only", "diagonal", note="P = I: each channel weighed on its own"),
    Column("rotation", "P only", "rotation", note="Λ = I, W computed as PᵀP"),
    Column("gram", "1×1 convolution", "gram", FACTOR, note="W = RᵀR, R on both features, from I"),
    Column("lcv", "full LCV", "elliptical", note="W = PᵀΛP"),
    ours("riemannian", "LCV, Riemannian", "riemannian", note="P on the Stiefel manifold, Eq. 5, 6"),
    ours("lcv-left", "LCV, left", "elliptical", LEFT, note="(Wᵀf₁)·f₂"),
    ours("lcv-factor", "LCV, factor", "elliptical", FACTOR, note="(Qf₁)·(Qf₂)"),
    ours("rotation-factor", "P only, factor", "rotation", FACTOR, note="(Pf₁)·(Pf₂)"),
    ours(
        "lcv-delayed",
        "LCV, delayed",
        "elliptical",
        starts_at=0.5,
        note="W stays at I for the first half of the steps",
    ),
    ours(
        "w-alone",
        "W alone",
        "elliptical",
        optim={"w_alone": True},
        note="everything else stays as it is",
    ),
)
BY_NAME = {column.name: column for column in COLUMNS}
PAPER = tuple(column.name for column in COLUMNS if column.paper)
OURS = tuple(column.name for column in COLUMNS if not column.paper)


def form_of(network: FlowModel, column: Column) -> str:
    """The form of W in this column: its own, or the network's default."""
    return str(column.options.get("form", network.forms[0]))


def is_possible(network: FlowModel, column: Column) -> bool:
    """Whether the network takes W in the column's form; attached LCV takes a factor only."""
    return form_of(network, column) in network.forms


def choose(network: FlowModel, names: Sequence[str] = ("paper",)) -> tuple[Column, ...]:
    """The columns of these names or sets ("paper", "ours", "all"), and always "continued".

    Of a set, columns that the network cannot have are left out, and those equal to another one there
    ("LCV, left" is "full LCV" where left is the default).
    """
    sets = {"paper": PAPER, "ours": OURS, "all": (*PAPER, *OURS)}
    wanted = {REFERENCE}
    for name in names:
        if name in sets:
            known = [BY_NAME[each] for each in sets[name]]
            possible = [column for column in known if is_possible(network, column)]
            wanted |= {column.name for column in possible if not _is_again(network, column)}
        elif name not in BY_NAME:
            raise ArgumentError(
                f"there is no column {name!r}{did_you_mean(name, BY_NAME, 2)}; there are "
                f"{', '.join(BY_NAME)}, and the sets {', '.join(sets)}"
            )
        elif not is_possible(network, BY_NAME[name]):
            raise ArgumentError(
                f"column {name!r} is not possible here: its W enters as "
                f"{form_of(network, BY_NAME[name])!r}, and this network takes W as "
                f"{' or '.join(network.forms)}"
            )
        else:
            wanted.add(name)
    return tuple(column for column in COLUMNS if column.name in wanted)


def _is_again(network: FlowModel, column: Column) -> bool:
    def what(c: Column) -> tuple[Any, ...]:
        return c.inner_product, form_of(network, c), c.optim, c.starts_at, c.trained

    before = COLUMNS[: COLUMNS.index(column)]
    return any(what(column) == what(other) for other in before if other.trained)


def config_for(column: Column, base: TrainConfig, seed: int, folder: Path) -> TrainConfig:
    """The run of one column and seed: the base, changed where the column says and nowhere else."""
    waits = round(column.starts_at * base.steps)
    # The manifold's optimiser reads its rate from the host, which a captured step would not see.
    graph = base.graph and column.inner_product != "riemannian"
    return replace(
        base,
        model=replace(
            base.model,
            inner_product=column.inner_product,
            options={**base.model.options, **column.options},
        ),
        optim=replace(base.optim, **{"w_from_step": waits, **column.optim}),
        graph=graph,
        seed=seed,
        folder=str(folder),
    )
