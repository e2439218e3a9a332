"""Django behind the middleware."""

import contextvars
import gzip
from collections.abc import Iterator
from typing import Any

import pytest
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.test import Client
from django.urls import path

from onceward import (
    ClaimRef,
    DidNotHappen,
    Happened,
    InProgressError,
    OutcomeUnknownError,
    current_claim,
    join_key,
)
from onceward.django import GuardedResponse, OncewardMiddleware
from onceward.testing import TestingOnceward, TestingPolicy
from onceward.v1.record_pb2 import Record

effects: list[str] = []
found: list[Happened[GuardedResponse] | DidNotHappen] = []
service: list[TestingOnceward] = []


def charge(request: HttpRequest) -> HttpResponse:
    if "times-out" in request.GET:
        effects.append("perhaps")
        raise OutcomeUnknownError("the bank timed out")
    effects.append(current_claim().derive_key("bank"))
    if "fails" in request.GET:
        raise RuntimeError("no bank")
    if "gzip" in request.GET:
        return HttpResponse(gzip.compress(b"charged"), headers={"Content-Encoding": "gzip"})
    if "streams" in request.GET:
        return StreamingHttpResponse(_parts(int(request.GET["streams"]), "cut" in request.GET))
    answer = JsonResponse({"attempt": current_claim().attempt}, status=int(request.GET.get("status", 201)))
    answer["Location"] = "/charges/1"
    answer.set_cookie("session", "1")
    return answer


def _parts(count: int, is_cut: bool) -> Iterator[bytes]:
    for _ in range(count):
        yield b"x" * 30_000
    if is_cut:
        raise RuntimeError("no more parts")


def failing(request: HttpRequest) -> HttpResponse:
    effects.append("perhaps")
    match request.GET["by"]:
        case "cause":
            raise RuntimeError("charge failed") from OutcomeUnknownError("the bank timed out")
        case "mark":
            current_claim().outcome_unknown()
            return HttpResponse("swallowed")
        case "timeout":
            raise TimeoutError("the bank")
        case "nested":
            raise InProgressError(ClaimRef("banks", "b-1"), "", 1, None, 5000)
        case "missing":
            raise Http404
    return HttpResponse(status=int(request.GET["by"]))


def nested(request: HttpRequest) -> HttpResponseBase:
    """A view with a guard of its own, within that of the middleware."""
    guard = OncewardMiddleware(
        charge, onceward=lambda: service[-1].onceward, namespace="nested", caller=lambda _: "a-1"
    )
    return guard(request)


urlpatterns = [path("charges", charge), path("failing", failing), path("nested", nested)]


def idempotency(get_response: Any) -> OncewardMiddleware:
    return OncewardMiddleware(
        get_response,
        onceward=lambda: service[-1].onceward,
        namespace="charges",
        caller=lambda request: request.headers["account"],
        resolve=lambda _: found.pop(),
    )


@pytest.fixture
def testing(configured_django: None) -> Iterator[TestingOnceward]:
    effects.clear()
    with TestingOnceward() as testing:
        service.append(testing)
        yield testing


def _post(
    query: str = "",
    body: bytes = b"10 EUR",
    key: str = '"8e03978e-40d5"',
    account: str = "a-1",
    path: str = "/charges",
    accepted: str | None = None,
) -> Any:
    client = Client(raise_request_exception=False)
    headers = {"Idempotency-Key": key, "Account": account}
    headers |= {} if accepted is None else {"Accept-Encoding": accepted}
    return client.post(f"{path}{query}", body, content_type="text/plain", headers=headers)


def test_a_repeat_gets_the_first_response(testing: TestingOnceward) -> None:
    first, second = _post(), _post()
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.content == second.content
    assert second["Idempotency-Replayed"] == "true"
    assert (second["Location"], second["Content-Type"]) == ("/charges/1", "application/json")
    assert first.cookies and not second.cookies
    assert len(effects) == 1
    assert _post(body=b"20 EUR").status_code == 422
    assert _post(account="a-2")["Location"] == "/charges/1"
    assert len(set(effects)) == 2
    assert Client().post("/charges", headers={"Account": "a-1"}).status_code == 400


def test_a_replay_is_decoded_for_a_client_that_refuses_its_coding(testing: TestingOnceward) -> None:
    for accepted in None, None, "identity":
        answer = _post("?gzip", accepted=accepted)
        body = answer.content if accepted else gzip.decompress(answer.content)
        assert (body, answer.get("Content-Encoding")) == (b"charged", None if accepted else "gzip")


def test_an_error_and_a_failure_of_the_server_are_not_stored(testing: TestingOnceward) -> None:
    for _ in range(2):
        assert _post("?fails").status_code == 500
    assert [_post("?status=500", key="k2").json()["attempt"] for _ in range(2)] == [1, 2]
    assert [_post("?status=404", key="k3").json()["attempt"] for _ in range(2)] == [1, 1]
    assert len(effects) == 5


def test_a_streaming_response_is_stored_if_it_is_whole(testing: TestingOnceward) -> None:
    assert len(b"".join(_post("?streams=2").streaming_content)) == 60_000
    repeated = _post("?streams=2")
    assert (repeated["Idempotency-Replayed"], len(repeated.content)) == ("true", 60_000)
    assert len(b"".join(_post("?streams=40", key="k-2").streaming_content)) == 1_200_000
    assert _post("?streams=40", key="k-2").status_code == 410
    assert _post("?streams=2&cut", key="k-3").json()["type"] == "urn:onceward:problem:ambiguous"
    assert _post("?streams=2&cut", key="k-3").json()["type"] == "urn:onceward:problem:in-progress"
    assert len(effects) == 3


@pytest.mark.parametrize(
    ("by", "first", "repeated"),
    [
        ("cause", 409, Record.STATE_IN_PROGRESS),
        ("mark", 409, Record.STATE_IN_PROGRESS),
        ("timeout", 500, Record.STATE_IN_PROGRESS),
        ("504", 504, Record.STATE_IN_PROGRESS),
        # That another operation is in progress says nothing about this one.
        ("nested", 500, Record.STATE_RELEASED),
        ("missing", 404, Record.STATE_COMPLETED),
    ],
)
def test_a_failure_of_a_view_is_stored_released_or_unknown(
    testing: TestingOnceward, by: str, first: int, repeated: int
) -> None:
    assert _post(f"?by={by}", path="/failing").status_code == first
    assert [record.state for record in testing.records()] == [repeated]


def test_a_response_is_sent_although_it_is_not_stored(testing: TestingOnceward) -> None:
    testing.fail_next("Complete", "INTERNAL")
    assert _post().status_code == 201
    busy = _post()
    assert (busy.status_code, busy["Retry-After"]) == (409, "1")
    testing.advance(30_000)
    found.append(DidNotHappen())
    assert _post().json() == {"attempt": 2}


def test_a_view_that_can_not_know_its_outcome_leaves_its_claim_to_the_policy(
    configured_django: None,
) -> None:
    effects.clear()
    with TestingOnceward(policy=TestingPolicy(on_lease_expiry="HOLD")) as testing:
        service.append(testing)
        kinds = []
        for by_ms in (0, 30_000, 0):
            answer = _post("?times-out")
            assert answer.status_code == 409
            kinds.append(answer.json()["type"].removeprefix("urn:onceward:problem:"))
            testing.advance(by_ms)
        assert kinds == ["ambiguous", "in-progress", "ambiguous"]
        found.append(Happened(GuardedResponse(201, {}, b"found")))
        assert [_post("?times-out").content for _ in "12"] == [b"found"] * 2
        assert len(effects) == 1
        # Where nothing is guarded, Django answers as after any error of a view.
        unguarded = Client(raise_request_exception=False).put("/charges?times-out")
        assert unguarded.status_code == 500


def test_a_guard_around_another_one_stores_none_of_its_refusals(testing: TestingOnceward) -> None:
    def post() -> int:
        # Not within the claim that this test holds.
        answer: HttpResponse = contextvars.Context().run(_post, path="/nested")
        return answer.status_code

    key = join_key("POST", "/nested", "a-1", "8e03978e-40d5")
    with testing.onceward.claim("nested", key) as scope:
        assert [post(), post()] == [409, 409]
        scope.release()
    assert [post(), post()] == [201, 201]
    assert len(effects) == 1


def test_guards_around_each_other_leave_their_claims_to_the_policy_if_the_outcome_is_unknown(
    testing: TestingOnceward,
) -> None:
    kinds = [_post("?times-out", path="/nested").json()["type"] for _ in range(2)]
    # The outer claim lasts: it was neither released nor completed.
    assert kinds == ["urn:onceward:problem:ambiguous", "urn:onceward:problem:in-progress"]
    key = join_key("POST", "/nested", "a-1", "8e03978e-40d5")
    for namespace in ("charges", "nested"):
        with pytest.raises(InProgressError):
            testing.onceward.run(namespace, key, lambda _: None, on_in_progress="throw")
    assert len(effects) == 1
