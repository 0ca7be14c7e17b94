"""Every error that lcv raises on purpose, so that one `except LcvError` catches them all.

A message is one or two sentences: the file or argument at fault, the value found, the value
wanted, and what to do about it.
"""

from __future__ import annotations


class LcvError(Exception):
    """Something the caller can put right; the message says what and how."""


class ArgumentError(LcvError, ValueError):
    """An argument has a value that cannot be used."""


class ShapeError(LcvError, ValueError):
    """Tensors do not have the shapes, or do not agree in the shapes, that a function needs."""


class BackendError(LcvError, RuntimeError):
    """A backend was asked for that is not available here; the message says why."""


class FileError(LcvError):
    """A file cannot be read or written; the message begins with its path."""


class WeightsError(LcvError):
    """Weights do not fit the model they were meant for, or are not weights at all."""
