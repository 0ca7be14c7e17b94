"""Scene cuts: every join of two videos, and nothing within one."""

from __future__ import annotations

import pytest
import torch

from lcv.data.cuts import Glance, glance, is_cut
from lcv.data.formats.video import read_video
from testing.painted import painted_pair
from testing.shared import shared


def test_cuts_are_seen_in_a_spliced_film_and_nowhere_else():
    """Both films cut together four times: every join is a cut, and no step within a film is."""
    films = [
        [frame for _, frame in zip(range(24), read_video(path), strict=False)]
        for path in (shared("data", "video", f"{n}.mp4") for n in ("cockatoo", "mmflow-demo"))
    ]
    splices = [films[k % 2][6 * (k // 2) : 6 * (k // 2) + 6] for k in range(8)]
    seen = [
        glance(torch.from_numpy(frame).movedim(2, 0)[None]) for part in splices for frame in part
    ]
    cuts = [k + 1 for k in range(len(seen) - 1) if is_cut(seen[k], seen[k + 1])]
    assert cuts == [6 * k for k in range(1, 8)]


def test_light_and_small_motion_are_no_cuts():
    one, two, _ = painted_pair(96, 136)
    black = torch.zeros_like(one)
    assert not is_cut(glance(one), glance(two))
    assert not is_cut(glance(one), glance((one * 1.03).clamp(max=255)))
    assert not is_cut(glance(black), glance(black + 2))
    assert is_cut(glance(black), glance(one))
    # Another view in the same colours.
    assert is_cut(glance(one), glance(one.flip(2)))


@pytest.mark.parametrize(("share", "cut"), [(0.34, False), (0.36, True)])
def test_the_threshold_of_colours(share, cut):
    """This share of the pixels changes its colour, in every cell alike."""
    before = torch.full((1, 3, 100, 100), 40.0)
    after = before.clone()
    after[..., : round(100 * share), :] = 200.0
    flat = Glance(glance(before).colours, torch.zeros(3, 16, 16))
    assert is_cut(flat, Glance(glance(after).colours, torch.zeros(3, 16, 16))) == cut


@pytest.mark.parametrize(("likeness", "cut"), [(0.24, True), (0.26, False)])
def test_the_threshold_of_likeness(likeness, cut):
    torch.manual_seed(0)
    a, b = torch.linalg.qr(torch.randn(256, 2, dtype=torch.float64))[0].T
    a, b = a - a.mean(), b - b.mean()
    b = b - a * (a @ b) / (a @ a)
    a, b = (100 * x / x.norm() for x in (a, b))
    mixed = likeness * a + (1 - likeness**2) ** 0.5 * b
    colours = torch.full((512,), 1 / 512)
    glances = (Glance(colours, x.reshape(1, 16, 16).expand(3, 16, 16)) for x in (a, mixed))
    assert is_cut(*glances) == cut


def board(cells: int, dark: float, light: float) -> torch.Tensor:
    """A chessboard of so many cells a side, (cells, cells)."""
    odd = torch.arange(cells)[:, None] + torch.arange(cells) & 1
    return torch.where(odd == 1, light, dark)


@pytest.mark.parametrize(("spread", "cut"), [(0.9, False), (1.1, True)])
def test_the_threshold_of_flatness(spread, cut):
    """Cells that are opposites are another scene, unless they hardly differ from their mean."""
    cells = board(16, -spread, spread).expand(3, 16, 16)
    colours = torch.full((512,), 1 / 512)
    assert is_cut(Glance(colours, cells), Glance(colours, -cells)) == cut


@pytest.mark.parametrize(("cells", "cut"), [(16, True), (32, False)])
def test_a_glance_sees_sixteen_cells_a_side_and_nothing_finer(cells, cut):
    image = board(cells, 0.0, 200.0).repeat_interleave(3, 0).repeat_interleave(3, 1)
    image = image.expand(1, 3, *image.shape)
    assert glance(image).cells.shape == (3, 16, 16)
    assert is_cut(glance(image), glance(200 - image)) == cut
