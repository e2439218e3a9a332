"""Canonical JSON (RFC 8785): members sorted, and numbers as ECMAScript prints them."""

from __future__ import annotations

import json
import math

_MAX_SAFE_INTEGER = 2**53 - 1
#: From here on, the digits of JSON's numbers have an exponent.
_FIRST_EXPONENT = 1e21


def canonical_json(value: object) -> str:
    """Returns the canonical text of a JSON value: None, bool, int, float, str, list, dict with str keys."""
    if isinstance(value, dict):
        # By UTF-16 code units, as RFC 8785 sorts.
        names = sorted(value, key=lambda name: str(name).encode("utf-16-be"))
        return "{" + ",".join(f"{_text(name)}:{canonical_json(value[name])}" for name in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical_json, value)) + "]"
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, (int, float)):
        return ecmascript_number(float(value))
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def number_problem(value: int | float) -> str | None:
    """Returns why a number has no JSON form that every language reads as the same number; None if it has."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value}"
    if isinstance(value, int) and abs(value) > _MAX_SAFE_INTEGER:
        return "a whole number that a double does not hold exactly"
    if _MAX_SAFE_INTEGER < abs(value) < _FIRST_EXPONENT:
        return "a number whose digits a double does not hold"
    return None


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def ecmascript_number(value: float) -> str:
    """Returns a finite number as ECMAScript's Number::toString does (ECMA-262, 6.1.6.1.20)."""
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent_text = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    # The value is 0.DIGITS times 10 to the power of `point`.
    digits = (whole + fraction).lstrip("0")
    leading_zeros = len(whole + fraction) - len(digits)
    point = len(whole) - leading_zeros + int(exponent_text or 0)
    digits = digits.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    exponent = point - 1
    fraction = f".{digits[1:]}" if count > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{'+' if exponent > 0 else '-'}{abs(exponent)}"
