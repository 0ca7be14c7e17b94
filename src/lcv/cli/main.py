"""The command `lcv`: finds the verb, loads only what it needs, and turns errors into sentences."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from lcv.cli.parser import either, in_options, remember
from lcv.errors import LcvError
from lcv.version import __version__
from lcv.words import did_you_mean, one_line, printable

VERBS = {
    "predict": "flow for a pair, a folder, a glob, a video, a camera",
    "view": "pictures: flow wheel, error maps, overlays, figures, videos",
    "train": "supervised and unsupervised training, resumable",
    "eval": "metrics under a named protocol",
    "submit": "checked, zipped benchmark files for Sintel and KITTI",
    "ablate": "the paper's ablation, several seeds, with intervals",
    "robust": "flow under stress: illumination, noise, adversarial patch",
    "data": "check a dataset, or write procedural pairs to disk",
    "inspect": "the learned W: spectrum, angles, condition, feature maps",
    "attach": "put LCV on a checkpoint, at W = I",
    "fold": "take LCV out of a checkpoint, exactly, where that is possible",
    "convert": "change a checkpoint's naming family",
    "export": "torch.export or ONNX, with the measured error in the file",
    "bench": "speed, memory and exactness beside the peers",
    "report": "one self-contained page from any results",
    "models": "what there is: size, data, licence, hash",
    "demo": "the web page",
}
"""The job of each; the module `lcv.cli.VERB` has `run(arguments) -> exit code`."""


def usage() -> str:
    """The text of `lcv --help`."""
    width = max(map(len, VERBS)) + 2
    lines = ["usage: lcv VERB [options]    (lcv VERB --help for a verb's own)", ""]
    lines += ["Optical flow with a learnable cost volume.", "", "verbs:"]
    lines += [f"  {name:<{width}}{job}" for name, job in VERBS.items()]
    lines += ["", "options:", "  --help       this text", "  --version    the version"]
    lines += ["  --debug      show the traceback of an error"]
    return "\n".join(lines)


class _Printable:
    """A stream that shows control characters in place of sending them.

    What is printed holds names of files and tensors, and anyone may have chosen those.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        # rich, which colours, writes past us; its cells are escaped
        self.rich_proxied_file = stream

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
        print(f"lcv: {one_line(in_options(str(error)))}", file=sys.stderr)
        return 2
    except (MemoryError, RuntimeError) as error:
        # torch says it in a RuntimeError, without a class of its own on the CPU.
        known = isinstance(error, MemoryError | RecursionError)
        if debug or not (known or "allocate memory" in str(error) or "out of memory" in str(error)):
            raise
        what = "nesting" if isinstance(error, RecursionError) else "memory"
        print(
            f"lcv: an input needs more {what} than there is; --debug shows where", file=sys.stderr
        )
        return 2
    except PermissionError as error:
        if debug or error.filename is None:
            raise
        print(
            f"lcv: {one_line(str(error.filename))}: permission denied; change its permissions, or "
            f"use another path",
            file=sys.stderr,
        )
        return 2
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt as error:
        print("; ".join(("lcv: interrupted", *map(str, error.args))), file=sys.stderr)
        return 130


def _run(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        print(usage())
        return 0
    if words[0] == "--version":
        print(f"lcv {__version__}")
        return 0
    name, *rest = words
    if name not in VERBS:
        raise LcvError(
            f"there is no verb {name!r}, wanted {either([*VERBS])}{did_you_mean(name, VERBS)}; "
            f"`lcv --help` says what each does"
        )
    return int(importlib.import_module(f"lcv.cli.{name}").run(rest))


if __name__ == "__main__":
    sys.exit(main())
