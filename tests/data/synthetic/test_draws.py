"""Draws by a plan: the same numbers as draws one by one."""

from __future__ import annotations

import torch

from lcv.data.random import Draws
from lcv.data.synthetic.draws import LARGEST, Plan, SceneDraws, plan_of
from lcv.data.synthetic.recipe import QUICK


def some(draws: Draws) -> list[torch.Tensor]:
    """One of every kind of draw, one name in two sizes, one that is large and one that is empty."""
    return [
        draws.uniform("a", (3, 2), -1, 4),
        draws.uniform("a", (2,)),
        draws.normal("b", (4,), std=2.0),
        draws.log_normal("c", (), 0.5),
        draws.integers("d", (5,), 2, 9),
        draws.happens("e", (3,), 0.3),
        draws.choice("f", (6,), (1.0, 2.0, 3.0)),
        draws.direction("g", (2, 2)),
        draws.normal("h", (LARGEST + 1,)),
        draws.normal("i", (0,)),
        draws.words("j", (2,)),
    ]


def test_planned_draws_are_the_same_to_the_bit():
    plan, expected = Plan(), some(Draws(7, [3, 1, 2**40]))
    for _ in range(3):  # the first notes, the second uses, the third reuses
        found = some(SceneDraws(7, [3, 1, 2**40], None, plan))
        for one, other in zip(found, expected, strict=True):
            assert torch.equal(one, other)
    assert plan.counts["a"] == 6
    assert "h" not in plan.counts
    assert "i" not in plan.counts


def test_a_plan_grows_when_more_is_asked_for():
    plan = Plan()
    for count in (2, 5, 3):
        found = SceneDraws(7, [3], None, plan).uniform("a", (count,))
        assert torch.equal(found, Draws(7, [3]).uniform("a", (count,)))
        SceneDraws(7, [4], None, plan).uniform(f"another {count}", (2,))


def test_every_purpose_has_one_plan():
    assert plan_of("scene", QUICK, 2) is plan_of("scene", QUICK, 2)
    assert plan_of("scene", QUICK, 2) is not plan_of("effects", QUICK, 2)
    assert plan_of("scene", QUICK, 2) is not plan_of("scene", QUICK, 3)
