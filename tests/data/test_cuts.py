"""Scene cuts: every join of two videos, and nothing within one."""

from __future__ import annotations

import torch

from lcv.data.cuts import glance, is_cut
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
