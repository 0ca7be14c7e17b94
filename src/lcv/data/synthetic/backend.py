"""What makes frames and effects: "torch" anywhere, "triton" on a GPU, "auto" the faster one there is."""

from __future__ import annotations

import functools
import importlib.util
import logging
from typing import Protocol

import torch
from torch import Tensor

from lcv.data.synthetic import render
from lcv.data.synthetic.render import View
from lcv.data.synthetic.scene import Scene
from lcv.errors import BackendError

BACKENDS = ("auto", "torch", "triton")
logger = logging.getLogger("lcv")


class Renderer(Protocol):
    """Frames of one batch of scenes, and where what they show is at another time."""

    def render(self, time: int) -> View: ...

    def follow(self, view: View, time: int) -> tuple[Tensor, Tensor, Tensor]:
        """Flow to the frame at a time, what is hidden there, and what is out of it."""
        ...


def renderer(scene: Scene, backend: str = "auto") -> Renderer:
    """A renderer of this scene by the backend asked for, or BackendError."""
    chosen = choose_backend(backend, scene.outlines.device)
    if chosen == "torch":
        return render.Renderer(scene)
    from lcv.data.synthetic import render_triton

    return render_triton.Renderer(scene)


@functools.lru_cache(maxsize=16)
def choose_backend(backend: str, device: torch.device) -> str:
    """ "torch" or "triton"; which one "auto" takes is logged, once a device."""
    if backend not in BACKENDS:
        raise BackendError(f"unknown backend {backend!r}; known are {', '.join(BACKENDS)}")
    installed = importlib.util.find_spec("triton") is not None
    if backend == "auto":
        chosen = "triton" if device.type == "cuda" and installed else "torch"
        why = (
            "" if installed or device.type != "cuda" else "; Triton, which is faster, is not there"
        )
        logger.info("procedural pairs on %s are made by %s%s", device, chosen, why)
        return chosen
    if backend == "triton":
        if not installed:
            raise BackendError('backend "triton": Triton is not installed; use "torch" or "auto"')
        import triton

        if device.type != "cuda" and not triton.knobs.runtime.interpret:
            raise BackendError(
                f'backend "triton": these pairs are made on {device}, wanted a CUDA device; '
                'use "torch" or "auto"'
            )
    return backend
