"""Shape checks at the public doors, with letters that bind across tensors.

    b, c, h, w = expect("warp", x, "x: b c h w", flow, "flow: b 2 h w")

A letter takes the size it meets first and must meet the same size ever after; a number is a size
that must be there. Sizes are compared as Python compares them, so that a tracer with symbolic
sizes records one guard and goes on.
"""

from __future__ import annotations

from torch import Tensor

from lcv.errors import ArgumentError, ShapeError


def expect(function: str, *tensors_and_patterns: Tensor | str, hint: str = "") -> tuple[int, ...]:
    """The sizes bound to the letters, in the order in which the letters first appear.

    function: whose arguments are checked; it opens every message.
    tensors_and_patterns: tensor, pattern, tensor, pattern, …; a pattern is sizes with spaces
        between them, after the argument's name and a colon if it is to be called by its name.
    hint: what to do about a mismatch, said last.
    """
    tensors = tensors_and_patterns[0::2]
    patterns = tensors_and_patterns[1::2]
    if len(tensors) != len(patterns):
        raise ArgumentError(f"{function}: a tensor was given to expect() without its pattern")
    bound: dict[str, tuple[int, str]] = {}
    for position, (tensor, pattern) in enumerate(zip(tensors, patterns, strict=True), start=1):
        if not isinstance(pattern, str):
            raise ArgumentError(f"{function}: pattern {position} is {pattern!r}, not a text")
        name, letters = _name_and_letters(pattern, position)
        if not isinstance(tensor, Tensor):
            raise ArgumentError(f"{function}: {name} is {type(tensor).__name__}, not a tensor")
        if tensor.dim() != len(letters):
            raise ShapeError(
                f"{function}: {name} has {tensor.dim()} dimensions {_shape(tensor)}, "
                f"wanted {len(letters)} ({' '.join(letters)}).{_tail(hint)}"
            )
        for letter, size in zip(letters, tensor.shape, strict=True):
            if letter.isdigit():
                if size != int(letter):
                    raise ShapeError(
                        f"{function}: {name} {_shape(tensor)} has {size} where {letter} belongs, "
                        f"wanted ({' '.join(letters)}).{_tail(hint)}"
                    )
            elif letter not in bound:
                bound[letter] = (size, name)
            elif size != bound[letter][0]:
                other_size, other = bound[letter]
                shapes = ", ".join(
                    f"{_name_and_letters(str(p), i)[0]} {_shape(t)}"
                    for i, (t, p) in enumerate(zip(tensors, patterns, strict=True), start=1)
                    if isinstance(t, Tensor)
                )
                raise ShapeError(
                    f"{function}: {name} has {letter}={size} but {other} has "
                    f"{letter}={other_size} ({shapes}).{_tail(hint)}"
                )
    return tuple(size for size, _ in bound.values())


def _name_and_letters(pattern: str, position: int) -> tuple[str, list[str]]:
    name, colon, letters = pattern.rpartition(":")
    return (name.strip() if colon else f"tensor {position}"), letters.split()


def _shape(tensor: Tensor) -> str:
    return "(" + ",".join(str(size) for size in tensor.shape) + ")"


def _tail(hint: str) -> str:
    return f" {hint}" if hint else ""
