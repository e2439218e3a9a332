"""One API behind the guard of each framework: what it does in a request is the test's."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import re_path
from fastapi import FastAPI, Request, Response
from fastapi.testclient import TestClient

from onceward import current_claim
from onceward.django import OncewardMiddleware as DjangoMiddleware
from onceward.starlette import OncewardMiddleware
from onceward.testing import TestingOnceward

KEY = '"8e03978e-40d5"'
BODY = '{"cents":1,"currency":"EUR"}'


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b"charged"

    @property
    def problem(self) -> str:
        """The problem that the guard has answered with."""
        return self.headers["link"].partition(">")[0].removeprefix("<urn:onceward:problem:")


@dataclass
class Api:
    """An API behind the guard: each call of its handler is noted, with the key for a bank."""

    testing: TestingOnceward
    send: Callable[[str, str, dict[str, str], str], Answer]
    #: Returns the next response, or raises.
    handler: Callable[[], Answer] = lambda: Answer(201, {"content-type": "text/plain"})
    calls: list[str] = field(default_factory=list)

    def post(
        self,
        key: str | None = KEY,
        body: str = BODY,
        path: str = "/charges/1",
        account: str = "a",
        kind: str = "application/json",
        **headers: str,
    ) -> Answer:
        headers |= {"account": account, "content-type": kind}
        headers |= {} if key is None else {"idempotency-key": key}
        return self.send("POST", path, headers, body)

    def handle(self) -> Answer:
        try:
            self.calls.append(current_claim().derive_key("bank"))
        except LookupError:
            self.calls.append("unguarded")
        return self.handler()


def _options(options: dict[str, Any]) -> dict[str, Any]:
    return {"namespace": "charges", "caller": lambda request: request.headers["account"], **options}


@contextmanager
def fastapi(testing: TestingOnceward, *guards: dict[str, Any]) -> Iterator[Api]:
    """Has an API behind guards with these options, the innermost one first."""
    onceward = testing.aio()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> Any:
        async with onceward:
            yield

    app = FastAPI(lifespan=lifespan)
    for options in guards:
        app.add_middleware(OncewardMiddleware, onceward=onceward, **_options(options))

    @app.api_route("/{path:path}", methods=["POST", "PUT", "PATCH"])
    async def handle(request: Request) -> Response:
        made = api.handle()
        return Response(made.body, made.status, dict(made.headers))

    with TestClient(app, raise_server_exceptions=False) as client:

        def send(method: str, path: str, headers: dict[str, str], body: str) -> Answer:
            with client.stream(method, path, content=body, headers=headers) as answer:
                return Answer(answer.status_code, answer.headers, b"".join(answer.iter_raw()))

        api = Api(testing, send)
        yield api


_django: list[tuple[Api, tuple[dict[str, Any], ...]]] = []


def _guard(view: Any, options: dict[str, Any]) -> DjangoMiddleware:
    return DjangoMiddleware(view, onceward=_django[-1][0].testing.onceward, **_options(options))


def _view(request: HttpRequest) -> Any:
    api, guards = _django[-1]

    def view(_: HttpRequest) -> HttpResponse:
        made = api.handle()
        return HttpResponse(made.body, status=made.status, headers=dict(made.headers))

    guarded: Any = view
    for options in guards[:-1]:
        guarded = _guard(guarded, options)
    return guarded(request)


urlpatterns = [re_path("", _view)]


def idempotency(get_response: Any) -> DjangoMiddleware:
    """The middleware of the settings, which a client of Django makes before its first request."""
    return _guard(get_response, _django[-1][1][-1])


@contextmanager
def django(testing: TestingOnceward, *guards: dict[str, Any]) -> Iterator[Api]:
    """Has an API behind guards with these options, the innermost one first."""
    client = Client(raise_request_exception=False)

    def send(method: str, path: str, headers: dict[str, str], body: str) -> Answer:
        kind = headers.pop("content-type", "")
        answer: Any = client.generic(method, path, body, kind, headers=headers)
        named = {name.lower(): value for name, value in answer.items()}
        return Answer(answer.status_code, named, answer.content)

    api = Api(testing, send)
    _django.append((api, guards))
    yield api
