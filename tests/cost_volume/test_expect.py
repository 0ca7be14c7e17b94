"""Letters bind across tensors, and the messages say which tensor broke which letter."""

from __future__ import annotations

import pytest
import torch

from lcv.cost_volume import expect
from lcv.errors import ArgumentError, ShapeError


def test_sizes_come_back_in_the_order_of_their_letters() -> None:
    x, flow = torch.zeros(2, 3, 4, 5), torch.zeros(2, 2, 4, 5)
    assert expect("f", x, "b c h w", flow, "b 2 h w") == (2, 3, 4, 5)


def test_a_mismatch_names_both_tensors_and_the_hint() -> None:
    f1, f2 = torch.zeros(2, 256, 48, 64), torch.zeros(2, 256, 47, 64)
    with pytest.raises(ShapeError) as error:
        expect("match", f1, "f1: b c h w", f2, "f2: b c h w", hint="Use one level.")
    assert str(error.value) == (
        "match: f2 has h=47 but f1 has h=48 (f1 (2,256,48,64), f2 (2,256,47,64)). Use one level."
    )


def test_without_a_name_the_position_stands_for_it() -> None:
    with pytest.raises(ShapeError, match="tensor 2 has w=6 but tensor 1 has w=5"):
        expect("f", torch.zeros(4, 5), "h w", torch.zeros(6), "w")


def test_a_number_must_be_met() -> None:
    with pytest.raises(ShapeError, match=r"f: flow \(1,3,4,5\) has 3 where 2 belongs"):
        expect("f", torch.zeros(1, 3, 4, 5), "flow: b 2 h w")


def test_the_number_of_dimensions_must_be_met() -> None:
    with pytest.raises(ShapeError, match=r"x has 3 dimensions \(3,4,5\), wanted 4 \(b c h w\)"):
        expect("f", torch.zeros(3, 4, 5), "x: b c h w")


def test_an_argument_that_is_no_tensor_is_named() -> None:
    with pytest.raises(ArgumentError, match="f: x is list, not a tensor"):
        expect("f", [1, 2], "x: n")  # type: ignore[arg-type]


def test_a_tensor_without_a_pattern_is_refused() -> None:
    with pytest.raises(ArgumentError, match="without its pattern"):
        expect("f", torch.zeros(3))


def test_a_pattern_is_a_text_and_the_third_tensor_is_the_third() -> None:
    x = torch.zeros(3)
    with pytest.raises(ArgumentError, match="f: pattern 2 is 5, not a text"):
        expect("f", x, "n", x, 5)  # type: ignore[arg-type]
    with pytest.raises(ShapeError) as error:
        expect("f", x, "n", x, "m", torch.zeros(4), "m")
    assert str(error.value) == (
        "f: tensor 3 has m=4 but tensor 2 has m=3 (tensor 1 (3), tensor 2 (3), tensor 3 (4))."
    )
    assert expect("f", x, "n", x, "m", x, "3") == (3, 3)
