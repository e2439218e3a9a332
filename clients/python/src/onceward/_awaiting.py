"""How the asyncio client makes its calls, and drives flows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import grpc
import grpc.aio

from ._connection import (
    CHANNEL_OPTIONS,
    Credential,
    Target,
    closed_error,
    metadata_of,
    path_of,
    response_class,
)
from ._errors import OncewardError
from ._flow import Call, Flow, Settle, Sleep
from ._mapping import error_from_call

T = TypeVar("T")


class Calls:
    """The calls of one client, of the event loop that makes the first one."""

    def __init__(self, target: Target, credential: Credential, tls_ca: bytes | None) -> None:
        self._target = target
        self._credential = credential
        self._tls_ca = tls_ca
        self._channel: grpc.aio.Channel | None = None
        self._methods: dict[str, Any] = {}
        self._closing = asyncio.Event()
        self._disconnected = False

    @property
    def is_closing(self) -> bool:
        """Whether no new run may begin."""
        return self._closing.is_set()

    async def drive(self, flow: Flow[T]) -> T:
        """Does what a flow needs, also while the client closes. Returns its value."""
        return await _drive(flow, self.call, asyncio.sleep)

    async def drive_until_closing(self, flow: Flow[T]) -> T:
        """Does what a flow needs. Once the client closes, its calls and pauses end with CLOSED."""
        return await _drive(flow, self._call_until_closing, self._sleep_until_closing)

    async def drive_in_background(self, flow: Flow[T]) -> T:
        """Does what a flow needs. Once the client closes, its pauses end with CLOSED."""
        return await _drive(flow, self.call, self._sleep_until_closing)

    def end_waits(self) -> None:
        """Ends the flows of ``drive_until_closing`` with CLOSED."""
        self._closing.set()

    async def disconnect(self) -> None:
        """Refuses every further call, and closes the connection."""
        self._disconnected = True
        if self._channel is not None:
            await self._channel.close()

    async def call(self, call: Call) -> Any:
        """Makes a call. Returns its response. :raises OncewardError:"""
        answer = self._start(call)
        return await _answer_of(call, answer, [answer])

    async def _call_until_closing(self, call: Call) -> Any:
        if self.is_closing:
            raise closed_error()
        answer = self._start(call)
        closing = asyncio.ensure_future(self._closing.wait())
        try:
            return await _answer_of(call, answer, [answer, closing])
        finally:
            closing.cancel()

    async def _sleep_until_closing(self, delay_s: float) -> None:
        try:
            await asyncio.wait_for(self._closing.wait(), delay_s)
        except (TimeoutError, asyncio.TimeoutError):
            return
        raise closed_error()

    def _start(self, call: Call) -> asyncio.Task[Any]:
        if self._disconnected:
            raise closed_error()
        method = self._method(call.method)
        metadata = metadata_of(self._credential)
        answer = method(call.request, timeout=call.timeout_ms / 1000, metadata=metadata)
        return asyncio.ensure_future(_outcome_of(answer))

    def _method(self, name: str) -> Any:
        if self._channel is None:
            self._channel = self._open()
        method = self._methods.get(name)
        if method is None:
            method = self._channel.unary_unary(
                path_of(name),
                request_serializer=lambda request: request.SerializeToString(),
                response_deserializer=response_class(name).FromString,  # type: ignore[attr-defined]
            )
            self._methods[name] = method
        return method

    def _open(self) -> grpc.aio.Channel:
        authority = self._target.authority
        if not self._target.encrypted:
            return grpc.aio.insecure_channel(authority, options=CHANNEL_OPTIONS)
        tls = grpc.ssl_channel_credentials(self._tls_ca)
        return grpc.aio.secure_channel(authority, tls, options=CHANNEL_OPTIONS)


async def _answer_of(call: Call, answer: asyncio.Task[Any], ends: list[asyncio.Future[Any]]) -> Any:
    """Waits for one of the ends.

    Returns the answer; a call that is not answered then is noted, and continues.
    """
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if not answer.done():
            call.abandoned.append(answer)
            # A call that waits for another holder would last; any other is answered soon, and may be granted.
            if call.method == "Claim" and call.request.HasField("wait"):
                answer.cancel()
    if not answer.done():
        raise closed_error()
    outcome = answer.result()
    if isinstance(outcome, OncewardError):
        raise outcome
    return outcome


async def _outcome_of(answer: Any) -> Any:
    """Waits for a call. Returns its response, or its error."""
    try:
        return await answer
    except asyncio.CancelledError:
        answer.cancel()
        return OncewardError("NO_ANSWER", "The call was cancelled.", code=1)
    except grpc.RpcError as error:
        return error_from_call(error)


async def _drive(
    flow: Flow[T], call: Callable[[Call], Awaitable[Any]], sleep: Callable[[float], Awaitable[None]]
) -> T:
    try:
        step = next(flow)
        while True:
            try:
                answer = await _perform(step, call, sleep)
            except BaseException as error:
                step = flow.throw(error)
            else:
                step = flow.send(answer)
    except StopIteration as end:
        value: T = end.value
        return value


async def _perform(
    step: Call | Sleep | Settle,
    call: Callable[[Call], Awaitable[Any]],
    sleep: Callable[[float], Awaitable[None]],
) -> Any:
    if isinstance(step, Call):
        return await call(step)
    if isinstance(step, Sleep):
        return await sleep(step.delay_ms / 1000)
    return [await answer for answer in step.calls]
