"""The kernel of sharpening, light and noise against torch: in Triton's interpreter, and on CUDA."""

from __future__ import annotations

import json
import sys
import types
from dataclasses import replace

import pytest
import torch

from lcv.data import synthetic
from lcv.data.random import Draws
from lcv.data.synthetic import sequence
from lcv.data.synthetic.effects import apply_effects
from lcv.data.synthetic.recipe import GENTLE, MIXED, TRAINING
from lcv.data.synthetic.render import Renderer
from lcv.data.synthetic.sequence import generate
from lcv.data.synthetic.textures import procedural_bank

PLAIN = replace(TRAINING, **dict.fromkeys(("fog", "motion_blur", "sharpen", "noise", "jpeg"), 0.0))
DARK = replace(PLAIN, illumination=0.0, illumination_change=0.0)
RECIPES = {
    "all": replace(GENTLE, sharpen=0.7, illumination=0.7, illumination_change=0.6, noise=0.7),
    "sharpening": replace(DARK, sharpen=1.0, sharpen_amount=(0.5, 3.0)),
    "light": replace(PLAIN, illumination=1.0, illumination_change=0.5),
    "noise": replace(DARK, noise=1.0, noise_sigma=20.0),
    "none": DARK,
}


def differences(size: tuple[int, int], count: int, device: str) -> dict[str, list[float]]:
    """The largest difference in grey levels from torch, and what the effects change on average."""
    generator = torch.Generator().manual_seed(0)
    frames = [255 * torch.rand(count, 3, *size, generator=generator).to(device) for _ in range(2)]
    still = [torch.zeros(count, 2, *size, device=device) for _ in frames]
    found = {}
    for name, recipe in RECIPES.items():
        made = [
            torch.cat(apply_effects(recipe, Draws(5, range(count), device), frames, still, backend))
            for backend in ("torch", "triton")
        ]
        changed = (made[0] - torch.cat(frames)).abs().mean()
        found[name] = [float((made[0] - made[1]).abs().max()), float(changed)]
    return found


def check(found: dict[str, list[float]]) -> None:
    assert set(found) == set(RECIPES)
    for name, (apart, changed) in found.items():
        assert apart < 2e-3, name
        assert (changed > 1) == (name != "none"), name


def test_the_interpreted_kernel_equals_torch():
    from testing.interpreter import interpreted  # not at the top: this file is also run as a script

    check(interpreted(__file__))


def test_pairs_by_triton_get_their_effects_from_the_kernel(monkeypatch):
    """On a machine without a GPU: the renderer is torch's, and the kernel notes what it is given."""
    noted = []

    def on_all(recipe, draws, frames):
        noted.append((recipe, len(draws), len(frames)))
        return frames

    kernel = types.ModuleType("effects_triton")
    kernel.on_all = on_all
    monkeypatch.setattr(synthetic, "effects_triton", kernel, raising=False)
    monkeypatch.setitem(sys.modules, "lcv.data.synthetic.effects_triton", kernel)
    monkeypatch.setattr(sequence, "choose_backend", lambda backend, device: backend)
    monkeypatch.setattr(sequence, "renderer", lambda scene, backend: Renderer(scene))
    for backend, times in (("torch", 0), ("triton", 1)):
        generate(PLAIN, 1, range(3), (32, 48), backend=backend)
        assert noted == [(PLAIN, 3, 2)] * times


@pytest.mark.gpu
def test_the_kernel_equals_torch_on_cuda():
    check(differences((120, 163), 8, "cuda"))


@pytest.mark.gpu
def test_pairs_made_by_kernels_equal_those_of_torch_on_cuda():
    bank = procedural_bank(device="cuda")
    made = [
        generate(MIXED, 1, range(24), (128, 160), "cuda", textures=bank, backend=backend)
        for backend in ("torch", "triton")
    ]
    apart = (made[0].image1 - made[1].image1).abs()
    assert apart.mean() < 0.1  # an outline may fall to the other side of a pixel by rounding
    assert (apart > 1).float().mean() < 1e-3


if __name__ == "__main__":
    print(json.dumps(differences((21, 45), 3, "cpu")))
