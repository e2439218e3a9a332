"""What errors.proto says of a reason."""

from __future__ import annotations

import re
from typing import Any, cast

from .v1 import facts_pb2
from .v1.errors_pb2 import DESCRIPTOR

_NAMED = {
    value.name.split("_REASON_", 1)[1]: value
    for enum in DESCRIPTOR.enum_types_by_name.values()
    for value in enum.values
}


def facts_of(reason: str) -> facts_pb2.ReasonFacts | None:
    """Returns the facts of a reason; None for a reason of a newer service."""
    value = _NAMED.get(reason)
    if value is None:
        return None
    # The generator of stubs gives extensions a type that their own index does not take.
    facts: facts_pb2.ReasonFacts = value.GetOptions().Extensions[cast(Any, facts_pb2.reason)]
    return facts


def remedy_of(reason: str) -> str | None:
    """Returns what a developer does about an error of this reason; None for a reason of a newer service."""
    facts = facts_of(reason)
    if facts is None:
        return None
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"[{}]", "", facts.remedy))
