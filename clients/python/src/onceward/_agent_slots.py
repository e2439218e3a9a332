"""The calls of one tool in one step, each with its key and arguments: which of them a tool call is."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field

from ._flow import Call, Flow, retrying
from ._keys import join_key
from ._lease import now_ms
from .v1.idempotency_pb2 import LookupRequest
from .v1.record_pb2 import Record

#: A model calls one tool less often in one step. Repeating the step takes one lookup for each call.
MAX_CALLS_PER_STEP = 256
#: A call remembers this many of the model responses that have made it.
_MAX_RESPONSES = 64
#: Stands for the model response of calls that name none.
_NO_RESPONSE = ""


@dataclass
class Slot:
    """One call of a tool in a step."""

    key: str
    fingerprint: bytes
    #: The framework's newest id of the call.
    call_id: str | None = None
    running: int = 0
    responses: OrderedDict[str, None] = field(default_factory=OrderedDict)


class StepSlots:
    """The calls of one tool in one step. Safe for several threads and tasks."""

    def __init__(self, namespace: str, parts: tuple[str | int, ...], timeout_ms: int) -> None:
        """:param parts: name the run, the step and the tool. From the second call on, a key has an index."""
        self._namespace = namespace
        self._parts = parts
        self._timeout_ms = timeout_ms
        #: The key of the first call.
        self.key = join_key(*parts)
        self._slots: list[Slot] | None = None
        self._lock = threading.Lock()

    def take(self, fingerprint: bytes, response: str | None, call_id: str | None) -> Flow[Slot | str]:
        """Returns the slot of a call, marked as running:

        1. the slot of the same call, if the framework repeats one;
        2. else a slot with the same arguments that the model response has not used;
        3. else "changed", if an earlier attempt of the step made a call that this attempt has not made: this
           call may be its repetition with other arguments;
        4. else a new slot, or "full".

        :raises OncewardError: if the service can't be asked for the calls of earlier attempts.
        """
        if self._slots is None:
            found = yield from self._find_earlier()
            with self._lock:
                if self._slots is None:
                    self._slots = found
        with self._lock:
            return self._choose(self._slots, fingerprint, response, call_id)

    def release(self, slot: Slot) -> None:
        """Notes that a call no longer runs."""
        with self._lock:
            slot.running -= 1

    def _choose(
        self, slots: list[Slot], fingerprint: bytes, response: str | None, call_id: str | None
    ) -> Slot | str:
        name = _NO_RESPONSE if response is None else response

        def is_free(slot: Slot) -> bool:
            return slot.running == 0 if response is None else name not in slot.responses

        same = [each for each in slots if each.fingerprint == fingerprint]
        repeated = [each for each in same if call_id is not None and each.call_id == call_id]
        chosen = next(iter([*repeated, *filter(is_free, same)]), None)
        if chosen is None:
            if any(name not in each.responses for each in slots):
                return "changed"
            if len(slots) >= MAX_CALLS_PER_STEP:
                return "full"
            chosen = Slot(self._key(len(slots)), fingerprint)
            slots.append(chosen)
        chosen.call_id = call_id
        chosen.running += 1
        chosen.responses[name] = None
        if len(chosen.responses) > _MAX_RESPONSES:
            chosen.responses.popitem(last=False)
        return chosen

    def _find_earlier(self) -> Flow[list[Slot]]:
        """Asks the service for the calls of earlier attempts, in any process."""
        found: list[Slot] = []
        while len(found) < MAX_CALLS_PER_STEP:
            record = yield from look_up(self._namespace, self._key(len(found)), self._timeout_ms)
            if record is None:
                break
            found.append(Slot(self._key(len(found)), record.fingerprint))
        return found

    def _key(self, index: int) -> str:
        return self.key if index == 0 else join_key(*self._parts, index)


def look_up(namespace: str, key: str, timeout_ms: int) -> Flow[Record | None]:
    """Returns a key's record; None if there is none. :raises OncewardError:"""
    request = LookupRequest(namespace=namespace, key=key)
    reply = yield from retrying(lambda: Call("Lookup", request), now_ms() + timeout_ms)
    return reply.record if reply.HasField("record") else None
