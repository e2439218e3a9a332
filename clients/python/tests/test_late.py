"""An answer that comes after its lease lets no function begin: another holder may have taken over."""

import asyncio
from typing import Any

import grpc
import pytest

from onceward import _lease
from onceward._lease import _LeaseClock
from onceward.testing import TestingOnceward
from onceward.v1.idempotency_pb2 import ClaimRequest, CompleteRequest
from onceward.v1.record_pb2 import Result

_LEASE_MS = 30_000


class Overtaking(TestingOnceward):
    """A service whose first answer to a Claim comes after its lease: the machine of the client was suspended
    meanwhile, and another worker took over, and completed.
    """

    __test__ = False

    def __init__(self, monkeypatch: pytest.MonkeyPatch, other_completes: bool) -> None:
        self._monkeypatch = monkeypatch
        self._other_completes = other_completes
        self._is_first = True
        self.calls: list[str] = []
        super().__init__()

    def _answer(self, call: str, request: Any, context: grpc.ServicerContext) -> Any:
        with self._changed:
            self.calls.append(call)
            response = super()._answer(call, request, context)
            if call == "Claim" and self._is_first:
                self._is_first = False
                self._suspend_client()
                if self._other_completes:
                    self._complete_by_other(request, context)
            return response

    def _suspend_client(self) -> None:
        self.advance(_LEASE_MS)
        offset_ms = _LeaseClock._offset_ms()
        self._monkeypatch.setattr(_LeaseClock, "_offset_ms", staticmethod(lambda: offset_ms + _LEASE_MS))

    def _complete_by_other(self, request: ClaimRequest, context: grpc.ServicerContext) -> None:
        name = {"namespace": request.namespace, "key": request.key}
        other = super()._answer("Claim", ClaimRequest(**name, claim_id="other"), context)
        result = Result(kind=Result.KIND_SUCCESS, payload=b'"by another"', content_type="application/json")
        token = other.claimed.fencing_token
        super()._answer("Complete", CompleteRequest(**name, fencing_token=token, result=result), context)


def _run(testing: TestingOnceward, kind: str) -> Any:
    if kind == "threads":
        return testing.onceward.run("charges", "order-1", lambda claim: "by this run")

    async def run() -> Any:
        async with testing.aio() as onceward:
            return await onceward.run("charges", "order-1", lambda claim: "by this run")

    return asyncio.run(run())


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_a_late_claim_that_was_taken_over_does_not_run(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Overtaking(monkeypatch, other_completes=True) as testing:
        assert _run(testing, kind) == "by another"
        assert testing.calls == ["Claim", "ExtendLease", "Claim"]


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_a_late_claim_that_nobody_took_over_is_renewed_before_it_runs(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Overtaking(monkeypatch, other_completes=False) as testing:
        assert _run(testing, kind) == "by this run"
        assert testing.calls == ["Claim", "ExtendLease", "Complete"]


def test_the_lease_clock_counts_the_time_in_which_the_machine_was_suspended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monotonic_ms, wall_ms = 0, 0
    monkeypatch.setattr(_lease, "now_ms", lambda: monotonic_ms)
    monkeypatch.setattr(_LeaseClock, "_offset_ms", staticmethod(lambda: wall_ms - monotonic_ms))
    clock = _LeaseClock()
    for monotonic_ms, wall_ms, expected_ms in [  # noqa: B007
        (1000, 1000, 1000),
        # Slewed.
        (2000, 2010, 2000),
        # Suspended, or set forward.
        (3000, 3_600_000, 3_599_990),
        # Set back.
        (4000, 60_000, 3_600_990),
    ]:
        assert clock.now_ms() == expected_ms


def test_a_lease_ends_with_the_suspension_of_its_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    with TestingOnceward() as testing:

        def fn(claim: Any) -> bool:
            before = claim.lost
            offset_ms = _LeaseClock._offset_ms()
            monkeypatch.setattr(_LeaseClock, "_offset_ms", staticmethod(lambda: offset_ms + _LEASE_MS))
            return before is None and claim.lost is not None and claim.lost.reason == "LEASE_LOST"

        assert testing.onceward.run("charges", "order-1", fn) is True
