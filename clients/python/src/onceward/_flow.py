"""The parts of a flow: work that the blocking and the asyncio client do alike.

A flow is a generator that yields what it needs done, a call or a pause, and gets the answer. Each client
drives flows
in its own way, so that the rules about leases and retries are written once.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from ._errors import OncewardError
from ._lease import now_ms
from ._mapping import is_to_be_repeated

#: A replica that has not answered by then is stuck or unreachable, and another attempt is better.
ATTEMPT_TIMEOUT_MS = 5000
#: Long enough for a dropped connection to be opened again.
_FIRST_DELAY_MS = 50
#: Short enough to notice the end of a restart soon.
_MAX_DELAY_MS = 2000


@dataclass
class Call:
    """A call of the service, such as "Claim". The driver sends its response, or throws an OncewardError."""

    method: str
    request: Message
    timeout_ms: float = ATTEMPT_TIMEOUT_MS
    #: The driver adds the call here if its flow ends before the answer.
    abandoned: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class Sleep:
    """A pause. A client that closes ends it with CLOSED."""

    delay_ms: float


@dataclass(frozen=True)
class Settle:
    """A wait for calls whose flow ended before their answers.

    The driver sends a list of responses and errors.
    """

    calls: list[Any]


S = TypeVar("S")
T = TypeVar("T")
Flow = Generator[Call | Sleep | Settle, Any, T]


def drive_steps(steps: Generator[S, Any, T], perform: Callable[[S], Any]) -> T:
    """Performs the steps of a generator, which gets the result of each, or its error. Returns its value."""
    try:
        step = next(steps)
        while True:
            try:
                result = perform(step)
            except BaseException as error:
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as end:
        value: T = end.value
        return value


async def drive_awaiting(steps: Generator[S, Any, T], perform: Callable[[S], Awaitable[Any]]) -> T:
    """Does what ``drive_steps`` does, with steps that are awaited."""
    try:
        step = next(steps)
        while True:
            try:
                result = await perform(step)
            except BaseException as error:
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as end:
        value: T = end.value
        return value


def retrying(make: Callable[[], Call], give_up_at_ms: float, *, held: bool = False) -> Flow[Any]:
    """Repeats a call that is safe to repeat until it is answered. No attempt begins after ``give_up_at_ms``.

    :param held: as of ``is_to_be_repeated``.

    :raises OncewardError: the last attempt's, if it is not worth a retry or the time is up.
    """
    failures = 0
    while True:
        try:
            return (yield make())
        except OncewardError as error:
            delay_ms = retry_delay_ms(failures, error.retry_delay_ms or 0)
            if not is_to_be_repeated(error, held=held) or now_ms() + delay_ms > give_up_at_ms:
                raise
        yield Sleep(delay_ms)
        failures += 1


def retry_delay_ms(failures: int, at_least_ms: float) -> float:
    """Returns between half and the whole of a doubling delay, so that callers that failed together retry
    apart.
    """
    delay_ms = min(_MAX_DELAY_MS, _FIRST_DELAY_MS * 2.0 ** min(failures, 16))
    return at_least_ms + delay_ms * (0.5 + random.random() / 2)


def duration(ms: float) -> Duration:
    """Returns a duration as the service takes it."""
    made = Duration()
    made.FromNanoseconds(round(ms * 1e6))
    return made


def duration_ms(made: Duration) -> float:
    """Returns a duration in milliseconds."""
    return made.ToNanoseconds() / 1e6
