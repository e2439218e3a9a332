"""Options of handlers of messages. The outcomes of deliveries are in clients/conformance."""

from typing import Any

import pytest

from onceward import Happened, InvalidRequestError, OutcomeUnknownError
from onceward.consumers import message_handler
from onceward.testing import TestingOnceward, TestingPolicy


def test_a_message_whose_effect_resolve_found_is_a_duplicate_with_its_value() -> None:
    def charge(message: str, claim: Any) -> str:
        raise OutcomeUnknownError("the bank timed out")

    def resolve(claim: Any, message: str) -> Happened:
        return Happened(f"ch_{message} in attempt {claim.attempt}")

    with TestingOnceward(policy=TestingPolicy(on_lease_expiry="HOLD")) as testing:
        handle = message_handler(testing.onceward, "charges", charge, key=str, resolve=resolve)
        assert handle("order-1").kind == "released"
        testing.advance(30_000)
        found = [(each.kind, each.value) for each in (handle("order-1"), handle("order-1"))]
        assert found == [("duplicate", "ch_order-1 in attempt 2")] * 2


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"max_attempts": 0}, "max_attempts"),
        ({"redeliver_after_ms": 0}, "redeliver_after_ms"),
        ({"max_redeliver_after_ms": 1}, "max_redeliver_after_ms"),
        ({"lease_ms": 1}, "lease_ms"),
        ({"max_atempts": 3}, "max_atempts"),
    ],
)
def test_an_invalid_option_is_refused_before_the_first_message(options: Any, field: str) -> None:
    with TestingOnceward() as testing:
        with pytest.raises(InvalidRequestError, match=field):
            message_handler(testing.onceward, "charges", lambda *_: None, key=str, **options)
