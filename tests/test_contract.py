"""Nothing outside `models` asks which network it has: no class imported, no name compared."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import lcv
from lcv.models.registry import NETWORKS

PACKAGE = Path(lcv.__file__).parent
CLASSES = {"RAFT", "VCN", "DDFlow"}
FOLDERS = {"lcv.models.raft", "lcv.models.vcn", "lcv.models.ddflow"}
NAMES = {*NETWORKS, "raft", "raft-"}
# Recipes are data: each names the network that it trains. `data` has a split called vcn.
ALLOWED = ("models", "recipes", "data")
FILES = sorted(
    path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] not in ALLOWED
)


def faults(source: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            inside = any(f"{node.module}.".startswith(f"{folder}.") for folder in FOLDERS)
            if inside or {alias.name for alias in node.names} & CLASSES:
                found.append(f"line {node.lineno} imports from {node.module}")
        elif isinstance(node, ast.Import):
            found += [f"imports {a.name}" for a in node.names if a.name in FOLDERS]
        elif isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
            found += [f"line {node.lineno} compares" for part in parts if _names(part)]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            asks = node.func.attr in ("startswith", "endswith", "removeprefix")
            if asks and any(map(_names, node.args)):
                found.append(f"line {node.lineno} asks how a name begins")
        elif isinstance(node, ast.MatchValue) and _names(node.value):
            found.append(f"line {node.value.lineno} matches a name")
    return found


def _names(node: ast.AST) -> bool:
    """Whether an expression is, or lists, the name of a network."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(map(_names, node.elts))
    return isinstance(node, ast.Constant) and node.value in NAMES


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_network_is_asked_for(path):
    assert faults(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "line",
    [
        "from lcv.models.raft import RAFT",
        "from lcv.models.vcn.model import SMALLEST",
        "import lcv.models.ddflow",
        "from somewhere import VCN",
        "if name == 'raft-small': pass",
        "raft = name.startswith('raft')",
        "apart = model in ('vcn', 'vcn-small')",
        "match name:\n    case 'ddflow': pass",
    ],
)
def test_asking_is_found(line):
    assert faults(line) != []
