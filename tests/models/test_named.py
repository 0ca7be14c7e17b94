"""Names that a user may give are checked without torch, by the same rule as when they are loaded."""

from __future__ import annotations

import pytest

import lcv
from lcv.errors import LcvError
from lcv.models.named import NAMES, check_named
from lcv.models.registry import NETWORKS


def test_the_names_are_those_of_the_registry():
    assert tuple(NETWORKS) == NAMES


@pytest.mark.parametrize(
    "given",
    [
        ("raft-huge", None),
        ("raft-small-vanilla", "raft-large"),
        ("ddflow", None),
        (None, None),
        ("a.pth", "b.pth"),
        (None, "nosuch.pth"),
        ("raft-small", "."),
        ("nosuch.py:network", None),
    ],
    ids=str,
)
def test_what_is_refused_early_is_what_load_refuses(given):
    said = []
    for check in (check_named, lcv.load):
        with pytest.raises(LcvError) as error:
            check(*given)
        said.append(str(error.value))
    assert said[0] == said[1]


@pytest.mark.parametrize(
    "given",
    [
        ("raft-small", None),
        ("raft-small-vanilla", "raft-small-vanilla"),
        (None, "raft-sintel"),
        ("raft-kitti", None),
        (f"{__file__}:network", None),
        ("package.module:network", None),
    ],
    ids=str,
)
def test_known_names_are_let_through_and_nothing_is_fetched(given):
    check_named(*given)
