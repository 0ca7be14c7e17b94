"""What goes wrong behind the page, as a sentence on it; a traceback is for its terminal."""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
from collections.abc import Callable, Iterator
from typing import Any

import gradio as gr

from lcv.errors import LcvError

logger = logging.getLogger("lcv")
SECONDS = 15  # after which a sentence goes by itself


def said(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same, with what goes wrong as a sentence on the page, and no traceback there."""

    @functools.wraps(function)
    def wrapped(*arguments: Any) -> Any:
        with _sentences():
            return function(*arguments)

    @functools.wraps(function)
    def wrapped_steps(*arguments: Any) -> Iterator[Any]:
        with _sentences():
            yield from function(*arguments)

    return wrapped_steps if inspect.isgeneratorfunction(function) else wrapped


@contextlib.contextmanager
def _sentences() -> Iterator[None]:
    try:
        yield
    except LcvError as error:
        raise gr.Error(str(error), duration=SECONDS, title="Sorry", print_exception=False) from None
    except (gr.Error, GeneratorExit):
        raise
    except Exception as error:
        logger.exception("the page could not do what it was asked for")
        raise gr.Error(
            f"This is a fault of the page ({type(error).__name__}); its terminal says more.",
            duration=SECONDS,
            title="Sorry",
            print_exception=False,
        ) from None
