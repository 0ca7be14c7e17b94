"""Dependencies point one way: every import inside the package is checked against its layer."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import lcv

PACKAGE = Path(lcv.__file__).parent

# A room may import itself, the rooms of lower layers, and within a layer what `BESIDE` allows.
LAYERS = [
    {"errors", "version", "words"},
    {"files", "usercode", "memory", "cluster", "threads"},
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
    *(
        "__future__",
        "collections",
        "contextlib",
        "dataclasses",
        "functools",
        "importlib",
        "itertools",
        "logging",
    ),
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


def imports_of(path: Path) -> set[Path]:
    """The modules of the package that a module imports, anywhere in it, but for types alone."""
    found = set()
    tree = ast.parse((PACKAGE / path).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{name}" for name in names] + [node.module or ""]
            for parts in (name.split(".")[1:] for name in names if name.startswith("lcv.")):
                found |= {Path(*parts).with_suffix(".py"), Path(*parts) / "__init__.py"}
    return {module for module in found if (PACKAGE / module).is_file()} - {path}


@pytest.mark.parametrize("room", ["predict"])
def test_no_file_of_a_room_imports_itself_in_a_circle(room):
    """Imports inside functions count too. A room's __init__ imports lazily, by name."""
    inside = [path for path in modules() if path.parts[0] == room and path.name != "__init__.py"]
    order = TopologicalSorter({path: imports_of(path) & {*inside} for path in inside})
    order.prepare()  # raises CycleError, which names the circle


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
