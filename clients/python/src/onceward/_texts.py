"""Checks of texts that are stored and shown."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from ._catalogue import InvalidRequestError
from ._errors import Violation


def is_well_formed(text: str) -> bool:
    """Returns whether the text is Unicode without lone surrogates, so that it has a form in UTF-8."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def utf8_length(text: str) -> int:
    """Returns the length in bytes of UTF-8; a lone surrogate counts as U+FFFD, which it would become."""
    return len(text.encode("utf-8", "surrogatepass"))


def truncate_utf8(text: str, max_bytes: int) -> str:
    """Returns the longest prefix of whole characters with at most ``max_bytes`` of UTF-8, well-formed."""
    return text.encode("utf-8", "replace")[:max_bytes].decode("utf-8", "ignore")


def text_violations(field: str, value: object, min_bytes: int, max_bytes: int) -> list[Violation]:
    """Returns the violations of a text: its length in bytes of UTF-8, and forbidden characters."""
    if not isinstance(value, str):
        return [Violation(field, f"must be a string, is {type(value).__name__}")]
    violations = []
    length = utf8_length(value)
    if not min_bytes <= length <= max_bytes:
        violations.append(Violation(field, f"must be {min_bytes}-{max_bytes} bytes of UTF-8, is {length}"))
    elif any(unicodedata.category(character) == "Cc" for character in value):
        violations.append(Violation(field, "must not contain control characters"))
    elif not is_well_formed(value):
        violations.append(Violation(field, "must be well-formed Unicode, without lone surrogates"))
    return violations


def raise_if_any(violations: Sequence[Violation]) -> None:
    """Raises if there are violations. :raises InvalidRequestError: with all of them."""
    if violations:
        summary = "; ".join(f"{each.field} {each.description}" for each in violations)
        raise InvalidRequestError(summary, violations=violations)


def refused_field(field: str, description: str) -> InvalidRequestError:
    """Returns the error of a request that is refused because of one field."""
    return InvalidRequestError(f"{field} {description}", violations=[Violation(field, description)])
