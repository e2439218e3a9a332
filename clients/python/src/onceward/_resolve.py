"""What became of the effect of an earlier attempt decides whether the function runs."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from ._acquire import Acquired, Granted, ambiguous, in_progress
from ._codec import codec_error, encode_and_read
from ._errors import ClaimRef, Effect
from ._finish import Held
from ._flow import Flow, Sleep
from ._lease import now_ms
from ._options import Operation, RunResult
from ._printable import printable
from ._texts import refused_field

T = TypeVar("T")

#: Each search claims the key and asks a provider.
_MIN_RETRY_AFTER_MS = 100


@dataclass(frozen=True)
class Happened(Generic[T]):
    """The effect happened: the value is stored and returned, as if the function had returned it, which does
    not run. A value that can't be encoded means the same as an error.
    """

    value: T


@dataclass(frozen=True)
class DidNotHappen:
    """The effect did not happen, and will not: the function runs."""


@dataclass(frozen=True)
class StillOpen:
    """It will be known later: the record stays as it is, and the run asks again after this time, at least
    100 ms, if it may wait so long, or raises InProgressError with it.

    :raises InvalidRequestError: for a time that is negative or not finite.
    """

    retry_after_ms: float

    def __post_init__(self) -> None:
        if not 0 <= self.retry_after_ms < math.inf:
            raise refused_field("retry_after_ms", f"must be 0 or more, is {self.retry_after_ms}")


@dataclass(frozen=True)
class Unknown:
    """It can't be found out: the record stays as it is, and the run raises AmbiguousError. An error means the
    same.
    """


#: What ``resolve`` returns.
Resolution: TypeAlias = Happened[Any] | DidNotHappen | StillOpen | Unknown


def is_to_be_resolved(operation: Operation, acquired: Acquired) -> bool:
    """Returns whether ``resolve`` is to be asked about an earlier attempt."""
    return (
        operation.resolve is not None
        and not operation.accept_ambiguous
        and isinstance(acquired, Granted)
        and acquired.unknown is not None
    )


def settle_search(
    held: Held, looked: Effect, wait_until_ms: float
) -> Flow[RunResult[Any] | StillOpen | None]:
    """Ends a search: stores an effect that happened, and gives the record back unless the function may run.

    Returns None if it may; StillOpen if the run is to ask again.

    :raises AmbiguousError, InProgressError: or what interrupted the search.
    """
    found, error, unknown = looked.value, looked.error, held.unknown
    assert held.lease is not None and unknown is not None
    if error is None and isinstance(found, Happened):
        try:
            encode_and_read(Effect(found.value), held.operation.codec)
        except Exception as unstorable:
            error = codec_error(unstorable)
        else:
            return (yield from held.complete(Effect(found.value)))
    is_stopped = error is not None and not isinstance(error, Exception)
    if held.lease.lost is not None or held.is_interrupted or is_stopped:
        yield from held.give_back("interrupted")
        raise (held.lease.lost or error or AssertionError("an interrupted search has an error"))
    if error is None and isinstance(found, DidNotHappen):
        return None
    claim = ClaimRef(held.ref.namespace, held.ref.key)
    if error is None and isinstance(found, StillOpen):
        yield from held.give_back("still open")
        found = StillOpen(max(_MIN_RETRY_AFTER_MS, found.retry_after_ms))
        if now_ms() + found.retry_after_ms > wait_until_ms:
            raise in_progress(claim, unknown.last, unknown.last.lease_expired_at, found.retry_after_ms)
        return found
    if error is not None:
        # A guard answers "ambiguous": no one else would see why.
        warnings.warn(printable(f"resolve raised {error!r}"), RuntimeWarning, stacklevel=4)
    yield from held.give_back("unknown" if error is None else error)
    raise ambiguous(claim, unknown.last) from error


def pause(found: StillOpen) -> Flow[None]:
    """Waits until ``resolve`` is asked again."""
    yield Sleep(found.retry_after_ms)
