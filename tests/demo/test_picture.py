"""Uploaded pictures are read in a process of their own."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from lcv.data.formats.image import write_image
from lcv.demo import limits
from lcv.demo.picture import read_picture
from lcv.errors import FileError
from testing.footage import moving


def test_a_picture_comes_back_as_it_is_and_a_refusal_as_a_sentence(tmp_path):
    (rgb,) = moving(1, (64, 72))
    write_image(tmp_path / "a.png", rgb)
    assert np.array_equal(read_picture(tmp_path / "a.png"), rgb)
    (tmp_path / "b.png").write_bytes(b"hello")
    with pytest.raises(FileError, match=r"b\.png: not an image that can be read \(5 bytes\)"):
        read_picture(tmp_path / "b.png")


def test_a_decoder_that_dies_or_hangs_costs_only_itself(tmp_path, monkeypatch):
    real = subprocess.run
    dies, hangs = "import os; os.abort()", "while True: pass"
    for code, seconds, message in ((dies, 20.0, "broke off"), (hangs, 0.2, "longer")):
        monkeypatch.setattr(limits, "DECODE_SECONDS", seconds)
        monkeypatch.setattr(
            subprocess, "run", lambda *_, code=code, **k: real([sys.executable, "-c", code], **k)
        )
        with pytest.raises(FileError, match=rf"a\.png: .*{message}"):
            read_picture(tmp_path / "a.png")


def test_the_process_has_little_memory_and_can_write_no_file(tmp_path):
    script = f"""
from lcv.demo.picture import _restrict
_restrict()
for attempt in (lambda: bytearray(2**32), lambda: open({str(tmp_path / "a")!r}, "wb", 0).write(b"x")):
    try:
        attempt()
    except (MemoryError, OSError) as error:
        print(type(error).__name__)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.split() == ["MemoryError", "OSError"]
