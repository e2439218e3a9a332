"""Single routes of FastAPI, guarded after their dependencies have authenticated the caller."""

import contextlib
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from fastapi import APIRouter, BackgroundTasks, Depends, FastAPI, Header, HTTPException
from fastapi.testclient import TestClient
from pydantic import BaseModel

from onceward import Happened, OutcomeUnknownError, current_claim
from onceward.fastapi import GuardedResponse, once_route
from onceward.testing import TestingOnceward, TestingPolicy
from onceward.v1.record_pb2 import Record


class Order(BaseModel):
    cents: int


class Charge(BaseModel):
    id: str
    cents: int


async def account(authorization: Annotated[str | None, Header()] = None) -> str:
    if authorization is None:
        raise HTTPException(401)
    return authorization.removeprefix("Bearer ")


Account = Annotated[str, Depends(account)]


@contextlib.contextmanager
def _served(included: bool, **options: Any) -> Iterator[tuple[TestingOnceward, TestClient, list[str]]]:
    effects: list[str] = []
    with TestingOnceward(policy=TestingPolicy(on_lease_expiry="HOLD")) as testing:
        onceward = testing.aio()

        @contextlib.asynccontextmanager
        async def lifespan(_: FastAPI) -> Any:
            async with onceward:
                yield

        app = FastAPI(lifespan=lifespan)
        route = once_route(onceward, "charges", caller=account, **options)
        router = APIRouter(route_class=route)

        async def mail() -> None:
            raise RuntimeError("no mail server")

        @router.post("/charges", status_code=201)
        async def charge(order: Order, caller: Account, background: BackgroundTasks) -> Charge:
            effects.append(f"{caller}: {current_claim().key}")
            if order.cents == 0:
                raise OutcomeUnknownError("the bank timed out")
            background.add_task(mail)
            return Charge(id=f"ch_{len(effects)}", cents=order.cents)

        @router.post("/threads")
        def charge_in_a_thread() -> str:
            return current_claim().key

        @app.post("/login")
        async def login() -> str:
            with pytest.raises(LookupError):
                current_claim()
            return "welcome"

        if included:
            app.include_router(router, prefix="/v1")
        else:
            app.router.routes.extend(router.routes)
        with TestClient(app, base_url="http://api") as browser:
            yield testing, browser, effects


HEADERS = {"authorization": "Bearer a-1", "idempotency-key": '"k-1"'}


@pytest.mark.parametrize("included", [True, False])
def test_a_route_is_guarded_for_the_caller_that_its_dependency_returns(included: bool) -> None:
    with _served(included) as (testing, browser, effects):
        prefix = "/v1" if included else ""
        path = f"{prefix}/charges"
        first = browser.post(path, json={"cents": 5}, headers=HEADERS)
        second = browser.post(path, json={"cents": 5}, headers=HEADERS)
        assert (first.status_code, first.json()) == (201, {"id": "ch_1", "cents": 5})
        assert "idempotency-replayed" not in first.headers
        assert (second.status_code, second.content) == (201, first.content)
        assert second.headers["idempotency-replayed"] == "true"
        assert effects == [f"a-1: POST:{path}:a-1:k-1"]
        other = browser.post(path, json={"cents": 5}, headers={**HEADERS, "authorization": "Bearer a-2"})
        assert other.json() == {"id": "ch_2", "cents": 5}
        assert browser.post(path, json={"cents": 6}, headers=HEADERS).status_code == 422
        assert browser.post(f"{prefix}/threads", headers=HEADERS).json() == f"POST:{prefix}/threads:a-1:k-1"


def test_a_request_is_authenticated_before_its_key_counts() -> None:
    with _served(True) as (testing, browser, effects):
        for headers in ({"idempotency-key": '"k-1"'}, {}):
            assert browser.post("/v1/charges", json={"cents": 5}, headers=headers).status_code == 401
        missing = browser.post("/v1/charges", json={"cents": 5}, headers={"authorization": "Bearer a-1"})
        assert (missing.status_code, missing.json()["type"]) == (400, "urn:onceward:problem:key-missing")
        assert browser.post("http://api/login").json() == "welcome"
        assert (effects, testing.records()) == ([], [])


def test_a_route_without_a_needed_key_passes() -> None:
    with _served(True, key_optional=True) as (testing, browser, effects):
        with pytest.raises(LookupError):
            browser.post("/v1/charges", json={"cents": 5}, headers={"authorization": "Bearer a-1"})


def test_a_route_that_can_not_know_its_outcome_leaves_its_claim_to_the_policy() -> None:
    found = Happened(GuardedResponse(201, {}, b"found"))
    with _served(True, resolve=lambda _: found) as (testing, browser, effects):
        kinds = [browser.post("/v1/charges", json={"cents": 0}, headers=HEADERS).json()["type"] for _ in "12"]
        assert kinds == ["urn:onceward:problem:ambiguous", "urn:onceward:problem:in-progress"]
        assert [record.state for record in testing.records()] == [Record.STATE_IN_PROGRESS]
        testing.advance(30_000)
        texts = [browser.post("/v1/charges", json={"cents": 0}, headers=HEADERS).text for _ in "12"]
        assert (texts, len(effects)) == (["found"] * 2, 1)
