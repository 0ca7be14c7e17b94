"""Decoding in a process of its own: what dies there is a sentence here."""

from __future__ import annotations

import resource
from collections import deque
from itertools import islice

import numpy as np
import pytest
import torch

from lcv.data.formats.decoder import LENT, Decoder, Source, decode
from lcv.errors import FileError
from lcv.predict.worker import WAITING
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


@pytest.mark.parametrize("held", [1, 2, 3, 4, 40])
def test_a_frame_never_changes_while_it_is_held(tmp_path, held):
    """Whoever holds many frames gets copies; nobody sees a frame overwritten, or waits for ever."""
    path = save_film(tmp_path / "a.mkv", 40)
    expected, last = [frame[1:] for frame in moving(40)], deque(maxlen=held)
    with decode(Source("file", str(path))) as decoder:
        for number, frame in decoder.frames():
            last.append((number, frame[1:]))  # a view keeps the slot, too
            del frame
            assert all(np.array_equal(frame, expected[number]) for number, frame in last)
        assert len(decoder.lent) <= LENT
    assert [number for number, _ in last] == list(range(40 - held, 40))
    assert all(np.array_equal(frame, expected[number]) for number, frame in last)


def test_frames_of_a_pair_and_of_those_that_wait_are_not_copied(tmp_path):
    path = save_film(tmp_path / "a.mkv", 12)
    with decode(Source("file", str(path))) as decoder:
        before = deque(maxlen=1 + WAITING)  # the first of each pair
        for _, frame in decoder.frames():
            assert not frame.base.flags.owndata  # it lies in shared memory
            before.append(torch.from_numpy(frame).permute(2, 0, 1))
            assert len(decoder.lent) <= LENT
        del before, frame
        assert not decoder.lent


def test_a_decoder_that_says_nothing_of_its_source_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(Decoder, "_records", lambda self: iter(()))
    with (
        decode(Source("file", "a.mp4"), job="info") as started,
        pytest.raises(FileError, match=r"a\.mp4: its decoder said nothing"),
    ):
        started.info()
