"""VCN's loss: every level's flow against the truth, and whether each level could have found it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from lcv.cost_volume.expect import expect
from lcv.cost_volume.resize import resize, resize_flow
from lcv.cost_volume.warp import in_view, warp
from lcv.errors import ArgumentError
from lcv.losses.robust import ReduceCount

LEVEL_WEIGHTS = (0.25, 0.25, 0.25, 0.5, 1.0)  # of levels 6, 5, 4, 3, 2; VCN-small has no last
OCCLUDED = 0.3  # distance of colours in 0..1 above which a pixel counts as occluded
COARSEST = 64  # pixels of the image to one of level 6


def multiscale_loss(
    flows: Sequence[Tensor],
    flow: Tensor,
    valid: Tensor,
    *,
    md: Sequence[int],
    fac: float = 1.0,
    starts: Sequence[Tensor | None] = (),
    out_of_range: Sequence[Tensor] = (),
    images: tuple[Tensor, Tensor] | None = None,
    maxdisp: float | None = None,
    reduce_count: ReduceCount | None = None,
) -> Tensor:
    """VCN's loss; call it as `multiscale_loss(output.flows, flow, valid, **output.extra)`.

        Σ_k w_k · mean |flows_k − flow|₂  over `counted`,   w = 1/4, 1/4, 1/4, 1/2, 1 coarse first
      + Σ_k mean (o(1−p) + (1−o)p) · BCE(logit_k, o)  over `known`,   p = mean o

        known   = valid, and the truth is finite
        counted = known, |flow_x| < maxdisp and |flow_y| < maxdisp // fac
        o       = a component of |flow − start_k| exceeds what level k can reach, or occluded:
                  |warp(image2, flow) − image1|₂ > 0.3

    flows: (b, 2, h, w) each, full size, coarse first; flow: the truth, (b, 2, h, w); valid:
    (b, 1, h, w) bool. starts, out_of_range: by level, (b, 2, h_k, w_k) in the level's pixels
    (None on the coarsest, which starts from zero) and (b, 1, h_k, w_k). images: the pair as the
    network sees it, less its mean, (b, 3, h, w). md, fac: the network's search range; a level
    reaches md_k of its pixels, in both directions, whatever fac. maxdisp: by default 64 · md[0],
    as in the authors' settings. reduce_count: as in `abs_robust`, for batches over processes.

    Without heads (`out_of_range` empty) the second sum is absent.

    Facts: with no pixel known the loss is 0 and so is its gradient; the truth may be NaN where it
    is not known; nothing is read back to the host.
    **Departure:** the authors' second sum runs over pixels of unknown flow as well, whose o means
    nothing. Where all pixels are known the two agree.
    """
    if not flows:
        raise ArgumentError(
            "multiscale_loss: flows is empty; in evaluation, call the network with all_flows=True"
        )
    function, hint = "multiscale_loss", "All are taken at the size of the images."
    _, h, w = expect(function, flow, "flow: b 2 h w", valid, "valid: b 1 h w", hint=hint)
    for i, predicted in enumerate(flows):
        expect(function, predicted, f"flows[{i}]: b 2 h w", flow, "flow: b 2 h w", hint=hint)
    if out_of_range and (images is None or len(starts) != len(out_of_range)):
        raise ArgumentError(
            f"multiscale_loss: out_of_range has {len(out_of_range)} levels, so as many starts and "
            f"the images are wanted too. Pass **output.extra of a call of the network."
        )
    if len(flows) != len(md):
        raise ArgumentError(
            f"multiscale_loss: {len(flows)} flows for {len(md)} search ranges in md, wanted one "
            f"flow a level. Pass **output.extra of the same call of the network."
        )
    if maxdisp is None:
        maxdisp = COARSEST * md[0]
    known = (valid >= 0.5) & flow.isfinite().all(1, keepdim=True)
    truth = torch.where(known, flow, 0)
    x, y = truth.abs().split(1, dim=1)
    counted = known & (x < maxdisp) & (y < maxdisp // fac)

    total = truth.new_zeros(())
    for weight, predicted in zip(LEVEL_WEIGHTS, flows, strict=False):
        error = torch.linalg.vector_norm(predicted - truth, dim=1, keepdim=True)
        total = total + weight * masked_mean(error, counted, reduce_count)

    if out_of_range and images is not None:
        seen = warp(images[1], truth) * in_view(truth, strict=True)
        occluded = torch.linalg.vector_norm(seen - images[0], dim=1, keepdim=True) > OCCLUDED
    for start, logits, reach in zip(starts, out_of_range, md, strict=False):
        left = truth
        if start is not None:
            left = truth - resize_flow(start, (h, w), align_corners=False)
        x, y = left.abs().split(1, dim=1)
        beyond = (x > reach * w / logits.shape[-1]) | (y > reach * h / logits.shape[-2])
        logits = resize(logits.to(truth.dtype), (h, w), align_corners=False)
        total = total + balanced_cross_entropy(logits, beyond | occluded, known, reduce_count)
    return total


def balanced_cross_entropy(
    logits: Tensor, target: Tensor, mask: Tensor, reduce_count: ReduceCount | None = None
) -> Tensor:
    """Binary cross-entropy in which the rarer class weighs more, averaged over the mask.

        mean (o(1−p) + (1−o)p) · BCE(logit, o),   p = mean o

    logits: (b, 1, h, w); target, mask: the same, bool → scalar. If all targets agree, it is 0.
    """
    o = target.to(logits.dtype)
    p = masked_mean(o, mask, reduce_count, over_processes=True)
    weight = o * (1 - p) + (1 - o) * p
    terms = F.binary_cross_entropy_with_logits(logits, o, reduction="none")
    return masked_mean(weight * terms, mask, reduce_count)


def masked_mean(
    values: Tensor,
    mask: Tensor,
    reduce_count: ReduceCount | None = None,
    *,
    over_processes: bool = False,
) -> Tensor:
    """Σ values·mask / Σ mask, and 0 where the mask is empty. (b, 1, h, w) both → scalar

    `reduce_count` averages Σ mask over the processes, so that the mean of their results is that
    of the whole batch; `over_processes` averages the numerator as well: the same mean on each.
    """
    total = (values * mask).sum()
    count = mask.sum().to(values.dtype)
    if reduce_count is not None:
        count = reduce_count(count)
        if over_processes:
            total = reduce_count(total)
    return total / torch.where(count > 0, count, 1)
