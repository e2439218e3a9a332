"""A request of ASGI under a guard: its response is held until it is stored."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, MutableMapping
from typing import Any
from urllib.parse import quote

from ._errors import OncewardError, OutcomeUnknownError
from ._http import (
    AMBIGUOUS,
    REQUEST_TOO_LARGE,
    REQUEST_UNREADABLE,
    GuardedResponse,
    HttpPolicy,
    NotStored,
    RequestHead,
    is_declared_unknown,
    problem_of,
)
from ._http_profiles import Problem
from ._limits import MAX_RESULT_BYTES
from ._options import RunResult
from ._printable import printable
from .aio import Claim, Onceward

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

#: Shorter than the timeouts of load balancers and clients (most are 30 or 60 s), longer than most outages.
ANSWER_AFTER_MS = 10_000

_log = logging.getLogger("onceward")
#: Extensions by which a response would pass the guard.
_WAYS_AROUND = ("http.response.pathsend", "http.response.zerocopysend", "http.response.trailers")
#: Runs that still store a response after it was sent.
_running: set[asyncio.Future[Any]] = set()


class Exchange:
    """A request with a key, and its response."""

    def __init__(self, policy: HttpPolicy, scope: Scope, receive: Receive, send: Send) -> None:
        extensions = scope.get("extensions") or {}
        kept = {name: value for name, value in extensions.items() if name not in _WAYS_AROUND}
        #: The scope of the application.
        self.scope: Scope = {**scope, "extensions": kept}
        self.head = _head_of(scope, policy)
        #: Where the application sends its response.
        self.recorder = Recorder(send, policy.own_headers(self.head))
        #: Done once there is a run, whose answer the client gets.
        self.started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        #: The application; None until it begins.
        self.app: asyncio.Future[None] | None = None
        self._policy = policy
        self._receive = receive
        self._send = send
        self._body: bytes | None = None
        self._body_is_pending = True
        self._claim: Claim | None = None
        self._run: asyncio.Future[RunResult[GuardedResponse]] | None = None

    async def read(self) -> Problem | None:
        """Reads the body, which the fingerprint needs. Returns why it can't be read."""
        parts = bytearray()
        while True:
            message = await self._receive()
            if message["type"] != "http.request":
                return REQUEST_UNREADABLE
            parts += message.get("body", b"")
            if len(parts) > self._policy.max_body_bytes:
                return REQUEST_TOO_LARGE
            if not message.get("more_body", False):
                self._body = bytes(parts)
                return None

    async def receive(self) -> Message:
        """Returns the body that was read; then, once the response is whole, what follows it.

        The work of the application does not end with a client that leaves.
        """
        if self._body_is_pending:
            self._body_is_pending = False
            return {"type": "http.request", "body": self._body, "more_body": False}
        await asyncio.wait({self.recorder.whole})
        return await self._receive()

    def start(
        self, onceward: Onceward, key: str, caller: str, begin: Callable[[Claim], asyncio.Future[None]]
    ) -> asyncio.Future[RunResult[GuardedResponse]]:
        """Starts the run. Once the claim is granted, it calls ``begin``, which returns the application.

        :raises InvalidRequestError: for a request that has no identity.
        """
        joined, options = self._policy.operation_of(self.head, key, caller, self._body or b"")
        recorder = self.recorder

        async def handle(claim: Claim) -> GuardedResponse:
            self._claim = claim
            recorder.holds = True
            app = self.app = begin(claim)
            ends: set[asyncio.Future[Any]] = {app, recorder.whole}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if not recorder.whole.done():
                if app.done() and not recorder.has_begun:
                    await app
                error = None if app.cancelled() else app.exception()
                raise OutcomeUnknownError("the response was cut short") from error
            return self._policy.outcome_of(claim, recorder.response())

        running: Coroutine[Any, Any, RunResult[GuardedResponse]] = onceward.run_detailed(
            self._policy.namespace, joined, handle, **options
        )
        run = self._run = asyncio.ensure_future(running)
        self.started.set_result(None)
        _running.add(run)
        run.add_done_callback(_running.discard)
        return run

    async def answer(self, answer_after_ms: float) -> None:
        """Sends the response of the application, or of the run. Returns once the application has ended.

        :raises Exception: that of an application without a whole response, for its framework and server.
        """
        run, recorder = self._run, self.recorder
        assert run is not None
        ends: set[asyncio.Future[Any]] = {run, recorder.whole}
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if not recorder.whole.done():
                if self._claim is None:
                    await self._answer_unhandled(run)
                else:
                    await self._answer_error(run, self._claim)
                return
            await asyncio.wait({run}, timeout=answer_after_ms / 1000)
            # This client gets the application's response even if it could not be stored for repeats.
            run.add_done_callback(_note)
            error = run.exception() if run.done() and not run.cancelled() else None
            assert self._claim is not None
            if is_declared_unknown(self._claim, error) and not recorder.streams:
                await self.refuse(AMBIGUOUS)
            else:
                await recorder.finish()
        finally:
            recorder.sent.set_result(None)
        assert self.app is not None
        await self._end(self.app)

    async def _end(self, app: asyncio.Future[None]) -> None:
        """Waits for what follows the response, such as background tasks.

        Its error is only logged: a server would close the connection, on which the next request may be.
        """
        try:
            await app
        except Exception:
            _log.exception("An application failed after its response")

    async def _answer_error(self, run: asyncio.Future[RunResult[GuardedResponse]], claim: Claim) -> None:
        """Answers a request whose application raised, or left its response unfinished."""
        error = None if run.cancelled() else run.exception()
        if self.recorder.streams and self.app is not None:
            await self.app
            return
        if error is None or not is_declared_unknown(claim, error):
            await run
            return
        _log.warning(
            "It is unknown whether a request had its effect: %s", printable(error), exc_info=error.__cause__
        )
        await self.refuse(AMBIGUOUS)

    async def _answer_unhandled(self, run: asyncio.Future[RunResult[GuardedResponse]]) -> None:
        """Answers a request for which the application was not called."""
        try:
            response = (await run).value
        except OncewardError as error:
            problem = problem_of(error)
            if problem is not None:
                await self.refuse(problem)
                return
            _log.exception("A request could not be guarded")
            await self._send_whole(
                GuardedResponse(500, {"content-type": "text/plain"}, b"Internal Server Error")
            )
            return
        await self._send_whole(self._policy.replay_of(self.head, response))

    async def refuse(self, problem: Problem) -> None:
        """Sends a refusal."""
        await self._send_whole(self._policy.refusal_of(self.head, problem))

    async def _send_whole(self, response: GuardedResponse) -> None:
        body = response.body or b""
        encoded = _encoded(response.headers)
        # RFC 9110, 8.6 and 15.4.5; that of a HEAD would be the length of the body that a GET gets.
        if self.head.method != "HEAD" and response.status not in (204, 304):
            encoded.append((b"content-length", str(len(body)).encode()))
        else:
            body = b""
        await self._send({"type": "http.response.start", "status": response.status, "headers": encoded})
        await self._send({"type": "http.response.body", "body": body})


def _note(run: asyncio.Future[Any]) -> None:
    """Notes why a response that was sent is not stored for repeats."""
    error = None if run.cancelled() else run.exception()
    if error is not None and not isinstance(error, NotStored):
        _log.warning("A response could not be stored for repeats: %s", printable(error))


def _head_of(scope: Scope, policy: HttpPolicy) -> RequestHead:
    raw_path = scope.get("raw_path")
    path = quote(scope["path"]) if raw_path is None else raw_path.decode("latin-1")
    query = scope.get("query_string", b"").decode("latin-1")

    def values_of(name: str) -> list[str]:
        return [value.decode("latin-1") for each, value in scope["headers"] if each.lower() == name.encode()]

    accept_encoding = values_of("accept-encoding")
    return RequestHead(
        method=scope["method"],
        path=path,
        query=f"?{query}" if query else "",
        content_type=",".join(values_of("content-type")),
        keys=values_of(policy.key_header),
        accept_encoding=",".join(accept_encoding) if accept_encoding else None,
    )


def _encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


class Recorder:
    """Keeps a response until it is stored. One that is too large to be stored is streamed, but for its end.

    Until ``holds`` is set, passes what the application sends.
    """

    def __init__(self, send: Send, own_headers: Mapping[str, str]) -> None:
        self._send = send
        self._own_headers = _encoded(own_headers)
        self._start: Message | None = None
        self._body = bytearray()
        self.holds = False
        #: Whether the response is being sent.
        self.streams = False
        loop = asyncio.get_running_loop()
        #: Done once the application has sent the last part.
        self.whole: asyncio.Future[None] = loop.create_future()
        #: Done once the client has its response: what follows it in the application continues then.
        self.sent: asyncio.Future[None] = loop.create_future()

    @property
    def has_begun(self) -> bool:
        """Whether the application has begun its response."""
        return self._start is not None

    async def __call__(self, message: Message) -> None:
        is_body = message["type"] == "http.response.body"
        is_last = is_body and not message.get("more_body", False)
        if self.holds and message["type"] == "http.response.start":
            self._start = {**message, "headers": [*message.get("headers", ()), *self._own_headers]}
            return
        if self._start is None or not is_body:
            await self._send(message)
            if is_last:
                self.whole.set_result(None)
            return
        self._body += message.get("body", b"")
        if not self.streams and len(self._body) > MAX_RESULT_BYTES:
            self.streams = True
            await self._deliver(self._start)
        if self.streams and not is_last:
            await self._deliver({"type": "http.response.body", "body": bytes(self._body), "more_body": True})
            self._body.clear()
        if is_last:
            self.whole.set_result(None)
            await asyncio.wait({self.sent})

    def response(self) -> GuardedResponse:
        """Returns the whole response."""
        assert self._start is not None
        headers: dict[str, str] = {}
        for raw_name, raw_value in self._start.get("headers", ()):
            name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        return GuardedResponse(self._start["status"], headers, None if self.streams else bytes(self._body))

    async def finish(self) -> None:
        """Sends the response, or the end of one that was streamed."""
        if not self.streams and self._start is not None:
            await self._deliver(self._start)
        await self._deliver({"type": "http.response.body", "body": bytes(self._body)})

    async def _deliver(self, message: Message) -> None:
        try:
            await self._send(message)
        except OSError:
            # The client has left (ASGI 2.4): the application's work does not end with it.
            return
