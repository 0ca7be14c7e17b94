"""The quotients that the on-demand kernels compute in float32 are those of whole numbers."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from lcv.cost_volume.ondemand.triton_impl import MOST, _divided


@triton.jit
def _divide(numbers, by, quotients, rests, N: tl.constexpr):
    at = tl.arange(0, N)
    quotient, rest = _divided(tl.load(numbers + at), by)
    tl.store(quotients + at, quotient)
    tl.store(rests + at, rest)


def divided(device: str) -> None:
    """Random numbers up to the largest, and those about every kind of multiple."""
    for by in (1, 2, 3, 7, 10, 17, 19, 64, 135, 999, 2047, 2048, 4097, MOST - 1, MOST):
        multiples = by * torch.linspace(0, MOST // by, 300).long()
        numbers = torch.cat(
            (multiples - 1, multiples, multiples + 1, torch.randint(0, MOST, (124,)))
        )
        numbers = numbers.clamp(0, MOST).int().to(device)
        quotients, rests = torch.empty_like(numbers), torch.empty_like(numbers)
        _divide[(1,)](numbers, by, quotients, rests, N=len(numbers))
        assert torch.equal(quotients, numbers // by), by
        assert torch.equal(rests, numbers % by), by
