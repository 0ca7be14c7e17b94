"""DDFlow's robust penalty, averaged over a mask; on one process or over several."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from lcv.cost_volume.expect import expect

ReduceCount = Callable[[Tensor], Tensor]


def abs_robust(diff: Tensor, mask: Tensor, *, reduce_count: ReduceCount | None = None) -> Tensor:
    """The mean of a penalty that grows ever more slowly with the difference.

        Σ (|diff| + 0.01)^0.4 · mask / (2 Σ mask + 1e-6)

    diff: (b, c, h, w); mask: (b, 1, h, w), bool or weights, counted once and applied to every
    channel → scalar. The factor 2 is the original's and stands for no channel count: images have
    3 channels here, census distances 1 and flows 2.

    reduce_count: what to do with Σ mask before dividing. On several processes each sees another
    part of the batch; let it return the mean of Σ mask over them, and the mean of the processes'
    losses (what DistributedDataParallel makes of the gradients) is the loss of the whole batch.

    Facts: an empty mask gives 0; no gradient flows into the mask; diff = 0 everywhere gives
    c · 0.01^0.4 / 2, about 0.0792 a channel.
    """
    expect(
        "abs_robust", diff, "diff: b c h w", mask, "mask: b 1 h w", hint="The mask has one channel."
    )
    mask = mask.detach().to(diff.dtype)
    count = mask.sum()
    if reduce_count is not None:
        count = reduce_count(count)
    return ((diff.abs() + 0.01).pow(0.4) * mask).sum() / (2 * count + 1e-6)
