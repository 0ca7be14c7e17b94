"""Dependencies point one way: every import inside the package is checked against its layer.

And two habits of the whole source: zips are strict, records are frozen.
"""

from __future__ import annotations

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import lcv

PACKAGE = Path(lcv.__file__).parent
RECORD = r"^ *@dataclass(.*)\n(?: *@.*\n)* *class (\w+)"

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


def test_what_is_zipped_is_of_one_length_but_where_it_is_meant_to_differ():
    loose = []
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "zip(" in text else ():
            a_zip = isinstance(node, ast.Call) and ast.unparse(node.func) == "zip"
            if a_zip and "strict=True" not in map(ast.unparse, node.keywords):
                loose.append((path.relative_to(PACKAGE).as_posix(), ast.unparse(node)))
    assert loose == [
        ("bench/table.py", "zip(row['seconds'], without['seconds'], strict=False)"),
        ("losses/multiscale.py", "zip(LEVEL_WEIGHTS, flows, strict=False)"),
        ("losses/multiscale.py", "zip(starts, out_of_range, md, strict=False)"),
        ("visual/plots.py", "zip(axes, panels, strict=False)"),
        ("visual/weight_pictures.py", "zip(maps, values, strict=False)"),
    ]


def test_records_are_frozen_but_those_that_are_filled_on_the_way():
    """Those that hold tensors are compared by what they are, not by what they hold."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(PACKAGE).as_posix()
        for options, record in re.findall(RECORD, text, re.MULTILINE):
            if options != "(frozen=True)":
                found.setdefault(options, []).append(f"{name}: {record}")
    assert found == {
        "(frozen=True, eq=False)": [
            "data/augment/apply.py: Plan",
            "data/augment/occlusion.py: Rectangles",
            "data/augment/photometric.py: Colours",
            "data/augment/spatial.py: Axis",
            "data/augment/spatial.py: Placement",
            "data/augment/types.py: Batch",
            "data/record.py: Sample",
            "demo/frames.py: Chosen",
            "demo/learned.py: Learned",
            "demo/work.py: Shown",
            "demo/work.py: Inputs",
            "predict/sources.py: RawFrame",
            "studies/patch_file.py: Patch",
        ],
        "": [
            "data/check_report.py: PartReport",
            "predict/job.py: Summary",
            "predict/matching.py: Encoded",
            "studies/ablation.py: Outcome",
            "studies/robustness/results.py: Study",
            "studies/robustness/run.py: Network",
            "train/checkpoint.py: Position",
        ],
        "(frozen=True, init=False)": [
            "data/mix.py: Mix",
        ],
        "(frozen=True, eq=False, repr=False)": [
            "predict/result.py: FlowResult",
        ],
    }
