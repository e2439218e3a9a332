"""Guards FastAPI and Starlette applications by the header Idempotency-Key: one effect and one answer for all
requests with one key::

    app.add_middleware(
        OncewardMiddleware,
        onceward=onceward,  # An onceward.aio.Onceward.
        namespace="charges",
        caller=lambda request: request.headers["account"],  # As your API authenticated it.
    )

Within the endpoint, ``onceward.current_claim()`` has the claim, for derived keys.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, MutableMapping, Sequence
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from typing_extensions import Unpack

from ._catalogue import InvalidRequestError
from ._errors import OncewardError, OutcomeUnknownError
from ._http import (
    AMBIGUOUS,
    DEFAULT_MAX_BODY_BYTES,
    KEY_HEADER,
    REQUEST_TOO_LARGE,
    REQUEST_UNREADABLE,
    HttpPolicy,
    NotStored,
    RequestHead,
    Response,
    is_outcome,
    problem_of,
)
from ._http_profiles import HttpProfile, Problem
from ._limits import MAX_RESULT_BYTES
from ._options import OnceOptions, RunResult
from ._printable import printable
from .aio import Claim, Onceward

__all__ = ["HttpProfile", "OncewardMiddleware"]

_Scope = MutableMapping[str, Any]
_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
_App = Callable[[_Scope, _Receive, _Send], Awaitable[None]]

_log = logging.getLogger("onceward")
#: Shorter than the timeouts of load balancers and clients (most are 30 or 60 s), longer than most outages.
_ANSWER_AFTER_MS = 10_000


class OncewardMiddleware:
    """Middleware of ASGI. The first request runs the application; later ones with its key get its response.

    - The response is stored before it is sent. A later request gets its status, body and the headers that
      describe it, marked ``Idempotency-Replayed: true`` or as the profile says.
    - The key counts per caller, method and path, unless the profile says otherwise.
    - A response larger than the namespace's ``max_result_bytes`` is sent, and duplicates get 410.
      From 1 MiB on, it is streamed; a smaller one is sent once it is whole, so this does not suit event
      streams.
    - If the service is unreachable, nothing runs: 503 with Retry-After.
    - An application that can't know whether it had its effect raises an ``OutcomeUnknownError``, and has no
      exception handler for it: the client gets 409 ``ambiguous``, and the claim is left to the namespace's
      policy. After any other error the next attempt runs.
    - A client that disconnects does not end the application's work, since its response is stored for the
      duplicate.

    :param caller: returns the caller, as the API authenticated it: an account's id, never a secret. Each
        caller has its own keys; otherwise one caller could get another's response. Must not be empty.
    :param profile: the protocol that clients expect: ``onceward``, ``ietf``, ``stripe``, ``acp`` or ``ucp``.
        A change of it begins new operations.
    :param methods: those that are guarded; requests with others pass. Default: POST and PATCH, or the
        profile's.
    :param key_optional: whether a request without a key passes, unguarded. Default: as the profile says;
        otherwise it is answered with 400.
    :param max_body_bytes: of a guarded request, which is read whole for the fingerprint; a larger one gets
        413.
    :param stores: whether a response with this status is the operation's outcome, to be replayed; otherwise
        the claim is released, and the next attempt runs. Default: below 500, but for 401, 408, 425 and 429.
        ``acp`` never stores a 5xx. The refusal of another guard within the application, or of a
        service whose response the application passes on with its header Link, is never stored.
    :param replay_headers: headers to replay beside those that describe the body, Location, Link, ETag,
        Last-Modified, Cache-Control and Vary.
    :param documentation: the URL of the API's page about keys, to which refusals link. Default: no link.
    :param answer_after_ms: how long a response is held while the service does not store it; then it is sent,
        because its effect has happened, and stored as soon as the service can.
    :param options: as of ``run``. ``wait_ms`` is how long a request waits for another one with its key before
        it is answered with 409; default: 0.
    :raises InvalidRequestError: for options that would guard nothing, or replay what must not be.
    """

    def __init__(
        self,
        app: _App,
        *,
        onceward: Onceward,
        namespace: str,
        caller: Callable[[Request], str],
        profile: HttpProfile = "onceward",
        methods: Sequence[str] | None = None,
        key_optional: bool | None = None,
        max_body_bytes: int = DEFAULT_MAX_BODY_BYTES,
        stores: Callable[[int], bool] = is_outcome,
        replay_headers: Sequence[str] = (),
        documentation: str | None = None,
        answer_after_ms: int = _ANSWER_AFTER_MS,
        **options: Unpack[OnceOptions],
    ) -> None:
        self._app = app
        self._onceward = onceward
        self._caller = caller
        self._answer_after_s = answer_after_ms / 1000
        self._policy = HttpPolicy(
            namespace=namespace,
            profile=profile,
            methods=methods,
            key_optional=key_optional,
            max_body_bytes=max_body_bytes,
            stores=stores,
            replay_headers=replay_headers,
            documentation=documentation,
            options=options,
        )
        #: Runs that still store a response after it was sent.
        self._running: set[asyncio.Future[Any]] = set()

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        if scope["type"] != "http" or not self._policy.guards(scope["method"]):
            await self._app(scope, receive, send)
            return
        head = _head_of(scope)
        key = self._policy.key_of(head)
        exchange = _Exchange(scope, send, head)
        if key is None:
            await self._app(scope, receive, send)
        elif isinstance(key, Problem):
            await self._refuse(exchange, key)
        else:
            await self._guard(exchange, receive, key)

    async def _guard(self, exchange: _Exchange, receive: _Receive, key: str) -> None:
        scope, send, head = exchange.scope, exchange.send, exchange.head
        body = await _read(receive, self._policy.max_body_bytes)
        if isinstance(body, Problem):
            await self._refuse(exchange, body)
            return
        caller = self._caller(Request(scope))
        try:
            joined, options = self._policy.operation_of(head, key, caller, body)
        except InvalidRequestError:
            await self._refuse(exchange, REQUEST_UNREADABLE)
            return
        recorder = _Recorder(send, self._policy.own_headers(head))

        async def handle(_: Claim) -> Response:
            recorder.began = True
            await self._app(scope, _replay(body, receive), recorder)
            recorder.ended.set()
            return self._policy.outcome_of(recorder.response())

        running: Coroutine[Any, Any, RunResult[Response]] = self._onceward.run_detailed(
            self._policy.namespace, joined, handle, **options
        )
        run = asyncio.ensure_future(running)
        self._running.add(run)
        run.add_done_callback(self._running.discard)
        await self._answer(run, recorder, exchange)

    async def _answer(
        self, run: asyncio.Future[RunResult[Response]], recorder: _Recorder, exchange: _Exchange
    ) -> None:
        ended = asyncio.ensure_future(recorder.ended.wait())
        ends: set[asyncio.Future[Any]] = {run, ended}
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()
        if not recorder.ended.is_set():
            if recorder.began:
                await self._answer_error(run, recorder, exchange)
            else:
                await self._answer_unhandled(run, exchange)
            return
        await asyncio.wait({run}, timeout=self._answer_after_s)
        # This client gets the application's response even if it could not be stored for repeats.
        run.add_done_callback(_note)
        await recorder.finish()

    async def _answer_error(
        self, run: asyncio.Future[RunResult[Response]], recorder: _Recorder, exchange: _Exchange
    ) -> None:
        """Answers a request whose application raised. :raises Exception: for its framework to answer."""
        try:
            await run
        except OutcomeUnknownError as error:
            if recorder.streams:
                raise
            _log.warning("It is unknown whether a request had its effect: %s", printable(error))
            await self._refuse(exchange, AMBIGUOUS)

    async def _answer_unhandled(self, run: asyncio.Future[RunResult[Response]], exchange: _Exchange) -> None:
        """Answers a request for which the application was not called."""
        send, head = exchange.send, exchange.head
        try:
            response = (await run).value
        except OncewardError as error:
            problem = problem_of(error)
            if problem is not None:
                await self._refuse(exchange, problem)
                return
            _log.exception("A request could not be guarded")
            await _send_whole(send, Response(500, {"content-type": "text/plain"}, b"Internal Server Error"))
            return
        await _send_whole(send, self._policy.replay_of(head, response))

    async def _refuse(self, exchange: _Exchange, problem: Problem) -> None:
        await _send_whole(exchange.send, self._policy.refusal_of(exchange.head, problem))


class _Exchange:
    """A request, and where its response goes."""

    def __init__(self, scope: _Scope, send: _Send, head: RequestHead) -> None:
        self.scope = scope
        self.send = send
        self.head = head


def _note(run: asyncio.Future[Any]) -> None:
    """Notes why a response that was sent is not stored for repeats."""
    error = None if run.cancelled() else run.exception()
    if error is not None and not isinstance(error, NotStored):
        _log.warning("A response could not be stored for repeats: %s", printable(error))


def _head_of(scope: _Scope) -> RequestHead:
    raw_path = scope.get("raw_path")
    path = quote(scope["path"]) if raw_path is None else raw_path.decode("latin-1")
    query = scope.get("query_string", b"").decode("latin-1")
    name = KEY_HEADER.encode()
    keys = [value.decode("latin-1") for header, value in scope["headers"] if header.lower() == name]
    return RequestHead(scope["method"], path, f"?{query}" if query else "", keys)


async def _read(receive: _Receive, max_bytes: int) -> bytes | Problem:
    parts = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return REQUEST_UNREADABLE
        parts += message.get("body", b"")
        if len(parts) > max_bytes:
            return REQUEST_TOO_LARGE
        if not message.get("more_body", False):
            return bytes(parts)


def _replay(body: bytes, receive: _Receive) -> _Receive:
    """Returns a receive that gives the body that was read, and then what follows it."""
    pending: list[_Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> _Message:
        return pending.pop() if pending else await receive()

    return next_message


async def _send_whole(send: _Send, response: Response) -> None:
    body = response.body or b""
    encoded = _encoded(response.headers)
    encoded.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": response.status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})


def _encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


class _Recorder:
    """Keeps a response until it is stored. One that is too large to be stored is streamed."""

    def __init__(self, send: _Send, own_headers: Mapping[str, str]) -> None:
        self._send = send
        self._own_headers = _encoded(own_headers)
        self._start: _Message | None = None
        self._body = bytearray()
        #: Whether the response is being sent.
        self.streams = False
        #: Whether the application was called.
        self.began = False
        #: Set once the application has returned.
        self.ended = asyncio.Event()

    async def __call__(self, message: _Message) -> None:
        if message["type"] == "http.response.start":
            self._start = {**message, "headers": [*message.get("headers", ()), *self._own_headers]}
            return
        if message["type"] != "http.response.body" or self._start is None:
            await self._send(message)
            return
        if self.streams:
            await self._send(message)
            return
        self._body += message.get("body", b"")
        if len(self._body) > MAX_RESULT_BYTES:
            self.streams = True
            await self._send(self._start)
            more = message.get("more_body", False)
            await self._send({"type": "http.response.body", "body": bytes(self._body), "more_body": more})
            self._body.clear()

    def response(self) -> Response:
        """Returns the response. :raises RuntimeError: if the application sent none."""
        if self._start is None:
            raise RuntimeError("the application returned without a response")
        headers: dict[str, str] = {}
        for raw_name, raw_value in self._start.get("headers", ()):
            name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        return Response(self._start["status"], headers, None if self.streams else bytes(self._body))

    async def finish(self) -> None:
        """Sends the response, unless it was streamed."""
        if self.streams or self._start is None:
            return
        await self._send(self._start)
        await self._send({"type": "http.response.body", "body": bytes(self._body)})
