"""What a file says about itself: where it comes from, what goes in and out, how exact it is."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from torch import nn

from lcv.export.check import MOST_AT_999, MOST_MEAN, SEED, Difference
from lcv.export.sizes import Sizes
from lcv.models.build import spec_of
from lcv.models.types import ExportRule
from lcv.provenance import provenance


def describe(
    model: nn.Module,
    rule: ExportRule,
    sizes: Sizes,
    differences: Sequence[Difference],
    how: dict[str, Any],
    batch: bool,
    half: bool,
    weights: str | os.PathLike[str] | None,
) -> dict[str, Any]:
    """The metadata, as plain values of JSON.

    how: W, iters, lookup, format and versions, as the file states them
    """
    origin = provenance(weights)
    pairs = "batch" if batch else 1
    image = {"type": "float32", "shape": [pairs, 3, "height", "width"], "values": "RGB, 0 to 255"}
    return {
        "made_by": f"lcv {origin['lcv']}",
        "commit": origin["commit"],
        "modified": origin["modified"],
        "model": spec_of(model).as_dict(),
        "weights": origin["weights"],
        **how,
        "precision": "float16 in convolutions, else float32" if half else "float32",
        "inputs": {"image1": image, "image2": image},
        "outputs": {
            "flow": {
                "type": "float32",
                "shape": [pairs, 2, "height", "width"],
                "values": "from image1 to image2 in pixels; channel 0 to the right, channel 1 down",
            }
        },
        "sizes": sizes.as_dict(),
        "fit": {
            "rule": rule.rule,
            "modes": [mode for mode in rule.modes if mode is not None],
        },
        "error": {
            "against": "the model it was made from, in torch, float32, on a CPU; in pixels",
            "procedural_seed": SEED,
            "most_mean": MOST_MEAN,
            "most_at_999": MOST_AT_999,
            "measured": [each.as_dict() for each in differences],
        },
    }


def table(metadata: dict[str, Any]) -> str:
    """The metadata for people: one line a fact, one row a size."""
    weights = metadata["weights"]
    sizes = metadata["sizes"]
    taken = Sizes(sizes["stride"], tuple(sizes["height"]), tuple(sizes["width"]))
    side = "h, w" if taken.is_open else f"{taken.height[0]}, {taken.width[0]}"
    pairs = metadata["inputs"]["image1"]["shape"][0]
    facts = {
        "model": f"{metadata['model']['name']}, W: {metadata['W']}",
        "weights": f"{weights['file']}, sha256 {weights['sha256']}"
        if weights
        else "not from a file",
        "made by": f"{metadata['made_by']}, commit {_commit(metadata)}",
        "format": _format(metadata),
        "iterations": metadata["iters"] or "none",
        "lookup": metadata["lookup"],
        "precision": metadata["precision"],
        "inputs": f"image1, image2: float32 ({pairs}, 3, {side}), RGB, 0 to 255",
        "output": f"flow: float32 ({pairs}, 2, {side}), x right and y down, in pixels",
        "sizes": taken.words() if taken.is_open else f"{taken.words()} alone, height×width",
        "other sizes": _others(taken, metadata["fit"]["rule"]),
    }
    lines = [f"{name:<12} {value}" for name, value in facts.items()]
    lines += [
        "",
        f"{'image':<12} {'given':<12} {'rule':<8} {'mean px':>9} {'99.9 %':>9} {'max':>9}  pair",
    ]
    for row in metadata["error"]["measured"]:
        image, given = ("×".join(map(str, row[key])) for key in ("image", "given"))
        numbers = " ".join(f"{row[key]:>9.1e}" for key in ("mean", "at_999", "most"))
        lines.append(f"{image:<12} {given:<12} {row['mode'] or '–':<8} {numbers}  {row['pair']}")
    return "\n".join(lines)


def _others(taken: Sizes, rule: str) -> str:
    """A file for one size takes only those images that the rule brings to it."""
    if taken.is_open or rule.startswith("None"):
        return rule
    return f"Only those that this brings to {taken.words()}. {rule}"


def _commit(metadata: dict[str, Any]) -> str:
    if metadata["commit"] is None:
        return "unknown"
    return metadata["commit"][:12] + (" with changes" if metadata["modified"] else "")


def _format(metadata: dict[str, Any]) -> str:
    if metadata["format"] == "torch":
        return f"torch.export, torch {metadata['torch']}"
    return (
        f"ONNX, opset {metadata['opset']}, by torch {metadata['torch']}, checked with ONNX Runtime "
        f"{metadata['onnxruntime']}"
    )
