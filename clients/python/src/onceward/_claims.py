"""The claim as a guarded function sees it."""

from __future__ import annotations

import warnings
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

from ._acquire import Done, Granted, Recorded, Unguarded, about
from ._checkpoint import read_checkpoint
from ._codec import JsonCodec, replay
from ._errors import Checkpoint, ClaimRef, OncewardError, OutcomeUnknownError
from ._finish import Held
from ._keys import derive_key, looks_like_timestamp
from ._lease import Lease, lease_now_ms
from ._options import Operation, RunResult
from ._printable import printable
from ._texts import refused_field
from ._times import datetime_of
from .v1.record_pb2 import Result


class BaseClaim:
    """What the claims of the blocking and the asyncio client have in common."""

    def __init__(self, held: Held, checkpoint: Checkpoint | None) -> None:
        self._held = held
        self._around: BaseClaim | None = None
        self._is_running = False
        #: The last checkpoint of an earlier attempt; None if none was saved.
        self.checkpoint = checkpoint

    @property
    def guarded(self) -> bool:
        """False if the service was unreachable and ``on_unavailable`` is "proceed": no claim keeps others
        away.
        """
        return self._held.lease is not None or self._held.completion is not None

    @property
    def namespace(self) -> str:
        """The namespace of the operation."""
        return self._held.ref.namespace

    @property
    def key(self) -> str:
        """The key of the operation."""
        return self._held.ref.key

    @property
    def fencing_token(self) -> int:
        """Strictly increasing per key.

        Pass it to a downstream that refuses older holders. 0 if not guarded.
        """
        return self._held.fencing_token

    @property
    def attempt(self) -> int:
        """1 for the key's first claim. Above 1, an earlier effect may have happened. 0 if not guarded."""
        return self._held.attempt

    @property
    def ms_since_effect_may_have_begun(self) -> float:
        """For ``resolve``: milliseconds since the lease of the earlier attempt ended, by the service's clock.

        An effect that it had began before then. A provider whose search lags may not show it for some time
        after. 0 if the outcome of no earlier attempt is unknown.
        """
        unknown = self._held.unknown
        return 0 if unknown is None else unknown.for_ms + lease_now_ms() - unknown.at_ms

    @property
    def lost(self) -> OncewardError | None:
        """Why another process may start: stop what can be stopped. None while the claim is held."""
        return None if self._held.lease is None else self._held.lease.lost

    def derive_key(self, label: str) -> str:
        """Returns a key for a downstream: the same on every attempt, different for every label."""
        return derive_key(self.namespace, self.key, label)

    def outcome_unknown(self, error: BaseException | None = None) -> OutcomeUnknownError:
        """Marks the claim: nothing is stored or released, whether the function then returns or raises.

        For code whose errors a framework answers. Returns an error with this one as its cause, for
        ``raise claim.outcome_unknown(error)``; a run whose function returns nevertheless raises it. The first
        call decides.
        """
        return self._held.mark_unknown(error)


C = TypeVar("C", bound=BaseClaim)


class BaseScope(Generic[C]):
    """What the scopes of the blocking and the asyncio client have in common."""

    def __init__(self, claim: C | None, value: Any = None) -> None:
        #: The claim; None if the operation was done before.
        self.claim = claim
        self.replayed = claim is None
        #: The value that was stored, before or by ``complete``.
        self.value = value
        self._ended = False

    def _end(self) -> C:
        if self.claim is None or self._ended:
            raise RuntimeError("the operation is already completed or released")
        self._ended = True
        return self.claim


_current: ContextVar[BaseClaim | None] = ContextVar("onceward_claim", default=None)


def enter_claim(claim: BaseClaim) -> Any:
    """Makes the claim the current one. Returns what ``leave_claim`` takes."""
    claim._around, claim._is_running = _current.get(), True
    return claim, _current.set(claim)


def adopt_claim(claim: BaseClaim) -> None:
    """Makes a claim the current one of a task that its function has started outside of its context."""
    _current.set(claim)


def leave_claim(entered: Any) -> None:
    """Takes ``enter_claim`` back."""
    claim, token = entered
    claim._is_running = False
    _current.reset(token)


def refuse_within_itself(operation: Operation) -> None:
    """Refuses a run within the function of a run with the same key: it would wait for its own caller, which
    waits for it. Code that a function left behind is not within it.

    :raises InvalidRequestError:
    """
    claim = _current.get()
    while claim is not None:
        if claim._is_running and (claim.namespace, claim.key) == (operation.namespace, operation.key):
            description = "is held by the run whose function starts this one: use another key or namespace"
            raise about(operation.ref, refused_field("key", description))
        claim = claim._around


def current_claim() -> BaseClaim:
    """Returns the claim of the guarded function that runs.

    :raises LookupError: outside of one, such as in a ``with`` block of ``claim``, and once it has ended.
    """
    claim = find_current_claim()
    if claim is None:
        raise LookupError("no guarded function runs here")
    return claim


def find_current_claim() -> BaseClaim | None:
    """Returns the claim of the guarded function that runs; None outside of one, and once it has ended."""
    claim = _current.get()
    return claim if claim is not None and claim._is_running else None


def hold(
    operation: Operation, acquired: Granted | Recorded | Unguarded, lease: Lease | None
) -> tuple[Held, Checkpoint | None]:
    """Returns the claim of a run that may begin, with the checkpoint of an earlier attempt."""
    if isinstance(acquired, Recorded):
        ref = ClaimRef(operation.namespace, operation.key, 0)
        return Held(operation, ref, 1, None, completion=acquired.completion), None
    if isinstance(acquired, Unguarded):
        message = f"The service is unreachable, and a function runs without a claim: {acquired.error}"
        warnings.warn(printable(message), RuntimeWarning, stacklevel=4)
        return Held(operation, ClaimRef(operation.namespace, operation.key, 0), 0, None), None
    claimed = acquired.claimed
    checkpoint = read_checkpoint(claimed.checkpoint) if claimed.HasField("checkpoint") else None
    ref = granted_ref(operation, acquired)
    return Held(operation, ref, claimed.attempt, lease, acquired.unknown), checkpoint


def granted_ref(operation: Operation, granted: Granted) -> ClaimRef:
    """Returns how errors name a claim that was granted."""
    return ClaimRef(operation.namespace, operation.key, granted.claimed.fencing_token)


def replayed(operation: Operation, done: Done) -> RunResult[Any]:
    """Returns the result of an operation that was done before.

    :raises TerminalError, ResultUnavailableError:
    """
    completed = done.response.completed
    # Of a claim that completed its key itself, no codec has stored a value.
    is_bare = operation.completes and completed.result == Result(kind=Result.KIND_SUCCESS)
    return RunResult(
        value=replay(completed, JsonCodec() if is_bare else operation.codec, operation.ref),
        replayed=True,
        guarded=True,
        completed_at=datetime_of(completed.completed_at),
        expires_at=datetime_of(done.response.expires_at),
    )


def warn_of_timestamp(key: str) -> None:
    """Warns of a key that looks like the current time: each delivery would have another one."""
    if looks_like_timestamp(key):
        message = (
            "A key looks like the current time: deliveries with keys of their own each run the operation"
        )
        warnings.warn(message, RuntimeWarning, stacklevel=4)


def is_within(namespace: str) -> bool:
    """Returns whether a guarded function of the namespace runs here."""
    claim = find_current_claim()
    return claim is not None and claim.namespace == namespace
