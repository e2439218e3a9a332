"""What the guards of FastAPI and Django do about the same handlers."""

import gzip
from collections.abc import Callable
from typing import Any

import pytest
from guarded_apis import Answer

from onceward import (
    AmbiguousError,
    ClaimRef,
    Happened,
    InProgressError,
    NoEffectError,
    OncewardError,
    OutcomeUnknownError,
    current_claim,
    join_key,
)
from onceward.starlette import GuardedResponse
from onceward.testing import TestingPolicy
from onceward.v1.record_pb2 import Record, Result

_HOLD = TestingPolicy(on_lease_expiry="HOLD")
_RECORD_KEY = join_key("POST", "/charges/1", "a", "8e03978e-40d5")


def test_a_repeat_gets_the_first_response(start: Any) -> None:
    headers = {"content-type": "application/json", "location": "/charges/1", "set-cookie": "session=1"}
    with start() as api:
        api.handler = lambda: Answer(201, headers, str(len(api.calls)).encode())
        first, second, other = api.post(), api.post(), api.post(account="b")
        assert [first.body, second.body, other.body] == [b"1", b"1", b"2"]
        for name in ("content-type", "location"):
            assert second.headers[name] == headers[name]
        assert "set-cookie" in first.headers and "set-cookie" not in second.headers
        assert len(set(api.calls)) == 2


def test_a_body_that_is_too_large_is_refused(start: Any) -> None:
    with start(max_body_bytes=1000) as api:
        assert (api.post(body="x" * 2000).status, api.calls) == (413, [])


def _raises(error: BaseException) -> Callable[[], Answer]:
    def handler() -> Answer:
        raise error

    return handler


def _caused() -> Answer:
    raise RuntimeError("charge failed") from OutcomeUnknownError("the bank timed out")


def _marked() -> Answer:
    current_claim().outcome_unknown()
    return Answer(200)


_BUSY = {"retry-after": "1"}
_FAILED, _LATE = _raises(RuntimeError("no bank")), _raises(TimeoutError("the bank"))
#: Errors of the handler's own runs say nothing about this request.
_NESTED = InProgressError(ClaimRef("banks", "b-1"), "", 1, None, 5000)
_OVERLOADED = OncewardError("OVERLOADED", "the client of the handler", code=14)
_PARTIAL = {"stores": lambda response: "unknown" if response.json["errors"] else True}
_MONEY = {"on_error": "unknown"}


@pytest.mark.parametrize(
    ("state", "options", "handler", "status"),
    [
        (Record.STATE_COMPLETED, {}, lambda: Answer(404), 404),
        (Record.STATE_COMPLETED, {}, lambda: Answer(409), 409),
        (Record.STATE_RELEASED, {}, lambda: Answer(500), 500),
        (Record.STATE_RELEASED, {}, lambda: Answer(503, _BUSY), 503),
        (Record.STATE_RELEASED, {}, _FAILED, 500),
        (Record.STATE_RELEASED, {}, _raises(_NESTED), 500),
        (Record.STATE_RELEASED, {}, _raises(_OVERLOADED), 500),
        (Record.STATE_RELEASED, _MONEY, lambda: Answer(429), 429),
        (Record.STATE_RELEASED, _MONEY, _raises(NoEffectError("too expensive")), 500),
        (Record.STATE_IN_PROGRESS, {}, lambda: Answer(502), 502),
        (Record.STATE_IN_PROGRESS, {}, lambda: Answer(503), 503),
        (Record.STATE_IN_PROGRESS, {}, lambda: Answer(504), 504),
        (Record.STATE_IN_PROGRESS, {}, _LATE, 500),
        (Record.STATE_IN_PROGRESS, {}, _caused, 409),
        (Record.STATE_IN_PROGRESS, {}, _marked, 409),
        (Record.STATE_IN_PROGRESS, _MONEY, lambda: Answer(500), 500),
        (Record.STATE_IN_PROGRESS, _MONEY, lambda: Answer(503, _BUSY), 503),
        (Record.STATE_IN_PROGRESS, _MONEY, _FAILED, 500),
        (Record.STATE_IN_PROGRESS, _PARTIAL, lambda: Answer(200, {}, b'{"errors": ["no bank"]}'), 200),
        # The option fails.
        (Record.STATE_IN_PROGRESS, _PARTIAL, lambda: Answer(200, {}, b"{}"), 200),
    ],
)
def test_a_failure_is_stored_released_or_unknown(
    start: Any, state: Record.State, options: dict[str, Any], handler: Callable[[], Answer], status: int
) -> None:
    with start(policy=_HOLD, **options) as api:
        api.handler = handler
        assert api.post().status == status
        assert [record.state for record in api.testing.records()] == [state]


def _problems(api: Any) -> list[str]:
    """Returns the problems of three requests, of which the last comes after the lease."""
    problems = []
    for by_ms in (0, 30_000, 0):
        problems.append(api.post().problem)
        api.testing.advance(by_ms)
    return problems


def test_an_unknown_outcome_is_ambiguous_until_resolve_finds_the_response(start: Any) -> None:
    response = GuardedResponse(201, {"location": "/charges/1", "set-cookie": "session=1"}, b"found")
    found = [Happened(response), Happened("not a response")]
    with start(policy=_HOLD, resolve=lambda _: found.pop()) as api:
        api.handler = _raises(OutcomeUnknownError("the bank timed out"))
        assert _problems(api) == ["ambiguous", "in-progress", "ambiguous"]
        for _ in range(2):
            answer = api.post()
            assert (answer.status, answer.body, answer.headers["location"]) == (201, b"found", "/charges/1")
            assert "set-cookie" not in answer.headers
        assert len(api.calls) == 1


def test_of_a_response_below_400_a_mark_is_stored(start: Any) -> None:
    found = GuardedResponse(201, {}, b"found")
    with start(policy=_HOLD, stores="mark", resolve=lambda _: Happened(found)) as api:
        for key, body in ("k-1", b"charged"), ("k-2", b"found"):
            if body == b"found":
                api.handler = _marked
                assert api.post(key=key).problem == "ambiguous"
                api.testing.advance(30_000)
            assert api.post(key=key).body == body
            assert (gone := api.post(key=key)).status == 410 and gone.problem == "result-gone"
        for record in api.testing.records():
            assert record.result == Result(kind=Result.KIND_SUCCESS, metadata={"onceward-value-lost": "MARK"})
        api.handler = lambda: Answer(402, {}, b"declined")
        assert [api.post(key="k-3").body for _ in range(2)] == [b"declined"] * 2
        assert len(api.calls) == 3


def test_a_response_is_sent_although_it_is_not_stored(start: Any) -> None:
    with start() as api:
        api.testing.fail_next("Complete", "INTERNAL")
        assert [api.post().status for _ in range(2)] == [201, 409]
        api.testing.advance(30_000)
        assert api.post().status == 201
        assert api.calls == [api.calls[0]] * 2


def test_without_the_service_nothing_runs(start: Any) -> None:
    with start(timeout_ms=1) as api:
        api.testing.fail_next("Claim", "DATABASE_UNAVAILABLE", times=100)
        unavailable = api.post()
        assert (unavailable.status, unavailable.headers["retry-after"]) == (503, "1")
        api.testing.clear_faults()
        api.testing.fail_next("Claim", "NAMESPACE_DENIED")
        assert (api.post().status, api.calls) == (500, [])


@pytest.mark.parametrize("length", [70_000, 1_100_000])
def test_a_response_that_is_too_large_is_sent_and_is_gone_afterwards(start: Any, length: int) -> None:
    with start() as api:
        api.handler = lambda: Answer(201, {}, b"x" * length)
        assert len(api.post().body) == length
        gone = api.post()
        assert (gone.status, gone.problem, len(api.calls)) == (410, "result-gone", 1)


def test_a_replay_is_decoded_for_a_client_that_refuses_its_coding(start: Any) -> None:
    coded = gzip.compress(b"charged")
    with start() as api:
        api.handler = lambda: Answer(201, {"content-encoding": "gzip"}, coded)
        for accepted, body in ("gzip", coded), ("gzip", coded), ("identity", b"charged"):
            answer = api.post(**{"accept-encoding": accepted})
            assert (answer.body, "content-encoding" in answer.headers) == (body, accepted == "gzip")


def test_a_guard_around_another_one_stores_none_of_its_refusals(start: Any) -> None:
    with start(around="requests") as api:
        with api.testing.onceward.claim("charges", _RECORD_KEY) as scope:
            assert [api.post().status for _ in range(2)] == [409, 409]
            scope.release()
        assert [api.post().status for _ in range(2)] == [201, 201]
        assert len(api.calls) == 1


def test_guards_around_each_other_leave_their_claims_to_the_policy_if_the_outcome_is_unknown(
    start: Any,
) -> None:
    with start(around="requests", policy=_HOLD) as api:
        api.handler = _raises(OutcomeUnknownError("the bank timed out"))
        assert _problems(api) == ["ambiguous", "in-progress", "ambiguous"]
        for namespace in ("charges", "requests"):
            with pytest.raises(AmbiguousError):
                api.testing.onceward.run(namespace, _RECORD_KEY, lambda _: None)
        assert len(api.calls) == 1
