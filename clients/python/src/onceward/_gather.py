"""Gathers calls that are made at one time, or while batches are in flight, into few batches.

A single call is sent at once, with an RPC of its own. Order is kept within a batch, not between batches.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ._catalogue import error_of
from ._connection import Metadata
from ._errors import OncewardError
from ._flow import ATTEMPT_TIMEOUT_MS, Call
from ._limits import MAX_BATCH_ITEMS, MAX_MESSAGE_BYTES
from ._mapping import error_from_item
from .v1.idempotency_pb2 import BatchRequest, BatchRequestItem, BatchResponse

#: The field of a batch's item for each kind of call.
_FIELDS = {
    "Claim": "claim",
    "Complete": "complete",
    "Release": "release",
    "ExtendLease": "extend_lease",
    "Lookup": "lookup",
}
#: Client, server and database are busy at the same time: each works on another batch.
MAX_BATCHES_IN_FLIGHT = 4
#: Beside two batches, a further one is worth its statements only for so many calls; fewer wait for an answer,
#: and gather.
_MIN_ITEMS_BESIDE_TWO = 8
#: Queued calls are divided among the batches that may be sent, but not into smaller parts: each batch costs
#: a statement.
_MIN_DIVIDED_ITEMS = 32
#: A request message minus the batch's own framing.
_MAX_BATCH_BYTES = MAX_MESSAGE_BYTES - 1024
#: The framing of an item within a batch, at most.
_ITEM_FRAMING_BYTES = 16
#: Few beside a batch, and enough to find the one call that made the batch invalid soon.
MAX_ALONE_AT_ONCE = 16
_FACTS = ("code", "metadata", "violations", "retry_delay_ms", "request_id")


@dataclass(frozen=True)
class Queued:
    """A call that waits to be sent.

    ``settle`` takes its response or its error, once, from any thread. ``metadata`` has its credential.
    """

    call: Call
    metadata: Metadata
    settle: Callable[[Any], None]
    byte_count: int


def is_gathered(call: Call) -> bool:
    """Returns whether a call may be an item of a batch: a claim that waits for another holder may not, and a
    heartbeat of a short lease has no time to wait for batches on a connection that is silent.
    """
    is_patient = call.timeout_ms >= ATTEMPT_TIMEOUT_MS
    return (
        call.method in _FIELDS
        and is_patient
        and not (call.method == "Claim" and call.request.HasField("wait"))
    )


def queued(call: Call, metadata: Metadata, settle: Callable[[Any], None]) -> Queued:
    """Returns a call as it is added to a queue."""
    return Queued(call, metadata, settle, call.request.ByteSize() + _ITEM_FRAMING_BYTES)


class Gatherer:
    """The calls of one client that are not sent yet, and the number and size of its batches in flight.

    Safe for several threads. What is queued has a bound: each call has a caller that waits for its answer.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queue: deque[Queued] = deque()
        self._in_flight = 0
        self._bytes_in_flight = 0

    def add(self, call: Queued) -> None:
        """Adds a call. The caller of ``add`` then sends what ``take`` returns."""
        with self._lock:
            self._queue.append(call)

    def take(self) -> list[Queued]:
        """Returns the batch that is to be sent now; empty if there is none. ``end`` has to follow."""
        with self._lock:
            is_worth_it = self._in_flight < 2 or len(self._queue) >= _MIN_ITEMS_BESIDE_TWO
            # At most about two full batches are in flight.
            may_send = self._in_flight < MAX_BATCHES_IN_FLIGHT and self._bytes_in_flight <= _MAX_BATCH_BYTES
            if not is_worth_it or not may_send or not self._queue:
                return []
            free = MAX_BATCHES_IN_FLIGHT - self._in_flight
            parts = max(1, min(free, len(self._queue) // _MIN_DIVIDED_ITEMS))
            most = min(-(-len(self._queue) // parts), MAX_BATCH_ITEMS)
            # The first call is sent with any size: if it is too large, the service refuses it alone.
            batch = [self._queue.popleft()]
            byte_count = batch[0].byte_count
            while len(batch) < most and byte_count + self._queue[0].byte_count <= _MAX_BATCH_BYTES:
                byte_count += self._queue[0].byte_count
                batch.append(self._queue.popleft())
            self._in_flight += 1
            self._bytes_in_flight += byte_count
            return batch

    def end(self, batch: Sequence[Queued]) -> None:
        """Notes that a batch is answered."""
        with self._lock:
            self._in_flight -= 1
            self._bytes_in_flight -= sum(each.byte_count for each in batch)


def batch_of(calls: Sequence[Queued]) -> Call:
    """Returns the call that makes all of them."""
    request = BatchRequest()
    for each in calls:
        item: BatchRequestItem = request.items.add()
        getattr(item, _FIELDS[each.call.method]).MergeFrom(each.call.request)
    return Call("Batch", request)


def settle_items(calls: Sequence[Queued], response: BatchResponse) -> list[Queued]:
    """Settles each call of a batch: with its response, or with the error it would have failed with alone.

    Returns the calls whose reply did not fit into the batch: they have to be repeated alone.
    """
    too_large: list[Queued] = []
    for index, each in enumerate(calls):
        if index >= len(response.items):
            each.settle(OncewardError("INTERNAL", "The batch was answered with too few items."))
            continue
        reply = response.items[index]
        answered = reply.WhichOneof("response")
        if answered == _FIELDS[each.call.method]:
            each.settle(getattr(reply, answered))
        elif answered != "error":
            each.settle(
                OncewardError("INTERNAL", f"A {each.call.method} was answered as if it were {answered}.")
            )
        else:
            error = error_from_item(reply.error)
            if error.reason == "RESPONSE_TOO_LARGE":
                too_large.append(each)
            else:
                each.settle(error)
    return too_large


def settle_all(calls: Sequence[Queued], error: OncewardError) -> None:
    """Settles each call with a copy of the error: its caller adds the claim to it, and raises it."""
    for each in calls:
        facts = {name: getattr(error, name) for name in _FACTS}
        each.settle(error_of(error.reason, str(error), **facts))
