"""Decoding in a process of its own: what dies there is a sentence here."""

from __future__ import annotations

import resource
from itertools import islice

import numpy as np
import pytest

from lcv.data.formats.decoder import Source, decode
from lcv.errors import FileError
from testing.footage import moving, save_film


def test_a_decoder_that_dies_is_a_sentence(tmp_path):
    """By its own hand here; a hostile file does the same from within."""
    path = save_film(tmp_path / "a.mkv", 40)
    with decode(Source("file", str(path))) as decoder:
        frames = decoder.frames()
        next(frames)
        decoder.process.kill()
        with pytest.raises(FileError, match=r"a.mkv: its decoder died by SIGKILL after \d+ frames"):
            list(frames)


def test_a_decoder_ends_when_nobody_listens(tmp_path):
    path = save_film(tmp_path / "a.mkv", 40)
    with decode(Source("file", str(path))) as decoder:
        list(islice(decoder.frames(), 2))
    assert decoder.process.returncode is not None


def test_frames_come_through_a_pipe_where_no_memory_is_shared(tmp_path, monkeypatch):
    monkeypatch.delattr("os.memfd_create")
    path = save_film(tmp_path / "a.mkv", 6)
    with decode(Source("file", str(path))) as decoder:
        assert decoder.shared == ()
        frames = [frame for _, frame in decoder.frames()]
    assert all(np.array_equal(a, b) for a, b in zip(frames, moving(6), strict=True))


def test_frames_are_counted_and_not_believed(tmp_path):
    path = save_film(tmp_path / "a.mkv", 6)
    with decode(Source("file", str(path)), job="info") as decoder:
        info = decoder.info()
    assert (info["frames"], info["height"], info["width"]) == (6, 64, 72)


def test_the_decoder_can_write_no_byte_to_a_file(tmp_path):
    path = save_film(tmp_path / "a.mkv", 40)
    with decode(Source("file", str(path))) as decoder:
        next(decoder.frames())
        for limit in (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE):
            assert resource.prlimit(decoder.process.pid, limit) == (0, 0)
