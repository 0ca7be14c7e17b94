"""VCN's loss against loops over pixels in plain Python, and its laws."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from lcv import LcvError
from lcv.losses.multiscale import multiscale_loss

H, W = 6, 8
SIZES = ((2, 2), (3, 4))  # of two levels; neither divides the image as a network's would


def problem(seed: int = 0) -> dict:
    """A batch of 2 in float64 with two levels, sparse truth and logits; keywords of the loss."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int, scale: float = 1.0) -> Tensor:
        return scale * torch.randn(*shape, dtype=torch.float64, generator=generator)

    base = 0.1 * normal(2, 3, H, W)
    return {
        "flows": [normal(2, 2, H, W, scale=2), normal(2, 2, H, W)],
        "flow": normal(2, 2, H, W, scale=3),
        "valid": torch.rand(2, 1, H, W, generator=generator) < 0.7,
        "md": (1, 1),
        "fac": 2.0,
        "starts": (None, normal(2, 2, *SIZES[1])),
        "out_of_range": (normal(2, 1, *SIZES[0]), normal(2, 1, *SIZES[1])),
        "images": (base + 0.05 * normal(2, 3, H, W), base + 0.05 * normal(2, 3, H, W)),
        "maxdisp": 5,
    }


def bilinear(plane: list[list[float]], y: float, x: float) -> float:
    """The value at a point, whose neighbours are those nearest inside."""
    h, w = len(plane), len(plane[0])
    y0, x0 = math.floor(y), math.floor(x)
    total = 0.0
    for j, wy in ((y0, y0 + 1 - y), (y0 + 1, y - y0)):
        for i, wx in ((x0, x0 + 1 - x), (x0 + 1, x - x0)):
            total += wy * wx * plane[min(max(j, 0), h - 1)][min(max(i, 0), w - 1)]
    return total


def enlarged(plane: list[list[float]], y: int, x: int) -> float:
    """Pixel (y, x) of the plane resized to (H, W), corners not aligned."""
    h, w = len(plane), len(plane[0])
    at_y, at_x = max((y + 0.5) * h / H - 0.5, 0), max((x + 0.5) * w / W - 0.5, 0)
    return bilinear(plane, at_y, at_x)


def slowly(flows, flow, valid, md, fac, starts, out_of_range, images, maxdisp) -> float:
    """The loss with a loop for every sum."""
    pixels = [(n, y, x) for n in range(2) for y in range(H) for x in range(W)]
    known = [(n, y, x) for n, y, x in pixels if valid[n, 0, y, x]]
    u, v = flow[:, 0].tolist(), flow[:, 1].tolist()
    counted = [
        (n, y, x)
        for n, y, x in known
        if abs(u[n][y][x]) < maxdisp and abs(v[n][y][x]) < maxdisp // fac
    ]
    assert 0 < len(counted) < len(known) < len(pixels)
    total = 0.0
    for weight, f in zip((0.25, 0.25, 0.25, 0.5, 1.0), flows, strict=False):
        errors = [
            math.hypot(float(f[n, 0, y, x]) - u[n][y][x], float(f[n, 1, y, x]) - v[n][y][x])
            for n, y, x in counted
        ]
        total += weight * sum(errors) / len(errors)

    def occluded(n, y, x):
        to_x, to_y = x + u[n][y][x], y + v[n][y][x]
        inside = 0 < to_x < W - 1 and 0 < to_y < H - 1
        squares = 0.0
        for c in range(3):
            seen = bilinear(images[1][n, c].tolist(), to_y, to_x) if inside else 0.0
            squares += (seen - float(images[0][n, c, y, x])) ** 2
        return math.sqrt(squares) > 0.3

    for reach, start, logits in zip(md, starts, out_of_range, strict=True):
        h, w = logits.shape[-2:]
        targets, terms = [], []
        for n, y, x in known:
            left_x, left_y = u[n][y][x], v[n][y][x]
            if start is not None:
                left_x -= enlarged(start[n, 0].tolist(), y, x) * W / w
                left_y -= enlarged(start[n, 1].tolist(), y, x) * H / h
            far = abs(left_x) > reach * W / w or abs(left_y) > reach * H / h
            o = 1.0 if far or occluded(n, y, x) else 0.0
            p = 1 / (1 + math.exp(-enlarged(logits[n, 0].tolist(), y, x)))
            targets.append(o)
            terms.append(-o * math.log(p) - (1 - o) * math.log(1 - p))
        share = sum(targets) / len(targets)
        assert 0 < share < 1
        weighted = [
            (o * (1 - share) + (1 - o) * share) * t for o, t in zip(targets, terms, strict=True)
        ]
        total += sum(weighted) / len(weighted)
    return total


def test_agrees_with_loops():
    given = problem()
    assert float(multiscale_loss(**given)) == pytest.approx(slowly(**given), rel=1e-9)


def test_at_the_border_nothing_is_seen():
    """VCN's mask: a bright pixel that stays on the border counts as occluded, one inside does not."""
    bright = torch.ones(1, 3, H, W, dtype=torch.float64)
    still = torch.zeros(1, 2, H, W, dtype=torch.float64)

    def loss(logit: float, at: tuple[int, int]) -> float:
        logits = torch.zeros(1, 1, H, W, dtype=torch.float64)
        logits[0, 0, at[0], at[1]] = logit
        return float(
            multiscale_loss(
                [still],
                still,
                torch.ones(1, 1, H, W, dtype=torch.bool),
                md=(1,),
                starts=(None,),
                out_of_range=(logits,),
                images=(bright, bright),
            )
        )

    for y, x in ((0, 3), (H - 1, 3), (2, 0), (2, W - 1)):
        assert loss(1.0, (y, x)) < loss(0.0, (y, x))
    for y, x in ((1, 3), (H - 2, 3), (2, 1), (2, W - 2)):
        assert loss(1.0, (y, x)) > loss(0.0, (y, x))


def test_weights_are_by_level_from_the_coarsest():
    """Five levels for VCN, four for VCN-small, whose finest level keeps its one half."""
    truth = torch.zeros(1, 2, H, W, dtype=torch.float64)
    valid = torch.ones(1, 1, H, W, dtype=torch.bool)
    for n, expected in ((5, [0.25, 0.25, 0.25, 0.5, 1.0]), (4, [0.25, 0.25, 0.25, 0.5])):
        for k in range(n):
            flows = [truth.clone() for _ in range(n)]
            flows[k][:, 0] = 3
            flows[k][:, 1] = 4
            loss = multiscale_loss(flows, truth, valid, md=(4,) * n)
            assert float(loss) == pytest.approx(5 * expected[k])


def test_nothing_known_gives_zero_and_zero_gradients():
    given = problem()
    given["valid"] = torch.zeros_like(given["valid"])
    given["flow"] = torch.full_like(given["flow"], torch.nan)
    leaves = [x.requires_grad_() for x in (*given["flows"], *given["out_of_range"])]
    loss = multiscale_loss(**given)
    assert loss == 0
    for gradient in torch.autograd.grad(loss, leaves):
        assert torch.equal(gradient, torch.zeros_like(gradient))


def test_truth_may_be_anything_where_it_is_not_known():
    given = problem()
    leaves = [x.requires_grad_() for x in (*given["flows"], *given["out_of_range"])]
    loss = multiscale_loss(**given)
    gradients = torch.autograd.grad(loss, leaves)
    unknown = ~given["valid"].expand(-1, 2, -1, -1)
    for junk in (torch.nan, 1e9):
        given["flow"] = given["flow"].masked_fill(unknown, junk)
        again = multiscale_loss(**given)
        assert torch.equal(again, loss)
        for new, old in zip(torch.autograd.grad(again, leaves), gradients, strict=True):
            assert torch.equal(new, old)


def test_a_perfect_flow_has_a_finite_gradient():
    given = problem()
    flows = [given["flow"].clone().requires_grad_() for _ in range(2)]
    loss = multiscale_loss(flows, given["flow"], given["valid"], md=(1, 1))
    assert loss == 0
    assert all(g.isfinite().all() for g in torch.autograd.grad(loss, flows))


def test_gradients_are_those_of_the_formula():
    given = problem()
    flows, logits = given.pop("flows"), given.pop("out_of_range")
    leaves = [x.requires_grad_() for x in (*flows, *logits)]

    def loss(a, b, c, d):
        return multiscale_loss((a, b), out_of_range=(c, d), **given)

    assert torch.autograd.gradcheck(loss, leaves, fast_mode=True)


def test_largest_displacement_follows_the_search_range():
    """By default 64 · md[0] pixels count, as 256 for md 4 and 512 for md 8."""
    flow = torch.zeros(1, 2, H, W)
    flow[:, 0] = 300
    valid = torch.ones(1, 1, H, W, dtype=torch.bool)
    found = [multiscale_loss([0 * flow], flow, valid, md=(m,)) for m in (4, 8)]
    assert [float(x) for x in found] == pytest.approx([0, 75])


def test_mean_over_processes_is_the_loss_of_the_whole_batch():
    given = problem()
    whole = multiscale_loss(**given)

    def part(n: int) -> dict:
        def cut(x):
            if isinstance(x, Tensor):
                return x[n : n + 1]
            if isinstance(x, tuple | list) and any(isinstance(e, Tensor) for e in x):
                return tuple(None if e is None else cut(e) for e in x)
            return x

        return {name: cut(x) for name, x in given.items()}

    # Each process first says what it counted; then all are told the means.
    told: list[list[Tensor]] = [[], []]
    for n in range(2):
        multiscale_loss(**part(n), reduce_count=lambda x, n=n: told[n].append(x) or x)
    losses = []
    for n in range(2):
        means = iter([(a + b) / 2 for a, b in zip(*told, strict=True)])
        losses.append(multiscale_loss(**part(n), reduce_count=lambda _, m=means: next(m)))
    torch.testing.assert_close((losses[0] + losses[1]) / 2, whole)


def test_reads_nothing_back_to_the_host():
    """Tensors without data, whose values nobody can ask for, pass through."""

    def bare(x):
        if isinstance(x, Tensor):
            return x.to("meta")
        return tuple(map(bare, x)) if isinstance(x, tuple | list) else x

    assert multiscale_loss(**{name: bare(x) for name, x in problem().items()}).shape == ()


def test_refusals():
    given = problem()
    with pytest.raises(LcvError, match=r"flows is empty.*all_flows=True"):
        multiscale_loss([], given["flow"], given["valid"], md=(1, 1))
    with pytest.raises(LcvError, match=r"flows\[1\] has h=3.*size of the images"):
        multiscale_loss(
            [given["flows"][0], given["flows"][1][:, :, :3]], given["flow"], given["valid"], md=(1,)
        )
    with pytest.raises(LcvError, match=r"valid .* has 2 where 1 belongs"):
        multiscale_loss(given["flows"], given["flow"], given["flow"], md=(1, 1))
    for missing in ("images", "starts"):
        with pytest.raises(LcvError, match=r"as many starts and the images are wanted"):
            multiscale_loss(**{k: x for k, x in given.items() if k != missing})
    with pytest.raises(LcvError, match=r"2 flows for 1 search ranges in md, wanted one flow a lev"):
        multiscale_loss(given["flows"], given["flow"], given["valid"], md=(1,))
