"""Draws: pinned to known integers, independent of batch and device, and random enough."""

from __future__ import annotations

import math
from statistics import NormalDist

import pytest
import torch
from scipy.stats import chi2

from lcv.data.random import Draws, exp_exactly, mix, mix_integer, name_key
from lcv.errors import ArgumentError

GAMMA = 0x9E3779B97F4A7C15
PINNED_WORDS = [
    [-908798703653827565, -1150687714595957496],
    [5038707541244899787, -5344062241222207699],
]
ONCE_IN_A_MILLION = 1e-6
DRAWERS = {
    "words": lambda d: d.words("a", (3, 5)),
    "bits": lambda d: d.bits("a", (3, 5)),
    "uniform": lambda d: d.uniform("a", (3, 5), -0.3, 1.7),
    "normal": lambda d: d.normal("a", (3, 5), 0.2, 3.3),
    "log_normal": lambda d: d.log_normal("a", (3, 5), 0.8),
    "integers": lambda d: d.integers("a", (3, 5), -7, 1000),
    "happens": lambda d: d.happens("a", (3, 5), 0.3),
    "choice": lambda d: d.choice("a", (3, 5), (1, 2, 0.5)),
    "direction": lambda d: d.direction("a", (3, 5)),
}


def assert_even(counts: torch.Tensor, expected: torch.Tensor | float) -> None:
    """Pearson's χ² of these counts is one that a fair draw exceeds once in a million times."""
    statistic = ((counts - expected) ** 2 / expected).sum().item()
    assert statistic < chi2.ppf(1 - ONCE_IN_A_MILLION, counts.numel() - 1)


def test_mix_gives_the_published_outputs_of_splitmix64():
    # State 0 gives mix(G), mix(2G), mix(3G).
    known = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert [mix_integer((k + 1) * GAMMA) for k in range(3)] == known
    states = torch.tensor([1, 2, 3]) * (GAMMA - 2**64)
    assert [word & (2**64 - 1) for word in mix(states).tolist()] == known


def test_words_are_the_formula_in_the_docstring_and_stay_what_they_are():
    found = Draws(7, [0, 12345678901]).words("shift", (2,)).tolist()
    key = name_key("shift")
    for row, index in zip(found, [0, 12345678901], strict=True):
        base = mix_integer(mix_integer(7) + index * GAMMA)
        for e, word in enumerate(row):
            assert word & (2**64 - 1) == mix_integer(base + key + e * GAMMA)
    assert found == PINNED_WORDS


@pytest.mark.parametrize("draw", DRAWERS.values(), ids=DRAWERS)
def test_a_draw_is_the_same_at_any_batch_size_and_order(draw):
    together = draw(Draws(3, range(40, 60)))
    alone = torch.cat([draw(Draws(3, [i])) for i in range(40, 60)])
    backwards = draw(Draws(3, torch.arange(59, 39, -1))).flip(0)
    assert torch.equal(together, alone)
    assert torch.equal(together, backwards)


@pytest.mark.gpu
@pytest.mark.parametrize("draw", DRAWERS.values(), ids=DRAWERS)
def test_a_draw_is_bit_equal_on_cuda(draw):
    assert torch.equal(draw(Draws(3, range(999))), draw(Draws(3, range(999), "cuda")).cpu())


def test_a_longer_draw_begins_with_the_shorter_one():
    draws = Draws(1, range(4))
    assert torch.equal(draws.normal("a", (9, 2))[:, :5], draws.normal("a", (5, 2)))


def test_every_seed_index_and_name_has_a_stream_of_its_own():
    words = [Draws(seed, range(200)).words(name, (50,)) for seed in (0, 1, -1) for name in "ab"]
    assert torch.cat(words).unique().numel() == 6 * 200 * 50


def test_uniforms_fill_their_range_evenly():
    draw = Draws(5, range(256)).uniform("u", (512,), -2, 6)
    assert draw.min() >= -2
    assert draw.max() < 6
    assert_even(torch.histc(draw, 64, -2, 6), draw.numel() / 64)


def test_low_bits_of_the_words_are_even_too():
    words = Draws(5, range(256)).words("u", (512,))
    for shift in (0, 7, 14, 21, 28, 42, 49, 56):
        counts = torch.bincount(((words >> shift) & 127).flatten(), minlength=128)
        assert_even(counts.double(), words.numel() / 128)


@pytest.mark.parametrize("pair", ["elements", "indices", "names", "seeds"])
def test_neighbouring_draws_are_independent(pair):
    draws = Draws(11, range(1025))
    u = draws.uniform("u", (129,))
    first, second = {
        "elements": (u[:, :-1], u[:, 1:]),
        "indices": (u[:-1], u[1:]),
        "names": (u, draws.uniform("v", (129,))),
        "seeds": (u, Draws(12, range(1025)).uniform("u", (129,))),
    }[pair]
    cell = (first * 16).long() * 16 + (second * 16).long()
    assert_even(torch.bincount(cell.flatten(), minlength=256).double(), cell.numel() / 256)


def test_normals_are_normal():
    draw = Draws(2, range(512)).normal("n", (512,)).double().flatten()
    count = draw.numel()
    edges = torch.tensor([NormalDist().inv_cdf(k / 50) for k in range(1, 50)], dtype=torch.float64)
    assert_even(torch.bincount(torch.bucketize(draw, edges), minlength=50).double(), count / 50)
    # Five standard errors of the mean, the variance and the fourth moment.
    assert abs(draw.mean()) < 5 / math.sqrt(count)
    assert abs(draw.var() - 1) < 5 * math.sqrt(2 / count)
    assert abs((draw**4).mean() - 3) < 5 * math.sqrt(96 / count)
    scaled = Draws(2, range(512)).normal("n", (512,), 1.5, 2.0).double().flatten()
    assert torch.allclose(scaled, draw * 2 + 1.5, atol=1e-5)


def test_integers_and_choices_come_as_often_as_they_should():
    draws = Draws(9, range(300))
    k = draws.integers("k", (300,), -3, 4)
    assert_even(torch.bincount(k.flatten() + 3, minlength=7).double(), k.numel() / 7)
    weights = torch.tensor([1.0, 0.0, 2.0, 5.0], dtype=torch.float64)
    chosen = torch.bincount(draws.choice("c", (300,), weights.tolist()).flatten(), minlength=4)
    assert chosen[1] == 0
    kept = weights > 0
    assert_even(chosen[kept].double(), chosen.sum() * weights[kept] / weights.sum())
    often = draws.happens("h", (300,), 0.2).double().sum()
    both = torch.stack((often, 90000 - often))
    assert_even(both, torch.tensor([18000.0, 72000.0], dtype=torch.float64))
    assert not draws.happens("h", (300,), 0.0).any()
    assert draws.happens("h", (300,), 1.0).all()


def test_directions_are_unit_vectors_of_any_angle():
    x, y = Draws(4, range(400)).direction("d", (100,)).unbind(-1)
    assert torch.allclose(x * x + y * y, torch.ones_like(x), atol=1e-9)
    angle = torch.atan2(y, x).float()
    assert_even(torch.histc(angle, 32, -math.pi, math.pi), angle.numel() / 32)


def test_exp_exactly_is_near_exp():
    x = torch.linspace(-3, 3, 601, dtype=torch.float64)
    found = exp_exactly(x)
    assert torch.equal(exp_exactly(torch.zeros(2)), torch.ones(2))
    assert ((found / x.exp()).log().abs() <= 1.01 * (x**3).abs() / 12288 + 1e-14).all()
    assert (found.diff() > 0).all()


def test_refusals_name_the_draw():
    draws = Draws(0, [1])
    with pytest.raises(ArgumentError, match=r"indices have shape \(2, 1\), wanted \(n,\)"):
        Draws(0, torch.zeros(2, 1))
    with pytest.raises(ArgumentError, match="'k' asks for 3 ≤ k < 3"):
        draws.integers("k", (), 3, 3)
    with pytest.raises(ArgumentError, match="'c' has weights"):
        draws.choice("c", (), (0.0, 0.0))


def test_draws_of_some_samples_are_theirs():
    draws = Draws(5, range(40, 72))
    at = draws.where_it_happens("rare", 0.25)
    assert 0 < len(at) < len(draws)
    assert torch.equal(at, draws.happens("rare", (1, 1), 0.25).flatten().nonzero()[:, 0])
    assert torch.equal(draws.of(at).normal("gain", (3,)), draws.normal("gain", (3,))[at])


def test_draws_are_made_on_the_device_that_was_asked_for():
    draws = Draws(0, [1, 2], "meta")
    assert (draws.device.type, draws.indices.device.type) == ("meta", "meta")
    assert draws.given.device.type == "cpu"
