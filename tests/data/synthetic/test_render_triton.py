"""The GPU kernels against the renderer in torch: in Triton's interpreter, and on CUDA."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest
import torch

from lcv.data.random import Draws
from lcv.data.synthetic import render
from lcv.data.synthetic.mixing import together
from lcv.data.synthetic.recipe import GENTLE, SPACE, STREET, TRAINING
from lcv.data.synthetic.scene import draw_scene
from lcv.data.synthetic.textures import procedural_bank
from testing.exactness import Agreement, agreement

KINDS = {
    "training": TRAINING,
    "gentle": replace(GENTLE, layers=6, objects=(2, 5)),
    "space": replace(SPACE, layers=8, objects=(2, 4)),
    "street": replace(STREET, shadow=1.0, trim_probability=0.7),
    "cylinders": replace(GENTLE, layers=5, objects=None, round_probability=0.8),
}


def agreements(size: tuple[int, int], each: int, device: str) -> dict[str, Agreement]:
    """Of all kinds apart, in both directions, and of two together over a later step."""
    from lcv.data.synthetic import render_triton

    bank = procedural_bank(count=4, size=64).to(device)
    found = {}
    with torch.no_grad():
        for kind, recipe in KINDS.items():
            scene = draw_scene(recipe, Draws(3, range(each), device), size, 2, bank)
            pair = (render.Renderer(scene), render_triton.Renderer(scene))
            found[f"{kind} forward"] = agreement(*pair, 0, 1)
            found[f"{kind} backward"] = agreement(*pair, 1, 0)
        scenes = [
            draw_scene(KINDS[kind], Draws(3, range(each), device), size, 3, bank)
            for kind in ("space", "street")
        ]
        scene = together(scenes)
        pair = (render.Renderer(scene), render_triton.Renderer(scene))
        found["mixed, later"] = agreement(*pair, 1, 2)
    return found


def check(found: dict[str, Agreement]) -> None:
    assert len(found) == 2 * len(KINDS) + 1
    for name, apart in found.items():
        # An outline may fall to the other side of a pixel by rounding.
        assert apart.layer < 1e-3, name
        assert apart.image < 0.1, name
        assert apart.flow < 1e-3, name
        assert apart.hidden < 1e-3, name
        assert apart.gone < 1e-3, name


def test_interpreted_kernels_equal_the_renderer_in_torch():
    from testing.interpreter import interpreted  # not at the top: this file is also run as a script

    check({name: Agreement(**apart) for name, apart in interpreted(__file__).items()})


@pytest.mark.gpu
def test_kernels_equal_the_renderer_in_torch_on_cuda():
    check(agreements((120, 163), 8, "cuda"))


if __name__ == "__main__":
    from lcv.data.synthetic import render_triton

    render_triton.BLOCK_X, render_triton.BLOCK_Y = 64, 32  # a tile as large as a frame
    results = agreements((31, 45), 1, "cpu")
    print(json.dumps({name: asdict(apart) for name, apart in results.items()}))
