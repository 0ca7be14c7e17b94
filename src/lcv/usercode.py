"""Import Python files and modules that the user named, and tell their errors from ours."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb
from types import ModuleType

from lcv.errors import FileError, LcvError


def import_file(path: Path) -> ModuleType:
    """The module of a .py file, executed anew. It may import its neighbours in the same folder."""
    if not path.is_file():
        raise FileError(f"{path}: there is no such file (looked in {path.absolute().parent})")
    path = path.absolute()
    # A name of its own, so that two files called model.py do not replace each other.
    name = f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up there
    with _importable(path.parent), user_errors(path):
        spec.loader.exec_module(module)
    return module


def import_module(name: str) -> ModuleType:
    """An installed module, or one of the current folder."""
    with _importable(Path.cwd()):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise FileError(f"{name}: needs the module {error.name}; install it") from error
            raise FileError(
                f"there is no module {name}; wanted one that is installed or lies in this folder, "
                f"or the path of a .py file"
            ) from None
        except LcvError:
            raise
        except Exception as error:
            raise FileError(f"{name}: fails: {type(error).__name__}: {error}") from error


@contextmanager
def user_errors(path: Path) -> Iterator[None]:
    """Errors in a file of the user's, as a sentence with its line."""
    try:
        yield
    except LcvError:
        raise
    except SyntaxError as error:
        raise FileError(f"{path}: not Python: {error}") from error
    except Exception as error:
        frames = extract_tb(error.__traceback__)
        lines = [each.lineno for each in frames if Path(each.filename) == path.absolute()]
        where = f" in line {lines[-1]}" if lines else ""
        raise FileError(f"{path}: fails{where}: {type(error).__name__}: {error}") from error


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Modules of a folder can be imported from now on; installed ones come first."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    yield
