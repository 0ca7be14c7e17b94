"""The command `lcv`: finds the verb, loads only what it needs, and turns errors into sentences."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

from lcv.cli.parser import either, in_options, remember
from lcv.errors import LcvError
from lcv.version import __version__
from lcv.words import did_you_mean, printable


@dataclass(frozen=True)
class Verb:
    """One job. `module` has `run(arguments) -> exit code`; None where it is still to come."""

    job: str
    module: str | None = None


VERBS = {
    "predict": Verb("flow for a pair, a folder, a glob, a video, a camera", "lcv.cli.predict"),
    "view": Verb("pictures: flow wheel, error maps, overlays, figures, films", "lcv.cli.view"),
    "train": Verb("supervised and unsupervised training, resumable", "lcv.cli.train"),
    "eval": Verb("metrics under a named protocol", "lcv.cli.eval"),
    "submit": Verb("checked, zipped benchmark files for Sintel and KITTI", "lcv.cli.submit"),
    "ablate": Verb("the paper's ablation, several seeds, with intervals", "lcv.cli.ablate"),
    "robust": Verb("flow under stress: illumination, noise, adversarial patch", "lcv.cli.robust"),
    "data": Verb("check a dataset, or write procedural pairs to disk", "lcv.cli.data"),
    "inspect": Verb("the learned W: spectrum, angles, condition, feature maps", "lcv.cli.inspect"),
    "attach": Verb("put LCV on a checkpoint, at W = I", "lcv.cli.attach"),
    "fold": Verb("take LCV out of a checkpoint, exactly, where that is possible", "lcv.cli.fold"),
    "convert": Verb("change a checkpoint's naming family", "lcv.cli.convert"),
    "export": Verb("torch.export or ONNX, with the measured error in the file", "lcv.cli.export"),
    "bench": Verb("speed, memory and exactness beside the peers", "lcv.cli.bench"),
    "report": Verb("one self-contained page from any results", "lcv.cli.report"),
    "models": Verb("what there is: size, data, licence, hash", "lcv.cli.models"),
    "demo": Verb("the web page", "lcv.cli.demo"),
}


def usage() -> str:
    """The text of `lcv --help`."""
    width = max(map(len, VERBS)) + 2
    here = [f"  {name:<{width}}{verb.job}" for name, verb in VERBS.items() if verb.module]
    later = [f"  {name:<{width}}{verb.job}" for name, verb in VERBS.items() if not verb.module]
    lines = ["usage: lcv VERB [options]    (lcv VERB --help for a verb's own)", ""]
    lines += ["Optical flow with a learnable cost volume.", ""]
    lines += ["verbs:", *here, ""] if here else []
    lines += [f"declared, not yet in version {__version__}:", *later, ""] if later else []
    lines += ["options:", "  --help       this text", "  --version    the version"]
    lines += ["  --debug      show the traceback of an error"]
    return "\n".join(lines)


class _Printable:
    """A stream that shows control characters in place of sending them.

    What is printed holds names of files and tensors, and anyone may have chosen those.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self.rich_proxied_file = (
            stream  # rich, which colours, writes past us; its cells are escaped
        )

    def write(self, text: str) -> int:
        return self._stream.write(printable(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def _printable_streams() -> Iterator[None]:
    os.environ.setdefault("PYTHON_COLORS", "0")  # else argparse of Python 3.14 colours its help
    streams: Any = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(_Printable, streams)  # type: ignore[assignment]
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams


def main(arguments: list[str] | None = None) -> int:
    """Run one verb. Exit codes: 0 done, 2 an error the caller can put right, 130 interrupted."""
    with _printable_streams():
        return _main(arguments)


def _main(arguments: list[str] | None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    remember(())
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    try:
        code = _run(words)
        sys.stdout.flush()
        return code
    except LcvError as error:
        if debug:
            raise
        print(f"lcv: {in_options(str(error))}", file=sys.stderr)
        return 2
    except (MemoryError, RecursionError) as error:
        if debug:
            raise
        what = "nesting" if isinstance(error, RecursionError) else "memory"
        print(
            f"lcv: an input needs more {what} than there is; --debug shows where", file=sys.stderr
        )
        return 2
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("lcv: interrupted", file=sys.stderr)
        return 130


def _run(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        print(usage())
        return 0
    if words[0] == "--version":
        print(f"lcv {__version__}")
        return 0
    name, *rest = words
    verb = VERBS.get(name)
    if verb is None:
        raise LcvError(
            f"there is no verb {name!r}, wanted {either([*VERBS])}{did_you_mean(name, VERBS)}; "
            f"`lcv --help` says what each does"
        )
    if verb.module is None:
        here = [known for known, other in VERBS.items() if other.module]
        able = f"; this version has {', '.join(here)}" if here else ""
        raise LcvError(f"`lcv {name}` is declared but not yet in version {__version__}{able}")
    return int(importlib.import_module(verb.module).run(rest))


if __name__ == "__main__":
    sys.exit(main())
