"""What a namespace's policy says."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

_HOUR_S = 3600
#: Longer than a key may be ahead of the clock, so that a record outlives the time in which its key is
#: accepted.
_LATE_KEYS_MARGIN_S = 600


@dataclass(frozen=True)
class TestingPolicy:
    """The policy of a namespace. The defaults are the service's."""

    #: Not a class of tests, for pytest.
    __test__ = False

    #: How long a key is remembered, from its claim or, once completed, from its completion.
    key_retention_s: int = 72 * _HOUR_S
    #: How long a successful result can be replayed. Default, and at most: ``key_retention_s``.
    result_retention_s: int | None = None
    #: How long a failure can be replayed. Default: ``result_retention_s``; at most ``key_retention_s``.
    failure_retention_s: int | None = None
    #: The lease of a claim that asks for none.
    default_lease_ms: int = 30_000
    #: The longest lease that a claim may ask for.
    max_lease_ms: int = 15 * 60_000
    #: RECLAIM: the next claim gets the key. HOLD: the record is ambiguous until it is resolved.
    on_lease_expiry: Literal["RECLAIM", "HOLD"] = "RECLAIM"
    #: The largest payload of a result.
    max_result_bytes: int = 64 * 1024
    #: Whether a claim without a fingerprint is refused.
    require_fingerprint: bool = False
    #: What happens to a claim whose key is older than ``key_retention_s`` and has no record. RUN: it is
    #: granted. REFUSE: it is refused. REQUIRE_TIME: so it is, and a key whose time is
    #: unknown is refused. Unless RUN, records are kept for 10 minutes longer than ``key_retention_s``.
    late_keys: Literal["RUN", "REFUSE", "REQUIRE_TIME"] = "RUN"


@dataclass(frozen=True)
class Terms:
    """The part of a policy that a claim fixes for its record, with every field set."""

    key_retention_s: int
    result_retention_s: int
    failure_retention_s: int
    lease_ms: int
    holds: bool


def resolve(policy: TestingPolicy) -> TestingPolicy:
    """Returns the policy in which a retention that is not set follows the wider one, and none outlives its
    key.
    """
    key_s = policy.key_retention_s
    result_s = min(key_s if policy.result_retention_s is None else policy.result_retention_s, key_s)
    failure_s = min(result_s if policy.failure_retention_s is None else policy.failure_retention_s, key_s)
    return replace(
        policy,
        result_retention_s=result_s,
        failure_retention_s=failure_s,
        default_lease_ms=min(policy.default_lease_ms, policy.max_lease_ms),
    )


def terms_of(policy: TestingPolicy, lease_ms: int | None, retention_s: int | None) -> Terms:
    """Returns the terms of a claim under a resolved policy.

    A request can shorten its retention only where keys of any age are accepted; elsewhere the record is kept
    for longer than its policy says, and so are results that are kept for as long as their key.
    """
    refuses = policy.late_keys != "RUN"
    kept_s = policy.key_retention_s if refuses or retention_s is None else retention_s
    margin_s = _LATE_KEYS_MARGIN_S if refuses else 0

    def stamped(each: int | None) -> int:
        return kept_s + margin_s if each is None or each >= kept_s else each

    return Terms(
        key_retention_s=kept_s + margin_s,
        result_retention_s=stamped(policy.result_retention_s),
        failure_retention_s=stamped(policy.failure_retention_s),
        lease_ms=policy.default_lease_ms if lease_ms is None else lease_ms,
        holds=policy.on_lease_expiry == "HOLD",
    )
