"""Guards single routes of FastAPI by the header Idempotency-Key, after their dependencies have authenticated
the caller::

    charges = APIRouter(route_class=once_route(onceward, "charges", caller=account))

    @charges.post("/charges", status_code=201)
    async def create(order: Order, account: Annotated[str, Depends(account)]) -> Charge: ...

Within the endpoint, ``onceward.current_claim()`` has the claim, for derived keys.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from fastapi import Depends, Request
from fastapi.routing import APIRoute
from typing_extensions import Unpack

from ._asgi import ANSWER_AFTER_MS, Exchange, Receive, Scope, Send
from ._catalogue import InvalidRequestError
from ._claims import adopt_claim
from ._http import REQUEST_UNREADABLE, GuardedResponse, HttpOptions, HttpPolicy
from ._http_profiles import HttpProfile, Problem
from .aio import Claim, Onceward

__all__ = ["GuardedResponse", "HttpOptions", "HttpProfile", "once_route"]

#: The member of a request's scope with its exchange.
_EXCHANGE = "onceward.exchange"


def once_route(
    onceward: Onceward,
    namespace: str,
    *,
    caller: Callable[..., Any],
    answer_after_ms: int = ANSWER_AFTER_MS,
    **options: Unpack[HttpOptions],
) -> type[APIRoute]:
    """Returns a class of routes, for ``APIRouter(route_class=...)``: their requests are guarded as those of
    ``onceward.starlette.OncewardMiddleware`` are.

    :param caller: a dependency that returns the caller, as FastAPI's ``Depends`` takes it; the endpoint gets
        the same value. A request that it refuses, with a 401 for example, is not guarded.
    :raises InvalidRequestError: for options that would guard nothing, or replay what must not be.
    """
    policy = HttpPolicy(namespace, options)
    authenticated = Depends(caller)

    async def enter(request: Request, name: Any = authenticated) -> None:
        exchange: Exchange | None = request.scope.get(_EXCHANGE)
        if exchange is not None:
            await _enter(exchange, policy, onceward, name)

    class GuardedRoute(APIRoute):
        def __init__(self, path: str, endpoint: Callable[..., Any], **given: Any) -> None:
            others = [each for each in given.get("dependencies") or () if each.dependency is not enter]
            super().__init__(path, endpoint, **{**given, "dependencies": [*others, Depends(enter)]})

        async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
            if not policy.guards(scope["method"], scope["path"]):
                await super().handle(scope, receive, send)
                return
            exchange = Exchange(policy, scope, receive, send)
            problem = await exchange.read()
            if problem is not None:
                await exchange.refuse(problem)
                return
            exchange.scope[_EXCHANGE] = exchange
            running = super().handle(exchange.scope, exchange.receive, exchange.recorder)
            app = exchange.app = asyncio.ensure_future(running)
            ends: set[asyncio.Future[Any]] = {app, exchange.started}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            try:
                await (exchange.answer(answer_after_ms) if exchange.started.done() else app)
            except _Answered as answered:
                if answered.problem is not None:
                    await exchange.refuse(answered.problem)
            finally:
                # Its error has been answered, or is being raised.
                await asyncio.gather(app, return_exceptions=True)

    return GuardedRoute


class _Answered(BaseException):
    """Ends the dependencies of a request whose endpoint does not run."""

    def __init__(self, problem: Problem | None = None) -> None:
        #: Why it is refused; None if the run has the answer.
        self.problem = problem


async def _enter(exchange: Exchange, policy: HttpPolicy, onceward: Onceward, caller: str) -> None:
    """Makes the claim of a request the current one. :raises _Answered: if its endpoint must not run."""
    key = policy.key_of(exchange.head)
    if key is None:
        return
    if isinstance(key, Problem):
        raise _Answered(key)
    app = exchange.app
    assert app is not None
    granted: asyncio.Future[Claim] = asyncio.get_running_loop().create_future()

    def begin(claim: Claim) -> asyncio.Future[None]:
        granted.set_result(claim)
        return app

    try:
        run = exchange.start(onceward, key, caller, begin)
    except InvalidRequestError:
        raise _Answered(REQUEST_UNREADABLE) from None
    ends: set[asyncio.Future[Any]] = {run, granted}
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    if not granted.done():
        raise _Answered
    adopt_claim(granted.result())
