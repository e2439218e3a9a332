"""The values of cases that JSON does not have, and names as Python writes them."""

from __future__ import annotations

import json
import re
import struct
from datetime import datetime
from typing import Any


class Opaque:
    """A class without a JSON form."""


def _circular(_: object) -> object:
    value: dict[str, object] = {}
    value["self"] = value
    return value


def _nested(depth: int) -> object:
    value: list[object] = []
    for _ in range(depth - 1):
        value = [value]
    return value


_TAGS = {
    "$date": lambda text: datetime.fromisoformat(text.replace("Z", "+00:00")),
    "$bytes": bytes.fromhex,
    "$double": lambda bits: struct.unpack(">d", bytes.fromhex(bits))[0],
    "$integer": int,
    "$set": set,
    "$text": lambda length: "x" * length,
    "$object": lambda _: Opaque(),
    "$circular": _circular,
    "$nested": _nested,
}


def read_value(value: Any) -> Any:
    """Returns the value that a case's JSON stands for."""
    if isinstance(value, list):
        return [read_value(each) for each in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        [(tag, argument)] = value.items()
        if tag in _TAGS:
            return _TAGS[tag](argument)
    return {name: read_value(member) for name, member in value.items()}


def write_value(value: Any) -> Any:
    """Returns a value as a case's JSON has it."""
    if isinstance(value, bytes):
        return {"$bytes": value.hex()}
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        return {"$unwritable": True}


def snake_case(name: str) -> str:
    """Returns the name of an option in Python, such as lease_ms."""
    return re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def camel_case(name: str) -> str:
    """Returns the name of an option in cases, such as leaseMs."""
    return re.sub(r"_([a-z])", lambda letter: letter[1].upper(), name)
