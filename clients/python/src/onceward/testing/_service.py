"""The service in memory, and clients of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any, Literal, get_args

import grpc

from .. import aio
from .._client import Onceward
from .._keytime import EPOCH
from ..v1 import idempotency_pb2
from ..v1.errors_pb2 import ErrorReason
from ..v1.idempotency_pb2 import BatchRequest, BatchResponse, BatchResponseItem, ClaimRequest, ClaimResponse
from ..v1.record_pb2 import Record
from ._policy import TestingPolicy
from ._records import ClaimCounts, Records
from ._refusals import Refused

#: A call of the service, alone or as an item of a batch.
CallName = Literal["Claim", "Complete", "Release", "ExtendLease", "Lookup"]
_Answer = Callable[[Any, grpc.ServicerContext], Any]

#: A claim that waits for another holder occupies a thread.
_THREADS = 64
_API_KEY = "testing"


class TestingOnceward:
    """A service in memory, used by one test, with clients of it. Its clock does not move until the test moves
    it.

    Use it as a context manager, or call ``close``. Waiting for another holder, heartbeats and retries take
    real time: give runs that meet another holder a small ``wait_ms``, or 0. At most 64 claims wait at once.

    :param policy: of every namespace that ``namespaces`` does not name.
    :param now: the clock's initial time, with a time zone. Default: the real time.
    """

    #: Not a class of tests, for pytest.
    __test__ = False

    def __init__(
        self,
        *,
        policy: TestingPolicy | None = None,
        namespaces: Mapping[str, TestingPolicy] | None = None,
        now: datetime | None = None,
    ) -> None:
        tenants = policy or TestingPolicy()
        own = dict(namespaces or {})
        moment = datetime.now(timezone.utc) if now is None else now
        self._records = Records(
            (moment - EPOCH) // timedelta(milliseconds=1), lambda namespace: own.get(namespace, tenants)
        )
        self._changed = threading.Condition()
        #: Pending faults: the call and its reason; None: it takes effect, and its reply is lost.
        self._faults: list[tuple[str, str | None]] = []
        self._ends = False
        self._server = grpc.server(ThreadPoolExecutor(_THREADS, "onceward-testing"))
        name = idempotency_pb2.DESCRIPTOR.services_by_name["IdempotencyService"].full_name
        handlers = grpc.method_handlers_generic_handler(name, self._handlers())
        self._server.add_generic_rpc_handlers((handlers,))
        #: The address of the service, for clients in other processes. Any credential is accepted.
        self.address = f"http://127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()
        #: A blocking client for the code under test.
        self.onceward = Onceward(self.address, api_key=_API_KEY)

    def aio(self) -> aio.Onceward:
        """Returns an asyncio client, to be closed by its user: ``async with testing.aio() as onceward``."""
        return aio.Onceward(self.address, api_key=_API_KEY)

    @property
    def now(self) -> datetime:
        """The service's time: leases and retentions end exactly then."""
        with self._changed:
            return EPOCH + timedelta(milliseconds=self._records.now_ms)

    def advance(self, by_ms: int) -> None:
        """Advances the clock at once. Claims that wait for a lease that has then expired are answered.

        :raises ValueError: for a negative duration, since time does not go back.
        """
        if by_ms < 0:
            raise ValueError("a clock is not set back")
        with self._changed:
            self._records.now_ms += by_ms
            self._changed.notify_all()

    @property
    def counts(self) -> ClaimCounts:
        """The number of claims so far."""
        with self._changed:
            return self._records.counts

    def records(self) -> list[Record]:
        """Returns all records, as Lookup returns them, in the order in which the keys were first claimed."""
        with self._changed:
            return self._records.all()

    def fail_next(self, call: CallName, reason: str, times: int = 1) -> None:
        """Refuses the next calls of this kind, which then have no effect. Faults of one call are used up in
        order.

        If the reason's code is UNAVAILABLE or DEADLINE_EXCEEDED, the client retries for up to
        ``timeout_ms``; otherwise it gives up at once: a Complete that fails with INTERNAL has the result of a
        process that dies between the effect and Complete.

        :raises ValueError: for an unknown call or reason.
        """
        if call not in get_args(CallName):
            raise ValueError(f"call must be one of {', '.join(get_args(CallName))}, is {call!r}")
        if f"ERROR_REASON_{reason}" not in ErrorReason.keys():
            raise ValueError(f"reason must be one of errors.proto, is {reason!r}")
        with self._changed:
            self._faults += [(call, reason)] * times

    def lose_next_reply(self, call: CallName) -> None:
        """Lets the next call of this kind take effect, but loses its reply: the client retries."""
        with self._changed:
            self._faults.append((call, None))

    def clear_faults(self) -> None:
        """Removes all faults."""
        with self._changed:
            self._faults.clear()

    def close(self) -> None:
        """Closes the client, and ends the service. Functions that still run are told to end."""
        self.onceward.close(timeout_ms=0)
        with self._changed:
            self._ends = True
            self._changed.notify_all()
        self._server.stop(grace=None).wait()

    def __enter__(self) -> TestingOnceward:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _handlers(self) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
        methods: dict[str, _Answer] = {call: partial(self._answer, call) for call in get_args(CallName)}
        methods["Batch"] = self._batch
        return {name: _handler(name, answer) for name, answer in methods.items()}

    def _answer(self, call: str, request: Any, context: grpc.ServicerContext) -> Any:
        """Makes a call, or injects a fault. :raises Refused:"""
        with self._changed:
            records = self._records
            methods: dict[str, Callable[[Any], Any]] = {
                "Claim": lambda request: self._claim(request, context),
                "Complete": records.complete,
                "Release": records.release,
                "ExtendLease": records.extend_lease,
                "Lookup": records.lookup,
            }
            fault = next((each for each in self._faults if each[0] == call), None)
            if fault is not None:
                self._faults.remove(fault)
                if fault[1] is not None:
                    raise Refused(fault[1], f"The test lets this {call} fail.")
            response = methods[call](request)
            if call in ("Complete", "Release"):
                self._changed.notify_all()
            if fault is not None:
                raise Refused("DATABASE_UNAVAILABLE", f"The test lets the reply to this {call} get lost.")
            return response

    def _claim(self, request: ClaimRequest, context: grpc.ServicerContext) -> ClaimResponse:
        """Waits, without the lock, while another holder has the key, as long as the request says."""
        until_s = time.monotonic() + request.wait.ToMilliseconds() / 1000
        while True:
            response = self._records.claim(request)
            left_s = until_s - time.monotonic()
            if response.WhichOneof("outcome") != "in_progress":
                return response
            if left_s <= 0 or self._ends:
                self._records.count("in_progress")
                return response
            if not context.is_active():
                raise Refused("CANCELLED", "The caller disconnected.")
            self._changed.wait(left_s)

    def _batch(self, request: BatchRequest, context: grpc.ServicerContext) -> BatchResponse:
        return BatchResponse(items=[self._item(item, context) for item in request.items])

    def _item(
        self, item: idempotency_pb2.BatchRequestItem, context: grpc.ServicerContext
    ) -> BatchResponseItem:
        field = item.WhichOneof("request")
        try:
            if field is None:
                raise Refused("INVALID_REQUEST", "An item has no request.")
            call, request = field.title().replace("_", ""), getattr(item, field)
            response = self._answer(call, request, context)
        except Refused as refused:
            return BatchResponseItem(error=refused.item)
        answered: dict[str, Any] = {field: response}
        return BatchResponseItem(**answered)


def _handler(name: str, answer: _Answer) -> grpc.RpcMethodHandler[Any, Any]:
    def handle(request: Any, context: grpc.ServicerContext) -> Any:
        try:
            return answer(request, context)
        except Refused as refused:
            context.set_trailing_metadata((("grpc-status-details-bin", refused.status()),))
            context.abort(refused.code, str(refused))

    request_class = getattr(idempotency_pb2, f"{name}Request")
    return grpc.unary_unary_rpc_method_handler(
        handle,
        request_deserializer=request_class.FromString,
        response_serializer=lambda response: response.SerializeToString(),
    )
