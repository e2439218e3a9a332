"""The fingerprint that binds a key to one request."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from decimal import Decimal
from typing import Union
from uuid import UUID

from ._canonical import canonical_json, number_problem
from ._catalogue import InvalidRequestError
from ._limits import FINGERPRINT_BYTES
from ._texts import is_well_formed, refused_field

_Omissions = dict[str, Union["_Omissions", None]]


def fingerprint_of(value: object, *, omit: Sequence[str] = ()) -> bytes:
    """Returns the 32 bytes that bind a key to one request: the SHA-256 of the value's canonical JSON (RFC
    8785).

    The same value has the same fingerprint in the client of every language. 32 bytes are returned unchanged,
    as a hash made elsewhere. A dict, list, tuple, dataclass or pydantic model may hold str, bool, int, float,
    None, Decimal, UUID and aware datetimes, which count as their ISO text in UTC. Anything else is refused,
    because two different values would have the same JSON.

    :param omit: members that differ between deliveries of one operation, as JSON Pointers (RFC 6901):
        ``/sentAt``.
    :raises InvalidRequestError: for a value without a JSON form; its one violation is of the field
        ``fingerprint``.
    """
    if isinstance(value, (bytes, bytearray, memoryview)):
        digest = bytes(value)
        if len(digest) == FINGERPRINT_BYTES:
            return digest
        raise _refused(f"as bytes, must be the 32 of a SHA-256, is {len(digest)}; hash them first")
    omissions = _parse_omissions(omit)
    try:
        text = canonical_json(_plain(value, "", omissions, set()))
    except RecursionError:
        raise _refused("must be a JSON value that is not nested so deeply") from None
    return hashlib.sha256(text.encode()).digest()


def _plain(value: object, path: str, omissions: _Omissions | None, ancestors: set[int]) -> object:
    """Returns the value as JSON has it.

    :raises InvalidRequestError: with the path of the first part that has no form.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        if is_well_formed(value):
            return value
        raise _unusable("a text with a lone surrogate", path)
    if isinstance(value, (int, float)):
        return _plain_number(value, path)
    if isinstance(value, datetime):
        return _iso_text(value, path)
    if isinstance(value, (Decimal, UUID)):
        return str(value)
    if hasattr(value, "model_dump") and not isinstance(value, type):
        value = value.model_dump()
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    if not isinstance(value, (Mapping, list, tuple)):
        raise _unusable(f"a {type(value).__name__}", path, "; pass a dict with the fields that count")
    if id(value) in ancestors:
        raise _unusable("a circular reference", path)
    ancestors.add(id(value))
    plain: object
    if isinstance(value, Mapping):
        plain = _plain_members(value, path, omissions, ancestors)
    else:
        plain = [_plain(each, f"{path}/{index}", None, ancestors) for index, each in enumerate(value)]
    ancestors.discard(id(value))
    return plain


def _plain_members(
    value: Mapping[object, object], path: str, omissions: _Omissions | None, ancestors: set[int]
) -> dict[str, object]:
    members: dict[str, object] = {}
    for name, member in value.items():
        if not isinstance(name, str) or not is_well_formed(name):
            raise _unusable("a member whose name is not a text of Unicode", path)
        omission = None
        if omissions is not None and name in omissions:
            omission = omissions[name]
            if omission is None:
                continue
        escaped = name.replace("~", "~0").replace("/", "~1")
        members[name] = _plain(member, f"{path}/{escaped}", omission, ancestors)
    return members


def _plain_number(value: int | float, path: str) -> float:
    """Returns the number as a double, which is what JSON's numbers are in most languages."""
    problem = number_problem(value)
    if problem is not None:
        raise _unusable(problem, path, "; pass it as a str")
    return float(value)


def _iso_text(value: datetime, path: str) -> str:
    if value.tzinfo is None:
        raise _unusable("a datetime without a time zone", path)
    utc = value.astimezone(timezone.utc).replace(tzinfo=None)
    # Milliseconds, as other languages have them, unless that would drop digits.
    precision = "milliseconds" if utc.microsecond % 1000 == 0 else "microseconds"
    return f"{utc.isoformat(timespec=precision)}Z"


def _unusable(what: str, path: str, remedy: str = "") -> InvalidRequestError:
    where = f"is {what}" if path == "" else f"has {what} at {path[:256]}"
    return _refused(f"must be a JSON value or bytes, {where}{remedy}")


def _refused(description: str) -> InvalidRequestError:
    return refused_field("fingerprint", description)


def _parse_omissions(pointers: Sequence[str]) -> _Omissions:
    """Returns the members that JSON Pointers name, as a tree; None stands for a whole member."""
    root: _Omissions = {}
    for pointer in pointers:
        if not pointer.startswith("/"):
            raise refused_field("omit", f'must be JSON Pointers such as "/sentAt", has {pointer!r}')
        names = [name.replace("~1", "/").replace("~0", "~") for name in pointer[1:].split("/")]
        node: _Omissions | None = root
        for name in names[:-1]:
            if node is not None:
                node = node.setdefault(name, {})
        if node is not None:
            node[names[-1]] = None
    return root
