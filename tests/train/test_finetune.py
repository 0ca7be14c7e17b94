"""Fine-tuning on one's own pairs: who is held out, and settings that follow from the data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lcv.data.formats.flow import write_flow
from lcv.data.formats.image import write_image
from lcv.data.record import Record
from lcv.errors import ArgumentError
from lcv.train.finetune import make_plan, split


def record(scene: str, first: int) -> Record:
    frames = (Path(scene, f"{k}.png") for k in (first, first + 1))
    return Record(f"{scene}/{first}", *frames, Path(scene, f"{first}.flo"), scene=scene)


def names(records):
    return [each.name for each in records]


def test_whole_scenes_are_held_out_the_smallest_and_last_first():
    records = [record(scene, k) for scene, n in (("a", 6), ("b", 2), ("c", 2)) for k in range(n)]
    train, held = split(records)
    assert names(held) == ["c/0", "c/1"]
    assert names(train) == names(records[:8])


def test_of_one_scene_the_last_pairs_and_no_frame_of_theirs_is_trained_on():
    records = [record("a", k) for k in range(10)]
    train, held = split(records)
    assert names(held) == ["a/8", "a/9"]
    assert names(train) == [
        f"a/{k}" for k in range(7)
    ]  # a/7 ends with the frame that a/8 begins with
    assert len(split([record(str(k), 0) for k in range(1000)])[1]) == 40


def test_pairs_that_leave_nothing_to_train_on_are_refused():
    for records in ([record("a", 0)], [record("a", 0), record("a", 1)]):
        with pytest.raises(ArgumentError, match="leave none to train on .* at least two"):
            split(records)


@pytest.mark.parametrize("holes", [False, True])
def test_settings_follow_from_the_pairs_and_the_device(tmp_path, holes):
    lines = []
    for name, (height, width) in {"a": (150, 300), "b": (210, 170)}.items():
        image = np.zeros((height, width, 3), np.uint8)
        flow, valid = np.zeros((height, width, 2), np.float32), np.ones((height, width), bool)
        valid[0, 0] = not (holes and name == "b")
        for k in (1, 2):
            write_image(tmp_path / f"{name}{k}.png", image)
        write_flow(tmp_path / f"{name}.flo", flow, valid)
        lines.append(f"{name}1.png {name}2.png {name}.flo")
    (tmp_path / "pairs.txt").write_text("\n".join(lines))
    for device, precision in (("cpu", "float32"), ("cuda", "bf16")):
        plan = make_plan(tmp_path / "pairs.txt", "raft-small-vanilla", device=device)
        config = plan.config
        assert config.data.size == (136, 160)
        assert config.data.parts[0].augmentation == ("raft-kitti" if holes else "raft-sintel")
        assert (config.precision, config.batch) == (precision, 1)
        assert (config.model.name, config.model.inner_product) == ("raft-small", "elliptical")
        assert config.loss.name == "sequence"
