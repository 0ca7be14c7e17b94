"""Code of the user's: a file or a module is found, and what is wrong with it is a sentence."""

from __future__ import annotations

import sys

import pytest

from lcv.errors import ArgumentError, FileError
from lcv.usercode import import_file, import_module, user_errors


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    """Paths and modules as before, afterwards."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "modules", {**sys.modules})


def test_a_file_is_executed_anew_and_finds_its_neighbours(tmp_path):
    (tmp_path / "neighbour_of_it.py").write_text("VALUE = 7")
    path = tmp_path / "model.py"
    path.write_text("import sys\nfrom neighbour_of_it import VALUE\nown = sys.modules[__name__]")
    first, second = import_file(path), import_file(path)
    assert (first.VALUE, first.own is first, second is first) == (7, True, False)
    assert first.__name__ == second.__name__
    assert first.__name__.startswith("model_")
    assert len(first.__name__) == len("model_") + 8
    assert sys.path.count(str(tmp_path)) == 1
    assert sys.path[-1] == str(tmp_path), "installed modules come first"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = (", r"model\.py: not Python: '\(' was never closed"),
        ("x = 1\n\ny = 1 / 0", r"model\.py: fails in line 3: ZeroDivisionError: division by zero"),
        ("def f():\n    [][1]\nf()", r"model\.py: fails in line 2: IndexError"),
        ("import no_such_thing_x", r"model\.py: fails in line 1: ModuleNotFoundError"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_line(tmp_path, text, message):
    (tmp_path / "model.py").write_text(text)
    with pytest.raises(FileError, match=message):
        import_file(tmp_path / "model.py")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileError, match=rf"no\.py: there is no such file \(looked in {tmp_path}\)"):
        import_file(tmp_path / "no.py")


def test_an_error_of_ours_stays_as_it_is_and_one_from_elsewhere_has_no_line(tmp_path):
    with pytest.raises(ArgumentError, match="^ours$"), user_errors(tmp_path / "a.py"):
        raise ArgumentError("ours")
    with pytest.raises(FileError, match=r"a\.py: fails: KeyError"), user_errors(tmp_path / "a.py"):
        raise KeyError("x")


def test_a_module_of_the_current_folder_and_what_may_be_wrong_with_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "mine_a": "VALUE = 3",
        "mine_b": "import no_such_thing_y",
        "mine_c": "1 / 0",
        "mine_d": "from lcv.errors import ArgumentError\nraise ArgumentError('ours')",
    }.items():
        (tmp_path / f"{name}.py").write_text(text)
    assert import_module("mine_a").VALUE == 3
    assert import_module("json").dumps([1]) == "[1]"
    with pytest.raises(FileError, match="there is no module mine_z; wanted one that is installed"):
        import_module("mine_z")
    with pytest.raises(FileError, match="there is no module mine_z.model; wanted"):
        import_module("mine_z.model")
    with pytest.raises(FileError, match="mine_b: needs the module no_such_thing_y; install it"):
        import_module("mine_b")
    with pytest.raises(FileError, match="mine_c: fails: ZeroDivisionError: division by zero"):
        import_module("mine_c")
    with pytest.raises(ArgumentError, match="^ours$"):
        import_module("mine_d")
