"""Concurrent calls are gathered into batches, and each has the outcome it would have had alone."""

import asyncio
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from onceward import OncewardError
from onceward._flow import Call
from onceward._gather import MAX_BATCHES_IN_FLIGHT, Gatherer, Queued
from onceward._limits import MAX_BATCH_ITEMS, MAX_MESSAGE_BYTES
from onceward.testing import TestingOnceward
from onceward.testing._refusals import Refused
from onceward.v1.idempotency_pb2 import (
    BatchRequest,
    BatchResponse,
    BatchResponseItem,
    ClaimRequest,
    ClaimResponse,
    ReleaseResponse,
)

_CALLERS = 40


class Recording(TestingOnceward):
    """A service that counts its batches, which a test may answer. Lone claims wait until ``gate`` is set."""

    def __init__(self, answer: Callable[[BatchRequest], BatchResponse] | None = None) -> None:
        self.batches: list[int] = []
        self.gate = threading.Event()
        self._answer_batch = answer
        super().__init__()

    def _claim(self, request: ClaimRequest, context: grpc.ServicerContext) -> ClaimResponse:
        self.gate.wait()
        return super()._claim(request, context)

    def _batch(self, request: BatchRequest, context: grpc.ServicerContext) -> BatchResponse:
        self.gate.set()
        self.batches.append(len(request.items))
        return super()._batch(request, context) if self._answer_batch is None else self._answer_batch(request)


def run_all(testing: Recording, kind: str) -> list[Any]:
    """Runs an operation of each caller at one time. Returns the value or the error of each."""
    keys = [f"order-{caller}" for caller in range(_CALLERS)]
    if kind == "asyncio":
        testing.gate.set()
        return asyncio.run(_run_tasks(testing, keys))
    gatherer = testing.onceward._calls._gatherer
    add, left = gatherer.add, itertools.count(_CALLERS - 1, -1)

    def count(call: Queued) -> None:
        add(call)
        if next(left) == 0:
            testing.gate.set()

    gatherer.add = count  # type: ignore[method-assign]

    def work(key: str) -> Any:
        try:
            return testing.onceward.run("charges", key, lambda claim: claim.key)
        except OncewardError as error:
            return error

    with ThreadPoolExecutor(_CALLERS) as threads:
        return list(threads.map(work, keys))


async def _run_tasks(testing: TestingOnceward, keys: list[str]) -> list[Any]:
    async with testing.aio() as onceward:
        runs = [onceward.run("charges", key, lambda claim: claim.key) for key in keys]
        return await asyncio.gather(*runs, return_exceptions=True)


def test_tasks_that_call_at_one_time_share_a_batch() -> None:
    with Recording() as testing:
        assert run_all(testing, "asyncio") == [f"order-{caller}" for caller in range(_CALLERS)]
        # One for the claims, one for the completions: each began in one turn of the event loop.
        assert testing.batches == [_CALLERS, _CALLERS]


def test_threads_that_call_while_calls_are_in_flight_share_batches() -> None:
    with Recording() as testing:
        assert run_all(testing, "threads") == [f"order-{caller}" for caller in range(_CALLERS)]
        assert max(testing.batches) > 1


def _too_large(request: BatchRequest) -> BatchResponse:
    refused = Refused("RESPONSE_TOO_LARGE", "The reply does not fit.").item
    return BatchResponse(items=[BatchResponseItem(error=refused) for _ in request.items])


def _invalid(_: BatchRequest) -> BatchResponse:
    raise Refused("INVALID_REQUEST", "An item is invalid.")


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
@pytest.mark.parametrize("answer", [_too_large, _invalid])
def test_the_calls_that_a_batch_can_not_carry_are_made_alone(
    kind: str, answer: Callable[[BatchRequest], BatchResponse]
) -> None:
    with Recording(answer) as testing:
        assert run_all(testing, kind) == [f"order-{caller}" for caller in range(_CALLERS)]
        assert testing.counts.granted == _CALLERS


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
@pytest.mark.parametrize(
    "answer", [BatchResponse(), BatchResponse(items=[BatchResponseItem(release=ReleaseResponse())])]
)
def test_a_batch_with_the_answers_of_other_calls_leaves_no_call_without_an_answer(
    kind: str, answer: BatchResponse
) -> None:
    with Recording(lambda _: answer) as testing:
        outcomes = run_all(testing, kind)
        failed = [each for each in outcomes if isinstance(each, OncewardError)]
        assert failed and {error.reason for error in failed} == {"INTERNAL"}


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_an_error_of_the_batch_fails_each_of_its_calls_and_names_its_claim(kind: str) -> None:
    def refuse(_: BatchRequest) -> BatchResponse:
        raise Refused("NAMESPACE_DENIED", "Not with this key.")

    with Recording(refuse) as testing:
        outcomes = run_all(testing, kind)
        failed = {each.claim.key: each for each in outcomes if isinstance(each, OncewardError)}
        assert failed
        for key, error in failed.items():
            assert (error.reason, error.claim.key) == ("NAMESPACE_DENIED", key)
            assert outcomes.index(error) == int(key.removeprefix("order-"))


def test_the_error_of_an_item_is_that_of_a_lone_call() -> None:
    with Recording() as testing:
        testing.fail_next("Claim", "KEY_TOO_OLD", times=_CALLERS)
        outcomes = run_all(testing, "asyncio")
        assert [type(each).__name__ for each in outcomes] == ["KeyTooOldError"] * _CALLERS
        assert [each.claim.key for each in outcomes] == [f"order-{caller}" for caller in range(_CALLERS)]


def _of(byte_count: int) -> Queued:
    return Queued(Call("Claim", BatchRequest()), (), lambda _: None, byte_count)


def test_a_batch_is_bounded_in_items_and_bytes() -> None:
    gatherer = Gatherer()
    for _ in range(MAX_BATCHES_IN_FLIGHT * MAX_BATCH_ITEMS + 1):
        gatherer.add(_of(1))
    assert len(gatherer.take()) == MAX_BATCH_ITEMS
    gatherer = Gatherer()
    for byte_count in (MAX_MESSAGE_BYTES, 1, 1, MAX_MESSAGE_BYTES):
        gatherer.add(_of(byte_count))
    first = gatherer.take()
    assert [each.byte_count for each in first] == [MAX_MESSAGE_BYTES]
    # More than a full batch is in flight.
    assert gatherer.take() == []
    gatherer.end(first)
    assert [each.byte_count for each in gatherer.take()] == [1, 1]


def test_at_most_four_batches_are_in_flight_and_share_what_is_queued() -> None:
    gatherer = Gatherer()
    for _ in range(100):
        gatherer.add(_of(1))
    assert [len(gatherer.take()) for _ in range(MAX_BATCHES_IN_FLIGHT)] == [34, 33, 33, 0]


def test_beside_two_batches_few_calls_wait_and_gather() -> None:
    gatherer = Gatherer()
    for _ in range(2):
        gatherer.add(_of(1))
        first = gatherer.take()
        assert len(first) == 1
    for _ in range(7):
        gatherer.add(_of(1))
        assert gatherer.take() == []
    gatherer.add(_of(1))
    assert len(gatherer.take()) == 8
    gatherer.add(_of(1))
    gatherer.end(first)
    assert gatherer.take() == []
    gatherer.end(first)
    assert len(gatherer.take()) == 1


@pytest.mark.parametrize("is_async", [False, True])
def test_many_keys_are_seen_in_their_order_in_few_batches(is_async: bool) -> None:
    keys = [f"event-{index % 2000}" for index in range(2500)]

    async def ask(testing: Recording, claim_id: str) -> list[bool]:
        if not is_async:
            return testing.onceward.seen_all("events", keys, claim_id=claim_id)
        async with testing.aio() as onceward:
            return await onceward.seen_all("events", keys, claim_id=claim_id)

    with Recording() as testing:
        testing.gate.set()
        first = [False] * 2000 + [True] * 500
        assert asyncio.run(ask(testing, "delivery-1")) == first
        assert len(testing.batches) < 100
        assert asyncio.run(ask(testing, "delivery-1")) == first
        assert asyncio.run(ask(testing, "delivery-2")) == [True] * 2500
        assert testing.onceward.seen("events", keys[0]) is True
