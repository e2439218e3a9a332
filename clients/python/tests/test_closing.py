"""What a client that closes leaves of calls in flight, and what it writes of the texts of others."""

import asyncio
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from onceward import CompletionError, InProgressError
from onceward.aio import Claim
from onceward.testing import TestingOnceward
from onceward.testing._refusals import Refused
from onceward.v1.idempotency_pb2 import ClaimRequest, ClaimResponse


class Silent(TestingOnceward):
    """A service that does not answer a Complete before ``released``."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.released = threading.Event()
        super().__init__()

    def _answer(self, call: str, request: Any, context: grpc.ServicerContext) -> Any:
        if call == "Complete":
            self.asked.set()
            self.released.wait()
        return super()._answer(call, request, context)


def _close_threads(testing: Silent) -> BaseException | None:
    with ThreadPoolExecutor(1) as threads:
        run = threads.submit(testing.onceward.run, "charges", "order-1", lambda claim: "charged")
        assert testing.asked.wait(30)
        testing.onceward.close(timeout_ms=0)
        return run.exception()


async def _close_aio(testing: Silent) -> BaseException | None:
    async with testing.aio() as onceward:

        async def charge(_: Claim) -> Any:
            return "charged"

        run: asyncio.Task[Any] = asyncio.create_task(onceward.run("charges", "order-1", charge))
        await asyncio.to_thread(testing.asked.wait)
        await onceward.close(timeout_ms=0)
        await asyncio.wait([run])
        return run.exception()


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_a_call_that_has_no_answer_when_its_client_closes_ends(kind: str) -> None:
    testing = Silent()
    with testing:
        try:
            error = _close_threads(testing) if kind == "threads" else asyncio.run(_close_aio(testing))
        finally:
            testing.released.set()
        assert isinstance(error, CompletionError)
        assert (error.reason, error.stored) == ("CLOSED", False)


def test_the_owner_in_an_error_can_not_change_the_order_of_its_text() -> None:
    with TestingOnceward() as testing:

        def again(_: Any) -> None:
            with ThreadPoolExecutor(1) as threads:
                threads.submit(testing.onceward.run, "charges", "order-1", again, wait_ms=0).result()

        with pytest.raises(InProgressError) as raised:
            testing.onceward.run("charges", "order-1", again, owner="\u202eworker" + "x" * 100)
        assert raised.value.owner.startswith("\u202eworker")
        assert "at \ufffdworker" in str(raised.value)


class Colourful(TestingOnceward):
    """A service that is down, and says so in a text that clears a terminal."""

    def _claim(self, request: ClaimRequest, context: grpc.ServicerContext) -> ClaimResponse:
        raise Refused("DATABASE_UNAVAILABLE", "\x1b[2Jdown\x9b\u202e")


def test_a_warning_has_no_characters_of_others_that_control_a_terminal() -> None:
    with Colourful() as testing, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        options = {"on_unavailable": "proceed", "timeout_ms": 1}
        testing.onceward.run("charges", "order-1", lambda claim: None, **options)  # type: ignore[arg-type]
    [warning] = [str(each.message) for each in caught if "without a claim" in str(each.message)]
    assert "\ufffd[2Jdown\ufffd\ufffd" in warning
    assert not any(each in warning for each in "\x1b\x9b\u202e")
