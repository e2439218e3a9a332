"""The service in memory as a test uses it. Its answers are in clients/conformance."""

import asyncio
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from onceward import (
    AmbiguousError,
    CompletionError,
    InvalidRequestError,
    KeyTooOldError,
    OutcomeUnknownError,
    key_time,
    new_key,
)
from onceward.testing import TestingOnceward, TestingPolicy
from onceward.v1.idempotency_pb2 import ClaimRequest
from onceward.v1.idempotency_pb2_grpc import IdempotencyServiceStub


def test_deliveries_at_once_run_once() -> None:
    effects: list[str] = []
    with TestingOnceward() as testing, ThreadPoolExecutor(20) as threads:
        runs = [
            threads.submit(
                testing.onceward.run, "charges", "order-1", lambda claim: effects.append(claim.key)
            )
            for _ in range(20)
        ]
        for run in runs:
            run.result()
        assert effects == ["order-1"]
        assert (testing.counts.granted, testing.counts.replayed) == (1, 19)


def test_a_namespace_has_its_own_policy() -> None:
    with TestingOnceward(namespaces={"refunds": TestingPolicy(on_lease_expiry="HOLD")}) as testing:
        testing.fail_next("Complete", "INTERNAL", times=2)
        for namespace in ("charges", "refunds"):
            with pytest.raises(CompletionError):
                testing.onceward.run(namespace, "order-1", lambda _: None)
        testing.advance(30_000)
        testing.onceward.run("charges", "order-1", lambda _: None)
        with pytest.raises(AmbiguousError):
            testing.onceward.run("refunds", "order-1", lambda _: None)
        with pytest.raises(AmbiguousError), pytest.warns(RuntimeWarning, match="ZeroDivisionError"):
            testing.onceward.run("refunds", "order-1", lambda _: None, resolve=lambda _: 1 // 0)


def test_a_block_that_can_not_know_its_outcome_leaves_its_claim_to_the_policy() -> None:
    async def run(testing: TestingOnceward) -> None:
        async with testing.aio() as onceward:
            with pytest.raises(OutcomeUnknownError):
                async with onceward.claim("refunds", "order-1"):
                    raise OutcomeUnknownError("the bank timed out")
            await asyncio.to_thread(testing.advance, 30_000)
            with pytest.raises(AmbiguousError):
                await onceward.run("refunds", "order-1", lambda _: "again")

    with TestingOnceward(policy=TestingPolicy(on_lease_expiry="HOLD")) as testing:
        asyncio.run(run(testing))


def test_key_created_at_decides_about_late_keys() -> None:
    with TestingOnceward(policy=TestingPolicy(late_keys="REQUIRE_TIME")) as testing:
        made_at = testing.now
        with pytest.raises(InvalidRequestError) as refused:
            testing.onceward.run("charges", "order-1", lambda _: None)
        assert [violation.field for violation in refused.value.violations] == ["key_created_at"]
        testing.onceward.run("charges", "order-1", lambda _: None, key_created_at=made_at)
        testing.advance((72 * 3600 + 600) * 1000)
        with pytest.raises(KeyTooOldError):
            testing.onceward.run("charges", "order-1", lambda _: None, key_created_at=made_at)


def test_a_time_without_a_zone_is_refused() -> None:
    with TestingOnceward() as testing, pytest.raises(InvalidRequestError):
        naive = testing.now.replace(tzinfo=None)
        testing.onceward.run("charges", "order-1", lambda _: None, key_created_at=naive)


def test_new_keys_rise_and_say_when_they_were_made() -> None:
    keys = [new_key() for _ in range(5000)]
    assert sorted(set(keys)) == keys
    times = [key_time(key) for key in keys]
    assert None not in times
    assert sorted(times, key=str) == times


@pytest.mark.parametrize(("call", "reason"), [("Claim", "MOON_PHASE"), ("complete", "INTERNAL")])
def test_a_fault_that_no_call_has_is_refused(call: Any, reason: str) -> None:
    with TestingOnceward() as testing, pytest.raises(ValueError):
        testing.fail_next(call, reason)


def test_the_generated_stub_calls_the_service() -> None:
    with (
        TestingOnceward() as testing,
        grpc.insecure_channel(testing.address.removeprefix("http://")) as channel,
    ):
        stub = IdempotencyServiceStub(channel)
        claim = ClaimRequest(namespace="charges", key="order-1", claim_id=str(uuid.uuid4()))
        assert stub.Claim(claim, metadata=(("authorization", "Bearer key"),)).claimed.attempt == 1
