"""Forks, blocked event loops, and runs within themselves."""

import asyncio
import concurrent.futures
import os
import threading
import time
import warnings
from typing import Any

import grpc
import pytest

from onceward import InvalidRequestError, Onceward
from onceward.testing import TestingOnceward


class Observed(TestingOnceward):
    """A service that keeps the keys whose leases were prolonged."""

    def __init__(self) -> None:
        self.extended: list[str] = []
        super().__init__()

    def _answer(self, call: str, request: Any, context: grpc.ServicerContext) -> Any:
        if call == "ExtendLease":
            self.extended.append(request.key)
        return super()._answer(call, request, context)


def test_a_child_process_prolongs_the_leases_of_its_own_claims() -> None:
    with Observed() as testing:
        with Onceward(testing.address, api_key="key") as onceward:
            ended = threading.Event()
            with concurrent.futures.ThreadPoolExecutor(1) as threads:
                # The parent's heartbeats run, and one of its runs is active.
                running = threads.submit(onceward.run, "charges", "parent", lambda _: ended.wait(30))
                while not testing.records():
                    time.sleep(0.01)
                child = os.fork()
                if child == 0:
                    status = 1
                    try:
                        onceward.run("charges", "child", lambda _: time.sleep(1.5), lease_ms=1000)
                        onceward.close(timeout_ms=10_000)
                        status = 0
                    finally:
                        os._exit(status)
                assert os.waitpid(child, 0)[1] == 0
                ended.set()
                assert running.result() is True
    assert "child" in testing.extended


def test_a_blocked_event_loop_is_warned_of_once() -> None:
    async def run(testing: TestingOnceward) -> None:
        async with testing.aio() as onceward:

            async def charge(_: Any) -> None:
                for _ in range(2):
                    await asyncio.sleep(0.01)
                    time.sleep(1.2)
                await asyncio.sleep(0.01)

            await onceward.run("charges", "order-1", charge, lease_ms=1000)

    with TestingOnceward() as testing, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(run(testing))
    late = [each for each in caught if "blocked" in str(each.message)]
    assert len(late) == 1


def test_a_run_within_itself_is_refused_at_once() -> None:
    with TestingOnceward() as testing:
        onceward = testing.onceward

        def outer(_: Any) -> Any:
            assert onceward.run("refunds", "order-1", lambda _: "another operation") == "another operation"
            return onceward.run("charges", "order-1", lambda _: "itself")

        with pytest.raises(InvalidRequestError, match="key is held by the run"):
            onceward.run("charges", "order-1", outer)

        async def run() -> None:
            async with testing.aio() as onceward:

                async def outer(_: Any) -> Any:
                    return await asyncio.gather(onceward.run("charges", "order-1", lambda _: "itself"))

                with pytest.raises(InvalidRequestError, match="key is held by the run"):
                    await onceward.run("charges", "order-1", outer)

        asyncio.run(run())
