"""Truth with holes: where vectors go, who wins, what is dropped."""

from __future__ import annotations

import pytest
import torch

from lcv.data.augment import reference
from lcv.data.augment.sparse import place_sparse
from lcv.data.augment.spatial import Axis, Placement


def _placement(
    size: tuple[int, int],
    scale: tuple[float, float],
    flip: tuple[bool, bool] = (False, False),
    offset: tuple[int, int] = (0, 0),
    is_resized: bool = True,
) -> Placement:
    axes = [
        Axis(
            torch.tensor([s], dtype=torch.float64),
            torch.tensor([n]),
            torch.tensor([round(n * s)]),
            torch.tensor([f]),
            torch.tensor([o]),
        )
        for n, s, f, o in zip(size, scale, flip, offset, strict=True)
    ]
    return Placement(*axes, torch.tensor([is_resized]))


def test_vectors_move_grow_and_leave_holes() -> None:
    flow = torch.stack((torch.arange(1.0, 7), -torch.arange(1.0, 7))).view(1, 2, 2, 3)
    known = torch.ones(1, 1, 2, 3, dtype=torch.bool)
    placed, valid = place_sparse(flow, known, _placement((2, 3), (2.0, 3.0)), (4, 9))
    # Row 0 and column 0 are dropped; row 1 → 2, columns 1, 2 → 3, 6.
    assert valid[0, 0].nonzero().tolist() == [[2, 3], [2, 6]]
    assert placed[0, :, 2, 3].tolist() == [15.0, -10.0]
    assert placed[0, :, 2, 6].tolist() == [18.0, -12.0]
    assert (placed[~valid.expand_as(placed)] == 0).all()


def test_a_pair_that_is_not_resized_keeps_row_and_column_0() -> None:
    flow = torch.arange(12.0).view(1, 2, 2, 3)
    known = torch.ones(1, 1, 2, 3, dtype=torch.bool)
    still = _placement((2, 3), (1.0, 1.0), is_resized=False)
    placed, valid = place_sparse(flow, known, still, (2, 3))
    assert valid.all()
    assert torch.equal(placed, flow)
    _, valid = place_sparse(flow, known, _placement((2, 3), (1.0, 1.0)), (2, 3))
    assert valid[0, 0].tolist() == [[False] * 3, [False, True, True]]


@pytest.mark.parametrize("flip", [(False, False), (True, True)])
def test_where_vectors_meet_the_last_known_one_wins(flip: tuple[bool, bool]) -> None:
    """At scale ½, rows 3 and 4 both go to row 2 (halves to even), and columns likewise."""
    flow = torch.arange(2 * 36.0).view(1, 2, 6, 6)
    known = torch.ones(1, 1, 6, 6, dtype=torch.bool)
    at = (0, 0) if flip[0] else (2, 2)
    sign = -1 if flip[0] else 1
    placed, _ = place_sparse(flow, known, _placement((6, 6), (0.5, 0.5), flip), (3, 3))
    assert placed[0, :, *at].tolist() == [sign * 0.5 * float(v) for v in flow[0, :, 5, 5]]
    known[0, 0, 5] = False
    known[0, 0, 4, 4:] = False
    placed, _ = place_sparse(flow, known, _placement((6, 6), (0.5, 0.5), flip), (3, 3))
    assert placed[0, :, *at].tolist() == [sign * 0.5 * float(v) for v in flow[0, :, 4, 3]]


@pytest.mark.parametrize("scale", [0.53, 0.75, 1.0, 1.38])
def test_equals_the_slow_reference_at_any_flip_and_offset(scale: float) -> None:
    size, crop = (15, 22), (7, 9)
    flow = torch.randn(1, 2, *size, dtype=torch.float64)
    known = torch.rand(1, 1, *size) > 0.4
    truth, truth_known = reference.scatter(flow[0], known[0], scale, scale)
    for flip in ((False, False), (True, False), (False, True)):
        for offset in ((0, 0), (1, 2)):
            placement = _placement(size, (scale, scale), flip, offset)
            placed, valid = place_sparse(flow, known, placement, crop)
            axes = [axis for axis, flips in enumerate(flip, start=1) if flips]
            window = (slice(None), *(slice(o, o + c) for o, c in zip(offset, crop, strict=True)))
            wanted = truth.flip(axes)[window] * scale
            signs = torch.tensor([-1.0 if f else 1.0 for f in reversed(flip)])
            assert torch.equal(valid[0], truth_known.flip(axes)[window])
            torch.testing.assert_close(placed[0], wanted * signs[:, None, None].double())
