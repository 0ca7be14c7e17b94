"""Dependencies point one way: every import inside the package is checked against its layer."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import lcv

PACKAGE = Path(lcv.__file__).parent

# A room may import itself, the rooms of lower layers, and within a layer what `BESIDE` allows.
LAYERS = [
    {"errors", "version", "words"},
    {"files", "usercode"},
    {"inner_product", "cost_volume"},
    {"layers"},
    {"models", "losses", "data", "visual"},
    {"provenance", "testing"},
    {"evaluate", "predict"},
    {"train"},
    {"recipes", "studies"},
    {"export", "bench", "demo"},
    {"cli"},
]
BESIDE: set[tuple[str, str]] = {("studies", "recipes")}
ONLY_THESE_PACKAGES = {
    "inner_product": {"torch"},
    "cost_volume": {"torch", "triton"},
    "layers": {"torch"},
    "losses": {"torch"},
}
STANDARD = {
    *("__future__", "collections", "dataclasses", "functools", "importlib", "itertools", "logging"),
    *("math", "typing"),
}


def layer_of(room: str) -> int:
    for depth, rooms in enumerate(LAYERS):
        if room in rooms:
            return depth
    raise AssertionError(f"room {room!r} has no layer; add it to LAYERS")


def imported_modules(source: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found.append(node.module or "")
    return found


def violations(room: str, source: str) -> list[str]:
    bad = []
    for module in imported_modules(source):
        top, _, rest = module.partition(".")
        if top == "lcv":
            other = rest.partition(".")[0]
            downhill = other == room or layer_of(other) < layer_of(room) if other else True
            if not downhill and (room, other) not in BESIDE:
                bad.append(f"{room} imports {module}")
        elif room in ONLY_THESE_PACKAGES and top not in ONLY_THESE_PACKAGES[room] | STANDARD:
            bad.append(f"{room} imports {module}")
    return bad


def modules() -> list[Path]:
    inside = (path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))
    return sorted(path for path in inside if path.name != "__init__.py" or len(path.parts) > 1)


@pytest.mark.parametrize("path", modules(), ids=str)
def test_arrows_point_one_way(path):
    room = path.parts[0].removesuffix(".py")
    assert violations(room, (PACKAGE / path).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("room", "line"),
    [
        ("inner_product", "from lcv.cost_volume import warp"),
        ("cost_volume", "import lcv.inner_product"),
        ("cost_volume", "from lcv.models.raft import RAFT"),
        ("inner_product", "import numpy as np"),
        ("models", "def f():\n    from lcv.train import loop"),
    ],
)
def test_an_arrow_the_wrong_way_is_found(room, line):
    assert violations(room, line) != []
