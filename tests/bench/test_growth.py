"""Growth: one axis at a time, every point once, and only the best settings."""

from __future__ import annotations

from dataclasses import asdict, replace

from lcv.bench.cells import Point, offer_of
from lcv.bench.growth import BASE, base_of, growth_jobs, points


def test_every_point_differs_from_the_base_in_one_axis_at_most():
    every = points()
    assert len(every) == len({*every}) == 4 + 2 + 2
    for point in every:
        apart = {key for key, value in asdict(point).items() if value != getattr(BASE, key)}
        assert apart <= {"height", "width"} or len(apart) == 1
    assert every[0] == Point(256, 256, 1, 12)  # little work first


def test_the_axes_cross_at_a_value_that_was_given():
    assert base_of([(64, 72), (440, 1024)], [2, 1], [1, 12]) == BASE
    assert base_of([(64, 72)], [2], [3]) == Point(64, 72, 2, 3)


def test_only_the_best_settings_are_shown():
    offer = replace(offer_of("raft-small"), peers=("torchvision",))
    labels = {job[0].label for job in growth_jobs(offer, [BASE], gpu=True)}
    assert labels == {
        "lcv, all-pairs, tf32",
        "lcv, all-pairs, prepared fp16",
        "lcv, on-demand, prepared fp16",
        "torchvision, tf32",
        "torchvision, bf16",
    }
    on_cpu = growth_jobs(offer, [BASE], gpu=False)
    assert [job[0].label for job in on_cpu] == [
        "lcv, all-pairs, float32",
        "lcv, on-demand, float32",
        "torchvision, float32",
    ]
    assert not any(cell.reference for job in on_cpu for cell in job)


def test_the_points_are_those_of_the_documentation_in_the_order_of_their_work():
    """docs/bench.md: sizes up to 4K, batches up to 32, iterations up to 32."""
    assert points() == [
        Point(256, 256, 1, 12),
        Point(440, 1024, 1, 1),
        Point(440, 1024, 1, 12),
        Point(440, 1024, 1, 32),
        Point(1088, 1920, 1, 12),
        Point(440, 1024, 8, 12),
        Point(2160, 3840, 1, 12),
        Point(440, 1024, 32, 12),
    ]
    # An update counts one, what comes before and after them ten.
    found = points([(10, 10)], [1, 2], [1, 12, 33])
    assert [(point.batch, point.iters) for point in found] == [(1, 1), (1, 12), (1, 33), (2, 12)]
    found = points([(10, 10)], [1, 2], [1, 12, 35])
    assert [(point.batch, point.iters) for point in found] == [(1, 1), (1, 12), (2, 12), (1, 35)]
