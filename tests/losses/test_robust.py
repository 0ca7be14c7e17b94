"""The robust penalty: hand-computed values, masks, and sums over several processes."""

from __future__ import annotations

import pytest
import torch

from lcv.errors import ShapeError
from lcv.losses.robust import abs_robust


def test_by_hand() -> None:
    diff = torch.tensor([[[[0.99, -31.99, 7.0]], [[0.0, 0.99, 7.0]]]], dtype=torch.float64)
    mask = torch.tensor([[[[True, True, False]]]])
    wanted = (1 + 32**0.4 + 0.01**0.4 + 1) / (2 * 2 + 1e-6)  # 32^0.4 = 4
    assert abs_robust(diff, mask).item() == pytest.approx(wanted, rel=1e-12)
    half = mask.double() / 2
    wanted = wanted * (4 + 1e-6) / 2 / (2 + 1e-6)
    assert abs_robust(diff, half).item() == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("channels", [1, 2, 3])
def test_no_difference_leaves_the_constant_of_each_channel(channels: int) -> None:
    loss = abs_robust(torch.zeros(2, channels, 4, 5), torch.ones(2, 1, 4, 5))
    assert loss.item() == pytest.approx(channels * 0.01**0.4 / 2, rel=1e-6)


def test_an_empty_mask_gives_zero_and_no_gradient() -> None:
    diff = torch.randn(1, 2, 3, 4, requires_grad=True)
    loss = abs_robust(diff, torch.zeros(1, 1, 3, 4, dtype=torch.bool))
    loss.backward()
    assert loss == 0
    assert not diff.grad.any()


def test_gradient_in_the_difference_and_none_in_the_mask() -> None:
    diff = torch.randn(2, 3, 2, 3, dtype=torch.float64, requires_grad=True)
    mask = torch.rand(2, 1, 2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda d: abs_robust(d, mask), diff)
    abs_robust(diff, mask).backward()
    assert mask.grad is None


def test_the_mean_over_processes_is_the_loss_of_the_whole_batch() -> None:
    generator = torch.Generator().manual_seed(0)
    diff = torch.randn(4, 2, 5, 6, generator=generator, dtype=torch.float64)
    mask = (
        torch.rand(4, 1, 5, 6, generator=generator)
        < torch.tensor([0.1, 0.2, 0.7, 1.0])[:, None, None, None]
    )
    count = mask.double().sum() / 2  # the mean over two processes
    parts = [
        abs_robust(diff[part], mask[part], reduce_count=lambda own: count)
        for part in (slice(0, 2), slice(2, 4))
    ]
    whole = abs_robust(diff, mask)
    torch.testing.assert_close(sum(parts) / 2, whole, rtol=1e-7, atol=0)  # 1e-6 counts once a part
    apart = [abs_robust(diff[part], mask[part]) for part in (slice(0, 2), slice(2, 4))]
    assert abs(sum(apart) / 2 - whole) > 1e-3


def test_a_mask_has_one_channel() -> None:
    with pytest.raises(ShapeError, match=r"abs_robust: mask .* has 2 where 1 belongs"):
        abs_robust(torch.zeros(1, 2, 3, 4), torch.ones(1, 2, 3, 4))
