"""What a namespace's policy says."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal

from .. import _limits

#: Longer than a key may be ahead of the clock, so that a record outlives the time in which its key is
#: accepted.
_LATE_KEYS_MARGIN_S = 2 * _limits.MAX_KEY_AHEAD_MS // 1000


@dataclass(frozen=True)
class TestingPolicy:
    """The policy of a namespace. The defaults are the service's."""

    #: Not a class of tests, for pytest.
    __test__ = False

    #: How long a key is remembered, from its claim or, once completed, from its completion.
    key_retention_s: int = _limits.DEFAULT_KEY_RETENTION_S
    #: How long a successful result can be replayed. Default, and at most: ``key_retention_s``.
    result_retention_s: int | None = None
    #: How long a failure can be replayed. Default: ``result_retention_s``; at most ``key_retention_s``.
    failure_retention_s: int | None = None
    #: The lease of a claim that asks for none, at most ``max_lease_ms``.
    default_lease_ms: int = _limits.DEFAULT_LEASE_MS
    #: The longest lease that a claim may ask for.
    max_lease_ms: int = _limits.DEFAULT_MAX_LEASE_MS
    #: RECLAIM: the next claim gets the key, within ``reclaim_within_s``. HOLD: the record is ambiguous until
    #: it is resolved.
    on_lease_expiry: Literal["RECLAIM", "HOLD"] = "RECLAIM"
    #: With RECLAIM: how long after a record's first claim the next claim gets a key whose lease expired;
    #: afterwards the record is ambiguous. At most ``key_retention_s``. Default: without a limit.
    reclaim_within_s: int | None = None
    #: The largest payload of a result.
    max_result_bytes: int = _limits.DEFAULT_MAX_RESULT_BYTES
    #: Whether a claim without a fingerprint is refused.
    require_fingerprint: bool = False
    #: What happens to a claim whose key is older than ``key_retention_s`` and has no record. RUN: it is
    #: granted. REFUSE: it is refused. REQUIRE_TIME: so it is, and a key whose time is
    #: unknown is refused. Unless RUN, records are kept for 10 minutes longer than ``key_retention_s``.
    late_keys: Literal["RUN", "REFUSE", "REQUIRE_TIME"] = "RUN"


def reclaimed_ms(policy: TestingPolicy) -> float:
    """Returns how long after a record's first claim an expired lease is taken over."""
    if policy.on_lease_expiry == "HOLD":
        return 0
    if policy.reclaim_within_s is None:
        return inf
    return min(policy.reclaim_within_s, policy.key_retention_s) * 1000


def kept_ms(policy: TestingPolicy, *retentions_s: int | None) -> int:
    """Returns how long a record is kept, or with retentions its result: as the first that is set says, and no
    longer than the record.
    """
    key_s = policy.key_retention_s
    own_s = next((each for each in retentions_s if each is not None), key_s)
    margin_s = 0 if policy.late_keys == "RUN" else _LATE_KEYS_MARGIN_S
    return (own_s if own_s < key_s else key_s + margin_s) * 1000
