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
from collections.abc import Callable

from starlette.requests import Request
from typing_extensions import Unpack

from ._asgi import ANSWER_AFTER_MS, App, Exchange, Receive, Scope, Send
from ._catalogue import InvalidRequestError
from ._http import REQUEST_UNREADABLE, GuardedResponse, HttpOptions, HttpPolicy
from ._http_profiles import HttpProfile, Problem
from .aio import Claim, Onceward

__all__ = ["GuardedResponse", "HttpOptions", "HttpProfile", "OncewardMiddleware"]


class OncewardMiddleware:
    """Middleware of ASGI. The first request runs the application; later ones with its key get its response.

    - The response is stored before it is sent. A later request gets its status, body and the headers that
      describe it, marked ``Idempotency-Replayed: true`` or as the profile says.
    - The key counts per caller, method and path, unless ``operation`` or the profile says otherwise.
    - A response larger than the namespace's ``max_result_bytes`` is sent, and duplicates get 410.
      From 1 MiB on, it is streamed; a smaller one is sent once it is whole, so this does not suit event
      streams.
    - If the service is unreachable, nothing runs: 503 with Retry-After.
    - The response is whole with its last part: background tasks and the exit code of dependencies change
      neither the answer nor the claim. After a response that was cut short, the outcome is unknown.
    - An application that can't know whether it had its effect raises an ``OutcomeUnknownError``, or calls
      ``current_claim().outcome_unknown()`` where the error would be answered: the client gets 409
      ``ambiguous``, and the claim is left to the namespace's policy. After an interruption or a timeout the
      client gets the application's answer. After any other error the next attempt runs, unless ``on_error``
      is "unknown".
    - A client that disconnects does not end the application's work, since its response is stored for the
      duplicate.

    Where nothing is guarded, ``current_claim()`` raises LookupError.

    :param caller: returns the caller, as the API authenticated it: an account's id, never a secret. Each
        caller has its own keys; otherwise one caller could get another's response. Must not be empty. For
        a caller that a dependency of FastAPI authenticates, see ``onceward.fastapi``.
    :param answer_after_ms: how long a response is held while the service does not store it; then it is sent,
        because its effect has happened, and stored as soon as the service can.
    :param options: see HttpOptions.
    :raises InvalidRequestError: for options that would guard nothing, or replay what must not be.
    """

    def __init__(
        self,
        app: App,
        *,
        onceward: Onceward,
        namespace: str,
        caller: Callable[[Request], str],
        answer_after_ms: int = ANSWER_AFTER_MS,
        **options: Unpack[HttpOptions],
    ) -> None:
        self._app = app
        self._onceward = onceward
        self._caller = caller
        self._answer_after_ms = answer_after_ms
        self._policy = HttpPolicy(namespace, options)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not self._policy.guards(scope["method"], scope["path"]):
            await self._app(scope, receive, send)
            return
        exchange = Exchange(self._policy, scope, receive, send)
        key = self._policy.key_of(exchange.head)
        if key is None:
            await self._app(scope, receive, send)
            return
        if isinstance(key, Problem):
            await exchange.refuse(key)
            return
        problem = await exchange.read()
        if problem is not None:
            await exchange.refuse(problem)
            return
        caller = self._caller(Request(scope))

        def begin(_: Claim) -> asyncio.Future[None]:
            return asyncio.ensure_future(self._app(exchange.scope, exchange.receive, exchange.recorder))

        try:
            exchange.start(self._onceward, key, caller, begin)
        except InvalidRequestError:
            await exchange.refuse(REQUEST_UNREADABLE)
            return
        await exchange.answer(self._answer_after_ms)
