"""`lcv report`: words to two files, and sentences for what it cannot use."""

from __future__ import annotations

import subprocess
import sys
import time

from lcv.cli import main as cli
from lcv.cli.report import _size
from testing.ablating import invented


def test_help_loads_nothing_heavy_and_is_quick():
    code = """
import sys
from lcv.cli.main import main
try:
    main(["report", "--help"])
except SystemExit:
    pass
print("heavy:", sorted({"torch", "numpy", "rich", "av", "PIL"} & set(sys.modules)))
"""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        seconds.append(time.perf_counter() - start)
    assert "heavy: []" in done.stdout
    assert min(seconds) < 0.5


def test_two_files_and_a_title(tmp_path, capsys):
    study = invented(tmp_path / "ablation", {"continued": [2.0, 2.1], "lcv": [1.9, 2.0]})
    words = ["report", str(study.folder), "-o", str(tmp_path / "page.html"), "--title", "A & B"]
    assert cli.main(words) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in said] == [
        str(tmp_path / "page.html"),
        str(tmp_path / "page.md"),
    ]
    for line, path in zip(said, ("page.html", "page.md"), strict=True):
        size = (tmp_path / path).stat().st_size
        assert line.endswith(f": {size / 1024:.1f} KiB")
    assert "<title>A &amp; B</title>" in (tmp_path / "page.html").read_text()
    assert cli.main(words) == 2
    assert "exists already; choose another name or use --overwrite" in capsys.readouterr().err
    assert cli.main([*words, "--overwrite"]) == 0


def test_what_is_unknown_is_named(tmp_path, capsys):
    (tmp_path / "photo.png").write_bytes(b"\x89PNG")
    words = ["report", str(tmp_path / "photo.png"), "-o", str(tmp_path / "page.html")]
    assert cli.main(words) == 2
    captured = capsys.readouterr()
    assert "photo.png: is nothing that a report is made of" in captured.err
    assert captured.err.count("\n") == 1
    assert not (tmp_path / "page.html").exists()


def test_sizes_in_words():
    sizes = [_size(count) for count in (512, 2**20 - 1, 2**20, 5 * 2**19)]
    assert sizes == ["0.5 KiB", "1024.0 KiB", "1.0 MiB", "2.5 MiB"]
