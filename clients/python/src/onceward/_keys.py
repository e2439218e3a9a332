"""Keys: joined, derived, and in HTTP headers."""

from __future__ import annotations

import base64
import hashlib
import re
import time

from ._limits import MAX_KEY_BYTES
from ._texts import is_well_formed, refused_field, utf8_length

#: Never changed within a major version: it changes every derived key, and downstreams would repeat effects.
_DERIVED_KEY_SCHEME = "onceward.derived-key.v1"
_MAX_SAFE_FLOAT = 2**53 - 1
_DAY_MS = 86_400_000
_EPOCH_MS = re.compile(r"[0-9]{13}")
#: A time on a full second may be intended: a job that is due at midnight.
_ISO_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.(?!0+[^0-9])[0-9]+(Z|[+-][0-9]{2}:?[0-9]{2})"
)
#: RFC 8941, 3.3.3: printable ASCII in quotes, where a backslash comes before a quote or another backslash.
_QUOTED = re.compile(r'"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])+)"')
#: Visible ASCII without quotes, commas and semicolons, as many deployed clients send it.
_BARE = re.compile(r"[\x21\x23-\x2b\x2d-\x3a\x3c-\x7e]+")


def join_key(*parts: str | int | float) -> str:
    """Returns a key made of several parts: ``join_key("refund", "tx-12", 3)`` is ``refund:tx-12:3``.

    Two different tuples never share a key: ``:`` and ``%`` within a part are escaped. A key longer than 255
    bytes becomes
    ``%sha256:`` and 43 characters of its hash. The same in every language and version.

    :raises InvalidRequestError: for no parts, and for a float that is not a whole number.
    """
    if not parts:
        raise refused_field("key", "must have parts")
    key = ":".join(map(_escape_part, parts))
    if utf8_length(key) <= MAX_KEY_BYTES:
        return key
    # In the readable form a "%" is never followed by an "s".
    return f"%sha256:{_digest(key)}"


def _escape_part(part: str | int | float) -> str:
    if isinstance(part, str):
        if not is_well_formed(part):
            raise refused_field("key", "must be well-formed Unicode")
        return part.replace("%", "%25").replace(":", "%3A")
    if isinstance(part, bool) or not isinstance(part, (int, float)):
        raise refused_field("key", f"must have texts and whole numbers only, has a {type(part).__name__}")
    if isinstance(part, float) and not (part.is_integer() and abs(part) <= _MAX_SAFE_FLOAT):
        raise refused_field("key", "must have whole numbers only")
    return str(int(part))


def derive_key(namespace: str, key: str, label: str) -> str:
    """Returns an idempotency key for a downstream: 43 characters, the same on every attempt, different for
    every label.

    A downstream that honours such keys absorbs the repeat after a crash. It does not reveal the original key.
    """
    parts = [_DERIVED_KEY_SCHEME, namespace, key, label]
    # Each part has its length before it, so that no two ways of dividing a text give the same key.
    return _digest("".join(f"{utf8_length(part)}:{part}" for part in parts))


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


def looks_like_timestamp(key: str) -> bool:
    """Returns whether a key looks like the current time, which differs on each delivery."""
    if _EPOCH_MS.fullmatch(key):
        return abs(time.time() * 1000 - int(key)) < _DAY_MS
    return _ISO_TIME.fullmatch(key) is not None


def parse_idempotency_key(header: str) -> str | None:
    """Returns the key in an Idempotency-Key header, quoted or not; None if it has neither form, or is too
    long.
    """
    quoted = _QUOTED.fullmatch(header)
    if quoted is not None:
        key = re.sub(r"\\(.)", r"\1", quoted[1])
    elif _BARE.fullmatch(header):
        key = header
    else:
        return None
    return key if len(key) <= MAX_KEY_BYTES else None


def format_idempotency_key(key: str) -> str:
    """Returns a key as the header's structured-field string.

    :raises ValueError: if it is not printable ASCII.
    """
    escaped = re.sub(r'(["\\])', r"\\\1", key)
    header = f'"{escaped}"'
    if _QUOTED.fullmatch(header):
        return header
    raise ValueError("an idempotency key in a header must be printable ASCII, at least one character")
