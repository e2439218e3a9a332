"""Parts of the caller's transaction in Postgres, by psycopg or SQLAlchemy on psycopg."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ._errors import OncewardError

Execute = Callable[..., Any]

#: A row that disappears between two statements was swept in between, which hardly happens even once.
ENTRY_ATTEMPTS = 3


def executor(connection: Any) -> Execute:
    """Returns a function that runs a statement, whose placeholders are %s, with its values."""
    if hasattr(connection, "get_bind"):
        # A Session of SQLAlchemy.
        connection = connection.connection()
    run = getattr(connection, "exec_driver_sql", None) or connection.execute
    return lambda statement, *values: run(statement, values or None)


@contextmanager
def savepoint(execute: Execute) -> Iterator[None]:
    """Has the block take effect as a whole, or not at all: if it raises, nothing of it remains, even if the
    caller then commits the rest.

    Outside a transaction Postgres refuses it (25P01) before anything has happened: statements that commit one
    by one would guarantee nothing.
    """
    execute("savepoint onceward")
    try:
        yield
    except BaseException:
        _undo(execute)
        raise
    execute("release savepoint onceward")


def _undo(execute: Execute) -> None:
    try:
        execute("rollback to savepoint onceward")
        execute("release savepoint onceward")
    except Exception:
        # The connection is gone, or the transaction can't commit: nothing of it remains, and the caller must
        # see the block's own error.
        return


def not_entered() -> OncewardError:
    """Returns the error of a key whose row exists for the unique constraint, but can't be read."""
    return OncewardError(
        "RECORD_CONTENDED",
        "The key's row can't be read: row-level security hides it, or this very transaction is still writing "
        "it.",
    )
