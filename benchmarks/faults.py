"""Plant faults in the source, one at a time, and see whether a test fails.

    pytest -n 2 -m "not slow" --durations=0 -vv --cov=lcv --cov-context=test > tests.log
    python benchmarks/faults.py --out faults.jsonl [--first 6] [--narrow] [--workers 2] [--seed 7]

92 faults are drawn by a seeded generator, a share for each package by its number of lines: negated
conditions, changed constants, deleted statements, swapped arguments. Each is planted in a copy of
the tree, and tests are run: those that execute its lines, the quickest first, for two minutes at most;
those that mirror the module; a fixed cheap set; and (unless --narrow) those of the whole package. It
is caught if a test fails with it and passes without it; one that fails without it is left out from
then on. Several copies are at work side by side. What
is done is written line by line, and the same command goes on where it stopped; keep the tree as it is
until the end. The first command, which needs pytest-cov, finds out which tests execute a line.

Left out: GPU kernels, which benchmarks/gpu_tests.sh tests; text (messages, docstrings, type hints),
which changes no number; and swapped arguments of functions that do not care for their order.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from coverage import CoverageData

SEED = 20261119
COUNT = 92
ROOT = Path(__file__).resolve().parents[1]
KINDS = ("negated condition", "changed constant", "deleted statement", "swapped arguments")
ON_A_GPU = ("triton", "kernel_parts")
SYMMETRIC = {"max", "min", "maximum", "minimum", "hypot", "addcmul_", "equal", "samefile"}
CHEAP = ("tests/test_arrows.py", "tests/test_contract.py", "tests/test_import.py")
AT_IMPORT, HANGS = "at import", "hangs"
SECONDS = 600  # of all tests of a stage; more is a test that hangs
QUICKEST = 120.0  # seconds of tests that execute a fault's lines


@dataclass(frozen=True)
class Fault:
    """Bytes `start` to `end` of a file, and what they are replaced by."""

    file: str
    line: int
    kind: str
    start: int
    end: int
    before: str
    after: str


def candidates(file: Path) -> Iterator[Fault]:
    """Every fault of the four kinds that this file has room for."""
    content = file.read_bytes()
    begins = [0]
    for line in content.splitlines(keepends=True):
        begins.append(begins[-1] + len(line))

    def fault(kind: str, node: ast.expr | ast.stmt, after: str) -> Fault:
        start = begins[node.lineno - 1] + node.col_offset
        end = begins[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        name = file.relative_to(ROOT).as_posix()
        return Fault(name, node.lineno, kind, start, end, content[start:end].decode(), after)

    def text(node: ast.expr) -> str:
        return fault("", node, "").before

    for node in _numbers_alone(ast.parse(content)):
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            yield fault(KINDS[0], node.test, f"(not ({text(node.test)}))")
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
            yield fault(KINDS[1], node, repr(_other(node.value)))
        elif isinstance(node, ast.AugAssign | ast.Raise | ast.Continue | ast.Break) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        ):
            yield fault(KINDS[2], node, "pass")
        if isinstance(node, ast.Call) and len(node.args) > 1:
            first, second = node.args[:2]
            plain = not any(isinstance(each, ast.Starred) for each in (first, second))
            symmetric = text(node.func).rpartition(".")[2] in SYMMETRIC
            if plain and not symmetric and text(first) != text(second):
                whole = fault(KINDS[3], node, "")
                between = whole.before
                one, two = fault("", first, ""), fault("", second, "")
                parts = (
                    between.encode()[: one.start - whole.start],
                    two.before.encode(),
                    between.encode()[one.end - whole.start : two.start - whole.start],
                    one.before.encode(),
                    between.encode()[two.end - whole.start :],
                )
                yield fault(KINDS[3], node, b"".join(parts).decode())


def _other(value: bool | int | float) -> bool | int | float:
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) or value == 0 else 2 * value


def _numbers_alone(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a tree without type hints, the words of errors, and what only checkers read."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_comment"):
            continue
        if isinstance(node, ast.Raise | ast.JoinedStr):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _numbers_alone(child)


def draw(count: int = COUNT, seed: int = SEED) -> list[Fault]:
    """The faults of the trial: a share for each package by its lines, kinds as even as can be."""
    files = sorted((ROOT / "src" / "lcv").rglob("*.py"))
    packages: dict[str, list[Path]] = defaultdict(list)
    for file in files:
        parts = file.relative_to(ROOT / "src" / "lcv").parts
        if not any(word in file.name for word in ON_A_GPU):
            packages[parts[0] if len(parts) > 1 else "lcv"].append(file)
    lines = {
        name: sum(len(f.read_text(encoding="utf-8").splitlines()) for f in each)
        for name, each in packages.items()
    }
    exact = {name: count * size / sum(lines.values()) for name, size in lines.items()}
    shares = {name: int(share) for name, share in exact.items()}
    rest = sorted(exact, key=lambda name: shares[name] - exact[name])
    for name in rest[: count - sum(shares.values())]:
        shares[name] += 1
    generator = random.Random(seed)
    drawn: list[Fault] = []
    for name in sorted(packages):
        found = [fault for file in packages[name] for fault in candidates(file)]
        by_kind = {kind: [f for f in found if f.kind == kind] for kind in KINDS}
        for _ in range(shares[name]):
            kind = generator.choice([kind for kind in KINDS if by_kind[kind]])
            chosen = generator.choice(by_kind[kind])
            by_kind[kind].remove(chosen)
            drawn.append(chosen)
    return drawn


def mirrors(file: str) -> list[str]:
    """The tests of a module: of its name, else of its folder's or first word's, else who imports it."""
    parts = Path(file).relative_to("src/lcv").with_suffix("").parts
    folder, name = ROOT.joinpath("tests", *parts[:-1]), parts[-1]
    words = [name, *reversed(parts[:-1]), name.partition("_")[0]]
    while not folder.is_dir():
        folder = folder.parent
    for word in words:
        found = sorted({*folder.glob(f"test_{word}.py"), *folder.glob(f"test_{word}_*.py")})
        if found:
            return [path.relative_to(ROOT).as_posix() for path in found]
    module = ".".join(("lcv", *parts))
    asking = [t for t in sorted(folder.rglob("test_*.py")) if module in t.read_text("utf-8")]
    return [path.relative_to(ROOT).as_posix() for path in asking]


class Executed:
    """Which tests execute a line, by a coverage file with contexts, and how long each takes."""

    def __init__(self, data: Path, log: Path) -> None:
        self.data = CoverageData(str(data))
        self.data.read()
        self.files = {name.partition("src/lcv/")[2]: name for name in self.data.measured_files()}
        took = re.findall(
            r"^([\d.]+)s call +(\S.*)$", log.read_text(encoding="utf-8"), re.MULTILINE
        )
        self.seconds = {test: float(seconds) for seconds, test in took}

    def tests(self, fault: Fault) -> tuple[str, ...]:
        """The quickest that execute a line of a fault."""
        name = self.files.get(fault.file.removeprefix("src/lcv/"))
        by_line = self.data.contexts_by_lineno(name) if name else {}
        lines = range(fault.line, fault.line + fault.before.count("\n") + 1)
        found = {test.rpartition("|")[0] for line in lines for test in by_line.get(line, ())} - {""}
        chosen, total = [], 0.0
        for test in sorted(found, key=lambda test: (self.seconds.get(test, 0.0), test)):
            total += self.seconds.get(test, 0.0) + 0.02
            if total < QUICKEST:
                chosen.append(test)
        return tuple(chosen)


class Copy:
    """A copy of the tree with a way to the material beside it, and pytest in it."""

    def __init__(self, folder: Path, executed: Executed) -> None:
        self.tree, self.executed = folder / "tree", executed
        self.unsound: set[str] = set()
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        for name in filter(None, listed.stdout.split("\0")):
            (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, self.tree / name)
        if (ROOT.parent / "shared").exists():
            (folder / "shared").symlink_to(ROOT.parent / "shared")

    def first_failure(self, tests: tuple[str, ...]) -> str | None:
        """The test that fails first; None where all pass. Tests that hang have failed."""
        (self.tree / "chosen.txt").write_text("\n".join(tests), encoding="utf-8")
        options = ["-x", "-q", "-p", "no:cacheprovider", "-n", "0", "--durations=0"]
        options += [f"--deselect={test}" for test in self.unsound if tests != (test,)]
        environment = {**os.environ, "PYTHONPATH": str(self.tree / "src"), "OMP_NUM_THREADS": "1"}
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        command = [sys.executable, "-m", "pytest", *options, "@chosen.txt"]
        try:
            done = subprocess.run(
                command,
                cwd=self.tree,
                env=environment,
                capture_output=True,
                text=True,
                timeout=SECONDS,
            )
        except subprocess.TimeoutExpired:
            return HANGS
        if done.returncode in (0, 5):
            return None
        said = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        first = said[0].split(" - ")[0].partition(" ")[2] if said else ""
        return first if "::" in first else AT_IMPORT

    def trial(self, fault: Fault, wide: bool) -> str | None:
        """The test that catches a fault."""
        stages = [self.executed.tests(fault), tuple(mirrors(fault.file)), CHEAP]
        if wide:
            package = Path(fault.file).parts[2]
            stages.append((f"tests/{package}",) if (ROOT / "tests" / package).is_dir() else ())
        path = self.tree / fault.file
        whole = path.read_bytes()
        for tests in filter(None, stages):
            while True:
                path.write_bytes(whole[: fault.start] + fault.after.encode() + whole[fault.end :])
                try:
                    caught = self.first_failure(tests)
                finally:
                    path.write_bytes(whole)
                if caught is None:
                    break
                alone = caught not in (AT_IMPORT, HANGS)
                if self.first_failure((caught,) if alone else tests) is None:
                    return caught
                if not alone:
                    raise RuntimeError(f"{tests[0]} and others: {caught} without a fault too")
                self.unsound.add(caught)
        return None


def table(done: list[dict[str, str]]) -> str:
    """Numbers by package, then every fault that no test caught."""
    lines = ["| package | faults | caught |", "|---|--:|--:|"]
    packages: dict[str, list[bool]] = defaultdict(list)
    for entry in done:
        parts = Path(entry["file"]).parts
        packages[parts[2] if len(parts) > 3 else "lcv"].append(bool(entry["caught"]))
    for name, caught in sorted(packages.items()):
        lines.append(f"| {name} | {len(caught)} | {sum(caught)} |")
    total = sum(bool(entry["caught"]) for entry in done)
    lines += [f"| all | {len(done)} | {total} |", ""]
    for entry in done:
        if not entry["caught"]:
            change = f"`{entry['before']}` → `{entry['after']}`"
            lines.append(f"- {entry['file']}:{entry['line']}, {entry['kind']}: {change}")
    return "\n".join(lines)


def _name(entry: dict[str, object]) -> str:
    return json.dumps({name: value for name, value in entry.items() if name != "caught"})


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("faults.jsonl"))
    parser.add_argument("--coverage", type=Path, default=Path(".coverage"))
    parser.add_argument("--log", type=Path, default=Path("tests.log"), help="of the same run")
    parser.add_argument("--seed", type=int, default=SEED, help="of the draw (%(default)s)")
    parser.add_argument("--first", type=int, help="stop after so many of the faults")
    parser.add_argument("--every", type=int, default=1, help="take every so-manieth fault only")
    parser.add_argument("--narrow", action="store_true", help="not all of the package's tests")
    parser.add_argument("--workers", type=int, default=2, help="copies side by side")
    chosen = parser.parse_args()
    faults = draw(seed=chosen.seed)[:: chosen.every][: chosen.first]
    done = []
    if chosen.out.exists():
        lines = chosen.out.read_text(encoding="utf-8").splitlines()
        drawn = {json.dumps(asdict(fault)) for fault in faults}
        done = [e for e in map(json.loads, lines) if _name(e) in drawn]  # not of another tree
    known = {_name(entry) for entry in done}
    left = [fault for fault in faults if json.dumps(asdict(fault)) not in known]
    with tempfile.TemporaryDirectory(prefix="lcv-faults-") as folder:
        executed = Executed(chosen.coverage, chosen.log)
        copies: SimpleQueue[Copy] = SimpleQueue()
        for number in range(chosen.workers):
            (Path(folder) / str(number)).mkdir()
            copies.put(Copy(Path(folder) / str(number), executed))

        def tried(fault: Fault) -> dict[str, Any]:
            copy = copies.get()
            try:
                return {**asdict(fault), "caught": copy.trial(fault, not chosen.narrow)}
            finally:
                copies.put(copy)

        pool = ThreadPoolExecutor(chosen.workers)
        try:
            for task in as_completed([pool.submit(tried, fault) for fault in left]):
                entry = task.result()
                done.append(entry)
                with chosen.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(entry) + "\n")
                said = f"caught by {entry['caught']}" if entry["caught"] else "SURVIVED"
                where = f"{entry['file']}:{entry['line']} {entry['kind']}"
                print(f"{len(done)}/{len(faults)} {where}: {said}", flush=True)
        finally:
            pool.shutdown(cancel_futures=True)
    print(table(done))


if __name__ == "__main__":
    main()
