"""Gets the claim of a run: waits, retries, renews a lease whose answer came late, or ends with a stored
result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from google.protobuf.timestamp_pb2 import Timestamp

from ._checkpoint import read_checkpoint
from ._errors import AmbiguousError, ClaimRef, InProgressError, OncewardError
from ._fingerprint import fingerprint_of
from ._flow import (
    ATTEMPT_TIMEOUT_MS,
    Call,
    Flow,
    Settle,
    Sleep,
    duration,
    duration_ms,
    retry_delay_ms,
    retrying,
)
from ._lease import is_claim_gone, lease_ends_at_ms, lease_now_ms, now_ms
from ._limits import DEFAULT_LEASE_MS, MAX_WAIT_MS
from ._mapping import is_to_be_repeated, is_unreachable, may_have_happened
from ._options import Operation
from ._times import datetime_of
from .v1.idempotency_pb2 import (
    Ambiguous,
    Claimed,
    ClaimRequest,
    ClaimResponse,
    CompleteResponse,
    Completion,
    ExtendLeaseRequest,
    ExtendLeaseResponse,
    InProgress,
    LookupRequest,
    ReleaseRequest,
)
from .v1.record_pb2 import Record

#: Pauses of a process are rare: more late answers in turn mean a lease that is shorter than the answers take.
MAX_LATE_ANSWERS = 3


@dataclass(frozen=True)
class UnknownAttempt:
    """An earlier attempt whose outcome had been unknown for so long at a time of the lease clock."""

    last: Ambiguous
    for_ms: float
    at_ms: float


@dataclass(frozen=True)
class Granted:
    """The lease lasts: the function may begin at once.

    ``sent_at_ms``: when the call was sent that the lease counts from.
    """

    claimed: Claimed
    sent_at_ms: float
    remaining_ms: float
    unknown: UnknownAttempt | None = None


@dataclass(frozen=True)
class Done:
    """The operation was done before."""

    response: ClaimResponse


@dataclass(frozen=True)
class Recorded:
    """This claim has completed the key itself (``Operation.completes``)."""

    completion: CompleteResponse


@dataclass(frozen=True)
class Unguarded:
    """The service is unreachable, and the function runs without a claim."""

    error: OncewardError


Acquired: TypeAlias = Granted | Done | Recorded | Unguarded


@dataclass
class _PendingClaims:
    """The Claim calls of one run, under one claim id: whether the service may hold a claim for it."""

    request: ClaimRequest
    may_be_held: bool = False
    abandoned: list[Any] = field(default_factory=list)

    def answered(self, answer: ClaimResponse | OncewardError) -> None:
        if isinstance(answer, ClaimResponse):
            # The answer is about all earlier calls, too: their claim id is the same.
            self.may_be_held = answer.WhichOneof("outcome") == "claimed"
        elif may_have_happened(answer):
            # A definite refusal had no effect, and says nothing about earlier calls.
            self.may_be_held = True


def acquire(
    operation: Operation, wait_until_ms: float, in_background: Callable[[Flow[None]], None]
) -> Flow[Acquired]:
    """Claims, and waits for another holder, always under one claim id.

    After every error, a claim that was granted nevertheless is released in the background.

    :raises OncewardError: InProgressError, AmbiguousError, or why the claim was refused; it names the claim.
    """
    try:
        request = request_of(operation)
    except OncewardError as error:
        raise about(operation.ref, error) from error
    sent = _PendingClaims(request)
    try:
        return (yield from _claim_or_wait(operation, sent, wait_until_ms))
    except BaseException as error:
        if (sent.may_be_held or sent.abandoned) and not operation.completes:
            in_background(_release_unused_claim(sent, operation.lease_ms or DEFAULT_LEASE_MS))
        if isinstance(error, OncewardError):
            raise about(operation.ref, error) from error
        raise


def seen_of(answer: object) -> bool | None:
    """Returns whether a key was seen, by the answer to a claim that completes it; None: it does not say."""
    outcome = answer.WhichOneof("outcome") if isinstance(answer, ClaimResponse) else None
    return {"recorded": False, "completed": True}.get(outcome or "")


def was_seen(acquired: Acquired) -> bool:
    """Returns whether a key was seen. It was not if the service is unreachable, and the caller proceeds."""
    return isinstance(acquired, Done)


def request_of(operation: Operation) -> ClaimRequest:
    """Returns the operation's Claim. :raises OncewardError: for a fingerprint that can't be computed."""
    lease = None if operation.lease_ms is None else duration(operation.lease_ms)
    fingerprint = b"" if operation.fingerprint is None else fingerprint_of(operation.fingerprint)
    request = ClaimRequest(
        namespace=operation.namespace,
        key=operation.key,
        fingerprint=fingerprint,
        claim_id=operation.claim_id,
        lease=None if operation.completes else lease,
        owner=operation.owner,
        accept_ambiguous=operation.accept_ambiguous or operation.resolve is not None,
        completion=Completion() if operation.completes else None,
        marks_begin=operation.marks_begin and not operation.completes,
    )
    if operation.key_created_at is not None:
        request.key_created_at.FromDatetime(operation.key_created_at)
    return request


def about(claim: ClaimRef, error: OncewardError) -> OncewardError:
    """Returns the error, which names the claim from now on. An error that names one is returned unchanged."""
    if error.claim is None:
        error.claim = claim
    return error


def _claim_or_wait(operation: Operation, sent: _PendingClaims, wait_until_ms: float) -> Flow[Acquired]:
    try:
        response, sent_at_ms = yield from _claim(operation, sent)
    except OncewardError as error:
        # Only for the first call: once the service has named another holder, an outage doesn't make that
        # untrue.
        if operation.proceeds and is_unreachable(error):
            return Unguarded(error)
        raise
    lost_claims = 0
    while True:
        outcome = response.WhichOneof("outcome")
        if outcome == "claimed":
            unknown = _unknown_attempt_of(response)
            granted = yield from _renew_if_late(operation, response.claimed, sent_at_ms)
            if granted is not None:
                return replace(granted, unknown=unknown)
            lost_claims += 1
            if lost_claims > MAX_LATE_ANSWERS:
                raise _always_late()
            response, sent_at_ms = yield from _claim(operation, sent)
        elif outcome == "completed":
            return Done(response)
        elif outcome == "recorded":
            completed_at = response.recorded.completed_at
            return Recorded(CompleteResponse(completed_at=completed_at, expires_at=response.expires_at))
        elif outcome == "ambiguous":
            raise ambiguous(operation.ref, response.ambiguous)
        elif outcome == "in_progress":
            if now_ms() >= wait_until_ms:
                holder = response.in_progress
                retry_after_ms = duration_ms(holder.retry_after)
                raise in_progress(operation.ref, holder, holder.lease_expires_at, retry_after_ms)
            response = yield from _wait(operation, sent, wait_until_ms)
            # A lease counts from when its call was sent, and the waiting call was sent long ago. The same
            # claim again
            # returns a lease that counts from now.
            if response.WhichOneof("outcome") == "claimed":
                response, sent_at_ms = yield from _claim(operation, sent)
        else:
            raise OncewardError(
                "INTERNAL", "The claim was answered with an outcome that this client does not know."
            )


def _claim(operation: Operation, sent: _PendingClaims) -> Flow[tuple[ClaimResponse, float]]:
    sent_at_ms = 0.0

    def make() -> Call:
        nonlocal sent_at_ms
        sent_at_ms = lease_now_ms()
        return Call("Claim", sent.request, abandoned=sent.abandoned)

    response = yield from _noting(retrying(make, now_ms() + operation.timeout_ms), sent)
    return response, sent_at_ms


def _wait(operation: Operation, sent: _PendingClaims, wait_until_ms: float) -> Flow[ClaimResponse]:
    def left_ms() -> float:
        return max(0, min(MAX_WAIT_MS, wait_until_ms - now_ms()))

    def make() -> Call:
        request = ClaimRequest()
        request.CopyFrom(sent.request)
        request.wait.CopyFrom(duration(left_ms()))
        return Call("Claim", request, left_ms() + ATTEMPT_TIMEOUT_MS, sent.abandoned)

    response: ClaimResponse = yield from _noting(retrying(make, wait_until_ms + operation.timeout_ms), sent)
    if response.WhichOneof("outcome") == "in_progress" and left_ms() > 0:
        yield Sleep(min(left_ms(), duration_ms(response.in_progress.retry_after)))
    return response


def _noting(calls: Flow[Any], sent: _PendingClaims) -> Flow[Any]:
    """Passes the calls on, and notes the answer to each."""
    try:
        step = next(calls)
        while True:
            try:
                answer = yield step
            except OncewardError as error:
                if isinstance(step, Call):
                    sent.answered(error)
                step = calls.throw(error)
            else:
                if isinstance(step, Call):
                    sent.answered(answer)
                step = calls.send(answer)
    except StopIteration as end:
        return end.value


def _renew_if_late(operation: Operation, claimed: Claimed, sent_at_ms: float) -> Flow[Granted | None]:
    """Returns the claim with a lease that lasts now; None if the claim is gone.

    A heartbeat renews a lease also after its end, and is preferred to another Claim, which would count as an
    attempt.
    """
    remaining_ms = duration_ms(claimed.lease_remaining)
    answers = 1

    def make() -> Call:
        nonlocal sent_at_ms
        sent_at_ms = lease_now_ms()
        return Call(
            "ExtendLease",
            ExtendLeaseRequest(
                namespace=operation.namespace, key=operation.key, fencing_token=claimed.fencing_token
            ),
        )

    while lease_now_ms() >= lease_ends_at_ms(sent_at_ms, remaining_ms):
        if answers > MAX_LATE_ANSWERS:
            raise _always_late()
        answers += 1
        try:
            reply: ExtendLeaseResponse = yield from retrying(make, now_ms() + operation.timeout_ms)
        except OncewardError as error:
            if error.reason != "CLOSED" and is_claim_gone(error):
                return None
            raise
        remaining_ms = duration_ms(reply.lease_remaining)
    return Granted(claimed, sent_at_ms, remaining_ms)


def _release_unused_claim(sent: _PendingClaims, lease_ms: float) -> Flow[None]:
    """Releases the claim of a run whose function will not begin. Never raises an OncewardError."""
    # Otherwise the last call might be granted after the release.
    for answer in (yield Settle(sent.abandoned)):
        sent.answered(answer)
    give_up_at_ms = now_ms() + lease_ms
    failures = 0
    while sent.may_be_held:
        try:
            yield from _release_once(sent.request)
            return
        except OncewardError as error:
            delay_ms = retry_delay_ms(failures, error.retry_delay_ms or 0)
            if not is_to_be_repeated(error) or now_ms() + delay_ms > give_up_at_ms:
                return
        failures += 1
        try:
            yield Sleep(delay_ms)
        except OncewardError:
            return


def _release_once(request: ClaimRequest) -> Flow[None]:
    lookup = yield Call("Lookup", LookupRequest(namespace=request.namespace, key=request.key))
    record: Record = lookup.record
    # Another Claim returns this run's own one. Without one it would be granted, and keep the next delivery
    # away.
    if record.state != Record.STATE_IN_PROGRESS or record.owner != request.owner:
        return
    claim = ClaimRequest()
    claim.CopyFrom(request)
    claim.accept_ambiguous = False
    response: ClaimResponse = yield Call("Claim", claim)
    if response.WhichOneof("outcome") != "claimed":
        return
    yield Call(
        "Release",
        ReleaseRequest(
            namespace=request.namespace,
            key=request.key,
            fencing_token=response.claimed.fencing_token,
            reason="The caller left before the operation began.",
            give_back=True,
        ),
    )


def _always_late() -> OncewardError:
    return OncewardError(
        "DEADLINE_EXCEEDED", "Each answer of the service came after the lease that it granted."
    )


def _unknown_attempt_of(response: ClaimResponse) -> UnknownAttempt | None:
    claimed = response.claimed
    if not claimed.HasField("unknown"):
        return None
    last = Ambiguous()
    last.CopyFrom(claimed.unknown)
    if claimed.HasField("checkpoint"):
        last.checkpoint.CopyFrom(claimed.checkpoint)
    for_ms = (response.server_time.ToNanoseconds() - last.lease_expired_at.ToNanoseconds()) / 1e6
    return UnknownAttempt(last, max(0, for_ms), lease_now_ms())


def in_progress(
    claim: ClaimRef, holder: InProgress | Ambiguous, lease_end: Timestamp, retry_after_ms: float
) -> InProgressError:
    """Returns the error of a run that waits no longer for another holder, or for an unknown outcome."""
    return InProgressError(claim, holder.owner, holder.attempt, datetime_of(lease_end), retry_after_ms)


def ambiguous(claim: ClaimRef, last: Ambiguous) -> AmbiguousError:
    """Returns the error of a run that ends because the outcome of an earlier attempt is unknown."""
    checkpoint = read_checkpoint(last.checkpoint) if last.HasField("checkpoint") else None
    return AmbiguousError(claim, last.owner, last.attempt, datetime_of(last.lease_expired_at), checkpoint)
