"""FastAPI behind the middleware."""

import asyncio
import threading
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request, Response

from onceward import (
    AmbiguousError,
    InvalidRequestError,
    OncewardError,
    OutcomeUnknownError,
    current_claim,
    join_key,
)
from onceward.starlette import OncewardMiddleware
from onceward.testing import TestingOnceward, TestingPolicy

KEY = {"idempotency-key": '"8e03978e-40d5"', "account": "a-1"}


def _charges(
    effects: list[str], policy: TestingPolicy | None = None, around: str | None = None, **options: Any
) -> tuple[FastAPI, TestingOnceward, Any]:
    testing = TestingOnceward(policy=policy)
    onceward = testing.aio()
    app = FastAPI()
    app.add_middleware(
        OncewardMiddleware,
        **{
            "onceward": onceward,
            "namespace": "charges",
            "caller": lambda request: request.headers["account"],
            **options,
        },
    )

    if around is not None:
        app.add_middleware(OncewardMiddleware, onceward=onceward, namespace=around, caller=lambda _: "a-1")

    @app.post("/charges", status_code=201)
    async def create(request: Request, response: Response) -> dict[str, Any]:
        order = await request.json()
        effects.append(current_claim().derive_key("bank"))
        if order.get("nests"):
            raise OncewardError("OVERLOADED", "the client of the handler", code=14)
        if order.get("times_out"):
            raise OutcomeUnknownError("the bank timed out")
        if order.get("fails"):
            raise RuntimeError("no bank")
        if "status" in order:
            response.status_code = order["status"]
        response.headers["location"] = "/charges/1"
        response.headers["set-cookie"] = "session=1"
        return {"attempt": current_claim().attempt, "text": "x" * order.get("length", 0)}

    @app.post("/sync")
    def create_in_a_thread() -> dict[str, str]:
        return {"key": current_claim().key}

    @app.get("/charges")
    async def read() -> list[str]:
        return effects

    return app, testing, onceward


class _Browser(httpx.AsyncClient):
    def __init__(self, app: FastAPI) -> None:
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        super().__init__(transport=transport, base_url="http://api")

    async def charge(self, order: dict[str, Any], **headers: str) -> httpx.Response:
        return await self.post("/charges", json=order, headers={**KEY, **headers})


def _with_app(test: Any, **options: Any) -> None:
    async def run() -> None:
        effects: list[str] = []
        app, testing, onceward = _charges(effects, **options)
        try:
            async with _Browser(app) as browser:
                await test(browser, testing, effects)
        finally:
            await onceward.close(timeout_ms=0)
            await asyncio.to_thread(testing.close)

    asyncio.run(run())


def test_a_repeat_gets_the_first_response() -> None:
    async def test(browser: _Browser, _: TestingOnceward, effects: list[str]) -> None:
        first, second = await browser.charge({"cents": 1}), await browser.charge({"cents": 1})
        assert (first.status_code, first.json()["attempt"]) == (201, 1)
        assert (second.status_code, second.content) == (201, first.content)
        assert "idempotency-replayed" not in first.headers
        assert second.headers["idempotency-replayed"] == "true"
        assert second.headers["location"] == "/charges/1"
        assert second.headers["content-type"] == "application/json"
        assert "set-cookie" in first.headers and "set-cookie" not in second.headers
        assert len(effects) == 1
        third = await browser.charge({"cents": 1}, account="a-2")
        assert "idempotency-replayed" not in third.headers
        assert len(set(effects)) == 2

    _with_app(test)


def test_requests_without_a_key_or_with_another_body_are_refused() -> None:
    async def test(browser: _Browser, _: TestingOnceward, effects: list[str]) -> None:
        missing = await browser.post("/charges", json={}, headers={"account": "a-1"})
        assert (missing.status_code, missing.json()["type"]) == (400, "urn:onceward:problem:key-missing")
        malformed = await browser.charge({}, **{"idempotency-key": "a, b"})
        assert malformed.json()["type"] == "urn:onceward:problem:key-malformed"
        await browser.charge({"cents": 1})
        reused = await browser.charge({"cents": 2})
        assert (reused.status_code, reused.headers["content-type"]) == (422, "application/problem+json")
        assert (await browser.get("/charges")).json() == effects
        large = await browser.charge({"padding": "x" * 2000})
        assert large.status_code == 413
        assert len(effects) == 1

    _with_app(test, max_body_bytes=1000)


def test_an_error_and_a_failure_of_the_server_are_not_stored() -> None:
    async def test(browser: _Browser, _: TestingOnceward, effects: list[str]) -> None:
        assert (await browser.charge({"fails": True})).status_code == 500
        assert (await browser.charge({"fails": True})).status_code == 500
        assert len(effects) == 2
        # An error of the handler's own client says nothing about this request.
        assert (await browser.charge({"nests": True}, **{"idempotency-key": "k1"})).status_code == 500
        effects.pop()
        for _attempt in range(2):
            failed = await browser.charge({"status": 500}, **{"idempotency-key": "k2"})
            assert (failed.status_code, failed.json()["attempt"]) == (500, _attempt + 1)
        # A refusal of the request is an outcome.
        for _attempt in range(2):
            refused = await browser.charge({"status": 409}, **{"idempotency-key": "k3"})
            assert (refused.status_code, refused.json()["attempt"]) == (409, 1)

    _with_app(test)


def test_an_endpoint_that_can_not_know_its_outcome_leaves_its_claim_to_the_policy() -> None:
    async def test(browser: _Browser, testing: TestingOnceward, effects: list[str]) -> None:
        kinds = []
        for by_ms in (0, 30_000, 0):
            answer = await browser.charge({"times_out": True})
            assert answer.status_code == 409
            kinds.append(answer.json()["type"].removeprefix("urn:onceward:problem:"))
            await asyncio.to_thread(testing.advance, by_ms)
        assert kinds == ["ambiguous", "in-progress", "ambiguous"]
        assert len(effects) == 1

    _with_app(test, policy=TestingPolicy(on_lease_expiry="HOLD"))


def test_a_request_meets_another_one_with_its_key() -> None:
    async def test(browser: _Browser, testing: TestingOnceward, effects: list[str]) -> None:
        testing.fail_next("Complete", "INTERNAL")
        first = await browser.charge({"cents": 1})
        assert first.status_code == 201
        busy = await browser.charge({"cents": 1})
        assert (busy.status_code, busy.headers["retry-after"]) == (409, "1")
        testing.advance(30_000)
        assert (await browser.charge({"cents": 1})).json()["attempt"] == 2
        assert effects == [effects[0]] * 2

    _with_app(test)


def test_without_the_service_nothing_runs() -> None:
    async def test(browser: _Browser, testing: TestingOnceward, effects: list[str]) -> None:
        testing.fail_next("Claim", "DATABASE_UNAVAILABLE", times=100)
        unavailable = await browser.charge({"cents": 1})
        assert (unavailable.status_code, effects) == (503, [])
        assert int(unavailable.headers["retry-after"]) >= 1
        testing.clear_faults()
        testing.fail_next("Claim", "NAMESPACE_DENIED")
        assert (await browser.charge({"cents": 1})).status_code == 500
        assert effects == []

    _with_app(test, timeout_ms=1)


def test_a_response_that_is_too_large_is_sent_and_is_gone_afterwards() -> None:
    async def test(browser: _Browser, _: TestingOnceward, effects: list[str]) -> None:
        for length in (70_000, 1_100_000):
            key = {"idempotency-key": f"k{length}"}
            assert len((await browser.charge({"length": length}, **key)).json()["text"]) == length
            gone = await browser.charge({"length": length}, **key)
            assert (gone.status_code, gone.json()["type"]) == (410, "urn:onceward:problem:result-gone")
        assert len(effects) == 2

    _with_app(test)


def test_an_endpoint_in_a_thread_has_its_claim() -> None:
    async def test(browser: _Browser, _: TestingOnceward, effects: list[str]) -> None:
        answer = await browser.post("/sync", headers=KEY)
        assert answer.json() == {"key": "POST:/sync:a-1:8e03978e-40d5"}

    _with_app(test)


@pytest.mark.parametrize(
    "options", [{"methods": []}, {"methods": ["post"]}, {"replay_headers": ["Set-Cookie"]}, {"stores": True}]
)
def test_options_that_guard_nothing_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises((InvalidRequestError, OncewardError)):
        OncewardMiddleware(
            lambda *_: None,  # type: ignore[arg-type]
            onceward=None,  # type: ignore[arg-type]
            namespace="charges",
            caller=lambda _: "a",
            **options,
        )


def test_a_guard_around_another_one_stores_none_of_its_refusals() -> None:
    async def test(browser: _Browser, testing: TestingOnceward, effects: list[str]) -> None:
        begun, done = threading.Event(), threading.Event()

        def hold() -> None:
            key = join_key("POST", "/charges", "a-1", "8e03978e-40d5")
            with testing.onceward.claim("charges", key) as scope:
                begun.set()
                done.wait()
                scope.release()

        # A thread of an executor is not within the task's claims.
        holding = asyncio.get_running_loop().run_in_executor(None, hold)
        await asyncio.to_thread(begun.wait)
        assert [(await browser.charge({})).status_code for _ in range(2)] == [409, 409]
        done.set()
        await holding
        assert [(await browser.charge({})).status_code for _ in range(2)] == [201, 201]
        assert len(effects) == 1

    _with_app(test, around="requests")


def test_guards_around_each_other_leave_their_claims_to_the_policy_if_the_outcome_is_unknown() -> None:
    async def test(browser: _Browser, testing: TestingOnceward, effects: list[str]) -> None:
        kinds = []
        for by_ms in (0, 30_000, 0):
            answer = await browser.charge({"times_out": True})
            kinds.append(answer.json()["type"].removeprefix("urn:onceward:problem:"))
            testing.advance(by_ms)
        assert kinds == ["ambiguous", "in-progress", "ambiguous"]
        # The outer claim lapsed, too: it was neither released nor completed.
        key = join_key("POST", "/charges", "a-1", "8e03978e-40d5")
        with pytest.raises(AmbiguousError):
            await asyncio.to_thread(testing.onceward.run, "requests", key, lambda _: None)
        assert len(effects) == 1

    _with_app(test, around="requests", policy=TestingPolicy(on_lease_expiry="HOLD"))
