"""The records of one tenant, in memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from math import inf
from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from .._flow import duration
from .._keytime import EPOCH, key_time
from .._limits import MAX_KEY_AHEAD_MS
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
    Recorded,
    ReleaseRequest,
    ReleaseResponse,
)
from ..v1.record_pb2 import Record, Result
from ._policy import TestingPolicy, kept_ms, reclaimed_ms
from ._refusals import Refused, raise_if_any


@dataclass(frozen=True)
class ClaimCounts:
    """The number of claims by their outcome. ``recovered``: the caller's own claim, whose reply was lost."""

    granted: int = 0
    recovered: int = 0
    in_progress: int = 0
    replayed: int = 0
    ambiguous: int = 0


@dataclass
class _Held:
    """The record of one key, and what only the service knows of its newest claim."""

    #: In the state of the last time when it was found.
    record: Record
    claim_id: str
    lease_ms: int
    #: Whether the newest claim marks when its effect begins, and has not: its lease ends without an unknown
    #: outcome.
    begins_later: bool = False
    #: Kept beyond its retention, to distinguish a repeated Complete from a different one. None: the claim
    #: completed the record.
    result: Result | None = None
    #: Whether the newest claim accepts ambiguity, or that which was given back did.
    accepts_ambiguous: bool = False
    #: What the newest claim took over after its lease.
    unknown: _Held | None = None
    #: The token of the claim that was given back, if the newest one is that which it had taken over.
    given_back: int = 0


class Records:
    """The records, and the clock that decides about them. The caller holds a lock during each call.

    They keep to the policy, and do not check what the client checks before it sends a request. Each call
    raises Refused, with the reasons that idempotency.proto lists for it.
    """

    def __init__(self, now_ms: int, policy_of: Callable[[str], TestingPolicy]) -> None:
        self.now_ms = now_ms
        self._policy_of = policy_of
        self.counts = ClaimCounts()
        self._by_name: dict[tuple[str, str], _Held] = {}
        #: All keys share one counter, so that a key's tokens increase also after its record has expired.
        self._last_token = 0

    def all(self) -> list[Record]:
        """Returns every record whose retention has not ended, in the order in which the keys were first
        claimed.
        """
        found = [self._find(namespace, key) for namespace, key in self._by_name]
        return [_copy(each.record) for each in found if each is not None]

    def count(self, outcome: str) -> None:
        """Counts a claim."""
        self.counts = replace(self.counts, **{outcome: getattr(self.counts, outcome) + 1})

    def claim(self, request: ClaimRequest) -> ClaimResponse:
        """Answers a Claim without its wait, and counts it, unless another holder has the key."""
        policy = self._policy_of(request.namespace)
        key_ms = _check_claim(request, policy, self.now_ms)
        met = self._find(request.namespace, request.key)
        if met is None and key_ms is not None:
            _check_age(key_ms, policy, self.now_ms)
        if met is not None and len({request.fingerprint, met.record.fingerprint, b""}) > 2:
            raise Refused(
                "FINGERPRINT_MISMATCH", "The key is bound to another request: its fingerprint differs."
            )
        outcome = self._outcome(met, request)
        if met is None or outcome == "granted":
            met = self._grant(request, met, policy)
        if outcome != "in_progress":
            self.count(outcome)
        record, last = met.record, met.unknown and met.unknown.record
        checkpoint = record.checkpoint if record.HasField("checkpoint") else None
        left_ms = record.lease_expires_at.ToMilliseconds() - self.now_ms
        answer: dict[str, Any] = {}
        if outcome == "replayed":
            answer["completed"] = Completed(
                completed_at=record.completed_at,
                result=None if record.result_expired else record.result,
                result_expired=record.result_expired,
            )
        elif outcome == "in_progress":
            answer["in_progress"] = InProgress(
                owner=record.owner,
                attempt=record.attempt,
                lease_expires_at=record.lease_expires_at,
                retry_after=duration(max(10, min(1000, left_ms))),
            )
        elif outcome == "ambiguous":
            answer["ambiguous"] = Ambiguous(
                owner=record.owner,
                attempt=record.attempt,
                lease_expired_at=record.lease_expires_at,
                checkpoint=checkpoint,
            )
        elif record.state == Record.STATE_COMPLETED:
            answer["recorded"] = Recorded(completed_at=record.completed_at)
        else:
            answer["claimed"] = Claimed(
                fencing_token=record.fencing_token,
                attempt=record.attempt,
                first_claimed_at=record.first_claimed_at,
                lease_expires_at=record.lease_expires_at,
                lease_remaining=duration(left_ms),
                checkpoint=checkpoint,
                unknown=None
                if last is None
                else Ambiguous(
                    owner=last.owner, attempt=last.attempt, lease_expired_at=last.lease_expires_at
                ),
            )
        return ClaimResponse(expires_at=record.expires_at, server_time=_timestamp(self.now_ms), **answer)

    def _outcome(self, met: _Held | None, request: ClaimRequest) -> str:
        if met is None or met.record.state == Record.STATE_RELEASED:
            return "granted"
        is_own = bool(request.claim_id) and request.claim_id == met.claim_id
        if met.record.state == Record.STATE_COMPLETED:
            repeats = is_own and request.HasField("completion") and met.result is None
            return "recovered" if repeats else "replayed"
        if met.record.state == Record.STATE_AMBIGUOUS:
            return "granted" if request.accept_ambiguous else "ambiguous"
        if met.record.lease_expires_at.ToMilliseconds() <= self.now_ms:
            return "granted"
        return "recovered" if is_own else "in_progress"

    def _grant(self, request: ClaimRequest, previous: _Held | None, policy: TestingPolicy) -> _Held:
        """Keeps a claim; ``previous`` is the record that it takes over, as a further attempt."""
        default_ms = min(policy.default_lease_ms, policy.max_lease_ms)
        lease_ms = request.lease.ToMilliseconds() if request.HasField("lease") else default_ms
        if request.HasField("completion"):
            lease_ms = 0
        self._last_token += 1
        now = _timestamp(self.now_ms)
        record = Record(first_claimed_at=now, fingerprint=request.fingerprint)
        if previous is None:
            # A key that was forgotten is claimed for the first time again.
            self._by_name.pop((request.namespace, request.key), None)
        else:
            before = previous.record
            record.first_claimed_at.CopyFrom(before.first_claimed_at)
            record.fingerprint = before.fingerprint or request.fingerprint
            record.attempt = before.attempt
            if before.HasField("checkpoint"):
                record.checkpoint.CopyFrom(before.checkpoint)
        record.namespace, record.key, record.owner = request.namespace, request.key, request.owner
        record.state = Record.STATE_IN_PROGRESS
        record.fencing_token = self._last_token
        record.attempt += 1
        record.claimed_at.CopyFrom(now)
        record.lease_expires_at.FromMilliseconds(self.now_ms + lease_ms)
        record.expires_at.FromMilliseconds(self.now_ms + max(kept_ms(policy), lease_ms))
        if request.HasField("completion"):
            record.state = Record.STATE_COMPLETED
            record.result.kind = Result.KIND_SUCCESS
            record.completed_at.CopyFrom(now)
            record.result_expires_at.CopyFrom(record.expires_at)
        held = _Held(record, request.claim_id, lease_ms, request.marks_begin)
        held.accepts_ambiguous = request.accept_ambiguous
        if (
            previous is not None
            and previous.record.state != Record.STATE_RELEASED
            and not previous.begins_later
        ):
            held.unknown, held.begins_later = previous, False
        self._by_name[(request.namespace, request.key)] = held
        return held

    def complete(self, request: CompleteRequest) -> CompleteResponse:
        """Answers a Complete."""
        policy = self._policy_of(request.namespace)
        raise_if_any(retention=_NO_RETENTION if request.HasField("retention") else None)
        size = len(request.result.payload) + _json_bytes(dict(request.result.metadata))
        if size > policy.max_result_bytes:
            message = f"The policy allows results of {policy.max_result_bytes} bytes with their metadata."
            raise Refused("RESULT_TOO_LARGE", message)
        held = self._own(request, Record.STATE_COMPLETED)
        record = held.record
        again = record.state == Record.STATE_COMPLETED
        if again and held.result != request.result:
            raise Refused("ALREADY_COMPLETED", "The claim was completed before, with another result.")
        if not again:
            of_failure = [policy.failure_retention_s] if request.result.kind == Result.KIND_FAILURE else []
            replayed_ms = kept_ms(policy, *of_failure, policy.result_retention_s)
            held.result = Result()
            held.result.CopyFrom(request.result)
            record.state = Record.STATE_COMPLETED
            record.result.CopyFrom(request.result)
            record.completed_at.FromMilliseconds(self.now_ms)
            record.result_expires_at.FromMilliseconds(self.now_ms + replayed_ms)
            record.expires_at.FromMilliseconds(self.now_ms + kept_ms(policy))
        return CompleteResponse(
            completed_at=record.completed_at, expires_at=record.expires_at, already_completed=again
        )

    def release(self, request: ReleaseRequest) -> ReleaseResponse:
        """Answers a Release."""
        before = self._find(request.namespace, request.key)
        if before is not None and before.given_back and request.fencing_token == before.given_back:
            if request.give_back or not before.accepts_ambiguous:
                return ReleaseResponse(expires_at=before.record.expires_at)
        held = self._own(request, Record.STATE_RELEASED)
        record, back = held.record, held.unknown
        if record.state == Record.STATE_RELEASED:
            return ReleaseResponse(expires_at=record.expires_at)
        limited = reclaimed_ms(self._policy_of(request.namespace)) < inf
        says_nothing = request.give_back or (limited and (not held.accepts_ambiguous or held.given_back))
        if back is not None and says_nothing:
            # What was given back can't be given back a second time.
            if not held.given_back:
                last = back.record
                held.given_back, held.claim_id, held.unknown = record.fencing_token, "", back.unknown
                record.fencing_token, record.attempt = last.fencing_token, last.attempt
                record.owner = last.owner
                record.claimed_at.CopyFrom(last.claimed_at)
                record.lease_expires_at.CopyFrom(last.lease_expires_at)
        elif record.state != Record.STATE_RELEASED:
            record.state = Record.STATE_RELEASED
            record.released_at.FromMilliseconds(self.now_ms)
            record.release_reason = request.reason
        return ReleaseResponse(expires_at=record.expires_at)

    def extend_lease(self, request: ExtendLeaseRequest) -> ExtendLeaseResponse:
        """Answers an ExtendLease."""
        raise_if_any(lease=_lease_violation(request.lease, self._policy_of(request.namespace)))
        held = self._own(request)
        record = held.record
        lease_ms = request.lease.ToMilliseconds() if request.HasField("lease") else held.lease_ms
        end_ms = max(record.lease_expires_at.ToMilliseconds(), self.now_ms + lease_ms)
        record.state = Record.STATE_IN_PROGRESS
        record.lease_expires_at.FromMilliseconds(end_ms)
        record.expires_at.FromMilliseconds(max(record.expires_at.ToMilliseconds(), end_ms))
        if request.HasField("checkpoint"):
            record.checkpoint.CopyFrom(request.checkpoint)
        if request.begin:
            held.begins_later = False
        return ExtendLeaseResponse(
            lease_expires_at=record.lease_expires_at,
            lease_remaining=duration(end_ms - self.now_ms),
            expires_at=record.expires_at,
        )

    def lookup(self, request: LookupRequest) -> LookupResponse:
        """Answers a Lookup."""
        found = self._find(request.namespace, request.key)
        record = None if found is None else found.record
        return LookupResponse(server_time=_timestamp(self.now_ms), record=record)

    def _find(self, namespace: str, key: str) -> _Held | None:
        """Returns the record in its present state, if the key is known and its retention has not ended."""
        held = self._by_name.get((namespace, key))
        if held is None or held.record.expires_at.ToMilliseconds() <= self.now_ms:
            return None
        record = held.record
        lapsed = record.lease_expires_at.ToMilliseconds() <= self.now_ms
        age_ms = self.now_ms - record.first_claimed_at.ToMilliseconds()
        is_held = age_ms >= reclaimed_ms(self._policy_of(namespace)) and not held.begins_later
        if record.state == Record.STATE_IN_PROGRESS and lapsed and is_held:
            record.state = Record.STATE_AMBIGUOUS
        if held.result is not None and record.result_expires_at.ToMilliseconds() <= self.now_ms:
            record.result_expired = True
            record.ClearField("result")
        return held

    def _own(self, request: Any, *allowed: Record.State) -> _Held:
        """Returns the record of the claim that a token names, unless it has ended otherwise than allowed."""
        held = self._find(request.namespace, request.key)
        if held is None:
            raise Refused("RECORD_NOT_FOUND", "The key was never claimed, or its retention has ended.")
        if held.record.fencing_token != request.fencing_token:
            raise Refused("CLAIM_SUPERSEDED", "The fencing token does not name the key's newest claim.")
        if held.record.state not in allowed and held.record.state == Record.STATE_COMPLETED:
            raise Refused("ALREADY_COMPLETED", "The claim was completed before.")
        if held.record.state not in allowed and held.record.state == Record.STATE_RELEASED:
            raise Refused("ALREADY_RELEASED", "The claim was released before.")
        return held


_NO_LEASE = "must be unset with `completion`, which needs no lease"
#: No client sends a retention: the policy alone decides.
_NO_RETENTION = "is not in the service in memory: set its policy"


def _check_claim(request: ClaimRequest, policy: TestingPolicy, now_ms: int) -> int | None:
    """Returns when the key was made, if the policy asks. :raises Refused: INVALID_REQUEST."""
    key_ms = None if policy.late_keys == "RUN" else _key_ms(request)
    time_missing = policy.late_keys == "REQUIRE_TIME" and key_ms is None
    is_ahead = key_ms is not None and key_ms > now_ms + MAX_KEY_AHEAD_MS
    ahead = f"must not be created more than {MAX_KEY_AHEAD_MS // 1000} s after the server's time"
    own_time = request.HasField("key_created_at")
    required = "is required by the namespace's policy"
    raise_if_any(
        fingerprint=required if policy.require_fingerprint and not request.fingerprint else None,
        lease=_lease_violation(request.lease, policy)
        or (_NO_LEASE if request.HasField("completion") and request.HasField("lease") else None),
        retention=_NO_RETENTION if request.HasField("retention") else None,
        key=ahead if is_ahead and not own_time else None,
        key_created_at=required if time_missing else ahead if is_ahead and own_time else None,
    )
    return key_ms


def _lease_violation(lease: Duration, policy: TestingPolicy) -> str | None:
    is_too_long = lease.ToMilliseconds() > policy.max_lease_ms
    return f"must be at most {policy.max_lease_ms} ms" if is_too_long else None


def _key_ms(request: ClaimRequest) -> int | None:
    if request.HasField("key_created_at"):
        return request.key_created_at.ToMilliseconds()
    made_at = key_time(request.key)
    return None if made_at is None else (made_at - EPOCH) // timedelta(milliseconds=1)


def _check_age(key_ms: int, policy: TestingPolicy, now_ms: int) -> None:
    """Refuses a key that has no record and is too old. :raises Refused: KEY_TOO_OLD."""
    accepted_until_ms = key_ms + policy.key_retention_s * 1000
    if now_ms >= accepted_until_ms:
        message = (
            "The key is older than its retention and has no record: its operation may have happened and been "
            "forgotten. Find out whether it happened; if it did not, repeat it under a new key."
        )
        times = {"key_created_at": _iso(key_ms), "accepted_until": _iso(accepted_until_ms)}
        raise Refused("KEY_TOO_OLD", message, **times)


def _json_bytes(metadata: dict[str, str]) -> int:
    compact = json.dumps(metadata, ensure_ascii=False, separators=(",", ":"))
    return len(compact.encode()) if metadata else 0


def _iso(ms: int) -> str:
    moment = EPOCH + timedelta(milliseconds=ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _copy(record: Record) -> Record:
    copied = Record()
    copied.CopyFrom(record)
    return copied


def _timestamp(ms: int) -> Timestamp:
    made = Timestamp()
    made.FromMilliseconds(ms)
    return made
