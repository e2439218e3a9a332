"""Completions that commit in the caller's own transaction, and how they reach the service afterwards."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from google.protobuf.message import DecodeError

from ._client import Onceward
from ._codec import Codec, JsonCodec, codec_error, decode_value, encode_effect, encode_without_value
from ._errors import Effect, OncewardError
from ._flow import Call
from ._reasons import is_claim_over
from ._texts import refused_field
from ._transaction import ENTRY_ATTEMPTS, Execute, executor, not_entered, savepoint
from .v1.idempotency_pb2 import CompleteRequest
from .v1.record_pb2 import Result

#: Few enough that the service answers all of them before another relay takes the same rows.
_BATCH_ROWS = 100
#: Normally ``run`` itself completes the claim; the relay delivers the rest, which can wait this long.
_POLL_MS = 1000
#: A shorter interval would itself be a load on the database.
_MIN_POLL_MS = 10
_MAX_POLL_MS = 3_600_000
_JSON = JsonCodec()

#: Returns a context manager whose connection commits at its end: ``pool.connection`` of psycopg_pool,
#: ``engine.begin`` of SQLAlchemy, ``lambda: psycopg.connect(url)``.
Connect = Callable[[], AbstractContextManager[Any]]


class CompletedClaim(Protocol):
    """The part of a claim that identifies it, which a completion needs. Each claim has it."""

    @property
    def namespace(self) -> str:
        """The operation's namespace."""

    @property
    def key(self) -> str:
        """The operation's key."""

    @property
    def fencing_token(self) -> int:
        """The claim's token; 0 if the run is not guarded."""


def complete_in(
    connection: Any, claim: CompletedClaim, fn: Callable[[], Any], *, codec: Codec = _JSON
) -> Any:
    """Runs the function and writes its value as the claim's completion, in the transaction that the caller
    began and will commit: the effect's rows and the completion commit together.

    Call it inside ``run``, which keeps the claim's lease alive::

        def take(claim):
            with psycopg.connect(URL) as connection:  # Commits at its end.
                return complete_in(connection, claim, lambda: insert_order(connection, body))

        order = onceward.run("orders", key, take, fingerprint=body)

    - Return its value from the function passed to ``run``, which then completes the claim at the service. If
      the process crashes between the commit and that, the relay (``start_relay``) completes it, so that a
      committed completion is never lost.
    - The row's unique constraint holds even if the lease is lost. If an earlier attempt has committed and the
      service does not know yet, this returns that attempt's value instead of running the function; so it does
      for a holder that stalled until another one had finished, and for a run that is not guarded. The rows
      are written once, also if leases end.
    - With the policy HOLD, ``accept_ambiguous`` is safe: the row says whether the effect happened.
    - An error of the function is raised unchanged, and its writes are undone, even if the transaction
      commits.
    - Put everything that must happen once inside the function, and commit afterwards.
    - All completions in one database must be of one tenant.

    With ``onceward.aio``, call it by ``AsyncSession.run_sync`` of SQLAlchemy.

    :param connection: a psycopg ``Connection``, or a ``Connection`` or ``Session`` of SQLAlchemy on psycopg.
    :param codec: the run's codec, if it has one.
    :returns: the value as a repeat gets it.
    :raises OncewardError: RESULT_NOT_JSON, CODEC_FAILED, RESULT_TOO_LARGE (over 1 MiB), RECORD_CONTENDED
        within the function of another one for the claim; also the driver's errors. Outside a transaction, as
        with ``autocommit``, Postgres' 25P01. Then nothing of the function remains.
    """
    execute = executor(connection)
    with savepoint(execute):
        result = _enter(execute, claim)
        if result is None:
            result = encode_effect(Effect(fn()), codec)
            execute(
                """update onceward_completions set result = %s::bytea
                    where namespace = %s::text and key = %s::text""",
                result.SerializeToString(),
                claim.namespace,
                claim.key,
            )
        try:
            return decode_value(result, codec)
        except Exception as error:
            raise codec_error(error) from error


def _enter(execute: Execute, claim: CompletedClaim) -> Result | None:
    """Inserts the completion's row. Returns an earlier completion that is valid; None if the caller must
    write it.
    """
    for _ in range(ENTRY_ATTEMPTS):
        # A newer token takes the row over. If the completion was delivered, the service has forgotten it
        # since (else it would have replayed it), and this is a new operation. If not, it stays valid, and is
        # delivered with the newer token.
        entered = execute(
            """insert into onceward_completions as c (namespace, key, fencing_token)
               values (%s::text, %s::text, %s::bigint)
               on conflict (namespace, key) do update set
                 fencing_token = excluded.fencing_token,
                 result = case when c.delivered_at is null then c.result end,
                 written_at = now(),
                 attempts = 0,
                 next_attempt_at = now(),
                 delivered_at = null,
                 undeliverable = null
               where c.fencing_token < excluded.fencing_token
               returning result""",
            claim.namespace,
            claim.key,
            claim.fencing_token,
        ).fetchone()
        if entered is not None:
            return None if entered[0] is None else Result.FromString(bytes(entered[0]))
        # Written with this token, by a commit whose reply was lost, or with a newer token.
        written = execute(
            "select result from onceward_completions where namespace = %s::text and key = %s::text",
            claim.namespace,
            claim.key,
        ).fetchone()
        if written is not None and written[0] is not None:
            return Result.FromString(bytes(written[0]))
        # The row was swept between the two statements.
    raise not_entered()


@dataclass(frozen=True)
class UndeliverableCompletion:
    """A completion that the service will never accept. Its row stays, with the reason.

    - ``CLAIM_SUPERSEDED``, ``ALREADY_RELEASED``: the lease expired, or the run failed after its commit,
      before the completion was delivered. The next attempt that reaches ``complete_in`` takes the value
      over, and delivers it.
    - ``ALREADY_COMPLETED``: the function passed to ``run`` returned another value than ``complete_in``.
    - ``RECORD_NOT_FOUND``: the key was forgotten before.
    - ``INVALID_REQUEST``: the run was not guarded (``on_unavailable`` "proceed"), so that there is no claim
      to complete; the next attempt takes the value over, too. Or the row was changed.
    """

    namespace: str
    key: str
    fencing_token: int
    reason: str


@dataclass(frozen=True)
class DeliveryCounts:
    """The outcomes of the completions in one pass; those that ``failed`` will be retried."""

    delivered: int
    undeliverable: int
    failed: int


OnUndeliverable = Callable[[UndeliverableCompletion], object]
OnError = Callable[[Exception], object]


def deliver_completions(
    onceward: Onceward,
    connect: Connect,
    *,
    on_undeliverable: OnUndeliverable | None = None,
    on_error: OnError | None = None,
) -> DeliveryCounts:
    """Delivers up to 100 due completions: one pass of a relay. A scheduled job may call it instead of
    ``start_relay``.

    A row that a pass takes is due again after 10 s, then after growing delays of up to a minute. So
    concurrent passes share the rows, and a pass that dies leaves nothing to clean up. A completion that is
    delivered twice counts once at the service. Completions of clients in other languages are delivered, too.

    :param onceward: the client that sends the completions.
    :param connect: returns a context manager whose connection commits at its end: ``pool.connection`` of
        psycopg_pool, ``engine.begin`` of SQLAlchemy, or ``lambda: psycopg.connect(url)``.
    :param on_undeliverable: called once for each completion that the service will never accept; from then on
        its row has the reason.
    :param on_error: called with a temporary error, once per pass; the delivery is retried.
    :raises Exception: the driver's errors. The service's errors are counted and reported.
    """
    with connect() as connection:
        taken = _take_due(executor(connection))
    outcomes = _deliver(onceward, taken)
    settled = [
        {"namespace": row.namespace, "key": row.key, "token": str(row.fencing_token), "reason": outcome}
        for row, outcome in zip(taken, outcomes, strict=True)
        if not isinstance(outcome, OncewardError)
    ]
    if settled:
        with connect() as connection:
            _mark_delivered(executor(connection), settled)
    undeliverable = [
        UndeliverableCompletion(row.namespace, row.key, row.fencing_token, outcome)
        for row, outcome in zip(taken, outcomes, strict=True)
        if isinstance(outcome, str)
    ]
    if on_undeliverable is not None:
        for each in undeliverable:
            on_undeliverable(each)
    failures = [outcome for outcome in outcomes if isinstance(outcome, OncewardError)]
    if failures and on_error is not None:
        on_error(failures[0])
    return DeliveryCounts(len(settled) - len(undeliverable), len(undeliverable), len(failures))


@dataclass(frozen=True)
class _Row:
    namespace: str
    key: str
    fencing_token: int
    #: An onceward.v1.Result. Each is parsed separately, so that a corrupted row fails alone.
    result: bytes


def _take_due(execute: Execute) -> list[_Row]:
    rows = execute(
        """with due as materialized (
             select namespace, key
               from onceward_completions
              where delivered_at is null and undeliverable is null and next_attempt_at <= now()
              order by next_attempt_at
              limit %s::int
                for update skip locked
           )
           update onceward_completions c set
             attempts = c.attempts + 1,
             next_attempt_at = now() + least(60, 10 * 2 ^ least(c.attempts, 10)) * interval '1 second'
           from due
           where c.namespace = due.namespace and c.key = due.key
           returning c.namespace, c.key, c.fencing_token, c.result""",
        _BATCH_ROWS,
    ).fetchall()
    return [_Row(namespace, key, token, bytes(result or b"")) for namespace, key, token, result in rows]


def _deliver(onceward: Onceward, rows: list[_Row]) -> list[None | str | OncewardError]:
    """Completes the claims at the service. Returns for each None, the reason why the service will never
    accept it, or a temporary error.

    A result that the service refuses is stored as done without its value, as in ``run``.
    """
    outcomes: list[Any] = [_parse(row.result) for row in rows]
    _complete(onceward, rows, outcomes)
    for index, outcome in enumerate(outcomes):
        if isinstance(outcome, OncewardError) and outcome.reason in ("RESULT_TOO_LARGE", "INVALID_REQUEST"):
            outcomes[index] = encode_without_value(Effect(), outcome)
    _complete(onceward, rows, outcomes)
    return [
        outcome.reason
        if isinstance(outcome, OncewardError) and _is_undeliverable(outcome.reason)
        else outcome
        for outcome in outcomes
    ]


def _is_undeliverable(reason: str) -> bool:
    return reason == "INVALID_REQUEST" or is_claim_over(reason)


def _complete(onceward: Onceward, rows: list[_Row], outcomes: list[Any]) -> None:
    """Puts the outcome of a completion in the place of each result."""
    places = [index for index, outcome in enumerate(outcomes) if isinstance(outcome, Result)]
    calls = [
        Call(
            "Complete",
            CompleteRequest(
                namespace=rows[index].namespace,
                key=rows[index].key,
                fencing_token=rows[index].fencing_token,
                result=outcomes[index],
            ),
        )
        for index in places
    ]
    for index, answer in zip(places, onceward._calls.make_all(calls), strict=True):
        outcomes[index] = answer if isinstance(answer, OncewardError) else None


def _parse(result: bytes) -> Result | OncewardError:
    try:
        return Result.FromString(result)
    except DecodeError as error:
        return OncewardError("INTERNAL", f"The completion's row can't be read: {error}")


def _mark_delivered(execute: Execute, settled: list[dict[str, Any]]) -> None:
    # Only rows that are unchanged: an attempt with a newer token may have taken a row over in the meantime.
    execute(
        """update onceward_completions c set
             delivered_at = case when o.reason is null then now() end,
             undeliverable = o.reason
           from json_to_recordset(%s::text::json) as o (namespace text, key text, token bigint, reason text)
           where c.namespace = o.namespace and c.key = o.key and c.fencing_token = o.token""",
        json.dumps(settled),
    )


class Relay:
    """A running relay, which ``start_relay`` returns. Close it before its client."""

    def __init__(
        self, make_pass: Callable[[], DeliveryCounts], on_error: OnError | None, poll_ms: int
    ) -> None:
        self._make_pass = make_pass
        self._on_error = on_error
        self._poll_s = poll_ms / 1000
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="onceward-relay", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops the relay after the current pass. May be called again."""
        self._closing.set()
        self._thread.join()

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        while not self._closing.is_set():
            if not self._delivers_some():
                self._closing.wait(self._poll_s)

    def _delivers_some(self) -> bool:
        """Makes one pass. Returns whether more completions may be due now."""
        try:
            counts = self._make_pass()
        except Exception as error:
            if self._on_error is not None:
                self._on_error(error)
            return False
        return counts.failed == 0 and counts.delivered + counts.undeliverable > 0


def start_relay(
    onceward: Onceward,
    connect: Connect,
    *,
    poll_ms: int = _POLL_MS,
    on_undeliverable: OnUndeliverable | None = None,
    on_error: OnError | None = None,
) -> Relay:
    """Starts a relay, a thread. It delivers to the service the completions that ``complete_in`` has written
    and ``run`` could not deliver::

        relay = start_relay(onceward, pool.connection, on_error=log.warning)

    Any number of relays may run concurrently; the simplest is one in each process that uses ``complete_in``.
    It continues after outages of the service or the database. Only ``close`` stops it. The hooks must not
    raise.

    :param poll_ms: how long to wait after a pass that found nothing due, or failed: 10-3,600,000.
    :raises InvalidRequestError: for another ``poll_ms``.
    """
    if not _MIN_POLL_MS <= poll_ms <= _MAX_POLL_MS:
        raise refused_field("poll_ms", f"must be milliseconds, {_MIN_POLL_MS}-{_MAX_POLL_MS}")

    def make_pass() -> DeliveryCounts:
        return deliver_completions(onceward, connect, on_undeliverable=on_undeliverable, on_error=on_error)

    return Relay(make_pass, on_error, poll_ms)
