"""The profiles of HTTP, in each framework, with the expectations that the guards of all languages meet."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from django.http import HttpResponse
from guarded_apis import BODY, KEY, Answer

from onceward import InvalidRequestError
from onceward._http_profiles import _TABLE
from onceward.django import OncewardMiddleware as DjangoMiddleware
from onceward.starlette import HttpProfile

EXPECTED = json.loads((Path(__file__).parents[3] / "conformance/http-profiles.json").read_text())
each_profile = pytest.mark.parametrize("profile", EXPECTED)


def _has(body: Any, members: Any) -> bool:
    if not isinstance(members, dict):
        return bool(body == members)
    return isinstance(body, dict) and all(_has(body.get(name), value) for name, value in members.items())


def _expect(answer: Answer, refusal: dict[str, Any]) -> None:
    assert answer.status == refusal["status"]
    body = json.loads(answer.body)
    assert _has(body, refusal["body"])
    texts = body.get("error", body)
    # A sentence for people.
    assert texts.get("detail") or texts.get("message") or texts.get("content")
    kind = "application/problem+json" if "urn" in str(refusal) else "application/json"
    assert answer.headers["content-type"] == kind


def _marks(answer: Answer) -> list[str]:
    names = ("idempotency-replayed", "idempotent-replayed")
    return [name for name in names if answer.headers.get(name) == "true"]


def test_the_profiles_are_those_of_the_table() -> None:
    assert set(get_args(HttpProfile)) == set(_TABLE["profiles"]) == set(EXPECTED)


@each_profile
def test_a_replay_is_marked_and_other_requests_are_refused(start: Any, profile: str) -> None:
    expected = EXPECTED[profile]
    with start(profile=profile, documentation="https://api.example/keys") as api:
        first, second = api.post(), api.post()
        assert (first.status, second.status, second.body, len(api.calls)) == (201, 201, b"charged", 1)
        assert _marks(first) == []
        assert _marks(second) == ([] if expected["replayed"] is None else [expected["replayed"]])
        other = api.post(body='{"cents":2}')
        _expect(other, expected["otherBody"])
        mark = '<urn:onceward:problem:key-reused>; rel="type"'
        assert other.headers["link"] == f'{mark}, <https://api.example/keys>; rel="describedby"'
        for answer in (first, second, other):
            assert answer.headers.get("idempotency-key") == (KEY if expected["echoes"] else None)
        assert api.post(account="b").status == 201
        assert len(api.calls) == 2


@each_profile
def test_a_request_in_progress_is_refused(start: Any, profile: str) -> None:
    with start(profile=profile) as api:
        api.testing.fail_next("Complete", "INTERNAL")
        api.post()
        in_flight = api.post()
        _expect(in_flight, EXPECTED[profile]["inFlight"])
        assert in_flight.headers["retry-after"] == "1"


@each_profile
def test_a_key_has_its_form_and_its_scope(start: Any, profile: str) -> None:
    expected = EXPECTED[profile]
    with start(profile=profile) as api:
        missing = api.post(key=None)
        if expected["missing"] is None:
            assert (missing.status, len(api.calls)) == (201, 1)
        else:
            _expect(missing, expected["missing"])
        api.calls.clear()
        api.post()
        bare = api.post(key=KEY.strip('"'))
        assert (bare.status == 400) == (expected["bareKey"] == "malformed")
        assert len(api.calls) == (2 if expected["bareKey"] == "other" else 1)
        assert api.post(key=f'"{"k" * 256}"').status == 400
        api.calls.clear()
        elsewhere = api.post(path="/charges/2")
        if expected["scope"] == "all endpoints":
            _expect(elsewhere, expected["otherBody"])
        else:
            assert (elsewhere.status, len(api.calls)) == (201, 1)


def test_a_number_that_only_python_reads_counts_by_its_bytes(start: Any) -> None:
    with start() as api:
        assert [api.post(body=body).status for body in ("NaN", "NaN ")] == [201, 422]


@each_profile
def test_the_methods_of_the_protocol_are_guarded(start: Any, profile: str) -> None:
    with start(profile=profile) as api:
        for method in ("POST", "PUT", "PATCH"):
            api.calls.clear()
            headers = {"account": "a", "idempotency-key": f'"{method}"'}
            for _ in range(2):
                assert api.send(method, "/charges/1", headers, BODY).status == 201
            assert len(api.calls) == (1 if method in EXPECTED[profile]["guarded"] else 2)


@each_profile
def test_a_failure_of_the_server_is_stored_only_if_the_option_and_the_protocol_allow_it(
    start: Any, profile: str
) -> None:
    with start(profile=profile) as api:
        api.handler = lambda: Answer(500 if len(api.calls) == 1 else 201)
        assert [api.post().status for _ in range(2)] == [500, 201]
    with start(profile=profile, stores=lambda _: True) as api:
        api.handler = lambda: Answer(500 if len(api.calls) == 1 else 201)
        stored = [api.post('"other"').status for _ in range(2)]
        assert stored == ([500, 201] if profile == "acp" else [500, 500])


def test_requests_to_other_paths_pass(start: Any) -> None:
    for paths in (["/charges/1"], lambda path: path.startswith("/charges")):
        with start(paths=paths) as api:
            assert api.post(key=None).status == 400
            assert api.post(key=None, path="/login").status == 201


def test_a_refusal_names_the_header_that_has_the_key(start: Any) -> None:
    with start(header="X-Request-Id") as api:
        missing = api.post()
        assert (missing.status, b"X-Request-Id" in missing.body) == (400, True)


def test_options_replace_what_a_profile_says(start: Any) -> None:
    with start(profile="stripe", key_optional=False, methods=["PUT"]) as api:
        assert api.post(key=None).status == 201
        refused = api.send("PUT", "/charges/1", {"account": "a"}, BODY)
        _expect(refused, {"status": 400, "body": {"error": {"code": "idempotency_key_missing"}}})
    for options in (
        {"profile": "strip"},
        {"documentation": "https://api.example/>"},
        {"paths": []},
        {"operation": ""},
        {"operation": "charge", "profile": "stripe"},
        {"header": "X Request"},
        {"header": "X-Request-Id", "profile": "ietf"},
        {"key_optionl": True},
        {"methods": []},
        {"methods": ["post"]},
        {"replay_headers": ["Set-Cookie"]},
        {"stores": True},
    ):
        with pytest.raises(InvalidRequestError):
            DjangoMiddleware(
                lambda _: HttpResponse(),
                onceward=lambda: None,  # type: ignore[arg-type, return-value]
                namespace="charges",
                caller=lambda _: "a",
                **options,  # type: ignore[arg-type]
            )
