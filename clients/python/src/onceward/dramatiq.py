"""Guards Dramatiq actors: an actor runs once, however often its message is delivered::

    connect = lambda: Onceward(ADDRESS, api_key=API_KEY)

    @dramatiq.actor(throws=TerminalError)
    @once(connect, "charges", key=lambda order: order["id"])
    def charge(order): ...

Within the actor, ``onceward.current_claim()`` has the claim, for derived keys.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, ParamSpec, TypeVar

from dramatiq.errors import Retry
from dramatiq.middleware import CurrentMessage
from typing_extensions import Unpack

from . import aio
from ._client import Onceward
from ._errors import OncewardError
from ._functions import is_coroutine_function, refuse_deferred_function
from ._mapping import may_pass
from ._options import OnceOptions
from ._per_process import per_process

__all__ = ["once"]

T = TypeVar("T")
P = ParamSpec("P")


def once(
    onceward: Callable[[], Onceward] | Onceward | Callable[[], aio.Onceward] | aio.Onceward,
    namespace: str,
    *,
    key: Callable[..., str] | None = None,
    fingerprint: Callable[..., object] | None = None,
    key_created_at: Callable[..., datetime] | None = None,
    **options: Unpack[OnceOptions],
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Returns a decorator, to be put below ``@dramatiq.actor``: the function runs once for a key.

    - A repeat returns the stored value, which must be JSON.
    - An error of the function releases the claim, so that a retry runs. A TerminalError is stored: give the
      actor ``throws=TerminalError``, because each retry would only raise it again.
    - A function that can't know whether it had its effect raises an OutcomeUnknownError: its claim is left to
      the namespace's policy, and retries wait until its lease is over. So is that of an actor that is
      stopped, by its time limit or the worker's end.
    - With ``mode="at-most-once"``, an actor that raised has failed, and is not retried. Needs the middleware
      ``CurrentMessage``.
    - While another worker runs the operation, or the service can't be reached, the message is retried later,
      without an end, and no worker waits. Such a retry does not count against the actor's ``max_retries`` if
      the broker has the middleware ``CurrentMessage``. An InProgressError of the function's own code is an
      ordinary error.
    - A coroutine function, with the middleware ``AsyncIO``, needs a client of ``onceward.aio``.

    :param onceward: a function that returns a client, called once in each process: workers fork.
    :param key: returns the operation's key for the function's arguments. Default: the id of the message,
        which its redeliveries and its retries keep; needs the middleware ``CurrentMessage``.
    :param fingerprint: returns the request that the key stands for. Default: none.
    """
    client: Callable[[], Any] = per_process(onceward)
    is_once = options.get("mode") is not None

    def decorate(fn: Callable[P, T]) -> Callable[P, T]:
        awaits = is_coroutine_function(fn)
        refuse_deferred_function(fn, awaits=not isinstance(onceward, Onceward))

        def run(begin: Callable[[Any], Any], args: Any, kwargs: Any) -> Any:
            message_id = _message_id() if key is None or is_once else ""
            name = message_id if key is None else key(*args, **kwargs)
            request = None if fingerprint is None else fingerprint(*args, **kwargs)
            created_at = None if key_created_at is None else key_created_at(*args, **kwargs)
            merged: Any = {
                "on_in_progress": "throw",
                **options,
                "fingerprint": request,
                "key_created_at": created_at,
            }
            connected = client()
            if awaits != isinstance(connected, aio.Onceward):
                kind = "onceward.aio" if awaits else "onceward"
                raise TypeError(f"the function of {fn.__name__} must return a client of {kind}")
            return connected.run(namespace, name, begin, **merged)

        if awaits:

            @functools.wraps(fn)
            async def guarded_coroutine(*args: P.args, **kwargs: P.kwargs) -> Any:
                with _retried(is_once) as begun:
                    return await run(begun(lambda: fn(*args, **kwargs)), args, kwargs)

            return guarded_coroutine  # type: ignore[return-value]

        @functools.wraps(fn)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> Any:
            with _retried(is_once) as begun:
                return run(begun(lambda: fn(*args, **kwargs)), args, kwargs)

        return guarded

    return decorate


@contextmanager
def _retried(is_once: bool) -> Iterator[Callable[[Callable[[], Any]], Callable[[Any], Any]]]:
    """Has the message of an operation retried that can't be claimed now; at most once, no other one.

    Returns a function that notes that the actor began: an InProgressError of its own code is about another
    operation.
    """
    has_begun = False

    def begun(fn: Callable[[], Any]) -> Callable[[Any], Any]:
        def begin(_: Any) -> Any:
            nonlocal has_begun
            has_begun = True
            return fn()

        return begin

    try:
        yield begun
    except BaseException as error:
        message = CurrentMessage.get_current_message()
        if has_begun and is_once and message is not None:
            # A retry would find the key completed, and succeed without the effect; also after a time limit.
            message.options["throws"] = BaseException
        if has_begun or not isinstance(error, OncewardError) or not may_pass(error):
            raise
        delay_ms = max(1000, math.ceil(error.retry_delay_ms or 0))
        _leave_retry_uncounted()
        raise Retry(str(error), delay=delay_ms) from error


def _message_id() -> str:
    message = CurrentMessage.get_current_message()
    if message is None:
        raise RuntimeError("without a `key`, or with `mode`, the broker needs the middleware CurrentMessage")
    return str(message.message_id)


def _leave_retry_uncounted() -> None:
    """Takes back the count that the middleware ``Retries`` adds next, and compares with ``max_retries``."""
    message = CurrentMessage.get_current_message()
    if message is not None:
        message.options["retries"] = message.options.get("retries", 0) - 1
