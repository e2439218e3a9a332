"""Leases that end while the machine is suspended. Other late answers are in clients/conformance."""

from typing import Any

import grpc
import pytest

from onceward import _lease
from onceward._lease import _LeaseClock
from onceward.testing import TestingOnceward

_LEASE_MS = 30_000


def _suspend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the machine of the client been suspended for as long as a lease."""
    offset_ms = _LeaseClock._offset_ms()
    monkeypatch.setattr(_LeaseClock, "_offset_ms", staticmethod(lambda: offset_ms + _LEASE_MS))


class Suspending(TestingOnceward):
    """A service whose answer to a Claim finds the machine of the client suspended."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.calls: list[str] = []
        super().__init__()

    def _answer(self, call: str, request: Any, context: grpc.ServicerContext) -> Any:
        self.calls.append(call)
        response = super()._answer(call, request, context)
        if call == "Claim":
            self.advance(_LEASE_MS)
            _suspend(self._monkeypatch)
        return response


def test_a_claim_that_is_granted_before_a_suspension_is_renewed_before_it_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Suspending(monkeypatch) as testing:
        testing.onceward.run("charges", "order-1", lambda claim: None)
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
            _suspend(monkeypatch)
            return before is None and claim.lost is not None and claim.lost.reason == "LEASE_LOST"

        assert testing.onceward.run("charges", "order-1", fn) is True
