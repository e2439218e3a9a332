"""What errors.proto says of a reason."""

from __future__ import annotations

import re
from typing import Any

from .v1 import facts_pb2
from .v1.errors_pb2 import DESCRIPTOR

_NAMED = {
    value.name.split("_REASON_", 1)[1]: value
    for enum in DESCRIPTOR.enum_types_by_name.values()
    for value in enum.values
}


def facts_of(reason: str) -> facts_pb2.ReasonFacts | None:
    """Returns the facts of a reason; None for a reason of a newer service."""
    facts: facts_pb2.ReasonFacts | None = _option(reason, facts_pb2.reason)
    return facts


def is_claim_over(reason: str) -> bool:
    """Returns whether no further call prolongs or settles the claim that the refused request named."""
    facts = facts_of(reason)
    return facts is not None and facts.claim_is_over


def remedy_of(reason: str) -> str | None:
    """Returns what a developer does about an error of this reason; None for a reason of a newer service."""
    remedy = _option(reason, facts_pb2.remedy)
    if remedy is None:
        return None
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"[{}]", "", remedy))


def _option(reason: str, extension: Any) -> Any:
    value = _NAMED.get(reason)
    return None if value is None else value.GetOptions().Extensions[extension]
