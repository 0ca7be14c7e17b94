"""What is passed from room to room cannot be changed on the way, but for what is being filled."""

from __future__ import annotations

from testing.values import dataclasses_of


def test_all_that_is_passed_on_is_a_value():
    found = dataclasses_of("lcv.predict")
    arrays = {"FlowResult": (True, False, False), "RawFrame": (True, False, True)}
    filled = dict.fromkeys(("Summary", "Encoded"), (False, True, True))
    other = {name: how for name, how in found.items() if how != (True, True, True)}
    assert other == {**arrays, **filled}
    assert {"Job", "Matcher", "Plan", "Named", "FrameFiles", "Video"} <= found.keys()
