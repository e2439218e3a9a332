"""The records of one tenant, in memory."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from .._keytime import key_time
from .._limits import MAX_CONTENT_TYPE_BYTES, MAX_WAIT_MS, MIN_LEASE_MS, MIN_RETENTION_MS
from ..v1.idempotency_pb2 import (
    Ambiguous,
    Claimed,
    ClaimRequest,
    ClaimResponse,
    Completed,
    CompleteRequest,
    CompleteResponse,
    ExtendLeaseRequest,
    ExtendLeaseResponse,
    InProgress,
    LookupRequest,
    LookupResponse,
    ReleaseRequest,
    ReleaseResponse,
)
from ..v1.record_pb2 import Checkpoint, Record, Result
from ._policy import Terms, TestingPolicy, terms_of
from ._refusals import Refused, Violations

#: How far the clock that stamped a key may be ahead.
_MAX_AHEAD_MS = 300_000
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class ClaimCounts:
    """The number of claims by their outcome. ``recovered``: the caller's own claim, whose reply was lost."""

    granted: int = 0
    recovered: int = 0
    in_progress: int = 0
    replayed: int = 0
    ambiguous: int = 0


@dataclass
class _Stored:
    """The record of one key, with the terms of its newest claim. Times are milliseconds since 1970."""

    namespace: str
    key: str
    token: int
    attempt: int
    claim_id: str
    owner: str
    fingerprint: bytes
    first_claimed_at_ms: int
    claimed_at_ms: int
    lease_ends_at_ms: int
    expires_at_ms: int
    terms: Terms
    checkpoint: Checkpoint | None = None
    #: At most one of the two is set: how the claim ended.
    released_at_ms: int | None = None
    completed_at_ms: int | None = None
    release_reason: str = ""
    result: Result | None = None
    result_ends_at_ms: int = 0

    def is_ambiguous(self, now_ms: int) -> bool:
        """Returns whether an unfinished claim's lease has expired under HOLD."""
        return self.terms.holds and self.lease_ends_at_ms <= now_ms

    def claimed(self, now_ms: int) -> Claimed:
        """Returns the claim as its holder gets it."""
        return Claimed(
            fencing_token=self.token,
            attempt=self.attempt,
            first_claimed_at=_timestamp(self.first_claimed_at_ms),
            lease_expires_at=_timestamp(self.lease_ends_at_ms),
            lease_remaining=_duration(self.lease_ends_at_ms - now_ms),
            checkpoint=self.checkpoint,
        )

    def message(self, now_ms: int) -> Record:
        """Returns the record as Lookup returns it."""
        message = Record(
            namespace=self.namespace,
            key=self.key,
            fencing_token=self.token,
            attempt=self.attempt,
            owner=self.owner,
            fingerprint=self.fingerprint,
            checkpoint=self.checkpoint,
            state=Record.STATE_IN_PROGRESS,
            first_claimed_at=_timestamp(self.first_claimed_at_ms),
            claimed_at=_timestamp(self.claimed_at_ms),
            lease_expires_at=_timestamp(self.lease_ends_at_ms),
            expires_at=_timestamp(self.expires_at_ms),
        )
        if self.completed_at_ms is not None:
            message.state = Record.STATE_COMPLETED
            message.completed_at.CopyFrom(_timestamp(self.completed_at_ms))
            message.result_expires_at.CopyFrom(_timestamp(self.result_ends_at_ms))
            message.result_expired = self.result_ends_at_ms <= now_ms
            if not message.result_expired and self.result is not None:
                message.result.CopyFrom(self.result)
        elif self.released_at_ms is not None:
            message.state = Record.STATE_RELEASED
            message.released_at.CopyFrom(_timestamp(self.released_at_ms))
            message.release_reason = self.release_reason
        elif self.is_ambiguous(now_ms):
            message.state = Record.STATE_AMBIGUOUS
        return message


class Records:
    """The records, and the clock that decides about them. The caller holds a lock during each call."""

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self.counts = ClaimCounts()
        self._by_name: dict[tuple[str, str], _Stored] = {}
        #: All keys share one counter, so that a key's tokens increase also after its record has expired.
        self._last_token = 0

    def all(self) -> list[Record]:
        """Returns every record whose retention has not ended, in the order in which the keys were first
        claimed.
        """
        return [
            each.message(self.now_ms) for each in self._by_name.values() if each.expires_at_ms > self.now_ms
        ]

    def claim(self, request: ClaimRequest, policy: TestingPolicy) -> ClaimResponse:
        """Answers a Claim, without its wait. :raises Refused:"""
        key_ms = _check_claim(request, policy, self.now_ms)
        met = self._find(request.namespace, request.key)
        fingerprints = {request.fingerprint} | ({met.fingerprint} if met else set())
        if len(fingerprints - {b""}) > 1:
            raise Refused(
                "FINGERPRINT_MISMATCH", "The key is bound to another request: its fingerprint differs."
            )
        if met is None and key_ms is not None:
            _check_age(key_ms, policy, self.now_ms)
        response = ClaimResponse(server_time=_timestamp(self.now_ms))
        outcome = self._outcome(met, request)
        if outcome == "granted":
            met = self._grant(request, met, policy)
        assert met is not None
        self.counts = replace(self.counts, **{outcome: getattr(self.counts, outcome) + 1})
        if outcome in ("granted", "recovered"):
            response.claimed.CopyFrom(met.claimed(self.now_ms))
        elif outcome == "replayed":
            record = met.message(self.now_ms)
            completed = Completed(completed_at=record.completed_at, result_expired=record.result_expired)
            if record.HasField("result"):
                completed.result.CopyFrom(record.result)
            response.completed.CopyFrom(completed)
        elif outcome == "in_progress":
            left_ms = met.lease_ends_at_ms - self.now_ms
            response.in_progress.CopyFrom(
                InProgress(
                    owner=met.owner,
                    attempt=met.attempt,
                    lease_expires_at=_timestamp(met.lease_ends_at_ms),
                    retry_after=_duration(max(10, min(1000, left_ms))),
                )
            )
        else:
            response.ambiguous.CopyFrom(
                Ambiguous(
                    owner=met.owner,
                    attempt=met.attempt,
                    lease_expired_at=_timestamp(met.lease_ends_at_ms),
                    checkpoint=met.checkpoint,
                )
            )
        response.expires_at.CopyFrom(_timestamp(met.expires_at_ms))
        return response

    def _outcome(self, met: _Stored | None, request: ClaimRequest) -> str:
        if met is None or met.released_at_ms is not None:
            return "granted"
        if met.completed_at_ms is not None:
            return "replayed"
        if met.lease_ends_at_ms > self.now_ms:
            is_own = request.claim_id != "" and request.claim_id == met.claim_id
            return "recovered" if is_own else "in_progress"
        return "ambiguous" if met.is_ambiguous(self.now_ms) and not request.accept_ambiguous else "granted"

    def _grant(self, request: ClaimRequest, previous: _Stored | None, policy: TestingPolicy) -> _Stored:
        """Keeps a claim; ``previous`` is the record that it takes over, as a further attempt."""
        lease_ms = request.lease.ToMilliseconds() if request.HasField("lease") else None
        retention_s = request.retention.ToSeconds() if request.HasField("retention") else None
        terms = terms_of(policy, lease_ms, retention_s)
        self._last_token += 1
        now_ms = self.now_ms
        lease_ends_at_ms = now_ms + terms.lease_ms
        granted = _Stored(
            namespace=request.namespace,
            key=request.key,
            token=self._last_token,
            attempt=1 if previous is None else previous.attempt + 1,
            claim_id=request.claim_id,
            owner=request.owner,
            fingerprint=(previous.fingerprint if previous else b"") or request.fingerprint,
            first_claimed_at_ms=previous.first_claimed_at_ms if previous else now_ms,
            claimed_at_ms=now_ms,
            lease_ends_at_ms=lease_ends_at_ms,
            expires_at_ms=max(now_ms + terms.key_retention_s * 1000, lease_ends_at_ms),
            terms=terms,
            checkpoint=previous.checkpoint if previous else None,
        )
        if previous is None:
            # A key that was forgotten is claimed for the first time again.
            self._by_name.pop((request.namespace, request.key), None)
        self._by_name[(request.namespace, request.key)] = granted
        return granted

    def complete(self, request: CompleteRequest, policy: TestingPolicy) -> CompleteResponse:
        """Answers a Complete. :raises Refused:"""
        _check_complete(request, policy)
        held = self._own(request.namespace, request.key, request.fencing_token)
        if held.released_at_ms is not None:
            raise _already_released()
        again = held.completed_at_ms is not None
        if again and held.result != request.result:
            raise Refused("ALREADY_COMPLETED", "The claim was completed before, with another result.")
        if not again:
            terms = held.terms
            shortens = request.HasField("retention") and policy.late_keys == "RUN"
            retention_s = request.retention.ToSeconds() if shortens else terms.key_retention_s
            is_failure = request.result.kind == Result.KIND_FAILURE
            kind_s = terms.failure_retention_s if is_failure else terms.result_retention_s
            held.completed_at_ms = self.now_ms
            held.result = Result()
            held.result.CopyFrom(request.result)
            held.expires_at_ms = self.now_ms + retention_s * 1000
            held.result_ends_at_ms = self.now_ms + min(retention_s, kind_s) * 1000
        return CompleteResponse(
            completed_at=_timestamp(held.completed_at_ms or 0),
            expires_at=_timestamp(held.expires_at_ms),
            already_completed=again,
        )

    def release(self, request: ReleaseRequest, _: TestingPolicy) -> ReleaseResponse:
        """Answers a Release. :raises Refused:"""
        violations = Violations()
        violations.held(request.namespace, request.key, request.fencing_token)
        violations.reason(request.reason)
        violations.raise_if_any()
        held = self._own(request.namespace, request.key, request.fencing_token)
        if held.completed_at_ms is not None:
            raise _already_completed()
        if held.released_at_ms is None:
            held.released_at_ms, held.release_reason = self.now_ms, request.reason
        return ReleaseResponse(expires_at=_timestamp(held.expires_at_ms))

    def extend_lease(self, request: ExtendLeaseRequest, policy: TestingPolicy) -> ExtendLeaseResponse:
        """Answers an ExtendLease. :raises Refused:"""
        violations = Violations()
        violations.held(request.namespace, request.key, request.fencing_token)
        if request.HasField("lease"):
            violations.duration("lease", request.lease, MIN_LEASE_MS, policy.max_lease_ms)
        if request.HasField("checkpoint"):
            violations.checkpoint(request.checkpoint.name, request.checkpoint.state)
        violations.raise_if_any()
        held = self._own(request.namespace, request.key, request.fencing_token)
        if held.completed_at_ms is not None:
            raise _already_completed()
        if held.released_at_ms is not None:
            raise _already_released()
        lease_ms = request.lease.ToMilliseconds() if request.HasField("lease") else held.terms.lease_ms
        held.lease_ends_at_ms = max(held.lease_ends_at_ms, self.now_ms + lease_ms)
        held.expires_at_ms = max(held.expires_at_ms, held.lease_ends_at_ms)
        if request.HasField("checkpoint"):
            held.checkpoint = Checkpoint()
            held.checkpoint.CopyFrom(request.checkpoint)
        return ExtendLeaseResponse(
            lease_expires_at=_timestamp(held.lease_ends_at_ms),
            lease_remaining=_duration(held.lease_ends_at_ms - self.now_ms),
            expires_at=_timestamp(held.expires_at_ms),
        )

    def lookup(self, request: LookupRequest, _: TestingPolicy) -> LookupResponse:
        """Answers a Lookup."""
        found = self._find(request.namespace, request.key)
        record = None if found is None else found.message(self.now_ms)
        return LookupResponse(server_time=_timestamp(self.now_ms), record=record)

    def _find(self, namespace: str, key: str) -> _Stored | None:
        """Returns the record, if the key is known and its retention has not ended."""
        found = self._by_name.get((namespace, key))
        return found if found is not None and found.expires_at_ms > self.now_ms else None

    def _own(self, namespace: str, key: str, token: int) -> _Stored:
        """Returns the record of the claim that a token names. :raises Refused:"""
        found = self._find(namespace, key)
        if found is None:
            raise Refused(
                "RECORD_NOT_FOUND", "There is no such record: never claimed, or its retention has ended."
            )
        if found.token != token:
            raise Refused("CLAIM_SUPERSEDED", "The fencing token does not name the key's newest claim.")
        return found


def _check_claim(request: ClaimRequest, policy: TestingPolicy, now_ms: int) -> int | None:
    """Returns when the key was made, if the policy asks. :raises Refused: INVALID_REQUEST."""
    violations = Violations()
    violations.claim_name(request.namespace, request.key)
    violations.fingerprint(request.fingerprint, policy.require_fingerprint)
    violations.owner(request.owner, request.claim_id)
    if request.HasField("lease"):
        violations.duration("lease", request.lease, MIN_LEASE_MS, policy.max_lease_ms)
    if request.HasField("retention"):
        violations.duration("retention", request.retention, MIN_RETENTION_MS, policy.key_retention_s * 1000)
    if request.HasField("wait"):
        violations.duration("wait", request.wait, 0, MAX_WAIT_MS)
    key_ms = None if policy.late_keys == "RUN" else _key_ms(request)
    if policy.late_keys == "REQUIRE_TIME" and key_ms is None:
        violations.add("key_created_at", "is required by the namespace's policy, as the key contains no time")
    if key_ms is not None and key_ms > now_ms + _MAX_AHEAD_MS:
        field = "key_created_at" if request.HasField("key_created_at") else "key"
        violations.add(
            field, f"must not be created more than {_MAX_AHEAD_MS // 1000} s after the server's time"
        )
    violations.raise_if_any()
    return key_ms


def _key_ms(request: ClaimRequest) -> int | None:
    if request.HasField("key_created_at"):
        return request.key_created_at.ToMilliseconds()
    made_at = key_time(request.key)
    return None if made_at is None else (made_at - _EPOCH) // timedelta(milliseconds=1)


def _check_age(key_ms: int, policy: TestingPolicy, now_ms: int) -> None:
    """Refuses a key that has no record and is too old. :raises Refused: KEY_TOO_OLD."""
    accepted_until_ms = key_ms + policy.key_retention_s * 1000
    if now_ms < accepted_until_ms:
        return
    metadata = {"key_created_at": _iso(key_ms), "accepted_until": _iso(accepted_until_ms)}
    message = (
        "The key is older than its retention and has no record: its operation may have happened and been "
        "forgotten. Find out whether it happened; if it did not, repeat it under a new key."
    )
    raise Refused("KEY_TOO_OLD", message, metadata=metadata)


def _iso(ms: int) -> str:
    moment = _EPOCH + timedelta(milliseconds=ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _check_complete(request: CompleteRequest, policy: TestingPolicy) -> None:
    violations = Violations()
    violations.held(request.namespace, request.key, request.fencing_token)
    if request.result.kind not in (Result.KIND_SUCCESS, Result.KIND_FAILURE):
        violations.add("result.kind", "must be KIND_SUCCESS or KIND_FAILURE")
    violations.text("result.content_type", request.result.content_type, 0, MAX_CONTENT_TYPE_BYTES)
    if request.HasField("retention"):
        violations.duration("retention", request.retention, MIN_RETENTION_MS, policy.key_retention_s * 1000)
    violations.raise_if_any()
    size = len(request.result.payload)
    if request.result.metadata:
        size += len(
            json.dumps(dict(request.result.metadata), ensure_ascii=False, separators=(",", ":")).encode()
        )
    if size > policy.max_result_bytes:
        limit = policy.max_result_bytes
        message = f"The result has {size} bytes with its metadata; the policy allows {limit}."
        raise Refused("RESULT_TOO_LARGE", message)


def _already_completed() -> Refused:
    return Refused("ALREADY_COMPLETED", "The claim was completed before.")


def _already_released() -> Refused:
    return Refused("ALREADY_RELEASED", "The claim was released before.")


def _timestamp(ms: int) -> Timestamp:
    made = Timestamp()
    made.FromMilliseconds(ms)
    return made


def _duration(ms: int) -> Duration:
    made = Duration()
    made.FromMilliseconds(ms)
    return made
