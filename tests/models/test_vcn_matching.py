"""The soft winner-take-all of VCN by recorded values, by loops, and by laws."""

from __future__ import annotations

import math

import pytest
import torch

from lcv.models.vcn.matching import (
    Hypotheses,
    MatchingLevel,
    soft_winner_take_all,
    unit_length,
)


def slowly(scores: list[list[float]]) -> tuple[float, float, float, float]:
    """(dx, dy, local entropy, global entropy) of one pixel, in plain Python."""
    u, v = len(scores), len(scores[0])
    cells = [(i, j) for i in range(u) for j in range(v)]
    best = max(cells, key=lambda cell: scores[cell[0]][cell[1]])
    near = [c for c in cells if abs(c[0] - best[0]) <= 3 and abs(c[1] - best[1]) <= 3]

    def softmax(among):
        weights = {c: math.exp(scores[c[0]][c[1]]) for c in among}
        return {c: weight / sum(weights.values()) for c, weight in weights.items()}

    p, q = softmax(near), softmax(cells)
    return (
        sum(p[c] * (c[0] - u // 2) for c in near),
        sum(p[c] * (c[1] - v // 2) for c in near),
        -sum(x * math.log(x) for x in p.values()) / math.log(49),
        -sum(x * math.log(x) for x in q.values()) / math.log(u * v),
    )


def test_spike_gives_its_own_displacement_and_no_entropy():
    scores = torch.zeros(1, 9, 9, 1, 1)
    scores[0, 6, 3] = 50
    flow, entropies = soft_winner_take_all(scores)
    torch.testing.assert_close(flow.flatten(), torch.tensor([2.0, -1.0]))
    torch.testing.assert_close(entropies.flatten(), torch.zeros(2), atol=1e-6, rtol=0)


def test_equal_scores_go_to_the_first_and_its_clipped_neighbourhood():
    flow, entropies = soft_winner_take_all(torch.zeros(1, 9, 9, 1, 1, dtype=torch.float64))
    torch.testing.assert_close(flow.flatten().tolist(), [-2.5, -2.5])
    # 4×4 of the 7×7 cells lie inside the window: log 16 / log 49.
    torch.testing.assert_close(entropies.flatten().tolist(), [0.7124143742, 1.0], rtol=1e-9, atol=0)


def test_agrees_with_loops_on_an_oblong_window_and_map():
    torch.manual_seed(0)
    scores = 3 * torch.randn(2, 9, 5, 2, 3, dtype=torch.float64)
    flow, entropies = soft_winner_take_all(scores)
    for n in range(2):
        for y in range(2):
            for x in range(3):
                found = [*flow[n, :, y, x].tolist(), *entropies[n, :, y, x].tolist()]
                assert found == pytest.approx(slowly(scores[n, :, :, y, x].tolist()), rel=1e-9)


def test_a_rival_counts_within_three_cells_and_not_beyond():
    for distance, expected in ((3, -4 + 3 / 2), (4, -4)):
        scores = torch.full((1, 9, 5, 1, 1), -1e4)
        scores[0, 0, 2] = scores[0, distance, 2] = 0.0
        flow, _ = soft_winner_take_all(scores)
        assert flow.flatten().tolist() == [expected, 0]


def test_flow_has_the_gradient_of_the_truncated_expectation():
    torch.manual_seed(0)
    scores = torch.randn(2, 9, 5, 1, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda s: soft_winner_take_all(s)[0], scores, fast_mode=True)
    assert not soft_winner_take_all(scores)[1].requires_grad


def test_half_precision_scores_give_single_precision_flow():
    flow, entropies = soft_winner_take_all(torch.randn(1, 9, 9, 2, 2).bfloat16())
    assert flow.dtype == entropies.dtype == torch.float32


def test_unit_length_is_per_pixel_and_keeps_zero():
    f = torch.zeros(1, 2, 1, 2)
    f[0, :, 0, 0] = torch.tensor([3.0, 4.0])
    torch.testing.assert_close(unit_length(f)[0, :, 0].T, torch.tensor([[0.6, 0.8], [0.0, 0.0]]))


def test_inherited_hypotheses_double_and_stop_the_gradient():
    flows = torch.full((1, 3, 2, 2, 3), 1.5, requires_grad=True)
    entropies = torch.full((1, 3, 2, 2, 3), 0.25)
    finer = Hypotheses(flows, entropies).resized((4, 6))
    torch.testing.assert_close(finer.flows, torch.full((1, 3, 2, 4, 6), 3.0))
    torch.testing.assert_close(finer.entropies, torch.full((1, 3, 2, 4, 6), 0.25))
    assert not finer.flows.requires_grad


def test_fusion_weighs_hypotheses_but_learns_nothing_through_what_it_saw_of_them():
    """Weights that sum to 1 and ignore the start's gradient make flow = start + …, slope 1."""
    torch.manual_seed(0)
    level = MatchingLevel(8, 4, 0, (4, 3), full=False, head=False).double().eval()
    g1, g2, context = torch.randn(3, 1, 8, 3, 5, dtype=torch.float64)
    start = torch.randn(1, 2, 3, 5, dtype=torch.float64, requires_grad=True)
    result = level(g1, g2, context, start)
    (slope,) = torch.autograd.grad(result.flow.sum(), start)
    torch.testing.assert_close(slope, torch.ones_like(slope))
    reached = (result.flow - start).abs().amax((0, 2, 3))
    assert (reached <= torch.tensor([4, 3])).all()


def test_inherited_hypotheses_compete_with_the_level_own():
    torch.manual_seed(0)
    level = MatchingLevel(8, 4, 6, (4, 4), full=True, head=False).double().eval()
    g1, g2, context = torch.randn(3, 1, 8, 4, 6, dtype=torch.float64)
    inherited = Hypotheses(
        torch.full((1, 6, 2, 4, 6), 1e6, dtype=torch.float64),
        torch.rand(1, 6, 2, 4, 6, dtype=torch.float64),
    )
    for p in level.fuse[-1].parameters():
        p.data.zero_()
    result = level(g1, g2, context, None, inherited)
    # With all weights equal the flow is the mean of 4 small hypotheses and 6 of a million.
    torch.testing.assert_close(
        result.flow, torch.full_like(result.flow, 0.6e6), rtol=0, atol=0.4 * 4
    )
    assert torch.equal(result.hypotheses.flows[:, 4:], inherited.flows)
    assert torch.equal(result.hypotheses.entropies[:, 4:], inherited.entropies)
