"""Plans: all networks at all points, or an error before anything is measured."""

from __future__ import annotations

import pytest

from lcv.bench import Point, plan_growth, plan_table
from lcv.errors import ArgumentError


def test_all_networks_at_all_points():
    sizes = [(72, 72), (128, 96)]
    at = [Point(*size) for size in sizes]
    plan = plan_table(["raft-small", "ddflow"], at, peers=[])
    found = {(c.model, c.point.height, c.point.width) for job in plan.jobs for c in job}
    assert found == {(name, *size) for name in ("raft-small", "ddflow") for size in sizes}
    assert (plan.base, plan.device) == (None, "cpu")


def test_a_network_that_does_not_iterate_has_no_line_of_iterations():
    plan = plan_growth(["ddflow"], [(72, 72)], [1, 2], [1, 12], peers=[])
    assert [job[0].point for job in plan.jobs] == [Point(72, 72, 1, None), Point(72, 72, 2, None)]
    assert plan.base == Point(72, 72, 1, 12)


def test_an_unknown_network_or_none_is_refused_before_anything_is_measured():
    with pytest.raises(ArgumentError, match="unknown model 'rft'"):
        plan_table(["raft-small", "rft"], [Point(64, 72)])
    with pytest.raises(ArgumentError, match="bench: no size is given, wanted at least one"):
        plan_table(["raft-small"], [])
    with pytest.raises(ArgumentError, match="bench: no model is given, wanted at least one"):
        plan_table([], [Point(64, 72)])
