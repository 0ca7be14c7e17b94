"""Numbers that were measured, and how, cannot be changed afterwards."""

from __future__ import annotations

from testing.values import dataclasses_of


def test_all_that_is_passed_on_is_a_value():
    found = dataclasses_of("lcv.evaluate")
    assert len(found) >= 13
    assert {name for name, how in found.items() if how != (True, True, True)} == set()
