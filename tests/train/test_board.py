"""TensorBoard's listener: curves, histograms, pictures, or a sentence where it is not installed."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest
from PIL import Image

from lcv.errors import ArgumentError
from lcv.train.board import Board
from testing.extras import needs


def test_numbers_become_curves_lists_histograms_and_pictures_pictures(tmp_path):
    needs("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = Board(tmp_path)
    board({"kind": "note", "step": 0, "text": "W joins at I"})
    board({"kind": "train", "step": 5, "loss": 2.0, "w_spectrum": [0.5, 1.0, 1.5]})
    board({"kind": "validation", "step": 5, "sintel/epe": 3.0})
    board({"kind": "failure", "step": 6, "samples": ["a", "b"]})
    picture = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
    board.picture("sintel/0", 5, picture)
    board.close()
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [(e.step, e.value) for e in events.Scalars("train/loss")] == [(5, 2.0)]
    assert [(e.step, e.value) for e in events.Scalars("validation/sintel/epe")] == [(5, 3.0)]
    (histogram,) = events.Histograms("train/w_spectrum")
    spread = histogram.histogram_value
    assert (spread.num, spread.min, spread.max, spread.sum) == (3, 0.5, 1.5, 3.0)
    for tag, step, text in (("note/text", 0, b"W joins at I"), ("failure/samples", 6, b"a\nb")):
        (event,) = events.Tensors(f"{tag}/text_summary")
        assert (event.step, list(event.tensor_proto.string_val)) == (step, [text])
    assert len(events.Tags()["tensors"]) == 2
    assert sorted(events.Tags()["scalars"]) == ["train/loss", "validation/sintel/epe"]
    (shown,) = events.Images("pictures/sintel/0")
    assert (shown.step, shown.height, shown.width) == (5, 4, 6)
    decoded = np.asarray(Image.open(io.BytesIO(shown.encoded_image_string)))
    assert np.array_equal(decoded, picture)


def test_what_is_empty_is_not_shown_and_a_board_without_entries_leaves_nothing(tmp_path):
    needs("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = Board(tmp_path)
    board.close()
    assert list(tmp_path.iterdir()) == []
    board({"kind": "failure", "step": 6, "samples": [], "text": "x"})
    board.close()
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert events.Tags()["tensors"] == ["failure/text/text_summary"]
    assert (events.Tags()["scalars"], events.Tags()["histograms"]) == ([], [])


def test_a_resumed_run_hides_what_came_after_its_checkpoint(tmp_path):
    needs("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for steps, value in (((1, 2, 3), 1.0), ((2, 3), 2.0)):
        board = Board(tmp_path)
        for step in steps:
            board({"kind": "train", "step": step, "loss": value})
        board.close()
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [(e.step, e.value) for e in events.Scalars("train/loss")] == [
        (1, 1.0),
        (2, 2.0),
        (3, 2.0),
    ]


def test_without_tensorboard_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ArgumentError, match=r"pip install 'lcv-flow\[train\]'"):
        Board(tmp_path)
