"""The inbox, on the Postgres that ONCEWARD_TEST_DATABASE names."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import psycopg
import pytest
import sqlalchemy
from sqlalchemy.orm import Session

from onceward import FingerprintMismatchError, InvalidRequestError, OncewardError
from onceward.inbox import MIGRATION, InboxResult, SweepResult, once, sweep

DATABASE = os.environ.get("ONCEWARD_TEST_DATABASE", "")
if not DATABASE:
    pytest.skip("ONCEWARD_TEST_DATABASE names no Postgres", allow_module_level=True)

_ENGINE = sqlalchemy.create_engine(sqlalchemy.make_url(DATABASE).set(drivername="postgresql+psycopg"))
_INSERT = "insert into effects values ('ran')"
Begin = Callable[[], AbstractContextManager[Any]]


@pytest.fixture(autouse=True)
def tables() -> Iterator[None]:
    with psycopg.connect(DATABASE) as connection:
        connection.execute(MIGRATION)
        connection.execute("create table if not exists effects (note text)")
        connection.execute("truncate effects, onceward_inbox")
    yield


def _effects() -> int:
    with psycopg.connect(DATABASE) as connection:
        return connection.execute("select count(*) from effects").fetchone()[0]  # type: ignore[index]


def _run(connection: Any) -> None:
    if isinstance(connection, psycopg.Connection):
        connection.execute(_INSERT)
    else:
        connection.execute(sqlalchemy.text(_INSERT))


@pytest.fixture(params=["psycopg", "sqlalchemy", "session"])
def begin(request: pytest.FixtureRequest) -> Begin:
    """Returns what begins a transaction that commits at its end."""
    if request.param == "psycopg":
        return lambda: psycopg.connect(DATABASE)
    return _ENGINE.begin if request.param == "sqlalchemy" else lambda: Session(_ENGINE).begin()  # type: ignore[return-value]


def _connection(entered: Any) -> Any:
    return entered.session if hasattr(entered, "session") else entered


def test_a_message_is_handled_once(begin: Begin) -> None:
    results = []
    for _ in range(2):
        with begin() as entered:
            connection = _connection(entered)
            results.append(once(connection, "billing", "m-1", lambda: (_run(connection), {"id": (1, 2)})[1]))  # noqa: B023
    assert [(each.value, each.replayed) for each in results] == [
        ({"id": [1, 2]}, False),
        ({"id": [1, 2]}, True),
    ]
    assert _effects() == 1
    with begin() as entered:
        assert not once(_connection(entered), "shipping", "m-1", lambda: None).replayed


@pytest.mark.parametrize("mode", [None, "at-most-once"])
def test_an_error_undoes_its_writes_and_the_transaction_goes_on(begin: Begin, mode: Any) -> None:
    with begin() as entered:
        connection = _connection(entered)

        def fails() -> None:
            _run(connection)
            raise ConnectionError("no printer")

        with pytest.raises(ConnectionError):
            once(connection, "billing", "m-1", fails, mode=mode)
        _run(connection)
    assert _effects() == 1
    with begin() as entered:
        # At most once, the row stays.
        connection = _connection(entered)
        assert once(connection, "billing", "m-1", lambda: 2, mode=mode).value == (2 if mode is None else None)
        for replayed in (False, True):
            assert once(connection, "billing", "m-2", lambda: 3, mode=mode) == InboxResult(3, replayed)


def test_another_request_and_bad_names_are_refused(begin: Begin) -> None:
    with begin() as entered:
        connection = _connection(entered)
        once(connection, "billing", "m-1", lambda: None, fingerprint={"cents": 1})
        with pytest.raises(FingerprintMismatchError):
            once(connection, "billing", "m-1", lambda: None, fingerprint={"cents": 2})
        assert once(connection, "billing", "m-1", lambda: None).replayed
        with pytest.raises(InvalidRequestError) as refused:
            once(connection, "", "x" * 256, lambda: None)
        with pytest.raises(InvalidRequestError, match="mode"):
            once(connection, "billing", "m-2", lambda: None, mode="twice")  # type: ignore[arg-type]
        assert [each.field for each in refused.value.violations] == ["consumer", "key"]
        with pytest.raises(OncewardError, match="no JSON form"):
            once(connection, "billing", "m-2", lambda: {1, 2})


def test_outside_a_transaction_nothing_runs() -> None:
    with psycopg.connect(DATABASE, autocommit=True) as connection:
        with pytest.raises(psycopg.errors.NoActiveSqlTransaction):
            once(connection, "billing", "m-1", lambda: _run(connection))
    assert _effects() == 0


def test_a_second_delivery_waits_for_the_first_one(begin: Begin) -> None:
    results: list[bool] = []

    def deliver() -> None:
        with begin() as entered:
            connection = _connection(entered)
            results.append(once(connection, "billing", "m-1", lambda: _run(connection)).replayed)

    with begin() as entered:
        connection = _connection(entered)
        once(connection, "billing", "m-1", lambda: _run(connection))
        second = threading.Thread(target=deliver)
        second.start()
        _wait_for_a_lock()
    second.join()
    assert (results, _effects()) == ([True], 1)


def _wait_for_a_lock() -> None:
    with psycopg.connect(DATABASE, autocommit=True) as connection:
        while not connection.execute("select 1 from pg_locks where not granted").fetchone():
            pass


def test_a_sweep_deletes_old_messages() -> None:
    with psycopg.connect(DATABASE) as connection:
        once(connection, "billing", "m-1", lambda: None)
        connection.execute("update onceward_inbox set received_at = now() - interval '2 days'")
        once(connection, "billing", "m-2", lambda: None)
        assert sweep(connection, timedelta(days=1)) == SweepResult(inbox=1, completions=0)
        assert once(connection, "billing", "m-2", lambda: None).replayed
        with pytest.raises(InvalidRequestError):
            sweep(connection, timedelta())
        with pytest.raises(InvalidRequestError):
            sweep(connection, timedelta(days=1), 0)
