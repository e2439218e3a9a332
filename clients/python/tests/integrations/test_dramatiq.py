"""Dramatiq actors, with a real worker on Redis."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import dramatiq
import pytest
from dramatiq.brokers.redis import RedisBroker
from dramatiq.middleware import AsyncIO, CurrentMessage, TimeLimitExceeded
from dramatiq.results import ResultFailure, Results
from dramatiq.results.backends import RedisBackend

from onceward import InProgressError, OutcomeUnknownError, TerminalError, current_claim
from onceward.dramatiq import once
from onceward.testing import TestingOnceward
from onceward.v1.record_pb2 import Record

_TIMEOUT_MS = 60_000


@pytest.fixture
def broker(redis_url: str) -> Iterator[Any]:
    broker = RedisBroker(url=redis_url)
    broker.add_middleware(CurrentMessage())
    broker.add_middleware(Results(backend=RedisBackend(url=redis_url)))
    dramatiq.set_broker(broker)
    # As the command starts a process: time limits need it.
    broker.emit_after("process_boot")
    yield broker
    broker.close()


def test_actors_run_once_for_a_key(broker: Any) -> None:
    effects: list[str] = []
    with TestingOnceward() as testing:

        @dramatiq.actor(broker=broker, throws=TerminalError, store_results=True)
        @once(lambda: testing.onceward, "charges", key=lambda order: order["id"])
        def charge(order: dict[str, Any]) -> str:
            effects.append(f"{order['id']} in attempt {current_claim().attempt}")
            if order["cents"] > 1000:
                raise TerminalError("too expensive")
            return f"ch_{order['id']}"

        @dramatiq.actor(broker=broker, store_results=True, min_backoff=1)
        @once(lambda: testing.onceward, "mails")
        def mail(address: str) -> str:
            effects.append(f"mail in attempt {current_claim().attempt}")
            if current_claim().attempt == 1:
                raise ConnectionError
            return address

        @dramatiq.actor(broker=broker, throws=OutcomeUnknownError)
        @once(lambda: testing.onceward, "refunds", key=lambda order_id: order_id)
        def refund(order_id: str) -> None:
            raise OutcomeUnknownError("the bank timed out")

        @dramatiq.actor(broker=broker, store_results=True, min_backoff=1)
        @once(lambda: testing.onceward, "reminders", key=lambda name: name, mode="at-most-once")
        def remind(name: str) -> None:
            raise TimeLimitExceeded(name)

        worker = dramatiq.Worker(broker, worker_timeout=10, worker_threads=2)
        worker.start()
        try:
            with pytest.raises(ResultFailure, match="no route"):
                remind.send("no route").get_result(block=True, timeout=_TIMEOUT_MS)
            orders = [charge.send({"id": "order-1", "cents": 100}) for _ in range(2)]
            for message in orders:
                assert message.get_result(block=True, timeout=_TIMEOUT_MS) == "ch_order-1"
            # A retry keeps the message's id, which is its key without another one.
            assert mail.send("a@b").get_result(block=True, timeout=_TIMEOUT_MS) == "a@b"
            assert effects == ["order-1 in attempt 1", "mail in attempt 1", "mail in attempt 2"]
            charge.send({"id": "order-2", "cents": 5000})
            charge.send({"id": "order-2", "cents": 5000})
            broker.join(charge.queue_name)
            worker.join()
            assert effects[3:] == ["order-2 in attempt 1"]
            assert testing.counts.replayed == 2
            refund.send("order-3")
            broker.join(refund.queue_name)
            worker.join()
            [state] = [record.state for record in testing.records() if record.key == "order-3"]
            assert state == Record.STATE_IN_PROGRESS
        finally:
            worker.stop()


def test_a_retry_while_another_worker_runs_the_operation_is_none_of_the_actor_s(broker: Any) -> None:
    with TestingOnceward() as testing:

        @dramatiq.actor(broker=broker, max_retries=0, store_results=True)
        @once(lambda: testing.onceward, "charges", key=lambda order_id: order_id, timeout_ms=1)
        def charge(order_id: str) -> str:
            raise AssertionError("the operation was done by another holder")

        worker = dramatiq.Worker(broker, worker_timeout=10, worker_threads=1)
        worker.start()
        try:
            with testing.onceward.claim("charges", "order-1") as scope:
                testing.fail_next("Claim", "DATABASE_UNAVAILABLE")
                message = charge.send("order-1")
                # Two more deliveries, of an actor that allows no retry.
                deadline_s = time.monotonic() + _TIMEOUT_MS / 1000
                while testing.counts.in_progress < 3:
                    assert time.monotonic() < deadline_s, "the message was not retried"
                    time.sleep(0.01)
                scope.complete("ch_1")
            assert message.get_result(block=True, timeout=_TIMEOUT_MS) == "ch_1"
        finally:
            worker.stop()


def test_an_actor_fails_as_usual_if_another_operation_is_in_progress(broker: Any) -> None:
    effects: list[str] = []
    with TestingOnceward() as testing:

        @dramatiq.actor(broker=broker, max_retries=0, throws=InProgressError)
        @once(lambda: testing.onceward, "charges", key=lambda order_id: order_id)
        def outer(order_id: str) -> None:
            effects.append(order_id)
            testing.onceward.run("accounts", "a-1", lambda _: None, on_in_progress="throw")

        worker = dramatiq.Worker(broker, worker_timeout=10, worker_threads=1)
        worker.start()
        try:
            with testing.onceward.claim("accounts", "a-1") as scope:
                outer.send("order-1")
                broker.join(outer.queue_name)
                worker.join()
                scope.release()
            assert effects == ["order-1"]
            [record] = [each for each in testing.records() if each.key == "order-1"]
            assert record.state == Record.STATE_RELEASED
        finally:
            worker.stop()


def test_an_actor_that_is_stopped_leaves_its_claim_to_the_policy(broker: Any) -> None:
    with TestingOnceward() as testing:

        @dramatiq.actor(broker=broker, max_retries=0, time_limit=200)
        @once(lambda: testing.onceward, "charges", key=lambda order_id: order_id)
        def charge(order_id: str) -> None:
            while True:
                time.sleep(0.01)

        worker = dramatiq.Worker(broker, worker_timeout=10, worker_threads=1)
        worker.start()
        try:
            charge.send("order-1")
            broker.join(charge.queue_name)
            worker.join()
            assert [record.state for record in testing.records()] == [Record.STATE_IN_PROGRESS]
        finally:
            worker.stop()


def test_actors_that_are_coroutine_functions_run_once(broker: Any) -> None:
    broker.add_middleware(AsyncIO())
    effects: list[str] = []
    with TestingOnceward() as testing:

        @dramatiq.actor(broker=broker, store_results=True, max_retries=0)
        @once(testing.aio, "charges")
        async def charge(order_id: str) -> str:
            await asyncio.sleep(0)
            effects.append(f"{order_id} in attempt {current_claim().attempt}")
            return f"ch_{order_id}"

        @dramatiq.actor(broker=broker, max_retries=0, time_limit=200)
        @once(testing.aio, "transfers", key=lambda name: name)
        async def transfer(name: str) -> None:
            await asyncio.Event().wait()

        worker = dramatiq.Worker(broker, worker_timeout=10, worker_threads=2)
        worker.start()
        try:
            message = charge.message("order-1")
            for _ in range(2):
                broker.enqueue(message)
                assert message.get_result(block=True, timeout=_TIMEOUT_MS) == "ch_order-1"
                broker.join(charge.queue_name)
                worker.join()
            assert effects == ["order-1 in attempt 1"]
            transfer.send("limited")
            broker.join(transfer.queue_name)
            worker.join()
            [record] = [each for each in testing.records() if each.key == "limited"]
            assert record.state == Record.STATE_IN_PROGRESS
        finally:
            worker.stop()


def test_a_coroutine_function_needs_a_client_for_asyncio() -> None:
    with TestingOnceward() as testing:

        async def charge(order_id: str) -> None: ...

        with pytest.raises(TypeError, match="charge is a coroutine function"):
            once(testing.onceward, "charges")(charge)
        with pytest.raises(TypeError, match="must return a client of onceward.aio"):
            asyncio.run(once(lambda: testing.onceward, "charges", key=lambda each: each)(charge)("order-1"))
        assert testing.records() == []
