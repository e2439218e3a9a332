"""Handles a message once in the caller's own Postgres: the key's row and the rows of its effects commit
together.

It needs no service of Onceward::

    with psycopg.connect(...) as connection:  # Commits at its end.
        result = once(connection, "billing", event.id, lambda: insert_invoice(connection, event))
    # Acknowledge the message only now.

The tables are those of the TypeScript and Go clients, so that programs in all languages share them: run
``MIGRATION`` first.
"""

from __future__ import annotations

import importlib.resources
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, TypeVar

from ._catalogue import FingerprintMismatchError, RecordContendedError
from ._codec import decode_json, encode_json
from ._fingerprint import fingerprint_of
from ._limits import MAX_KEY_BYTES
from ._texts import raise_if_any, refused_field, text_violations

__all__ = ["MIGRATION", "InboxResult", "once", "sweep"]

T = TypeVar("T")

#: Creates the tables, version 1, in the caller's Postgres (15 or later): one statement, for any migration
#: tool, which may be run again.
MIGRATION = importlib.resources.files("onceward").joinpath("inbox.sql").read_text("utf-8")

#: A row that disappears between two statements was swept in between, which hardly happens even once.
_ENTRY_ATTEMPTS = 3
_MAX_SWEEP_LIMIT = 10_000


@dataclass(frozen=True)
class InboxResult(Generic[T]):
    """The outcome of a message. ``replayed``: it was handled before."""

    value: T
    replayed: bool


def once(
    connection: Any, consumer: str, key: str, fn: Callable[[], T], *, fingerprint: object = None
) -> InboxResult[T]:
    """Runs the function unless this consumer has handled the key before, in the caller's transaction.

    - While another transaction handles the key, this one waits for it to end, and then replays its value or
      runs the function. (Above READ COMMITTED, Postgres fails the later one with 40001: repeat the
      transaction.)
    - An error of the function is raised unchanged, and its writes are undone, even if the transaction
      commits.
    - The value is JSON, and is returned as JSON reads it. Small values, such as an id, are better.
    - Effects outside this database are repeated if the transaction is: pass them a derived key, or use
      ``Onceward.run``.

    :param connection: a psycopg ``Connection``, or a ``Connection`` or ``Session`` of SQLAlchemy on psycopg.
    :param consumer: the name of the consumer, such as the consumer group, 1-255 bytes.
    :param key: the operation's key, the same on every delivery.
    :param fingerprint: the request that the key stands for; None for none.
    :raises OncewardError: INVALID_REQUEST, FINGERPRINT_MISMATCH, RESULT_NOT_JSON; also the driver's errors.
        Outside a transaction, as with ``autocommit``, Postgres' 25P01. Then nothing of the function remains.
    """
    violations = text_violations("consumer", consumer, 1, MAX_KEY_BYTES)
    raise_if_any([*violations, *text_violations("key", key, 1, MAX_KEY_BYTES)])
    bound = None if fingerprint is None else fingerprint_of(fingerprint)
    execute = _executor(connection)
    # Refused outside a transaction, before anything has happened: statements that commit one by one would
    # guarantee nothing.
    execute("savepoint onceward")
    try:
        result = _once(execute, consumer, key, fn, bound)
    except BaseException:
        _undo(execute)
        raise
    execute("release savepoint onceward")
    return result


def _undo(execute: Callable[..., Any]) -> None:
    """Undoes the part of the transaction since its savepoint."""
    try:
        execute("rollback to savepoint onceward")
        execute("release savepoint onceward")
    except Exception:
        # The connection is gone, or the transaction can't commit: nothing of it remains, and the caller must
        # see the function's error.
        return


def _once(
    execute: Callable[..., Any], consumer: str, key: str, fn: Callable[[], T], fingerprint: bytes | None
) -> InboxResult[T]:
    for _ in range(_ENTRY_ATTEMPTS):
        entered = execute(
            """insert into onceward_inbox (consumer, key, fingerprint)
               values (%s::text, %s::text, %s::bytea)
               on conflict (consumer, key) do nothing""",
            consumer,
            key,
            fingerprint,
        )
        if entered.rowcount == 1:
            return InboxResult(_handle(execute, consumer, key, fn), replayed=False)
        row = execute(
            "select fingerprint, result from onceward_inbox where consumer = %s::text and key = %s::text",
            consumer,
            key,
        ).fetchone()
        if row is None:
            # The row was swept between the two statements.
            continue
        bound, stored = row
        if bound is not None and fingerprint is not None and bytes(bound) != fingerprint:
            raise FingerprintMismatchError("The key was handled before, for another request.")
        return InboxResult(decode_json(b"" if stored is None else stored.encode()), replayed=True)
    raise RecordContendedError(
        "The key's row can't be read: row-level security hides it, or this very transaction is still writing "
        "it."
    )


def _handle(execute: Callable[..., Any], consumer: str, key: str, fn: Callable[[], T]) -> Any:
    payload = encode_json(fn())
    execute(
        "update onceward_inbox set result = %s::text where consumer = %s::text and key = %s::text",
        payload.decode(),
        consumer,
        key,
    )
    return decode_json(payload)


def sweep(connection: Any, older_than: timedelta, limit: int = 1000) -> int:
    """Deletes the oldest handled messages that are older than the given age, at most ``limit`` (1-10,000) of
    them.

    Returns how many: call it again while that is the limit. A delivery that comes later runs again, so choose
    an age longer than the longest retry or redrive of any queue. Concurrent sweeps share the rows, and never
    wait for a handler.

    :raises InvalidRequestError: for an age that is not positive, and for another limit.
    """
    if older_than <= timedelta():
        raise refused_field("older_than", "must be more than 0")
    if not 1 <= limit <= _MAX_SWEEP_LIMIT:
        raise refused_field("limit", f"must be 1-{_MAX_SWEEP_LIMIT}")
    deleted = _executor(connection)(
        """with old as materialized (
             select consumer, key
               from onceward_inbox
              where received_at < now() - %s::float8 * interval '1 second'
              order by received_at
              limit %s::int
                for update skip locked
           )
           delete from onceward_inbox i using old
            where i.consumer = old.consumer and i.key = old.key""",
        older_than.total_seconds(),
        limit,
    )
    return int(deleted.rowcount)


def _executor(connection: Any) -> Callable[..., Any]:
    """Returns a function that runs a statement, whose placeholders are %s, with its values."""
    if hasattr(connection, "get_bind"):
        # A Session of SQLAlchemy.
        connection = connection.connection()
    run = getattr(connection, "exec_driver_sql", None) or connection.execute
    return lambda statement, *values: run(statement, values or None)
