"""What only Django has: its own answers to errors, and responses that stream."""

from collections.abc import Callable, Iterator
from typing import Any

import guarded_apis
import pytest
from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.test import RequestFactory

from onceward.django import OncewardMiddleware
from onceward.testing import TestingOnceward
from onceward.v1.record_pb2 import Record


def test_an_error_that_django_answers_as_one_of_the_client_is_an_outcome(configured_django: None) -> None:
    def missing() -> Any:
        raise Http404

    with TestingOnceward() as testing, guarded_apis.django(testing, {}) as api:
        api.handler = missing
        assert api.post().status == 404
        assert [record.state for record in testing.records()] == [Record.STATE_COMPLETED]
        # Where nothing is guarded, Django answers likewise.
        assert api.send("PUT", "/charges/1", {}, "").status == 404


@pytest.fixture
def stream(configured_django: None) -> Iterator[Callable[[str, int, bool], Any]]:
    """Returns what streams parts of 30,000 bytes from a guarded view, which may break off after them."""

    def parts(count: int, is_cut: bool) -> Iterator[bytes]:
        yield from [b"x" * 30_000] * count
        if is_cut:
            raise RuntimeError("no more parts")

    with TestingOnceward() as testing:

        def post(key: str, count: int, is_cut: bool = False) -> Any:
            def view(_: HttpRequest) -> StreamingHttpResponse:
                return StreamingHttpResponse(parts(count, is_cut))

            guard: Any = OncewardMiddleware(
                view, onceward=testing.onceward, namespace="charges", caller=lambda _: "a"
            )
            return guard(RequestFactory().post("/charges", headers={"Idempotency-Key": key}))

        yield post


def test_a_streaming_response_is_stored_if_it_is_whole(stream: Any) -> None:
    assert len(b"".join(stream("k-1", 2).streaming_content)) == 60_000
    repeated = stream("k-1", 3)
    assert (repeated["Idempotency-Replayed"], len(repeated.content)) == ("true", 60_000)
    assert len(b"".join(stream("k-2", 40).streaming_content)) == 1_200_000
    assert stream("k-2", 1).status_code == 410
    kinds = [stream("k-3", 2, is_cut=True)["Link"].split(">")[0] for _ in range(2)]
    assert kinds == ["<urn:onceward:problem:ambiguous", "<urn:onceward:problem:in-progress"]
