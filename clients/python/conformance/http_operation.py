"""The operation that a guard of HTTP claims for a request, as its ASGI middleware and Django's do."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import django
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from starlette.responses import Response

from onceward import OncewardError
from onceward.django import OncewardMiddleware as DjangoMiddleware
from onceward.starlette import OncewardMiddleware

settings.configure()
django.setup()


class _Claims:
    """A client that claims nothing, and notes what it would claim."""

    def __init__(self) -> None:
        self.claimed: dict[str, str] = {}

    def run(self, _: str, key: str, __: Any, **options: Any) -> None:
        self.claimed = {"key": key, "fingerprint": options["fingerprint"].hex()}
        raise OncewardError("CLOSED", "Nothing is claimed.")

    async def run_detailed(self, namespace: str, key: str, fn: Any, **options: Any) -> None:
        self.run(namespace, key, fn, **options)

    def outcome_of(self, status: int, body: bytes) -> object:
        if self.claimed:
            return self.claimed
        if status == 204:
            return {"unguarded": True}
        return {"problem": json.loads(body)["type"].removeprefix("urn:onceward:problem:"), "status": status}


def perform_http_operation(case: dict[str, Any]) -> object:
    """Returns the operation as both guards claim it, which is the same; otherwise both."""
    body = bytes.fromhex(case["bodyHex"]) if "bodyHex" in case else case.get("body", "").encode()
    options = {**case["options"], "namespace": "charges"}
    caller = options.pop("caller")
    options["caller"] = lambda _: caller
    asgi, wsgi = asyncio.run(_by_asgi(case, options, body)), _by_django(case, options, body)
    return asgi if asgi == wsgi else {"asgi": asgi, "django": wsgi}


async def _by_asgi(case: dict[str, Any], options: Any, body: bytes) -> object:
    claims: Any = _Claims()
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": case["method"],
        "path": case["path"],
        "raw_path": case["path"].encode(),
        "query_string": case.get("query", "").removeprefix("?").encode(),
        "headers": [(name.encode(), value.encode()) for name, value in case["headers"].items()],
    }
    await OncewardMiddleware(Response(status_code=204), onceward=claims, **options)(scope, receive, send)
    return claims.outcome_of(sent[0]["status"], sent[-1].get("body", b""))


def _by_django(case: dict[str, Any], options: Any, body: bytes) -> object:
    claims = _Claims()
    headers = dict(case["headers"])
    kind = headers.pop("content-type", "")
    target = case["path"] + case.get("query", "")
    request = RequestFactory().generic(case["method"], target, body, kind, headers=headers, RAW_URI=target)

    def view(_: HttpRequest) -> HttpResponse:
        return HttpResponse(status=204)

    connect: Any = lambda: claims  # noqa: E731
    answer: Any = DjangoMiddleware(view, onceward=connect, **options)(request)
    return claims.outcome_of(answer.status_code, answer.content)
