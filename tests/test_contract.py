"""Nothing outside `models` asks which network it has: no module of a network is imported, and its
name and its class's name appear only as defaults of options, listed here. And records are frozen."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import lcv
from lcv.models.registry import NETWORKS

PACKAGE = Path(lcv.__file__).parent
CLASSES = {"RAFT", "VCN", "DDFlow"}
FOLDERS = ("raft", "vcn", "ddflow")
NAMES = {*NETWORKS, *CLASSES, *FOLDERS, "raft-", "vcn-"}
# Recipes are data: each names the network that it trains. `data` has a split called vcn.
ALLOWED = ("models", "recipes", "data")
DEFAULTS = {
    "cli/ablate.py": {"raft-small"},
    "cli/bench.py": {"raft-small"},
    "cli/predict.py": {"raft-large"},
    "demo/networks.py": {"raft-small", "raft-large"},
    "predict/predictor.py": {"raft-large"},
    "train/config.py": {"raft-small"},
    # Of protocols, which bear the names of the papers.
    "cli/eval.py": {"raft"},
    "cli/robust.py": {"raft"},
    "cli/submit.py": {"raft"},
    "evaluate/protocols.py": {"raft", "vcn", "ddflow"},
    "evaluate/submit.py": {"raft"},
    # Rows of the paper's tables.
    "studies/paper.py": CLASSES,
    "studies/report_robust.py": {"VCN"},
}
FILES = sorted(
    path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] not in ALLOWED
)


def faults(source: str, defaults: frozenset[str] | set[str] = frozenset()) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and node.value in NAMES - defaults:
            found.append(f"line {node.lineno} names {node.value}")
        elif isinstance(node, ast.Import | ast.ImportFrom):
            where = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            for alias in node.names:
                if _is_of_a_network(f"{where}{alias.name}"):
                    found.append(f"line {node.lineno} imports {where}{alias.name}")
    return found


def _is_of_a_network(imported: str) -> bool:
    """Of lcv.models.raft and the like, or a class of that name from anywhere."""
    parts = imported.split(".")
    return parts[-1] in CLASSES or (
        parts[:2] == ["lcv", "models"] and len(parts) > 2 and parts[2] in FOLDERS
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_network_is_asked_for(path):
    own = DEFAULTS.get(path.relative_to(PACKAGE).as_posix(), set())
    assert faults(path.read_text(encoding="utf-8"), own) == []


def test_the_defaults_listed_here_are_in_use():
    for name, words in DEFAULTS.items():
        constants = {
            node.value
            for node in ast.walk(ast.parse((PACKAGE / name).read_text(encoding="utf-8")))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        assert words <= constants, name


@pytest.mark.parametrize(
    "line",
    [
        "from lcv.models.raft import RAFT",
        "from lcv.models import raft",
        "from lcv.models.vcn.model import SMALLEST",
        "import lcv.models.ddflow",
        "import lcv.models.raft.model as m",
        "from somewhere import VCN",
        "if name == 'raft-small': pass",
        "raft = name.startswith('raft')",
        "small = name.startswith('vcn-')",
        "apart = model in ('vcn', 'vcn-small')",
        "KEEP = ('vcn',)\nkept = name in KEEP",
        "MODELS = {'ddflow': 1}\nfound = MODELS.get(name)",
        "ours = type(model).__name__ == 'RAFT'",
        "match name:\n    case 'ddflow': pass",
    ],
)
def test_asking_is_found(line):
    assert faults(line) != []


# Records that are filled while something goes on; all others are frozen, and may be shared.
FILLED = {
    "data/check_report.py: PartReport",
    "predict/job.py: Summary",
    "predict/matching.py: Encoded",
    "studies/ablation.py: Outcome",
    "studies/robustness/results.py: Study",
    "studies/robustness/run.py: Network",
    "train/checkpoint.py: Position",
}


def test_records_are_frozen():
    filled = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for each in node.decorator_list if isinstance(node, ast.ClassDef) else ():
                words = ast.unparse(each)
                if words.startswith("dataclass") and "frozen=True" not in words:
                    filled.add(f"{path.relative_to(PACKAGE).as_posix()}: {node.name}")
    assert filled == FILLED
