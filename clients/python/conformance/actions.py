"""The actions that call no service."""

from __future__ import annotations

import json
from typing import Any

from reports import report_error
from values import read_value

from onceward import (
    derive_key,
    fingerprint_of,
    format_idempotency_key,
    join_key,
    key_time,
    parse_idempotency_key,
)
from onceward._flow import retry_delay_ms
from onceward._keys import looks_like_timestamp
from onceward._lease import lease_ends_at_ms


def perform_action(case: dict[str, Any]) -> object:
    """Performs an action. Returns its outcome."""
    try:
        return _ACTIONS[case["do"]](case)
    except Exception as error:
        return report_error(error)


def _fingerprint(case: dict[str, Any]) -> object:
    value = json.loads(case["json"]) if "json" in case else read_value(case["value"])
    return {"fingerprint": fingerprint_of(value, omit=case.get("omit", ())).hex()}


def _key_time(case: dict[str, Any]) -> object:
    made_at = key_time(case["key"])
    if made_at is None:
        return {"createdAt": None}
    return {"createdAt": made_at.isoformat(timespec="milliseconds").replace("+00:00", "Z")}


_ACTIONS = {
    "keyTime": _key_time,
    "fingerprint": _fingerprint,
    "joinKey": lambda case: {"key": join_key(*map(read_value, case["parts"]))},
    "deriveKey": lambda case: {"key": derive_key(case["namespace"], case["key"], case["label"])},
    "looksLikeTimestamp": lambda case: {"looksLikeTimestamp": looks_like_timestamp(case["key"])},
    "parseKeyHeader": lambda case: {"key": parse_idempotency_key(case["header"])},
    "formatKeyHeader": lambda case: {"header": format_idempotency_key(case["key"])},
    "retryDelay": lambda case: {"delayMs": retry_delay_ms(case["failures"], case["atLeastMs"])},
    "leaseEnd": lambda case: {"endsAtMs": lease_ends_at_ms(case["sentAtMs"], case["remainingMs"])},
}
