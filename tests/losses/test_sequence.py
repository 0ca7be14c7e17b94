"""RAFT's sequence loss: by hand, what counts, what it divides by, and its gradient."""

from __future__ import annotations

import pytest
import torch

from lcv.errors import ArgumentError, ShapeError
from lcv.losses.sequence import sequence_loss


def test_by_hand() -> None:
    flow = torch.tensor([[[[1.0, 2.0, 3.0]], [[0.0, -1.0, 4.0]]]])  # (1, 2, 1, 3)
    first, last = torch.zeros_like(flow), flow + 0.5
    valid = torch.tensor([[[[True, True, False]]]])
    # |0 − 1| + |0 − 2| + |0 − 0| + |0 + 1| = 4 and 4 · 0.5, both over all six numbers
    wanted = 0.8 * 4 / 6 + 2 / 6
    assert sequence_loss([first, last], flow, valid).item() == pytest.approx(wanted, rel=1e-6)
    wanted = 0.25 * 4 / 6 + 0.5 * 4 / 6 + 2 / 6
    loss = sequence_loss([first, first, last], flow, valid, gamma=0.5)
    assert loss.item() == pytest.approx(wanted, rel=1e-6)


def test_the_mean_is_over_all_pixels_not_over_the_valid_ones() -> None:
    flow, prediction = torch.zeros(2, 2, 4, 6), torch.ones(2, 2, 4, 6)
    half = torch.zeros(2, 1, 4, 6, dtype=torch.bool)
    half[..., :3] = True
    assert sequence_loss([prediction], flow, torch.ones_like(half)) == 1
    assert sequence_loss([prediction], flow, half) == 0.5
    assert sequence_loss([prediction], flow, torch.zeros_like(half)) == 0


def test_valid_may_be_a_number_and_counts_from_a_half_on() -> None:
    flow, prediction = torch.zeros(1, 2, 1, 4), torch.ones(1, 2, 1, 4)
    valid = torch.tensor([0.0, 0.49, 0.5, 1.0]).view(1, 1, 1, 4)
    assert sequence_loss([prediction], flow, valid) == 0.5


def test_a_flow_as_long_as_the_limit_does_not_count() -> None:
    flow = torch.zeros(1, 2, 1, 4)
    flow[0, :, 0, 1] = torch.tensor([240.0, 320.0])  # length 400
    flow[0, :, 0, 2] = torch.tensor([240.0, 319.9])
    valid = torch.ones(1, 1, 1, 4, dtype=torch.bool)
    assert sequence_loss([flow + 1], flow, valid).item() == pytest.approx(3 / 4, rel=1e-4)
    assert sequence_loss([flow + 1], flow, valid, max_flow=1e3).item() == pytest.approx(1, rel=1e-4)
    assert sequence_loss([flow + 1], flow, valid, max_flow=399).item() == pytest.approx(2 / 4)


@pytest.mark.parametrize("junk", [float("nan"), float("inf"), 1e30])
def test_where_it_is_not_known_the_truth_may_be_anything(junk: float) -> None:
    flow = torch.zeros(1, 2, 2, 3)
    flow[..., 0] = junk
    valid = torch.ones(1, 1, 2, 3, dtype=torch.bool)
    valid[..., 0] = False
    prediction = torch.ones(1, 2, 2, 3, requires_grad=True)
    loss = sequence_loss([prediction], flow, valid)
    loss.backward()
    assert loss.item() == pytest.approx(2 / 3)
    assert not prediction.grad[..., 0].any()
    assert (prediction.grad[..., 1:] == 1 / 12).all()


def test_a_weight_counts_pixels_less_and_a_weight_of_one_changes_no_bit() -> None:
    generator = torch.Generator().manual_seed(0)
    flow, prediction = (torch.randn(2, 2, 3, 4, generator=generator) for _ in range(2))
    valid = torch.rand(2, 1, 3, 4, generator=generator) < 0.7
    plain = sequence_loss([prediction], flow, valid)
    assert torch.equal(
        sequence_loss([prediction], flow, valid, weight=torch.ones(2, 1, 3, 4)), plain
    )
    weight = torch.rand(2, 1, 3, 4, generator=generator)
    wanted = (valid * weight * (prediction - flow).abs()).mean()
    torch.testing.assert_close(sequence_loss([prediction], flow, valid, weight=weight), wanted)
    none = sequence_loss([prediction], flow, valid, weight=torch.zeros(2, 1, 3, 4))
    assert none == 0


def test_gradients() -> None:
    generator = torch.Generator().manual_seed(0)
    flow = torch.randn(2, 2, 3, 4, generator=generator, dtype=torch.float64)
    valid = torch.rand(2, 1, 3, 4, generator=generator) < 0.7
    flows = torch.randn(3, 2, 2, 3, 4, generator=generator, dtype=torch.float64).unbind()
    for prediction in flows:
        prediction.requires_grad_()
    assert torch.autograd.gradcheck(lambda *p: sequence_loss(p, flow, valid), flows)


def test_refusals() -> None:
    flow, valid = torch.zeros(1, 2, 3, 4), torch.ones(1, 1, 3, 4)
    with pytest.raises(ArgumentError, match=r"flows is empty.*all_flows=True"):
        sequence_loss([], flow, valid)
    with pytest.raises(ShapeError, match=r"flow has h=3 but flows\[1\] has h=2"):
        sequence_loss([flow, flow[:, :, 1:]], flow, valid)
    with pytest.raises(ShapeError, match="valid has 3 dimensions"):
        sequence_loss([flow], flow, valid[:, 0])
