"""Every real file of the datasets that lies at hand is read, with the sizes known for it."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

import lcv
from data.formats.samples import assert_is_flow, assert_is_image
from lcv.data.formats.mask import read_mask
from testing.shared import shared

# Name of the pair: flow, its size, the fraction of known flow.
PAIRS = {
    "Grove2": ("middlebury/Grove2/flow10.flo", (480, 640), 1.0),
    "RubberWhale": ("middlebury/RubberWhale/flow10.flo", (388, 584), 0.984),
    "Urban2": ("middlebury/Urban2/flow10.flo", (480, 640), 1.0),
    "Venus": ("middlebury/Venus/flow10.flo", (380, 420), 1.0),
    "Sintel": ("sintel/training/flow/alley_1/frame_0001.flo", (436, 1024), 1.0),
    "Chairs 1": ("chairs/data/00001_flow.flo", (384, 512), 1.0),
    "Chairs 2": ("chairs/data/00002_flow.flo", (384, 512), 1.0),
    "KITTI occ": ("kitti2015/training/flow_occ/000010_10.png", (375, 1242), 0.240),
    "KITTI noc": ("kitti2015/training/flow_noc/000010_10.png", (375, 1242), 0.234),
}


@pytest.mark.parametrize(("path", "size", "known"), PAIRS.values(), ids=PAIRS)
def test_flow(path, size, known):
    flow, valid = lcv.read_flow(shared("data", path))
    assert_is_flow(flow, valid)
    assert valid.shape == size
    assert round(valid.mean(), 3) == known
    assert 0.5 < np.abs(flow).max() < 100


def test_middlebury_marks_unknown_flow_with_large_numbers():
    path = shared("data", "middlebury", "RubberWhale", "flow10.flo")
    raw = np.fromfile(path, "<f4", offset=12).reshape(388, 584, 2)
    _, valid = lcv.read_flow(path)
    assert np.array_equal(valid, (np.abs(raw) <= 1e9).all(axis=2))
    assert raw[~valid].min() > 1e9


IMAGES = {
    "middlebury": (8, None),
    "sintel": (2, (436, 1024)),
    "chairs": (4, (384, 512)),
    "kitti2015/training/image_2": (2, (375, 1242)),
    "stereo": (3, (375, 450)),
}


@pytest.mark.parametrize(("folder", "count", "size"), [(k, *v) for k, v in IMAGES.items()])
def test_images_are_what_pillow_reads(folder, count, size):
    paths = sorted(p for p in shared("data", folder).rglob("*") if p.suffix in (".png", ".ppm"))
    assert len(paths) == count
    for path in paths:
        image = lcv.read_image(path)
        assert_is_image(image)
        assert size in (None, image.shape[:2])
        assert np.array_equal(image, np.array(Image.open(path).convert("RGB")))


def test_the_disparity_map_is_a_mask():
    mask = read_mask(shared("data", "stereo", "cones", "disp2.png"))
    assert mask.shape == (375, 450)
    assert mask.max() == 220
