"""Pictures of what a network has learned in W: spectrum, angles, the matrix, features on a frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from lcv.errors import ArgumentError
from lcv.inner_product.convert import elliptical_from_matrix
from lcv.inner_product.interpret import eigen_features
from lcv.visual.chart import curves
from lcv.visual.inspection import Level
from lcv.visual.layout import label_size, side_by_side
from lcv.visual.text import text_strip

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, RED = np.array([33, 102, 172]), np.array([178, 24, 43])
# A map is drawn in full colour where it is as large as 99 % of itself.
SHARE = 0.99
# A ratio of eigenvalues from which on they are drawn on a logarithmic axis.
WIDE = 4
CHART_SIZE = (400, 640)


def spectrum_chart(levels: Mapping[str, Level], size: tuple[int, int] = CHART_SIZE) -> np.ndarray:
    """Eigenvalues of every W in ascending order; the line is W = I.

    In equal ratios where they are wide apart, since λ and 1/λ are as far from 1.
    """
    spectra = {_title(name): level.summary.eigenvalues.numpy() for name, level in levels.items()}
    positive = all(level.positive for level in levels.values())
    low, high = (pick([pick(s) for s in spectra.values()]) for pick in (min, max))
    return curves(
        spectra,
        title="spectrum of W",
        x="index, ascending",
        y="eigenvalue",
        log=positive and high > WIDE * low,
        reference=1.0,
        size=size,
    )


def angles_chart(
    levels: Mapping[str, Level], size: tuple[int, int] = CHART_SIZE
) -> np.ndarray | None:
    """The angles by which P turns, ascending; None where no W has a P."""
    turned = {
        _title(name): level.summary.angles.rad2deg().numpy()
        for name, level in levels.items()
        if level.angles
    }
    if not turned:
        return None
    return curves(
        turned, title="rotation angles of P", x="index, ascending", y="degrees", size=size
    )


def matrix_picture(level: Level) -> np.ndarray:
    """W − I as colours, one square an entry: red is positive, blue is negative, white is zero."""
    apart = (level.W - torch.eye(len(level.W), dtype=level.W.dtype)).numpy()
    limit = float(np.abs(apart).max()) or 1.0
    picture = diverging(apart, limit)
    factor = max(1, 384 // len(apart))
    enlarged = picture.repeat(factor, axis=0).repeat(factor, axis=1)
    where = f", {_title(level.name)}" if level.name else ""
    words = f"W - I{where}\nfull red +{limit:.3g}, full blue -{limit:.3g}"
    return side_by_side([enlarged], [words])


def eigen_feature_figure(
    frame: np.ndarray, features: Tensor, level: Level, count: int = 3
) -> np.ndarray:
    """A frame, and its features along the directions that W weighs most and least.

        frame       largest eigenvalue, 2nd largest, …
        about W     smallest, 2nd smallest, …

    Each map is the projection on one unit eigenvector of W: white is zero, red and blue are the
    two signs, in full colour at the map's own 99 %.

    frame: (H, W, 3) uint8;  features: (c, h, w);  count: maps a row
    """
    size = _size(frame, count + 1)
    most, least = eigen_feature_maps(features, level, size, count)
    cells = [("frame", _resized(frame, size)), *most, ("", _about(level, size)), *least]
    labels, pictures = zip(*cells, strict=True)
    return side_by_side(pictures, labels, len(most) + 1, gap=6)


def eigen_feature_maps(
    features: Tensor, level: Level, size: tuple[int, int], count: int = 3
) -> tuple[list[tuple[str, np.ndarray]], list[tuple[str, np.ndarray]]]:
    """The maps of that figure with their names: those of the largest, and of the smallest eigenvalues.

    size: width and height of a picture
    """
    count = min(count, len(level.W))
    if len(features) != len(level.W):
        raise ArgumentError(f"{len(features)} channels of features for a W of {len(level.W)}")
    symmetric = (level.W + level.W.mT) / 2
    most, least = eigen_features(features[None], symmetric.to(features.dtype), count)
    lam = level.summary.eigenvalues.tolist()

    def named(which: str, maps: Tensor, values: list[float]) -> list[tuple[str, np.ndarray]]:
        return [
            (f"{_ordinal(k)}{which}, {value:.3g}", _map(one.numpy(), size))
            for k, (one, value) in enumerate(zip(maps, values, strict=False), 1)
        ]

    return named("largest", most[0], lam[::-1]), named("smallest", least[0], lam)


def channel_plane_figure(level: Level) -> Figure:
    """Figure 1 of the paper in the plane of two channels: their unit vectors under W.

    The ellipse is xᵀWx = 1. Before: two orthogonal vectors of length 1. After, seen through the
    symmetric root of W on that plane: of the lengths √W_ii, √W_jj and at the angle that W gives
    them. Needs matplotlib.
    """
    from lcv.visual.inner_product_plots import two_vectors_figure

    plane = level.plane()
    eye = torch.eye(2, dtype=plane.dtype)
    Q = elliptical_from_matrix(plane).zca_matrix()
    i, j = (str(channel).translate(SUBSCRIPTS) for channel in level.pair)
    return two_vectors_figure(eye[0], eye[1], plane, Q, names=(f"e{i}", f"e{j}"))


SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def diverging(values: np.ndarray, limit: float) -> np.ndarray:
    """Numbers as colours, (H, W) → (H, W, 3) uint8: blue at −limit, white at 0, red at limit."""
    share = np.clip(values / limit, -1, 1)[..., None]
    end = np.where(share < 0, BLUE, RED)
    return np.round(255 + np.abs(share) * (end - 255)).astype(np.uint8)


def _map(values: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    # Its sign is the eigenvector's, which is nobody's: there is more red than blue.
    more = float((values * np.abs(values)).sum())
    limit = float(np.quantile(np.abs(values), SHARE)) or 1.0
    picture = diverging(values if more >= 0 else -values, limit)
    return _resized(picture, size, Image.Resampling.BILINEAR)


def _about(level: Level, size: tuple[int, int]) -> np.ndarray:
    """What there is to know of the maps, in words, in a cell of the figure."""
    condition = f"{level.summary.condition:.3g}" if level.positive else "none"
    words = f"{_title(level.name)}: {len(level.W)} channels\ncondition {condition}\n"
    words += "maps with their eigenvalue:\nred and blue are the signs"
    cell = np.full((size[1], size[0], 3), 255, np.uint8)
    letters = min(label_size(size[0]), size[1] // 8)
    strip = text_strip(words, size[0], letters)[: size[1]]
    top = (size[1] - len(strip)) // 2
    cell[top : top + len(strip)] = strip
    return cell


def _size(frame: np.ndarray, count: int) -> tuple[int, int]:
    """Width and height of one picture of the figure, whose whole width is about 1000."""
    width = min(480, max(200, 1000 // count))
    return width, max(1, round(width * frame.shape[0] / frame.shape[1]))


def _resized(
    picture: np.ndarray,
    size: tuple[int, int],
    way: Image.Resampling = Image.Resampling.LANCZOS,
) -> np.ndarray:
    return np.asarray(Image.fromarray(picture).resize(size, way))


def _title(level: str) -> str:
    return f"level {level}" if level else "W"


def _ordinal(number: int) -> str:
    return {1: "", 2: "2nd ", 3: "3rd "}.get(number, f"{number}th ")
