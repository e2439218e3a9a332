"""Functions whose call is not yet their effect: those of coroutines and generators."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from functools import partial
from typing import Any, TypeAlias

from ._errors import NoEffectError, OutcomeUnknownError

#: What a call returns before any of the function's code has run.
Deferred: TypeAlias = Coroutine[Any, Any, Any] | Generator[Any, Any, Any] | AsyncGenerator[Any, Any]


def is_coroutine_function(fn: Callable[..., Any]) -> bool:
    """Returns whether a call returns a coroutine, also of a partial, or of an object with an async call."""
    return _is_any(fn, inspect.iscoroutinefunction)


def refuse_deferred_function(fn: Callable[..., Any], *, awaits: bool = False) -> None:
    """Refuses a function whose call would be stored as done before any of its code has run.

    :param awaits: whether the caller awaits coroutines.
    :raises TypeError:
    """
    if not callable(fn):
        raise TypeError(f"the function to guard must be callable, is {type(fn).__name__}")
    if not awaits and is_coroutine_function(fn):
        raise TypeError(f"{_name(fn)} is a coroutine function: guard it with a client of onceward.aio")
    if _is_any(fn, inspect.isgeneratorfunction, inspect.isasyncgenfunction):
        raise TypeError(f"{_name(fn)} is a generator function: guard a function that returns a value")


def refuse_deferred(value: Any) -> None:
    """Refuses a function's value that has yet to run, and closes it.

    :raises TypeError: from a NoEffectError, or from an OutcomeUnknownError if something runs elsewhere.
    """
    kind = type(value).__name__
    message = f"the guarded function returned a {kind}, which is not a value: await or consume it within"
    if inspect.iscoroutine(value) or inspect.isgenerator(value):
        value.close()
        raise TypeError(message) from NoEffectError("it has not run")
    if inspect.isasyncgen(value):
        # Without a first step there is nothing to close.
        raise TypeError(message) from NoEffectError("it has not run")
    if inspect.isawaitable(value):
        raise TypeError(message) from OutcomeUnknownError("it may run elsewhere")


def _is_any(fn: Any, *tests: Callable[[Any], bool]) -> bool:
    while isinstance(fn, partial):
        fn = fn.func
    call = fn if inspect.isroutine(fn) or inspect.isclass(fn) else type(fn).__call__
    return any(test(each) for test in tests for each in (fn, call))


def _name(fn: Any) -> str:
    return str(getattr(fn, "__qualname__", type(fn).__name__))
