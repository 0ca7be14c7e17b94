"""Uploaded pictures are read in a process of their own."""

from __future__ import annotations

import io
import resource
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from lcv.data.formats.image import write_image
from lcv.demo import limits, picture
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


def test_the_limits_of_the_process(monkeypatch):
    told = []
    monkeypatch.setattr(resource, "setrlimit", lambda *words: told.append(words))
    picture._restrict()
    memory = 3 * 2**30
    assert told == [(resource.RLIMIT_AS, (memory, memory)), (resource.RLIMIT_FSIZE, (0, 0))]
    monkeypatch.setitem(sys.modules, "resource", None)
    picture._restrict()
    assert len(told) == 2, "where there are none"


def test_the_process_is_restricted_before_it_reads_and_sends_plain_numbers(tmp_path, monkeypatch):
    told = []
    out, err = SimpleNamespace(buffer=io.BytesIO()), io.StringIO()
    monkeypatch.setattr(picture.sys, "stdout", out)
    monkeypatch.setattr(picture.sys, "stderr", err)
    monkeypatch.setattr(picture, "_restrict", lambda: told.append("restricted"))
    rgb = moving(1, (8, 9))[0]

    def read_image(*words):
        told.append(words)
        if words[0] == "bad":
            raise FileError("bad: is bad")
        return rgb if words[0] == "good" else np.array([object()])

    monkeypatch.setattr("lcv.data.formats.image.read_image", read_image)
    assert picture._child("good", "100") == 0
    assert np.array_equal(np.load(io.BytesIO(out.buffer.getvalue())), rgb)
    assert told == ["restricted", ("good", 100)]
    assert picture._child("bad", "100") == 2
    assert err.getvalue() == "bad: is bad"
    with pytest.raises(ValueError, match="allow_pickle=False"):
        picture._child("objects", "100")
