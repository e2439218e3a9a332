"""How the blocking client makes its calls, and drives flows."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import grpc
from google.rpc import code_pb2

from ._connection import (
    RETIREMENT_S,
    Credential,
    Link,
    Links,
    Metadata,
    closed_error,
    metadata_of,
    unsent,
)
from ._errors import OncewardError
from ._finish import Held
from ._flow import Call, Flow, Settle, Sleep, drive_steps
from ._gather import (
    MAX_ALONE_AT_ONCE,
    Gatherer,
    Queued,
    batch_of,
    is_gathered,
    queued,
    settle_all,
    settle_items,
)
from ._homes import Homes, Trip
from ._lease import now_ms
from ._mapping import error_from_call, is_about_content
from .v1.idempotency_pb2 import BatchResponse, ExtendLeaseResponse

T = TypeVar("T")


class Calls:
    """The calls of one client."""

    def __init__(self, homes: Homes, credential: Credential) -> None:
        self._homes = homes
        self._retired: set[Link] = set()
        self._credential = credential
        self._closing = threading.Event()
        self._disconnected = False
        self._lock = threading.Lock()
        #: Each wakes a thread that waits for an answer.
        self._wakes: set[threading.Event] = set()
        self._gatherer = Gatherer()

    @property
    def is_closing(self) -> bool:
        """Whether no new run may begin."""
        return self._closing.is_set()

    def drive(self, flow: Flow[T]) -> T:
        """Does what a flow needs, also while the client closes. Returns its value."""
        return self._drive(flow, self._call, time.sleep)

    def drive_until_closing(self, flow: Flow[T]) -> T:
        """Does what a flow needs. Once the client closes, its calls and pauses end with CLOSED."""
        return self._drive(flow, self._call_until_closing, self._sleep_until_closing)

    def drive_in_background(self, flow: Flow[T]) -> T:
        """Does what a flow needs. Once the client closes, its pauses end with CLOSED."""
        return self._drive(flow, self._call, self._sleep_until_closing)

    def end_waits(self) -> None:
        """Ends the flows of ``drive_until_closing`` with CLOSED."""
        with self._lock:
            self._closing.set()
            for wake in self._wakes:
                wake.set()

    def disconnect(self) -> None:
        """Refuses every further call, and closes the connection."""
        self._disconnected = True
        for link in [*self._homes.all(), *self._retired]:
            link.channel.close()

    def after_fork(self) -> None:
        """Forgets the calls of the parent process, and its connections."""
        self._lock = threading.Lock()
        self._wakes = set()
        self._gatherer = Gatherer()
        self._retired = set()
        self._homes.after_fork()

    def send_heartbeat(
        self, held: Held, answered: Callable[[ExtendLeaseResponse | OncewardError], None]
    ) -> None:
        """Prolongs a lease, without a wait for the answer."""
        try:
            self._start(held.heartbeat(), answered)
        except OncewardError as error:
            answered(error)

    def make_all(self, calls: Sequence[Call]) -> list[Any]:
        """Makes calls at one time. Returns the response to each, or its error."""
        answers = [_Answer(threading.Event()) for _ in calls]
        for call, answer in zip(calls, answers, strict=True):
            try:
                self._start(call, answer.settle)
            except OncewardError as error:
                answer.settle(error)
        return [answer.outcome() for answer in answers]

    def _drive(self, flow: Flow[T], call: Callable[[Call], Any], sleep: Callable[[float], None]) -> T:
        return drive_steps(flow, functools.partial(_perform, self._renewing(call), sleep))

    def _renewing(self, make: Callable[[Call], Any]) -> Callable[[Call], Any]:
        """Has a call that is refused for its token made once more, with another one."""

        def call(each: Call) -> Any:
            try:
                return make(each)
            except OncewardError as error:
                # A proxy that checks tokens has no reason of the service.
                if error.code != code_pb2.UNAUTHENTICATED or not self._credential.renews:
                    raise
                return make(each)

        return call

    def _call(self, call: Call) -> Any:
        answer = _Answer(threading.Event())
        self._start(call, answer.settle)
        try:
            return answer.result()
        except BaseException:
            # Raised by a handler of a signal, if not by the call.
            if not answer.done:
                call.abandoned.append(answer)
            raise

    def _call_until_closing(self, call: Call) -> Any:
        wake = threading.Event()
        with self._lock:
            if self.is_closing:
                raise closed_error()
            self._wakes.add(wake)
        answer = _Answer(wake)
        try:
            rpc = self._start(call, answer.settle)
            try:
                wake.wait()
            finally:
                if not answer.done:
                    call.abandoned.append(answer)
                    # A call that waits for another holder would last; any other is answered soon, and may be
                    # granted.
                    if rpc is not None:
                        rpc.cancel()
        finally:
            with self._lock:
                self._wakes.discard(wake)
        if not answer.done:
            raise closed_error()
        return answer.result()

    def _sleep_until_closing(self, delay_s: float) -> None:
        if self._closing.wait(delay_s):
            raise closed_error()

    def _start(self, call: Call, settle: Callable[[Any], None]) -> Any:
        """Begins a call. ``settle`` gets its response or error, from any thread.

        Returns its RPC; None for a call that is gathered with others.
        """
        metadata = metadata_of(self._credential)
        if not is_gathered(call):
            return self._send(call, metadata, settle)
        if self._disconnected:
            raise closed_error()
        self._gatherer.add(queued(call, metadata, settle))
        self._flush()
        return None

    def _flush(self) -> None:
        while batch := self._gatherer.take():
            self._send_batch(batch)

    def _send_batch(self, batch: list[Queued]) -> None:
        def answered(outcome: Any) -> None:
            if len(batch) == 1:
                batch[0].settle(outcome)
            elif isinstance(outcome, BatchResponse):
                self._send_each(iter(settle_items(batch, outcome)))
            elif is_about_content(outcome):
                self._send_each(iter(batch))
            else:
                settle_all(batch, outcome)
            self._gatherer.end(batch)
            self._flush()

        # The newest of its calls has the newest credential.
        call = batch[0].call if len(batch) == 1 else batch_of(batch)
        try:
            self._send(call, batch[-1].metadata, answered)
        except OncewardError as error:
            answered(error)

    def _send_each(self, calls: Iterator[Queued]) -> None:
        """Makes each call alone, a few at a time."""
        lock = threading.Lock()

        def send_next() -> None:
            while True:
                with lock:
                    each = next(calls, None)
                if each is None:
                    return
                try:
                    self._send(each.call, each.metadata, functools.partial(answered, each))
                    return
                except OncewardError as error:
                    each.settle(error)

        def answered(each: Queued, outcome: Any) -> None:
            each.settle(outcome)
            send_next()

        for _ in range(MAX_ALONE_AT_ONCE):
            send_next()

    def _send(self, call: Call, metadata: Metadata, settle: Callable[[Any], object]) -> Any:
        trip = self._homes.trip(call.timeout_ms)
        return self._ask(trip, next(trip), call, metadata, settle)

    def _ask(
        self,
        trip: Trip,
        where: tuple[Links, float],
        call: Call,
        metadata: Metadata,
        settle: Callable[[Any], object],
    ) -> Any:
        if self._disconnected:
            raise closed_error()
        began_at_ms = now_ms()
        links, timeout_s = where
        try:
            link = links.current()
            method = link.method(call.method)
            rpc = method.future(call.request, timeout=timeout_s, metadata=metadata)
        except Exception as error:
            raise unsent(error) from error

        def answered(done: Any) -> None:
            outcome = _outcome_of(done)
            if isinstance(outcome, OncewardError):
                self._retire(links.failed(link, outcome, began_at_ms))
            else:
                link.answered_at_ms = now_ms()
            try:
                self._ask(trip, trip.send(outcome), call, metadata, settle)
            except StopIteration as end:
                settle(end.value)
            except OncewardError as error:
                settle(error)

        rpc.add_done_callback(answered)
        return rpc

    def _retire(self, link: Link | None) -> None:
        """Closes a link once the calls in flight on it have ended."""
        if link is None:
            return
        self._retired.add(link)

        def close() -> None:
            self._retired.discard(link)
            link.channel.close()

        timer = threading.Timer(RETIREMENT_S, close)
        timer.daemon = True
        timer.start()


class _Answer:
    """The answer to a call, which may not have come yet."""

    def __init__(self, wake: threading.Event) -> None:
        self._wake = wake
        self._settled = threading.Event()
        self._outcome: Any = None

    @property
    def done(self) -> bool:
        """Whether it has come."""
        return self._settled.is_set()

    def settle(self, outcome: Any) -> None:
        """Notes a response or an error."""
        self._outcome = outcome
        self._settled.set()
        self._wake.set()

    def outcome(self) -> Any:
        """Waits for it. Returns the response, or the error."""
        self._settled.wait()
        return self._outcome

    def result(self) -> Any:
        """Waits for it. Returns the response. :raises OncewardError:"""
        outcome = self.outcome()
        if isinstance(outcome, OncewardError):
            raise outcome
        return outcome


def _perform(call: Callable[[Call], Any], sleep: Callable[[float], None], step: Call | Sleep | Settle) -> Any:
    if isinstance(step, Call):
        return call(step)
    if isinstance(step, Sleep):
        return sleep(step.delay_ms / 1000)
    return [answer.outcome() for answer in step.calls]


def _outcome_of(done: Any) -> Any:
    """Returns the response of an RPC that is done, or its error."""
    try:
        return done.result()
    except grpc.FutureCancelledError:
        return OncewardError("NO_ANSWER", "The call was cancelled.", code=1)
    except grpc.RpcError as error:
        return error_from_call(error)
    except Exception as error:
        return unsent(error)
