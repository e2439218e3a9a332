"""How the blocking client makes its calls, and drives flows."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import grpc

from ._connection import Credential, closed_error, metadata_of, path_of, response_class
from ._errors import OncewardError
from ._finish import Held
from ._flow import ATTEMPT_TIMEOUT_MS, Call, Flow, Settle, Sleep
from ._mapping import error_from_call
from .v1.idempotency_pb2 import ExtendLeaseResponse

T = TypeVar("T")


class Calls:
    """The calls of one client."""

    def __init__(self, channel: grpc.Channel, credential: Credential) -> None:
        self._channel = channel
        self._credential = credential
        self._closing = threading.Event()
        self._disconnected = False
        self._lock = threading.Lock()
        #: Each wakes a thread that waits for an answer.
        self._wakes: set[threading.Event] = set()
        self._methods: dict[str, Any] = {}

    @property
    def is_closing(self) -> bool:
        """Whether no new run may begin."""
        return self._closing.is_set()

    def drive(self, flow: Flow[T]) -> T:
        """Does what a flow needs, also while the client closes. Returns its value."""
        return _drive(flow, self._call, _sleep)

    def drive_until_closing(self, flow: Flow[T]) -> T:
        """Does what a flow needs. Once the client closes, its calls and pauses end with CLOSED."""
        return _drive(flow, self._call_until_closing, self._sleep_until_closing)

    def drive_in_background(self, flow: Flow[T]) -> T:
        """Does what a flow needs. Once the client closes, its pauses end with CLOSED."""
        return _drive(flow, self._call, self._sleep_until_closing)

    def end_waits(self) -> None:
        """Ends the flows of ``drive_until_closing`` with CLOSED."""
        with self._lock:
            self._closing.set()
            for wake in self._wakes:
                wake.set()

    def disconnect(self) -> None:
        """Refuses every further call, and closes the connection."""
        self._disconnected = True
        self._channel.close()

    def send_heartbeat(
        self, held: Held, answered: Callable[[ExtendLeaseResponse | OncewardError], None]
    ) -> None:
        """Prolongs a lease, without a wait for the answer."""
        try:
            call = held.heartbeat()
            future = self._start(call, ATTEMPT_TIMEOUT_MS)
        except OncewardError as error:
            answered(error)
            return
        future.add_done_callback(lambda done: answered(_outcome_of(done)))

    def _call(self, call: Call) -> Any:
        future = self._start(call, call.timeout_ms)
        try:
            return _result_of(future)
        except (KeyboardInterrupt, SystemExit):
            call.abandoned.append(future)
            raise

    def _call_until_closing(self, call: Call) -> Any:
        wake = threading.Event()
        with self._lock:
            if self.is_closing:
                raise closed_error()
            self._wakes.add(wake)
        try:
            future = self._start(call, call.timeout_ms)
            future.add_done_callback(lambda _: wake.set())
            try:
                wake.wait()
            finally:
                if not future.done():
                    self._abandon(call, future)
        finally:
            with self._lock:
                self._wakes.discard(wake)
        if not future.done():
            raise closed_error()
        return _result_of(future)

    def _abandon(self, call: Call, future: Any) -> None:
        call.abandoned.append(future)
        # A call that waits for another holder would last; any other is answered soon, and may be granted.
        if call.method == "Claim" and call.request.HasField("wait"):
            future.cancel()

    def _sleep_until_closing(self, delay_s: float) -> None:
        if self._closing.wait(delay_s):
            raise closed_error()

    def _start(self, call: Call, timeout_ms: float) -> Any:
        if self._disconnected:
            raise closed_error()
        method = self._methods.get(call.method)
        if method is None:
            method = self._channel.unary_unary(
                path_of(call.method),
                request_serializer=lambda request: request.SerializeToString(),
                response_deserializer=response_class(call.method).FromString,  # type: ignore[attr-defined]
            )
            self._methods[call.method] = method
        return method.future(call.request, timeout=timeout_ms / 1000, metadata=metadata_of(self._credential))


def _drive(flow: Flow[T], call: Callable[[Call], Any], sleep: Callable[[float], None]) -> T:
    try:
        step = next(flow)
        while True:
            try:
                answer = _perform(step, call, sleep)
            except BaseException as error:
                step = flow.throw(error)
            else:
                step = flow.send(answer)
    except StopIteration as end:
        value: T = end.value
        return value


def _perform(step: Call | Sleep | Settle, call: Callable[[Call], Any], sleep: Callable[[float], None]) -> Any:
    if isinstance(step, Call):
        return call(step)
    if isinstance(step, Sleep):
        return sleep(step.delay_ms / 1000)
    return [_outcome_of(future) for future in step.calls]


def _sleep(delay_s: float) -> None:
    time.sleep(delay_s)


def _result_of(future: Any) -> Any:
    """Waits for a call. Returns its response. :raises OncewardError:"""
    try:
        return future.result()
    except grpc.FutureCancelledError:
        raise OncewardError("NO_ANSWER", "The call was cancelled.", code=1) from None
    except grpc.RpcError as error:
        raise error_from_call(error) from error


def _outcome_of(future: Any) -> Any:
    """Waits for a call. Returns its response, or its error."""
    try:
        return _result_of(future)
    except OncewardError as error:
        return error
