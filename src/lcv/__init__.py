"""Optical flow with a learnable cost volume: matching by F1ᵀ W F2, W positive definite.

The public names and the submodules below (`lcv.inner_product.Elliptical`) are imported when they are
first used: `import lcv` alone loads neither torch nor anything else that is slow or has an effect.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from lcv.errors import LcvError
from lcv.version import __version__

if TYPE_CHECKING:
    from lcv.data.formats.flow import read_flow as read_flow
    from lcv.data.formats.flow import write_flow as write_flow
    from lcv.data.formats.image import read_image as read_image
    from lcv.models import cards
    from lcv.models.build import build as build
    from lcv.models.build import load as load
    from lcv.models.surgery import attach as attach
    from lcv.models.surgery import fold as fold
    from lcv.models.wrap import wrap as wrap
    from lcv.predict.predictor import Predictor as Predictor
    from lcv.predict.result import FlowResult as FlowResult
    from lcv.visual.warping import warp as warp

    save = cards.save_weights

# The module of each name and, after a colon, what it is called there if not the same.
_HOMES = {
    "FlowResult": "lcv.predict.result",
    "Predictor": "lcv.predict.predictor",
    "attach": "lcv.models.surgery",
    "build": "lcv.models.build",
    "fold": "lcv.models.surgery",
    "load": "lcv.models.build",
    "read_flow": "lcv.data.formats.flow",
    "read_image": "lcv.data.formats.image",
    "save": "lcv.models.cards:save_weights",
    "warp": "lcv.visual.warping",
    "wrap": "lcv.models.wrap",
    "write_flow": "lcv.data.formats.flow",
}

_SUBMODULES = (
    "bench",
    "cost_volume",
    "data",
    "demo",
    "evaluate",
    "export",
    "inner_product",
    "losses",
    "models",
    "predict",
    "recipes",
    "studies",
    "testing",
    "train",
    "visual",
)

__all__ = ["LcvError", "__version__", *_HOMES, *_SUBMODULES]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"lcv.{name}")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'lcv' has no attribute {name!r}; it has {sorted(__all__)}")
    module, _, there = home.partition(":")
    return getattr(importlib.import_module(module), there or name)


def __dir__() -> list[str]:
    return sorted(__all__)
