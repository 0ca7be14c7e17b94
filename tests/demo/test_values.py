"""What the page shows cannot be changed while it is drawn; what holds arrays is compared by identity."""

from __future__ import annotations

from testing.values import dataclasses_of


def test_all_that_is_passed_on_is_a_value():
    found = dataclasses_of("lcv.demo", "frames", "learned", "stresses", "work")
    assert found == {
        **dict.fromkeys(("Example", "Stresses", "Settings"), (True, True, True)),
        **dict.fromkeys(("Chosen", "Learned", "Shown", "Inputs"), (True, False, True)),
    }
