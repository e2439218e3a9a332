"""How the asyncio client makes its calls, and drives flows."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import grpc
import grpc.aio
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
from ._flow import Call, Flow, Settle, Sleep, drive_awaiting
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
from ._homes import Homes
from ._lease import now_ms
from ._mapping import error_from_call, is_about_content
from .v1.idempotency_pb2 import BatchResponse

T = TypeVar("T")


class Calls:
    """The calls of one client, of the event loop that makes the first one."""

    def __init__(self, homes: Homes, credential: Credential) -> None:
        self._homes = homes
        #: With what closes each.
        self._retired: dict[Link, asyncio.Future[None]] = {}
        self._credential = credential
        self._closing = asyncio.Event()
        self._disconnected = False
        #: Each wakes a task that waits for an answer.
        self._wakes: set[asyncio.Future[None]] = set()
        self._gatherer = Gatherer()
        self._flushing = False
        #: An event loop does not keep a task alive.
        self._sending: set[asyncio.Future[None]] = set()

    @property
    def is_closing(self) -> bool:
        """Whether no new run may begin."""
        return self._closing.is_set()

    async def drive(self, flow: Flow[T]) -> T:
        """Does what a flow needs, also while the client closes. Returns its value."""
        return await self._drive(flow, self.call, asyncio.sleep)

    async def drive_until_closing(self, flow: Flow[T]) -> T:
        """Does what a flow needs. Once the client closes, its calls and pauses end with CLOSED."""
        return await self._drive(flow, self._call_until_closing, self._sleep_until_closing)

    async def drive_in_background(self, flow: Flow[T]) -> T:
        """Does what a flow needs. Once the client closes, its pauses end with CLOSED."""
        return await self._drive(flow, self.call, self._sleep_until_closing)

    def end_waits(self) -> None:
        """Ends the flows of ``drive_until_closing`` with CLOSED."""
        self._closing.set()
        for wake in self._wakes:
            if not wake.done():
                wake.set_result(None)

    async def disconnect(self) -> None:
        """Refuses every further call, and closes the connection."""
        self._disconnected = True
        for closing in self._retired.values():
            closing.cancel()
        for link in [*self._homes.all(), *self._retired]:
            await link.channel.close()

    async def call(self, call: Call) -> Any:
        """Makes a call. Returns its response. :raises OncewardError:"""
        answer, rpc = self._start(call)
        return await _answer_of(call, answer, rpc, asyncio.get_running_loop().create_future())

    async def _drive(
        self,
        flow: Flow[T],
        call: Callable[[Call], Awaitable[Any]],
        sleep: Callable[[float], Awaitable[None]],
    ) -> T:
        return await drive_awaiting(flow, functools.partial(_perform, self._renewing(call), sleep))

    def _renewing(self, make: Callable[[Call], Awaitable[Any]]) -> Callable[[Call], Awaitable[Any]]:
        """Has a call that is refused for its token made once more, with another one."""

        async def call(each: Call) -> Any:
            try:
                return await make(each)
            except OncewardError as error:
                # A proxy that checks tokens has no reason of the service.
                if error.code != code_pb2.UNAUTHENTICATED or not self._credential.renews:
                    raise
                return await make(each)

        return call

    async def _call_until_closing(self, call: Call) -> Any:
        if self.is_closing:
            raise closed_error()
        answer, rpc = self._start(call)
        wake: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._wakes.add(wake)
        try:
            return await _answer_of(call, answer, rpc, wake)
        finally:
            self._wakes.discard(wake)

    async def _sleep_until_closing(self, delay_s: float) -> None:
        try:
            await asyncio.wait_for(self._closing.wait(), delay_s)
        except (TimeoutError, asyncio.TimeoutError):
            return
        raise closed_error()

    def _start(self, call: Call) -> tuple[asyncio.Future[Any], asyncio.Task[Any] | None]:
        """Begins a call.

        Returns its answer, which is its response or its error, and its RPC; None for a call that is gathered
        with others.
        """
        if self._disconnected:
            raise closed_error()
        metadata = metadata_of(self._credential)
        if not is_gathered(call):
            rpc = asyncio.ensure_future(self._send(call, metadata))
            return rpc, rpc
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        self._gatherer.add(queued(call, metadata, answer.set_result))
        if not self._flushing:
            self._flushing = True
            # Calls of tasks that are ready now join the batch.
            loop.call_soon(self._flush)
        return answer, None

    def _flush(self) -> None:
        self._flushing = False
        while batch := self._gatherer.take():
            sending = asyncio.ensure_future(self._send_batch(batch))
            self._sending.add(sending)
            sending.add_done_callback(self._sending.discard)

    async def _send_batch(self, batch: list[Queued]) -> None:
        # The newest of its calls has the newest credential.
        call = batch[0].call if len(batch) == 1 else batch_of(batch)
        outcome = await self._send(call, batch[-1].metadata)
        if len(batch) == 1:
            batch[0].settle(outcome)
        elif isinstance(outcome, BatchResponse):
            await self._send_each(settle_items(batch, outcome))
        elif is_about_content(outcome):
            await self._send_each(batch)
        else:
            settle_all(batch, outcome)
        self._gatherer.end(batch)
        self._flush()

    async def _send_each(self, calls: Sequence[Queued]) -> None:
        """Makes each call alone, a few at a time."""
        # The workers share the iterator: each takes the next call.
        left = iter(calls)

        async def work() -> None:
            for each in left:
                each.settle(await self._send(each.call, each.metadata))

        await asyncio.gather(*(work() for _ in calls[:MAX_ALONE_AT_ONCE]))

    async def _send(self, call: Call, metadata: Metadata) -> Any:
        """Makes a call alone. Returns its response, or its error."""
        trip = self._homes.trip(call.timeout_ms)
        where = next(trip)
        while True:
            outcome = await self._ask(*where, call, metadata)
            try:
                where = trip.send(outcome)
            except StopIteration as end:
                return end.value

    async def _ask(self, links: Links, timeout_s: float, call: Call, metadata: Metadata) -> Any:
        if self._disconnected:
            return closed_error()
        began_at_ms = now_ms()
        try:
            link = links.current()
            method = link.method(call.method)
            response = await method(call.request, timeout=timeout_s, metadata=metadata)
            link.answered_at_ms = now_ms()
            # What gRPC returns for bytes that are not a message.
            return OncewardError("INTERNAL", "The answer can't be read.") if response is None else response
        except asyncio.CancelledError:
            return OncewardError("NO_ANSWER", "The call was cancelled.", code=1)
        except grpc.RpcError as error:
            failure = error_from_call(error)
            self._retire(links.failed(link, failure, began_at_ms))
            return failure
        except Exception as error:
            return unsent(error)

    def _retire(self, link: Link | None) -> None:
        """Closes a link once the calls in flight on it have ended."""
        if link is None:
            return

        async def close() -> None:
            await asyncio.sleep(RETIREMENT_S)
            await link.channel.close()
            del self._retired[link]

        self._retired[link] = asyncio.ensure_future(close())


async def _answer_of(
    call: Call, answer: asyncio.Future[Any], rpc: asyncio.Task[Any] | None, wake: asyncio.Future[None]
) -> Any:
    """Waits for the answer, or until ``wake`` is done.

    Returns the answer; a call that is not answered then is noted, and continues.
    """

    def answered(_: object) -> None:
        if not wake.done():
            wake.set_result(None)

    answer.add_done_callback(answered)
    try:
        await wake
    finally:
        if not answer.done():
            call.abandoned.append(answer)
            # A call that waits for another holder would last; any other is answered soon, and may be granted.
            if rpc is not None:
                rpc.cancel()
    if not answer.done():
        raise closed_error()
    outcome = answer.result()
    if isinstance(outcome, OncewardError):
        raise outcome
    return outcome


async def _perform(
    call: Callable[[Call], Awaitable[Any]],
    sleep: Callable[[float], Awaitable[None]],
    step: Call | Sleep | Settle,
) -> Any:
    if isinstance(step, Call):
        return await call(step)
    if isinstance(step, Sleep):
        return await sleep(step.delay_ms / 1000)
    return [await answer for answer in step.calls]
