"""Handles a message once in the caller's own Postgres: the key's row and the rows of its effects commit
together.

It needs no service of Onceward::

    with psycopg.connect(...) as connection:  # Commits at its end.
        result = once(connection, "billing", event.id, lambda: insert_invoice(connection, event))
    # Acknowledge the message only now.

``complete_in`` writes the completion of a ``run`` in the caller's transaction, and ``start_relay`` delivers
it to the service, despite crashes.

The tables are those of the TypeScript and Go clients, so that programs in all languages share them: run
``MIGRATION`` first.
"""

from __future__ import annotations

import importlib.resources
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, Literal, TypeVar

from ._catalogue import FingerprintMismatchError
from ._codec import decode_json, encode_json
from ._completions import (
    CompletedClaim,
    DeliveryCounts,
    Relay,
    UndeliverableCompletion,
    complete_in,
    deliver_completions,
    start_relay,
)
from ._fingerprint import fingerprint_of
from ._limits import MAX_KEY_BYTES
from ._texts import raise_if_any, refused_field, text_violations
from ._transaction import ENTRY_ATTEMPTS, Execute, executor, not_entered, savepoint

__all__ = [
    "MIGRATION",
    "CompletedClaim",
    "DeliveryCounts",
    "InboxResult",
    "Relay",
    "SweepResult",
    "UndeliverableCompletion",
    "complete_in",
    "deliver_completions",
    "once",
    "start_relay",
    "sweep",
]

T = TypeVar("T")

#: Creates the tables, version 1, in the caller's Postgres (15 or later): one statement, for any migration
#: tool, which may be run again.
MIGRATION = importlib.resources.files("onceward").joinpath("inbox.sql").read_text("utf-8")

_MAX_SWEEP_LIMIT = 10_000


@dataclass(frozen=True)
class InboxResult(Generic[T]):
    """The outcome of a message. ``replayed``: it was handled before."""

    value: T
    replayed: bool


def once(
    connection: Any,
    consumer: str,
    key: str,
    fn: Callable[[], T],
    *,
    fingerprint: object = None,
    mode: Literal["at-most-once"] | None = None,
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
    :param mode: "at-most-once": after an error of the function, the transaction may commit the key's row
        without its writes, so that the message is not handled again, and a repeat gets None.
    :raises OncewardError: INVALID_REQUEST, FINGERPRINT_MISMATCH, RESULT_NOT_JSON; also the driver's errors.
        Outside a transaction, as with ``autocommit``, Postgres' 25P01. Then nothing of the function remains.
    """
    violations = text_violations("consumer", consumer, 1, MAX_KEY_BYTES)
    raise_if_any([*violations, *text_violations("key", key, 1, MAX_KEY_BYTES)])
    if mode not in (None, "at-most-once"):
        raise refused_field("mode", 'must be "at-most-once" or None')
    bound = None if fingerprint is None else fingerprint_of(fingerprint)
    execute = executor(connection)
    with savepoint(execute):
        handled = _enter(execute, consumer, key, bound)
        if handled is not None:
            return handled
        if mode is None:
            return InboxResult(_handle(execute, consumer, key, fn), replayed=False)
    with savepoint(execute):
        # At most once: it does not undo the row.
        return InboxResult(_handle(execute, consumer, key, fn), replayed=False)


def _enter(execute: Execute, consumer: str, key: str, fingerprint: bytes | None) -> InboxResult[Any] | None:
    """Inserts the key's row. Returns what it has if the key was handled before; else None."""
    for _ in range(ENTRY_ATTEMPTS):
        entered = execute(
            """insert into onceward_inbox (consumer, key, fingerprint)
               values (%s::text, %s::text, %s::bytea)
               on conflict (consumer, key) do nothing""",
            consumer,
            key,
            fingerprint,
        )
        if entered.rowcount == 1:
            return None
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
    raise not_entered()


def _handle(execute: Execute, consumer: str, key: str, fn: Callable[[], T]) -> Any:
    payload = encode_json(fn())
    execute(
        "update onceward_inbox set result = %s::text where consumer = %s::text and key = %s::text",
        payload.decode(),
        consumer,
        key,
    )
    return decode_json(payload)


@dataclass(frozen=True)
class SweepResult:
    """How many rows a sweep deleted: handled messages, and completions that were delivered."""

    inbox: int
    completions: int


def sweep(connection: Any, older_than: timedelta, limit: int = 1000) -> SweepResult:
    """Deletes the oldest handled messages, and the oldest delivered completions, that are older than the
    given age, at most ``limit`` (1-10,000) of each.

    Call it again while either number is the limit. A delivery that comes later runs again, so choose an age
    longer than the longest retry or redrive of any queue, and longer than any holder of a claim may stall.
    Concurrent sweeps share the rows, and never wait for a handler.

    :raises InvalidRequestError: for an age that is not positive, and for another limit.
    """
    if older_than <= timedelta():
        raise refused_field("older_than", "must be more than 0")
    if not 1 <= limit <= _MAX_SWEEP_LIMIT:
        raise refused_field("limit", f"must be 1-{_MAX_SWEEP_LIMIT}")
    execute = executor(connection)
    values = (older_than.total_seconds(), limit)
    inbox = execute(
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
        *values,
    )
    completions = execute(
        """with old as materialized (
             select namespace, key
               from onceward_completions
              where delivered_at < now() - %s::float8 * interval '1 second'
              order by delivered_at
              limit %s::int
                for update skip locked
           )
           delete from onceward_completions c using old
            where c.namespace = old.namespace and c.key = old.key""",
        *values,
    )
    return SweepResult(int(inbox.rowcount), int(completions.rowcount))
