"""Tool calls that did not run, in words for the model."""

from __future__ import annotations

import json
from typing import Literal

from ._errors import OncewardError
from ._mapping import class_of, is_unavailable
from .v1 import facts_pb2

#: - AMBIGUOUS: an earlier attempt began and never reported its outcome: it may have had its effect.
#: - ARGUMENTS_CHANGED: an earlier attempt of the step or operation called the tool with other arguments.
#: - IN_PROGRESS: another process runs the same call.
#: - RESULT_UNAVAILABLE: the call was done before, and its value is no longer stored.
#: - TOO_OLD: the call's key is older than the service remembers keys.
#: - UNAVAILABLE: the service did not grant the claim, see ``__cause__``.
BlockedReason = Literal[
    "AMBIGUOUS", "ARGUMENTS_CHANGED", "IN_PROGRESS", "RESULT_UNAVAILABLE", "TOO_OLD", "UNAVAILABLE"
]

_TEXTS: dict[BlockedReason, str] = {
    "AMBIGUOUS": (
        "OUTCOME UNKNOWN. The tool {tool} was called for this, and stopped before it reported its outcome. "
        "Its effect may have happened or not, and it does not run again automatically. Do not call it again "
        "for this purpose, and do not say that it succeeded or failed. If another tool can read the "
        "outcome, use that tool. Otherwise tell the user that a person has to check the operation {key}."
    ),
    "ARGUMENTS_CHANGED": (
        "NOT RUN. An earlier attempt already called the tool {tool} with other arguments, and that call may "
        "have had its effect. Nothing ran now. Repeat the call with the arguments of the first attempt to "
        "get its result. If this is a different and additional operation, {advice}."
    ),
    "IN_PROGRESS": (
        "STILL RUNNING. Another process is running this call of the tool {tool}. Nothing ran now. Call the "
        "tool again with the same arguments later to get its result."
    ),
    "RESULT_UNAVAILABLE": (
        "ALREADY DONE. This call of the tool {tool} was done before, once. Its result is no longer "
        "available. Nothing ran now. Do not call the tool again for this purpose. If you need the result, "
        "read it by another tool."
    ),
    "TOO_OLD": (
        "OUTCOME UNKNOWN. This call of the tool {tool} is so old that it may have been done before, and be "
        "forgotten. Nothing ran now. Do not call the tool again for this purpose, and do not say that it "
        "succeeded or failed. If another tool can read the outcome, use that tool. Otherwise tell the user "
        "that a person has to check the operation {key}."
    ),
    "UNAVAILABLE": (
        "NOT RUN. The tool {tool} is protected against repetitions, and the protection is not available "
        "now. Nothing ran now. This says nothing about earlier calls for this purpose. Tell the user both, "
        "or call the tool again with the same arguments later."
    ),
}


class ToolBlockedError(Exception):
    """A tool call that did not run.

    The message is for the model: it says what is known of the effect, and what to do next.
    """

    def __init__(self, reason: BlockedReason, tool: str, key: str, *, of_step: bool = False) -> None:
        advice = "call the tool in your next step" if of_step else "tell the user"
        super().__init__(_TEXTS[reason].format(tool=json.dumps(tool), key=json.dumps(key), advice=advice))
        #: Why the tool did not run.
        self.reason = reason
        self.tool = tool
        #: The operation's key, which an administrator needs to resolve an ambiguous record.
        self.key = key


def blocked_reason(error: OncewardError) -> BlockedReason | None:
    """Returns why a tool did not begin; None for a mistake of the program or its credential."""
    blocked = _BY_CLASS.get(class_of(error))
    return blocked or ("UNAVAILABLE" if is_unavailable(error) else None)


_BY_CLASS: dict[facts_pb2.ReasonClass, BlockedReason] = {
    facts_pb2.REASON_CLASS_ASK: "AMBIGUOUS",
    # Also if the lease ended before the tool began, so that another process may have begun it.
    facts_pb2.REASON_CLASS_WAIT: "IN_PROGRESS",
    facts_pb2.REASON_CLASS_GONE: "RESULT_UNAVAILABLE",
    facts_pb2.REASON_CLASS_REUSED: "ARGUMENTS_CHANGED",
    facts_pb2.REASON_CLASS_TOO_OLD: "TOO_OLD",
}
