"""Plant faults in the source, one at a time, and see whether a test fails.

    pytest -n 2 -m "not slow" --durations=0 -vv --cov=lcv --cov-context=test > tests.log
    python benchmarks/faults.py --out faults.jsonl [--first 6] [--narrow] [--workers 2] [--seed 7]

92 faults are drawn by a seeded generator, a share for each package by its number of lines: negated
conditions, changed constants, deleted statements, swapped arguments. Each is planted in a copy of
the tree, and tests are run until one fails: those that execute its lines, the quickest first; and
(unless --narrow) those that mirror the module, a few of the whole source, and those of the package.
It is caught if a test fails with it and passes without it; a test that takes 30 s more than five times
its usual time has failed. Tests run in forked processes, which need not load torch; one that fails
there without a fault runs last, in a process of its own. What is done is written line by line, and
the same command goes on where it stopped; keep the tree as it is until the end. The first command,
which needs pytest-cov, finds out which tests execute a line.

Left out: GPU kernels, which benchmarks/gpu_tests.sh tests; text (messages, docstrings, type hints),
which changes no number; and swapped arguments of functions that do not care for their order.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
from coverage import CoverageData

SEED = 20261126
COUNT = 92
ROOT = Path(__file__).resolve().parents[1]
KINDS = ("negated condition", "changed constant", "deleted statement", "swapped arguments")
ON_A_GPU = ("triton", "kernel_parts")
# What means the same with its arguments swapped; so do the two names of an option.
SYMMETRIC = {"max", "min", "maximum", "minimum", "hypot", "addcmul_", "equal", "samefile"}
SYMMETRIC |= {"transpose", "swapaxes"}
CHEAP = ("tests/test_arrows.py", "tests/test_contract.py", "tests/test_import.py")
ELSEWHERE = ("tests/cost_volume/test_triton_impl.py",)  # runs kernels in a process of its own
AT_IMPORT, HANGS, TOO_LONG = "at import", "hangs", " took too long"
PRELOADED = (
    "av",
    "hypothesis",
    "matplotlib.pyplot",
    "numpy",
    "PIL.Image",
    "rich",
    "scipy",
    "torch",
)
COPY: Copy  # of this process


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
            symmetric |= all(text(each)[:2] in ('"-', "'-") for each in (first, second))
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
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_comment"):
            continue
        if isinstance(node, ast.Raise | ast.JoinedStr):
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
            r"^([\d.]+)s (?:call|setup) +(\S.*)$", log.read_text(encoding="utf-8"), re.MULTILINE
        )
        self.seconds: dict[str, float] = defaultdict(float)
        for seconds, test in took:
            self.seconds[test] += float(seconds)

    def tests(self, fault: Fault, most: float) -> tuple[str, ...]:
        """The quickest that execute a line of a fault, of so many seconds in all."""
        name = self.files.get(fault.file.removeprefix("src/lcv/"))
        by_line = self.data.contexts_by_lineno(name) if name else {}
        lines = range(fault.line, fault.line + fault.before.count("\n") + 1)
        found = {test.rpartition("|")[0] for line in lines for test in by_line.get(line, ())} - {""}
        chosen, total = [], 0.0
        for test in sorted(found, key=lambda test: (self.seconds.get(test, 0.0), test)):
            total += self.seconds.get(test, 0.0) + 0.02
            if total < most:
                chosen.append(test)
        return tuple(chosen)


class InOrder:
    """A plugin of pytest: the tests that were given, in their order.

    Two files tell which test is running, and the first that failed.
    """

    def __init__(self, tests: tuple[str, ...], running: Path, told: Path) -> None:
        self.places = {test: place for place, test in enumerate(tests)}
        self.running, self.told = running, told

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.running.write_text(nodeid, encoding="utf-8")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if any("::" in test for test in self.places):  # else files or folders, of which all count
            items[:] = [item for item in items if item.nodeid in self.places]
            items.sort(key=lambda item: self.places[item.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.told.read_text(encoding="utf-8"):
            self.told.write_text(report.nodeid, encoding="utf-8")


class Copy:
    """A copy of the tree with a way to the material beside it, and pytest in it.

    seconds: what each test usually takes
    """

    def __init__(self, folder: Path, seconds: dict[str, float]) -> None:
        self.tree, self.told, self.running = folder / "tree", folder / "told", folder / "running"
        self.unsound: set[str] = set()  # that fail in a forked process without a fault
        self.seconds = seconds
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        for name in filter(None, listed.stdout.split("\0")):
            (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, self.tree / name)
        if (ROOT.parent / "shared").exists():
            (folder / "shared").symlink_to(ROOT.parent / "shared")

    def first_failure(self, tests: tuple[str, ...]) -> str | None:
        """The test that fails first; None where all pass. One that takes too long has failed."""
        for file in (self.told, self.running):
            file.write_text("", encoding="utf-8")
        child = os.fork()
        if child == 0:
            os.setsid()
            os._exit(self._run(tests))
        ended, running, since = 0, "", time.monotonic()
        while not ended and time.monotonic() - since < self.patience(running):
            time.sleep(0.05)
            ended, status = os.waitpid(child, os.WNOHANG)
            before, running = running, self.running.read_text(encoding="utf-8")
            since = since if running == before else time.monotonic()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what it has started too
        if not ended:
            os.waitpid(child, 0)
            return f"{running}{TOO_LONG}" if running else HANGS
        if os.waitstatus_to_exitcode(status) in (0, 5):
            return None
        return self.told.read_text(encoding="utf-8") or AT_IMPORT

    def patience(self, test: str) -> float:
        """Seconds after which a test has taken too long."""
        return 30 + 5 * self.seconds.get(test, 6.0)

    def passes_afresh(self, test: str) -> bool:
        """Whether a test passes in a process of its own, which takes longer to start."""
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", test]
        options: dict[str, Any] = {"cwd": self.tree, "stdout": subprocess.DEVNULL}
        options["env"] = os.environ | {"PYTHONPATH": "src", "PYTHONDONTWRITEBYTECODE": "1"}
        with subprocess.Popen(
            command, stderr=subprocess.DEVNULL, start_new_session=True, **options
        ) as process:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(30 + self.patience(test)) in (0, 5)
            os.killpg(process.pid, signal.SIGKILL)
        return False

    def _run(self, tests: tuple[str, ...]) -> int:
        """In a child, which has torch loaded already: pytest, and nothing on the terminal."""
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nowhere, stream)
        os.chdir(self.tree)
        sys.path.insert(0, str(self.tree / "src"))
        os.environ |= {"PYTHONPATH": str(self.tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        sys.dont_write_bytecode = True
        options = ["-x", "-q", "-p", "no:cacheprovider", "-n", "0"]
        options += [f"--deselect={test}" for test in self.unsound if tests != (test,)]
        order = InOrder(tests, self.running, self.told)
        # Files, not tests: pytest would refuse all if it found one name no longer.
        return int(pytest.main([*options, *{test.partition("::")[0] for test in tests}], [order]))

    def trial(self, fault: Fault, executing: tuple[str, ...], wide: bool) -> str | None:
        """The test that catches a fault. executing: those that execute its lines"""
        mirroring = tuple(mirrors(fault.file))
        stages = [executing or mirroring]  # what runs at import is executed by no test
        if wide:
            stages += [mirroring, CHEAP, ELSEWHERE]
            package = Path(fault.file).parts[2]
            stages.append((f"tests/{package}",) if (ROOT / "tests" / package).is_dir() else ())
        for tests in filter(None, stages):
            while True:
                with self.planted(fault):
                    caught = self.first_failure(tests)
                if caught is None:
                    break
                test = caught.removesuffix(TOO_LONG)
                alone = caught not in (AT_IMPORT, HANGS)
                if self.first_failure((test,) if alone else tests) is None:
                    if test == caught or self.fails_again(fault, test):
                        return caught
                elif not alone:  # without a fault too: these tests say nothing here
                    break
                self.unsound.add(test)
        for test in sorted(self.unsound.intersection(executing)):
            with self.planted(fault):
                passes = self.passes_afresh(test)
            # A test whose file the fault spoils does not pass either; it is there without the fault.
            if not passes and self.passes_afresh(test):
                return test
        return None

    def fails_again(self, fault: Fault, test: str) -> bool:
        """Whether a test that took too long does so with the fault alone, and not only by chance."""
        with self.planted(fault):
            return self.first_failure((test,)) is not None

    @contextlib.contextmanager
    def planted(self, fault: Fault) -> Iterator[None]:
        """The tree with a fault in it."""
        path = self.tree / fault.file
        whole = path.read_bytes()
        path.write_bytes(whole[: fault.start] + fault.after.encode() + whole[fault.end :])
        try:
            yield
        finally:
            path.write_bytes(whole)


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


def _make_copy(folder: str, seconds: dict[str, float]) -> None:
    global COPY
    COPY = Copy(Path(tempfile.mkdtemp(dir=folder)), seconds)


def _tried(task: tuple[Fault, tuple[str, ...], bool]) -> dict[str, Any]:
    return {**asdict(task[0]), "caught": COPY.trial(*task)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("faults.jsonl"))
    parser.add_argument("--coverage", type=Path, default=Path(".coverage"))
    parser.add_argument("--log", type=Path, default=Path("tests.log"), help="of the same run")
    parser.add_argument("--seed", type=int, default=SEED, help="of the draw (%(default)s)")
    parser.add_argument("--first", type=int, help="stop after so many of the faults")
    parser.add_argument("--every", type=int, default=1, help="take every so-manieth fault only")
    parser.add_argument("--count", type=int, default=COUNT, help="faults to draw (%(default)s)")
    parser.add_argument("--seconds", type=float, default=120.0, help="of tests that execute a line")
    parser.add_argument("--narrow", action="store_true", help="no other tests than these")
    parser.add_argument("--workers", type=int, default=2, help="copies side by side")
    chosen = parser.parse_args()
    faults = draw(chosen.count, chosen.seed)[:: chosen.every][: chosen.first]
    done = []
    if chosen.out.exists():
        lines = chosen.out.read_text(encoding="utf-8").splitlines()
        drawn = {json.dumps(asdict(fault)) for fault in faults}
        done = [e for e in map(json.loads, lines) if _name(e) in drawn]  # not of another tree
    known = {_name(entry) for entry in done}
    left = [fault for fault in faults if json.dumps(asdict(fault)) not in known]
    executed = Executed(chosen.coverage, chosen.log)
    tasks = [(fault, executed.tests(fault, chosen.seconds), not chosen.narrow) for fault in left]
    for module in PRELOADED:  # once, and not for every fault
        importlib.import_module(module)
    with tempfile.TemporaryDirectory(prefix="lcv-faults-") as folder:
        context = multiprocessing.get_context("fork")
        with context.Pool(chosen.workers, _make_copy, (folder, executed.seconds)) as pool:
            for entry in pool.imap_unordered(_tried, tasks):
                done.append(entry)
                with chosen.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(entry) + "\n")
                said = f"caught by {entry['caught']}" if entry["caught"] else "SURVIVED"
                where = f"{entry['file']}:{entry['line']} {entry['kind']}"
                print(f"{len(done)}/{len(faults)} {where}: {said}", flush=True)
    print(table(done))


if __name__ == "__main__":
    main()
