"""The errors of the client. ``OncewardError`` is the base of all but those that guarded functions raise:
``TerminalError``, ``OutcomeUnknownError`` and ``NoEffectError``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ._printable import printable
from ._reasons import remedy_of


@dataclass(frozen=True)
class Violation:
    """One request field that is malformed or over a limit; ``description`` names the limit."""

    field: str
    description: str


@dataclass(frozen=True)
class ClaimRef:
    """Names the claim that an error is about. ``fencing_token`` is None if no claim was granted."""

    namespace: str
    key: str
    fencing_token: int | None = None


@dataclass(frozen=True)
class Checkpoint:
    """Progress that a holder saved. ``state`` is bytes if another client saved bytes that are not JSON."""

    name: str
    state: Any


class OncewardError(Exception):
    """Any failure between the caller and the service. An error of the guarded function is never wrapped in
    it.

    Branch on ``reason`` or on the class; the message is for people. ``remedy`` says what to do.
    """

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        claim: ClaimRef | None = None,
        code: int | None = None,
        metadata: Mapping[str, str] | None = None,
        violations: Sequence[Violation] = (),
        retry_delay_ms: float | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message if claim is None else f"{message} ({_claim_text(claim)})")
        #: Why: a reason of errors.proto, or one of the client's own (see README).
        self.reason = reason
        #: The claim that the error is about; None if it is about no single claim.
        self.claim = claim
        #: The gRPC status, if the error came over the wire.
        self.code = code
        #: Machine-readable details, as errors.proto lists them for the reason.
        self.metadata = dict(metadata or {})
        #: Every violation of an INVALID_REQUEST.
        self.violations = tuple(violations)
        #: How long to wait before a retry, in milliseconds, if the service said so.
        self.retry_delay_ms = retry_delay_ms
        #: Names the refused call in the service's log; None if the service did not answer.
        self.request_id = request_id

    @property
    def remedy(self) -> str | None:
        """What to do about the error; None for a reason of a newer service."""
        return remedy_of(self.reason)

    def __reduce__(self) -> tuple[Any, ...]:
        # Exception's own way calls the class with the message alone, which no class of these takes.
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[OncewardError], args: tuple[Any, ...], state: Mapping[str, Any]) -> OncewardError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


def _claim_text(claim: ClaimRef) -> str:
    token = "" if claim.fencing_token is None else f", fencing token {claim.fencing_token}"
    return f"namespace {claim.namespace}, key {json.dumps(claim.key)}{token}"


class InProgressError(OncewardError):
    """Another holder has the claim, and still had it after ``wait_ms``.

    Nothing ran; a later retry is safe.
    """

    def __init__(
        self,
        claim: ClaimRef,
        owner: str,
        attempt: int,
        lease_expires_at: datetime | None,
        retry_delay_ms: float,
    ) -> None:
        message = f"Attempt {attempt} is in progress at {printable(owner) or 'an unnamed owner'}."
        super().__init__("IN_PROGRESS", message, claim=claim, retry_delay_ms=retry_delay_ms)
        self.owner = owner
        self.attempt = attempt
        self.lease_expires_at = lease_expires_at


class AmbiguousError(OncewardError):
    """It is unknown whether the last holder's effect happened, and the policy is HOLD. Nothing ran.

    Find out, and then run with ``accept_ambiguous=True``, or let an administrator resolve the record.
    """

    def __init__(
        self,
        claim: ClaimRef,
        owner: str,
        attempt: int,
        lease_expired_at: datetime | None,
        checkpoint: Checkpoint | None,
    ) -> None:
        who = printable(owner) or "an unnamed owner"
        message = f"It is unknown whether attempt {attempt} at {who} had its effect."
        super().__init__("AMBIGUOUS", message, claim=claim)
        self.owner = owner
        self.attempt = attempt
        self.lease_expired_at = lease_expired_at
        self.checkpoint = checkpoint


class ResultUnavailableError(OncewardError):
    """The effect happened, once, but its value is not available. Nothing ran now.

    RESULT_EXPIRED: its retention has ended. RESULT_LOST: it could not be stored. RESULT_NOT_JSON,
    CODEC_FAILED: this
    run's codec can't read it; see ``__cause__``.
    """


@dataclass(frozen=True)
class Effect:
    """The outcome of a function that ran to its end: a value, or the error that it raised."""

    value: Any = None
    error: BaseException | None = None


class CompletionError(OncewardError):
    """The function ran to its end, but its outcome could not be stored unchanged. ``effect`` is the outcome.

    ``stored``: the operation is stored as done without its value, so that it does not run again. Otherwise,
    with
    CLAIM_SUPERSEDED another holder took over, and with any other reason the next delivery runs the function
    again
    (policy RECLAIM) or finds the record ambiguous (HOLD) once the lease has expired.
    """

    def __init__(self, effect: Effect, why: OncewardError, *, stored: bool, claim: ClaimRef) -> None:
        super().__init__(
            why.reason,
            f"The effect ran, but its outcome could not be stored: {why}",
            claim=claim,
            code=why.code,
            metadata=why.metadata,
            violations=why.violations,
            request_id=why.request_id,
        )
        self.effect = effect
        self.stored = stored
        self.__cause__ = why


class TerminalError(Exception):
    """The operation failed permanently. If the guarded function raises it, it is stored, and every repeat
    raises it.

    The message, ``name`` and ``details`` (a JSON value) are kept; the class, the cause and the traceback are
    not.
    """

    def __init__(self, message: str, details: Any = None, *, name: str = "TerminalError") -> None:
        super().__init__(message)
        self.message = message
        self.details = details
        self.name = name


class OutcomeUnknownError(Exception):
    """It is unknown whether the guarded function had its effect. Raised by the function of a run, such as one
    whose provider timed out: ``raise OutcomeUnknownError("the bank timed out") from error``.

    The claim is not released: its lease expires, and then the namespace's policy decides. Under HOLD the
    operation becomes ambiguous, under RECLAIM it runs again. So does an error that has this one as its cause
    or context, an interruption, a timeout and, with ``on_error="unknown"``, any error but NoEffectError.
    """


class NoEffectError(Exception):
    """There was certainly no effect: the claim is released, and a retry runs at once. Raised by the function
    of a run, or the ``__cause__`` of its error; also for a function that was interrupted.
    """
