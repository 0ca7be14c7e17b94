"""What a file says about itself, in JSON and for people, of numbers made up."""

from __future__ import annotations

import pytest

import lcv
from lcv.export.check import Difference
from lcv.export.describe import describe, table
from lcv.export.sizes import Sizes
from lcv.models.raft import RAFT

FOUND = Difference("procedural", (61, 67), (64, 72), None, 1e-4, 2e-3, 3e-2, 4.0)
HOW = {"W": "none", "iters": 12, "lookup": "gather", "format": "torch", "torch": "2.9"}
ONE = Sizes(8, (64, 64), (72, 72))


@pytest.fixture
def metadata(monkeypatch):
    origin = {"lcv": "1.0", "commit": "0123456789abcdef", "modified": False, "weights": None}
    monkeypatch.setattr("lcv.export.describe.provenance", lambda weights: origin)
    model = lcv.build("raft-small", "euclidean")
    return describe(model, RAFT.export_rule, ONE, [FOUND], HOW, False, False, None)


def test_the_metadata_are_exactly_these(metadata):
    image = {"type": "float32", "shape": [1, 3, "height", "width"], "values": "RGB, 0 to 255"}
    flow = "from image1 to image2 in pixels; channel 0 to the right, channel 1 down"
    model = metadata.pop("model")
    assert model["name"] == "raft-small"
    assert metadata == {
        "made_by": "lcv 1.0",
        "commit": "0123456789abcdef",
        "modified": False,
        "weights": None,
        **HOW,
        "precision": "float32",
        "inputs": {"image1": image, "image2": image},
        "outputs": {
            "flow": {"type": "float32", "shape": [1, 2, "height", "width"], "values": flow}
        },
        "sizes": {"stride": 8, "height": [64, 64], "width": [72, 72]},
        "fit": {"rule": RAFT.export_rule.rule, "modes": ["sintel", "kitti"]},
        "error": {
            "against": "the model it was made from, in torch, float32, on a CPU; in pixels",
            "procedural_seed": 2020,
            "most_mean": 1e-3,
            "most_at_999": 1e-2,
            "measured": [
                {
                    "pair": "procedural",
                    "image": [61, 67],
                    "given": [64, 72],
                    "mode": None,
                    "mean": 1e-4,
                    "at_999": 2e-3,
                    "most": 3e-2,
                    "length": 4.0,
                }
            ],
        },
    }


def test_a_batch_and_half_precision_are_said():
    model = lcv.build("raft-small", "euclidean")
    said = describe(model, RAFT.export_rule, ONE, [], HOW, True, True, None)
    assert said["inputs"]["image1"]["shape"][0] == said["outputs"]["flow"]["shape"][0] == "batch"
    assert said["precision"] == "float16 in convolutions, else float32"


def test_the_table_is_exactly_this(metadata):
    rule = RAFT.export_rule.rule
    assert (
        table(metadata)
        == f"""\
model        raft-small, W: none
weights      not from a file
made by      lcv 1.0, commit 0123456789ab
format       torch.export, torch 2.9
iterations   12
lookup       gather
precision    float32
inputs       image1, image2: float32 (1, 3, 64, 72), RGB, 0 to 255
output       flow: float32 (1, 2, 64, 72), x right and y down, in pixels
sizes        64×72 alone, height×width
other sizes  Only those that this brings to 64×72. {rule}

image        given        rule       mean px    99.9 %       max  pair
61×67        64×72        –          1.0e-04   2.0e-03   3.0e-02  procedural"""
    )


def test_the_table_of_another_file(metadata):
    metadata |= {"commit": None, "iters": None, "format": "onnx", "opset": 18, "onnxruntime": "1.2"}
    metadata["weights"] = {"file": "w.pth", "sha256": "ab"}
    metadata["sizes"]["width"][1] = 80
    metadata["error"]["measured"][0]["mode"] = "kitti"
    lines = dict(line.split(maxsplit=1) for line in table(metadata).splitlines() if " " in line)
    assert lines["weights"] == "w.pth, sha256 ab"
    assert lines["made"] == "by      lcv 1.0, commit unknown"
    assert lines["format"] == "ONNX, opset 18, by torch 2.9, checked with ONNX Runtime 1.2"
    assert lines["iterations"] == "none"
    assert lines["sizes"] == "heights 64 to 64, widths 72 to 80, multiples of 8"
    assert lines["other"] == f"sizes  {RAFT.export_rule.rule}"
    assert "(1, 3, h, w)" in lines["inputs"]
    assert " kitti " in lines["61×67"]
    metadata |= {"commit": "0123456789abcdef", "modified": True}
    assert "commit 0123456789ab with changes\n" in table(metadata)
    metadata["sizes"]["width"][1] = 72
    metadata["fit"]["rule"] = "None is taken."
    assert "other sizes  None is taken.\n" in table(metadata)
