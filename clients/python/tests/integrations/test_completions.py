"""Completions in the caller's own transaction, on the Postgres that ONCEWARD_TEST_DATABASE names."""

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import psycopg
import pytest
import sqlalchemy
from sqlalchemy.orm import Session

from onceward import (
    BytesCodec,
    ClaimRef,
    CompletionError,
    InvalidRequestError,
    OncewardError,
    ResultUnavailableError,
)
from onceward.inbox import (
    MIGRATION,
    DeliveryCounts,
    SweepResult,
    UndeliverableCompletion,
    complete_in,
    deliver_completions,
    start_relay,
    sweep,
)
from onceward.testing import TestingOnceward

DATABASE = os.environ.get("ONCEWARD_TEST_DATABASE", "")
if not DATABASE:
    pytest.skip("ONCEWARD_TEST_DATABASE names no Postgres", allow_module_level=True)

_ENGINE = sqlalchemy.create_engine(sqlalchemy.make_url(DATABASE).set(drivername="postgresql+psycopg"))
_INSERT = "insert into orders values ('{}')"
_WITHIN_S = 60


def _connect() -> AbstractContextManager[Any]:
    return psycopg.connect(DATABASE)


@pytest.fixture(autouse=True)
def tables() -> Iterator[None]:
    with _connect() as connection:
        connection.execute(MIGRATION)
        connection.execute("create table if not exists orders (note text)")
        connection.execute("truncate orders, onceward_completions, onceward_inbox")
    yield


@pytest.fixture
def testing() -> Iterator[TestingOnceward]:
    with TestingOnceward() as made:
        yield made


def _orders() -> list[str]:
    with _connect() as connection:
        return [note for (note,) in connection.execute("select note from orders")]


def _take(claim: Any, note: str) -> Any:
    """Writes the effect and its completion in one transaction."""
    with psycopg.connect(DATABASE) as connection:

        def insert() -> str:
            connection.execute(_INSERT.format(note))
            return note

        return complete_in(connection, claim, insert)


def _crash_after_commit(testing: TestingOnceward, note: str = "taken", key: str = "order-1") -> ClaimRef:
    """Commits a completion that does not reach the service, as if the process died. Returns the claim."""
    testing.fail_next("Complete", "INTERNAL")
    with pytest.raises(CompletionError) as lost:
        testing.onceward.run("orders", key, lambda claim: _take(claim, note))
    assert lost.value.claim is not None
    return lost.value.claim


def _update_rows(change: str) -> None:
    with psycopg.connect(DATABASE) as connection:
        connection.execute(f"update onceward_completions set {change}")  # type: ignore[arg-type]


def _deliver(testing: TestingOnceward, **hooks: Any) -> tuple[int, int, int]:
    counts: DeliveryCounts = deliver_completions(testing.onceward, _connect, **hooks)
    return counts.delivered, counts.undeliverable, counts.failed


def test_the_run_and_its_repeat_return_the_written_value(testing: TestingOnceward) -> None:
    for note in ("first", "second"):
        assert testing.onceward.run("orders", "order-1", lambda claim: _take(claim, note)) == "first"  # noqa: B023
    assert _orders() == ["first"]
    # The relay's completion is the one that `run` has stored.
    assert _deliver(testing) == (1, 0, 0)


@pytest.mark.parametrize("begin", [_ENGINE.begin, lambda: Session(_ENGINE).begin()], ids=["core", "session"])
def test_sqlalchemy_commits_the_effect_and_the_completion_together(
    testing: TestingOnceward, begin: Any
) -> None:
    def take(claim: Any) -> Any:
        with begin() as entered:
            connection = getattr(entered, "session", entered)

            def insert() -> dict[str, Any]:
                connection.execute(sqlalchemy.text(_INSERT.format("taken")))
                return {"id": (1, 2)}

            return complete_in(connection, claim, insert)

    testing.fail_next("Complete", "INTERNAL")
    with pytest.raises(CompletionError):
        testing.onceward.run("orders", "order-1", take)
    counts = deliver_completions(testing.onceward, _ENGINE.begin)
    assert (counts.delivered, counts.undeliverable, counts.failed) == (1, 0, 0)
    assert testing.onceward.run("orders", "order-1", take) == {"id": [1, 2]}
    assert _orders() == ["taken"]


def test_an_attempt_that_takes_over_a_committed_effect_delivers_it(testing: TestingOnceward) -> None:
    _crash_after_commit(testing, "before the crash")
    testing.advance(30_000)
    result = testing.onceward.run_detailed("orders", "order-1", lambda claim: _take(claim, "after the crash"))
    assert (result.value, result.replayed, result.attempt) == ("before the crash", False, 2)
    assert _orders() == ["before the crash"]


def test_a_completion_that_another_holder_refuses_is_kept_and_taken_over(testing: TestingOnceward) -> None:
    first = _crash_after_commit(testing, "before the crash")
    testing.advance(30_000)
    refused: list[UndeliverableCompletion] = []

    def take(claim: Any) -> Any:
        for expected in ((0, 1, 0), (0, 0, 0)):
            assert _deliver(testing, on_undeliverable=refused.append) == expected
            _update_rows("next_attempt_at = now()")
        testing.fail_next("Complete", "INTERNAL")
        return _take(claim, "after the crash")

    with pytest.raises(CompletionError):
        testing.onceward.run("orders", "order-1", take)
    reason = "CLAIM_SUPERSEDED"
    assert refused == [UndeliverableCompletion("orders", "order-1", first.fencing_token or 0, reason)]
    assert _deliver(testing) == (1, 0, 0)
    assert testing.onceward.run("orders", "order-1", lambda _: "again") == "before the crash"
    assert _orders() == ["before the crash"]


def test_a_row_that_is_taken_over_during_its_delivery_is_delivered_again(testing: TestingOnceward) -> None:
    _crash_after_commit(testing)
    connections = 0

    def connect() -> AbstractContextManager[Any]:
        nonlocal connections
        connections += 1
        if connections == 2:
            _update_rows("fencing_token = fencing_token + 1")
        return _connect()

    assert deliver_completions(testing.onceward, connect).delivered == 1
    with psycopg.connect(DATABASE) as connection:
        rows = connection.execute("select delivered_at, undeliverable from onceward_completions").fetchall()
    assert rows == [(None, None)]


def test_a_stalled_holder_writes_nothing_after_another_one_has_finished(testing: TestingOnceward) -> None:
    testing.fail_next("Complete", "INTERNAL")
    with pytest.raises(CompletionError) as lost:
        testing.onceward.run("orders", "order-1", lambda _: None)
    testing.advance(30_000)
    testing.onceward.run("orders", "order-1", lambda claim: _take(claim, "by the second"))
    assert _deliver(testing) == (1, 0, 0)
    assert _take(lost.value.claim, "by the first") == "by the second"
    assert _orders() == ["by the second"]


def test_an_effect_that_was_written_unguarded_is_taken_over_by_the_first_claim(
    testing: TestingOnceward,
) -> None:
    for _ in range(2):
        assert _take(ClaimRef("orders", "order-1", 0), "unguarded") == "unguarded"
    assert _deliver(testing) == (0, 1, 0)
    assert testing.onceward.run("orders", "order-1", lambda claim: _take(claim, "guarded")) == "unguarded"
    assert (_deliver(testing), _orders()) == ((1, 0, 0), ["unguarded"])


def test_concurrent_holders_commit_one_effect() -> None:
    values: list[Any] = []
    claims = [ClaimRef("orders", "order-1", token) for token in range(1, 9)]
    threads = [
        threading.Thread(
            target=lambda claim: values.append(_take(claim, f"by {claim.fencing_token}")), args=[each]
        )
        for each in claims
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(_orders()) == 1
    assert values == _orders() * len(claims)


def test_an_error_and_a_value_that_cannot_be_stored_undo_the_writes(testing: TestingOnceward) -> None:
    def take(claim: Any, value: Any) -> None:
        with psycopg.connect(DATABASE) as connection:

            def insert() -> Any:
                connection.execute(_INSERT.format("undone"))
                if isinstance(value, Exception):
                    raise value
                return value

            try:
                complete_in(connection, claim, insert)
            finally:
                # Even if the caller commits all the same.
                connection.commit()

    with pytest.raises(ConnectionError, match="no printer"):
        testing.onceward.run("orders", "order-1", lambda claim: take(claim, ConnectionError("no printer")))
    for value, reason in (({1, 2}, "RESULT_NOT_JSON"), ("x" * 1_100_000, "RESULT_TOO_LARGE")):
        with pytest.raises(OncewardError) as refused:
            testing.onceward.run("orders", "order-1", lambda claim: take(claim, value))  # noqa: B023
        assert refused.value.reason == reason
    assert (_orders(), _deliver(testing)) == ([], (0, 0, 0))
    assert testing.onceward.run("orders", "order-1", lambda claim: _take(claim, "done")) == "done"


def test_nothing_runs_within_another_completion_or_outside_a_transaction() -> None:
    claim = ClaimRef("orders", "order-1", 7)
    with psycopg.connect(DATABASE) as connection:
        with pytest.raises(OncewardError) as refused:
            complete_in(connection, claim, lambda: complete_in(connection, claim, lambda: "nested"))
        assert refused.value.reason == "RECORD_CONTENDED"
    with psycopg.connect(DATABASE, autocommit=True) as connection:
        with pytest.raises(psycopg.errors.NoActiveSqlTransaction):
            complete_in(connection, claim, lambda: "alone")


def test_a_codecs_bytes_are_delivered_and_a_value_that_is_too_large_is_not(testing: TestingOnceward) -> None:
    first, second = _crash_after_commit(testing), _crash_after_commit(testing, key="order-2")
    with psycopg.connect(DATABASE) as connection:
        connection.execute("delete from onceward_completions")
        assert complete_in(connection, first, lambda: b"\xff", codec=BytesCodec()) == b"\xff"
        complete_in(connection, second, lambda: "x" * 70_000)
    assert _deliver(testing) == (2, 0, 0)
    assert testing.onceward.run("orders", "order-1", lambda _: b"", codec=BytesCodec()) == b"\xff"
    with pytest.raises(ResultUnavailableError) as lost:
        testing.onceward.run("orders", "order-2", lambda _: "again")
    assert lost.value.reason == "RESULT_LOST"


def test_a_corrupted_row_does_not_affect_the_others_of_its_pass(testing: TestingOnceward) -> None:
    _crash_after_commit(testing)
    _crash_after_commit(testing, key="order-2")
    _update_rows("result = '\\xff' where key = 'order-2'")
    errors: list[Exception] = []
    assert _deliver(testing, on_error=errors.append) == (1, 0, 1)
    assert len(errors) == 1


def test_a_delivery_that_fails_is_due_again_after_growing_delays(testing: TestingOnceward) -> None:
    _crash_after_commit(testing)
    delays_s = []
    for _ in range(4):
        testing.fail_next("Complete", "DATABASE_UNAVAILABLE")
        assert _deliver(testing) == (0, 0, 1)
        with psycopg.connect(DATABASE) as connection:
            delays_s += connection.execute(
                """update onceward_completions c set next_attempt_at = now()
                   from onceward_completions before where before.key = c.key
                   returning round(extract(epoch from before.next_attempt_at - now()), -1)::int"""
            ).fetchone()
    assert delays_s == [10, 20, 40, 60]
    assert _deliver(testing) == (1, 0, 0)


def test_a_relay_survives_outages_of_both_sides_and_ends_when_it_is_closed(testing: TestingOnceward) -> None:
    _crash_after_commit(testing)
    testing.fail_next("Complete", "DATABASE_UNAVAILABLE")
    errors: list[Exception] = []
    failed = threading.Event()

    def note(error: Exception) -> None:
        errors.append(error)
        failed.set()
        if isinstance(error, OncewardError):
            _update_rows("next_attempt_at = now()")

    is_up = threading.Event()

    def connect() -> AbstractContextManager[Any]:
        if not is_up.is_set():
            raise ConnectionError("the database is unreachable")
        return _connect()

    with start_relay(testing.onceward, connect, poll_ms=10, on_error=note):
        assert failed.wait(_WITHIN_S)
        is_up.set()
        # Waits for the relay: the claim is held until then.
        assert (
            testing.onceward.run("orders", "order-1", lambda _: "again", wait_ms=_WITHIN_S * 1000) == "taken"
        )
    assert {type(error).__name__ for error in errors} == {"ConnectionError", "OncewardError"}
    _crash_after_commit(testing, key="order-2")
    assert _deliver(testing) == (1, 0, 0)
    with pytest.raises(InvalidRequestError):
        start_relay(testing.onceward, connect, poll_ms=9)


def test_a_sweep_deletes_completions_that_were_delivered_long_ago(testing: TestingOnceward) -> None:
    _crash_after_commit(testing)
    _deliver(testing)
    _crash_after_commit(testing, key="order-2")
    _update_rows("delivered_at = delivered_at - interval '2 days'")
    with psycopg.connect(DATABASE) as connection:
        assert sweep(connection, timedelta(days=1)) == SweepResult(inbox=0, completions=1)
    assert _deliver(testing) == (1, 0, 0)
