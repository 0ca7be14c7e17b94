"""What a run is where nothing is said, and what it cannot be."""

from __future__ import annotations

from zlib import crc32

import pytest

from lcv.errors import ArgumentError
from lcv.train.config import TrainConfig, by_dotted_name, changed

# A check sum of all defaults, on which every recipe depends, and every config.json that leaves
# something out. Who changes one on purpose writes the new sum here.
DEFAULTS = 0xB7BA8AA7


def test_the_defaults_are_what_they_were():
    assert crc32(repr(by_dotted_name(TrainConfig().as_dict())).encode()) == DEFAULTS


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"optim.schedule": "cosine"}, "optim.schedule is 'cosine', wanted one of one_cycle, lin"),
        ({"steps": 0}, "steps is 0, wanted at least 1"),
        ({"save_every": 0}, "save_every is 0, wanted at least 1"),
        ({"steps": 5, "first_step": 6}, "first_step is 6, wanted from 0 to the 5 steps"),
        ({"first_step": -1}, "first_step is -1"),
        ({"batch": 0}, "batch is 0, wanted at least 1"),
        ({"log_every": 0}, "log_every is 0, wanted at least 1"),
        ({"ema": -0.1}, "ema is -0.1"),
        ({"data.source": "files", "data.out_of_frame_weight": 0.5}, "data.source is files and lo"),
        ({"ema": 1.0}, r"ema is 1.0, wanted 0 \(none\) or a decay below 1"),
        ({"loss.name": "multiscale", "data.occluded_weight": 0.5}, "are for procedural pairs"),
        ({"loss.patch": (0.0, 0.5)}, "loss.patch is .*, wanted shares above 0"),
        ({"loss.patch": (0.5, 1.5)}, "loss.patch is .*, wanted shares above 0"),
    ],
)
def test_what_cannot_be_is_refused(settings, message):
    with pytest.raises(ArgumentError, match=message):
        changed(TrainConfig(), settings)


def test_the_edges_of_what_can_be():
    edges = {"steps": 5, "first_step": 5, "ema": 0.0, "loss.patch": (1.0, 1.0), "log_every": 1}
    config = changed(TrainConfig(), edges)
    assert {name: by_dotted_name(config.as_dict())[name] for name in edges} == {
        **edges,
        "loss.patch": [1.0, 1.0],
    }
