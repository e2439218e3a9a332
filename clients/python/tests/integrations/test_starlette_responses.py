"""When a response of FastAPI is whole, cut short or unknown, on a real server."""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import pytest
import requests
import uvicorn
from fastapi import BackgroundTasks, Depends, FastAPI, Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from onceward import CompletionError, OutcomeUnknownError, current_claim
from onceward.outgoing import HttpKeys
from onceward.starlette import OncewardMiddleware
from onceward.testing import TestingOnceward, TestingPolicy
from onceward.v1.record_pb2 import Record

HEADERS = {"account": "a-1", "idempotency-key": '"k-1"'}
_WITHIN_S = 30


def wait_until(is_reached: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + _WITHIN_S
    while not is_reached():
        assert time.monotonic() < deadline_s, "not reached in time"
        time.sleep(0.01)


class Api:
    """A FastAPI behind the guard, at a server of its own."""

    def __init__(self, testing: TestingOnceward, options: dict[str, Any]) -> None:
        self.testing = testing
        self.effects: list[str] = []
        self.app = FastAPI()
        onceward = testing.aio()
        self.app.add_middleware(
            OncewardMiddleware,
            onceward=onceward,
            namespace="charges",
            caller=lambda request: request.headers["account"],
            **options,
        )
        config = uvicorn.Config(self.app, port=0, log_level="critical", lifespan="off")
        self.server = uvicorn.Server(config)

    def start(self) -> httpx.Client:
        self._thread = threading.Thread(target=self.server.run)
        self._thread.start()
        wait_until(lambda: self.server.started)
        port = self.server.servers[0].sockets[0].getsockname()[1]
        return httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=HEADERS, timeout=_WITHIN_S)

    def stop(self) -> None:
        self.server.should_exit = True
        self._thread.join()

    def is_done(self) -> bool:
        return [record.state for record in self.testing.records()] == [Record.STATE_COMPLETED]


@contextlib.contextmanager
def _served(define: Callable[[Api], None], **options: Any) -> Iterator[tuple[Api, httpx.Client]]:
    with TestingOnceward(policy=TestingPolicy(on_lease_expiry="HOLD")) as testing:
        api = Api(testing, options)
        define(api)
        browser = api.start()
        try:
            with browser:
                yield api, browser
        finally:
            api.stop()


def test_an_error_after_the_response_changes_neither_the_answer_nor_the_claim() -> None:
    def define(api: Api) -> None:
        async def session() -> AsyncIterator[None]:
            yield
            if "in-dependency" in api.effects:
                raise RuntimeError("the session's end")

        async def mail() -> None:
            raise RuntimeError("no mail server")

        @api.app.post("/tasks", status_code=201)
        async def tasks(background: BackgroundTasks) -> dict[str, int]:
            background.add_task(mail)
            api.effects.append("charged")
            return {"charge": len(api.effects)}

        @api.app.post("/dependency", status_code=201, dependencies=[Depends(session)])
        async def dependency() -> dict[str, int]:
            api.effects.append("in-dependency")
            return {"charge": len(api.effects)}

    with _served(define) as (api, browser):
        for path in ("/tasks", "/dependency"):
            first, second = browser.post(path), browser.post(path)
            assert (first.status_code, second.status_code) == (201, 201)
            assert second.headers["idempotency-replayed"] == "true"
            assert second.json() == first.json()
        assert len(api.effects) == 2


def test_a_response_is_sent_before_its_background_tasks_end() -> None:
    ends = threading.Event()

    def define(api: Api) -> None:
        async def mail() -> None:
            # The response is sent and stored before: a repeat gets it while this runs.
            await asyncio.to_thread(ends.wait, _WITHIN_S)
            api.effects.append("mailed")

        @api.app.post("/charges", status_code=201)
        async def charge(background: BackgroundTasks) -> dict[str, int]:
            background.add_task(mail)
            return {}

    with _served(define) as (api, browser):
        assert [browser.post("/charges").status_code for _ in range(2)] == [201, 201]
        assert api.effects == []
        ends.set()
        wait_until(lambda: api.effects == ["mailed"])


def _rows(api: Api, began: threading.Event, left: threading.Event) -> None:
    @api.app.post("/rows")
    async def rows() -> StreamingResponse:
        async def lines() -> AsyncIterator[bytes]:
            api.effects.append("charged")
            for index in range(10):
                yield f"row {index}\n".encode()
                if index == 2:
                    began.set()
                    await asyncio.to_thread(left.wait, _WITHIN_S)

        return StreamingResponse(lines())

    @api.app.middleware("http")
    async def through(request: Request, call_next: Any) -> Response:
        response: Response = await call_next(request)
        return response


def test_a_response_is_stored_whole_although_its_client_left() -> None:
    began, left = threading.Event(), threading.Event()
    with _served(lambda api: _rows(api, began, left)) as (api, browser):
        leaving = threading.Thread(target=_leave_after, args=(browser, began))
        leaving.start()
        leaving.join()
        left.set()
        wait_until(api.is_done)
        repeated = browser.post("/rows")
        assert repeated.headers["idempotency-replayed"] == "true"
        assert repeated.text.count("row") == 10
        assert api.effects == ["charged"]


def _leave_after(browser: httpx.Client, began: threading.Event) -> None:
    with httpx.Client(base_url=browser.base_url, headers=HEADERS, timeout=0.2) as leaving:
        with pytest.raises(httpx.ReadTimeout):
            leaving.post("/rows")
    began.wait(_WITHIN_S)


def test_a_response_that_is_cut_short_is_not_stored_and_its_outcome_is_unknown() -> None:
    def define(api: Api) -> None:
        @api.app.post("/raises")
        async def raises() -> StreamingResponse:
            async def lines() -> AsyncIterator[bytes]:
                api.effects.append("charged")
                yield b"row 0\n"
                raise RuntimeError("no more rows")

            return StreamingResponse(lines())

        async def ends(scope: Scope, receive: Receive, send: Send) -> None:
            api.effects.append("charged")
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"row 0\n", "more_body": True})

        api.app.mount("/ends", ends)

    with _served(define) as (api, browser):
        for path in ("/raises", "/ends/"):
            api.effects.clear()
            assert browser.post(path).status_code == 409
            assert browser.post(path).json()["type"] == "urn:onceward:problem:in-progress"
            assert api.effects == ["charged"]
        assert {record.state for record in api.testing.records()} == {Record.STATE_IN_PROGRESS}


def test_a_large_response_streams_to_its_end_and_is_gone_afterwards() -> None:
    def define(api: Api) -> None:
        @api.app.post("/large")
        async def large(cut: bool = False) -> StreamingResponse:
            async def parts() -> AsyncIterator[bytes]:
                api.effects.append("charged")
                for _ in range(20):
                    yield b"x" * 100_000
                if cut:
                    raise RuntimeError("no more parts")

            return StreamingResponse(parts())

    with _served(define) as (api, browser):
        assert len(browser.post("/large").content) == 2_000_000
        assert browser.post("/large").status_code == 410
        with pytest.raises(httpx.RemoteProtocolError):
            browser.post("/large?cut=true", headers={"idempotency-key": '"k-2"'})
        assert browser.post("/large?cut=true", headers={"idempotency-key": '"k-2"'}).status_code == 409
        assert len(api.effects) == 2


def test_an_application_is_offered_no_way_around_the_guard() -> None:
    offered: list[Any] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        offered.append(scope["extensions"])
        await Response("charged")(scope, receive, send)

    async def request() -> None:
        with TestingOnceward() as testing:
            async with testing.aio() as onceward:
                guarded = OncewardMiddleware(
                    app, onceward=onceward, namespace="charges", caller=lambda _: "a-1"
                )
                ways = ("http.response.pathsend", "http.response.zerocopysend", "http.response.trailers")

                async def with_ways(scope: Scope, receive: Receive, send: Send) -> None:
                    await guarded({**scope, "extensions": dict.fromkeys((*ways, "tls"), {})}, receive, send)

                transport = httpx.ASGITransport(app=with_ways)
                async with httpx.AsyncClient(transport=transport, base_url="http://api") as browser:
                    assert (await browser.post("/", headers=HEADERS)).text == "charged"

    asyncio.run(request())
    assert offered == [{"tls": {}}]


@pytest.mark.parametrize("is_raised", [True, False])
def test_a_handler_whose_error_is_answered_by_the_framework_can_mark_its_claim(is_raised: bool) -> None:
    def define(api: Api) -> None:
        @api.app.exception_handler(OutcomeUnknownError)
        async def answer(request: Request, error: Exception) -> Response:
            return Response("swallowed", status_code=500)

        @api.app.post("/charges")
        async def charge() -> Response:
            api.effects.append("perhaps")
            unknown = current_claim().outcome_unknown(ConnectionError("reset"))
            if is_raised:
                raise unknown
            return Response("swallowed", status_code=200)

    with _served(define) as (api, browser):
        kinds = [browser.post("/charges").json()["type"] for _ in range(2)]
        assert kinds == ["urn:onceward:problem:ambiguous", "urn:onceward:problem:in-progress"]
        assert api.effects == ["perhaps"]


def _by_httpx(url: str) -> httpx.Response:
    return httpx.post(url, headers={"account": "orders"}, auth=HttpKeys())


def _by_httpx_aio(url: str) -> httpx.Response:
    async def post() -> httpx.Response:
        async with httpx.AsyncClient(auth=HttpKeys()) as client:
            return await client.post(url, headers={"account": "orders"})

    return asyncio.run(post())


def _by_requests(url: str) -> requests.Response:
    return requests.post(url, headers={"account": "orders"}, auth=HttpKeys(), timeout=_WITHIN_S)


@pytest.mark.parametrize("post", [_by_httpx, _by_httpx_aio, _by_requests])
def test_after_a_crash_of_its_caller_a_service_gets_the_same_key_and_has_one_effect(
    post: Callable[[str], Any],
) -> None:
    def define(api: Api) -> None:
        @api.app.post("/charges", status_code=201)
        async def charge() -> None:
            api.effects.append("charged")

    with _served(define) as (api, browser), TestingOnceward() as orders:
        url = str(browser.base_url.join("/charges"))
        # As if the process died after the effect of the service that it calls.
        orders.fail_next("Complete", "INTERNAL")
        with pytest.raises(CompletionError):
            orders.onceward.run("orders", "order-1", lambda _: post(url).status_code)
        orders.advance(30_000)
        assert orders.onceward.run("orders", "order-1", lambda _: post(url).status_code) == 201
        assert api.effects == ["charged"]
        # Without a claim there is no key.
        assert post(url).status_code == 400
