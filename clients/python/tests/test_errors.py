"""Errors survive a copy in another process, as Celery, multiprocessing and concurrent.futures make it."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime

import pytest

from onceward import (
    AmbiguousError,
    Checkpoint,
    ClaimRef,
    CompletionError,
    Effect,
    InProgressError,
    OncewardError,
    OutcomeUnknownError,
    TerminalError,
)
from onceward._mapping import may_pass

CLAIM = ClaimRef("charges", "order-1", 7)
NOW = datetime(2026, 1, 31, tzinfo=UTC)
REFUSED = OncewardError("QUOTA_RATE", "Too many calls.", code=8, metadata={"limit": "5"}, retry_delay_ms=250)


@pytest.mark.parametrize(
    "error",
    [
        REFUSED,
        InProgressError(CLAIM, "worker-1", 2, NOW, 1000),
        AmbiguousError(CLAIM, "worker-1", 2, NOW, Checkpoint("debited", {"cents": 100})),
        CompletionError(Effect("ch_1"), REFUSED, stored=False, claim=CLAIM),
        TerminalError("declined", {"code": "51"}, name="CardDeclined"),
        OutcomeUnknownError("the bank timed out"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_is_the_same_after_pickling(error: Exception) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


@pytest.mark.parametrize(("code", "passes"), [(12, True), (7, True), (13, True), (3, False)])
def test_a_task_waits_for_the_end_of_an_outage_that_a_proxy_reports(code: int, passes: bool) -> None:
    assert may_pass(OncewardError("NO_ANSWER", "a page", code=code)) is passes
