"""Handles messages of any broker: one effect for all deliveries of an operation::

    handle = message_handler(onceward, "charges", charge, key=lambda message: message.key().decode())

    delivery = handle(message)
    delivery.action  # "acknowledge": commit it; "dead-letter": send it there, with delivery.error, and commit
    # it; "retry": deliver it again in delivery.delay_ms, and commit no later message of its partition.

With a client of ``onceward.aio``, ``handle(message)`` is awaited, and ``charge`` may be a coroutine function.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Generic, Literal, TypedDict, TypeVar, overload

from typing_extensions import Unpack

from . import aio
from ._claims import BaseClaim
from ._client import Claim, Onceward
from ._errors import CompletionError, OncewardError, ResultUnavailableError, TerminalError
from ._finish import _terminal_error_of, judge
from ._functions import refuse_deferred_function
from ._keytime import key_time
from ._mapping import class_of
from ._options import OnError, RunOptions, RunResult, _whole_number, operation_of
from ._texts import raise_if_any, refused_field
from .v1 import facts_pb2

__all__ = ["Delivery", "MessageOptions", "message_handler"]

M = TypeVar("M")
T = TypeVar("T")

#: Short enough for callers that wait for the outcome, long enough for a service that is down.
_REDELIVER_AFTER_MS = 5000
#: Rare enough for a provider that is down for an hour, and soon enough after it is back.
_MAX_REDELIVER_AFTER_MS = 300_000
_DAY_MS = 86_400_000
#: With the default delays about 70 minutes: longer than most outages of a provider.
_MAX_ATTEMPTS = 20
_MAX_MAX_ATTEMPTS = 1_000_000

Kind = Literal["processed", "duplicate", "failed", "refused", "released", "postponed"]


@dataclass(frozen=True)
class Delivery(Generic[T]):
    """The outcome of one delivery of a message.

    - ``processed``: the function ran now, and the operation is stored as done.
    - ``duplicate``: the operation was done before; with ``error``, it failed permanently.
    - ``failed``: the operation failed permanently now, by a TerminalError, or on its last attempt.
    - ``refused``: the message can't be claimed, and its next delivery could not either: it has no valid key,
      its key belongs to another fingerprint, or is too old.
    - ``released``: the function raised ``error``. The next delivery runs it again, or the namespace's policy
      decides if the effect may have happened.
    - ``postponed``: another holder runs the operation, it is ambiguous, or the service was unreachable.
    """

    kind: Kind
    #: None if the message has none.
    key: str | None
    #: What the function returned, now or before; None if it is not available.
    value: T | None = None
    error: Exception | None = None
    #: Until the message is tried again; None for one that is settled.
    delay_ms: float | None = None

    @property
    def action(self) -> Literal["acknowledge", "retry", "dead-letter"]:
        """What to do with the message. After a crash before that, its next delivery has the same action."""
        if self.delay_ms is not None:
            return "retry"
        return "acknowledge" if self.error is None else "dead-letter"


class MessageOptions(TypedDict, total=False):
    """How messages are tried again. Each is optional; the others are those of ``run``."""

    #: While another holder runs the operation: how long to wait. Default: 0, for the other messages.
    wait_ms: int
    lease_ms: int | None
    timeout_ms: int | None
    owner: str | None
    classify_error: Callable[[Exception], Literal["release", "terminal"]] | None
    on_error: OnError | None
    marks_begin: bool
    #: Finds out what became of an earlier attempt; gets the claim and the message.
    resolve: Callable[..., Any] | None
    #: ``at-most-once``: as in ``run``; a message whose function raised has failed, and is not tried again.
    mode: Literal["at-most-once"] | None
    #: After how many attempts the operation fails permanently, 1-1,000,000; None for never. An error of the
    #: last one is stored; if that ended without an outcome, the next one stores a TerminalError, and does not
    #: call the function. Default: 20, which take about 70 minutes with the default delays.
    max_attempts: int | None
    #: How long until a message that could not be handled is tried again, at most a day. After an error of the
    #: function, doubled for each attempt before. Default: 5,000.
    redeliver_after_ms: int
    #: The longest such delay, at most a day. Default: 300,000, or ``redeliver_after_ms`` if that is longer.
    max_redeliver_after_ms: int


@overload
def message_handler(
    onceward: Onceward,
    namespace: str,
    fn: Callable[[M, Claim], T],
    *,
    key: Callable[[M], str | None],
    fingerprint: Callable[[M], object] | None = None,
    key_created_at: Callable[[M], datetime | None] | None = None,
    **options: Unpack[MessageOptions],
) -> Callable[[M], Delivery[T]]: ...


@overload
def message_handler(
    onceward: aio.Onceward,
    namespace: str,
    fn: Callable[[M, aio.Claim], Awaitable[T] | T],
    *,
    key: Callable[[M], str | None],
    fingerprint: Callable[[M], object] | None = None,
    key_created_at: Callable[[M], datetime | None] | None = None,
    **options: Unpack[MessageOptions],
) -> Callable[[M], Awaitable[Delivery[T]]]: ...


def message_handler(
    onceward: Onceward | aio.Onceward,
    namespace: str,
    fn: Callable[..., Any],
    *,
    key: Callable[[Any], str | None],
    fingerprint: Callable[[Any], object] | None = None,
    key_created_at: Callable[[Any], datetime | None] | None = None,
    **options: Unpack[MessageOptions],
) -> Callable[[Any], Any]:
    """Returns a function that handles one delivery of a message, and returns its Delivery.

    It raises no Exception; an interruption, such as a cancellation or a KeyboardInterrupt, passes.

    :param fn: gets the message and the claim.
    :param key: returns the operation's key, as its producer made it, such as an order's number; never the id
        of a delivery, such as an offset. A message without one is refused.
    :param fingerprint: returns what the key belongs to. Default: not compared.
    :param key_created_at: returns when the key was made. Not called for a key that contains its time.
    :raises InvalidRequestError: for an invalid option.
    :raises TypeError: for a coroutine function with a blocking client.
    """
    is_asyncio = isinstance(onceward, aio.Onceward)
    refuse_deferred_function(fn, awaits=is_asyncio)
    rules = _Rules.of(options)
    of_run: Any = {name: each for name, each in options.items() if name not in _Rules.__annotations__}
    of_run |= {"wait_ms": options.get("wait_ms", 0)}
    for name in of_run:
        if name not in MessageOptions.__annotations__:
            raise refused_field(name, "is not an option of a message handler")
    operation_of(namespace, "any", of_run, onceward._defaults)

    def named(message: Any) -> tuple[str, RunOptions]:
        field = "key"
        try:
            name = key(message)
            if name is None:
                raise LookupError("it has none")
            field = "fingerprint"
            request = None if fingerprint is None else fingerprint(message)
            field = "key_created_at"
            is_timed = key_created_at is None or key_time(name) is not None
            created_at = None if is_timed or key_created_at is None else key_created_at(message)
        except Exception as error:
            raise refused_field(field, f"of the message can't be read: {error}") from error
        given = of_run | {"fingerprint": request, "key_created_at": created_at}
        if (resolve := options.get("resolve")) is not None:
            given["resolve"] = lambda claim: resolve(claim, message)
        return name, given

    runner: Any = onceward
    # Without the option, a policy may still require a fingerprint: that is not about the message.
    of_message = {"key", "key_created_at"} | ({"fingerprint"} if fingerprint is not None else set())

    def handle(message: Any) -> Delivery[Any]:
        attempt = _Attempt(rules, of_message)
        try:
            attempt.key, given = named(message)

            def begin(claim: Claim) -> Any:
                with attempt.judged(claim):
                    return fn(message, claim)

            return attempt.done(runner.run_detailed(namespace, attempt.key, begin, **given))
        except Exception as error:
            return attempt.failed(error)

    async def handle_awaited(message: Any) -> Delivery[Any]:
        attempt = _Attempt(rules, of_message)
        try:
            attempt.key, given = named(message)

            async def begin(claim: aio.Claim) -> Any:
                with attempt.judged(claim):
                    value = fn(message, claim)
                    return await value if inspect.isawaitable(value) else value

            return attempt.done(await runner.run_detailed(namespace, attempt.key, begin, **given))
        except Exception as error:
            return attempt.failed(error)

    return handle_awaited if is_asyncio else handle


@dataclass(frozen=True)
class _Rules:
    """When a message is tried again, and how often."""

    redeliver_after_ms: int
    max_redeliver_after_ms: int
    max_attempts: int | None

    @staticmethod
    def of(options: MessageOptions) -> _Rules:
        """:raises InvalidRequestError:"""
        after_ms = options.get("redeliver_after_ms", _REDELIVER_AFTER_MS)
        raise_if_any(_whole_number("redeliver_after_ms", after_ms, 1, _DAY_MS))
        max_ms = options.get("max_redeliver_after_ms", max(_MAX_REDELIVER_AFTER_MS, after_ms))
        raise_if_any(_whole_number("max_redeliver_after_ms", max_ms, after_ms, _DAY_MS))
        attempts = 1 if options.get("mode") else options.get("max_attempts", _MAX_ATTEMPTS)
        if attempts is not None and not (isinstance(attempts, int) and 1 <= attempts <= _MAX_MAX_ATTEMPTS):
            raise refused_field("max_attempts", f"must be a whole number, 1-{_MAX_MAX_ATTEMPTS}, or None")
        return _Rules(after_ms, max_ms, attempts)

    def backoff_ms(self, attempt: int) -> int:
        """Returns how long until a message is tried again whose function raised on this attempt."""
        # Doubled 27 times, the shortest delay is above a day.
        return min(self.redeliver_after_ms << min(max(attempt, 1) - 1, 27), self.max_redeliver_after_ms)


class _Attempt:
    """One delivery of a message."""

    def __init__(self, rules: _Rules, of_message: set[str]) -> None:
        """:param of_message: the fields of a claim that the message determines."""
        self.key: str | None = None
        self._rules = rules
        self._of_message = of_message
        self._claim: BaseClaim | None = None

    @contextmanager
    def judged(self, claim: BaseClaim) -> Iterator[None]:
        """Makes an error of the last attempt permanent, unless its effect may have happened and a next
        delivery would not be a duplicate.
        """
        self._claim = claim
        last = self._rules.max_attempts
        if last is not None and claim.attempt > last:
            message = f"{claim.attempt - 1} attempts ended without an outcome, and no other is made."
            raise TerminalError(message)
        held = claim._held
        is_settled = held.completion is not None
        try:
            yield
            if is_settled and held.marked is not None:
                raise held.marked
        except Exception as error:
            if not is_settled and (last is None or claim.attempt < last or judge(held, error) != "release"):
                raise
            stored = replace(held.operation, classify_error=lambda _: "terminal")
            terminal = _terminal_error_of(error, stored)
            assert terminal is not None
            raise terminal from error

    def done(self, result: RunResult[Any]) -> Delivery[Any]:
        """Returns the outcome of a run that returned."""
        # Without a call the operation was done before, also if only ``resolve`` found that out.
        return Delivery("duplicate" if self._claim is None else "processed", self.key, result.value)

    def failed(self, error: Exception) -> Delivery[Any]:
        """Returns the outcome of a run that raised."""
        claim = self._claim
        if claim is None:
            return self._refused(error)
        held = claim._held
        if isinstance(error, TerminalError) and (held.marked is None or held.completion is not None):
            return Delivery("failed", self.key, error=error)
        # That of a nested run says nothing about this claim.
        if not (isinstance(error, CompletionError) and error.claim == held.ref):
            return Delivery("released", self.key, None, error, self._rules.backoff_ms(claim.attempt))
        if not error.stored:
            return self._postponed(error)
        # Stored without its value, but as done: the broker needs no more.
        if isinstance(error.effect.error, Exception):
            return Delivery("failed", self.key, error=error.effect.error)
        return Delivery("processed", self.key, error.effect.value)

    def _refused(self, error: Exception) -> Delivery[Any]:
        """Returns the outcome if the function was not called."""
        if isinstance(error, TerminalError):
            return Delivery("duplicate", self.key, error=error)
        if isinstance(error, ResultUnavailableError):
            return Delivery("duplicate", self.key)
        if not isinstance(error, OncewardError):
            return Delivery("released", self.key, None, error, self._rules.redeliver_after_ms)
        if self._is_about_message(error):
            return Delivery("refused", self.key, error=error)
        return self._postponed(error)

    def _postponed(self, error: OncewardError) -> Delivery[Any]:
        delay_ms = max(self._rules.redeliver_after_ms, min(error.retry_delay_ms or 0, _DAY_MS))
        return Delivery("postponed", self.key, None, error, delay_ms)

    def _is_about_message(self, error: OncewardError) -> bool:
        """Returns whether the message is invalid or too old, not the consumer's settings: no delay would
        help.
        """
        if class_of(error) in (facts_pb2.REASON_CLASS_REUSED, facts_pb2.REASON_CLASS_TOO_OLD):
            return True
        fields = {each.field for each in error.violations}
        return error.reason == "INVALID_REQUEST" and not fields.isdisjoint(self._of_message)
