"""The client for asyncio. Its names are those of the blocking client; what takes time is awaited."""

from __future__ import annotations

import asyncio
import functools
import inspect
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, ParamSpec, TypeVar

import grpc.aio
from typing_extensions import Unpack

from ._acquire import Acquired, Done, Granted, Recorded, Unguarded, acquire, was_seen
from ._awaiting import Calls
from ._claims import (
    BaseClaim,
    BaseScope,
    enter_claim,
    granted_ref,
    hold,
    leave_claim,
    refuse_within_itself,
    replayed,
    warn_of_timestamp,
)
from ._connection import Pem, Tls, Token, closed_error, credential_of, default_owner
from ._errors import Checkpoint, Effect, NoEffectError, OncewardError
from ._finish import Held, finish
from ._flow import Flow, duration_ms
from ._functions import refuse_deferred, refuse_deferred_function
from ._homes import Homes
from ._lease import MAX_LOOK_INTERVAL_MS, Lease, lease_now_ms, now_ms
from ._options import (
    DEFAULT_TIMEOUT_MS,
    DEFAULT_WAIT_MS,
    Classification,
    Defaults,
    OnceOptions,
    OnError,
    Operation,
    RunOptions,
    RunResult,
    SeenOptions,
    operation_of,
    options_of_function,
    seen_in_order,
    seen_operation_of,
    seen_operations_of,
)
from ._resolve import StillOpen, is_to_be_resolved, pause, settle_search

__all__ = ["Claim", "ClaimScope", "Onceward"]

T = TypeVar("T")
P = ParamSpec("P")

#: How long functions may take to end once ``close`` has told them to.
_CLOSING_GRACE_S = 1
#: A second heartbeat would have been due.
_LATE_FRACTION = 1 / 3
#: Less is usual on a machine that is busy.
_MIN_LATE_MS = 500


class Claim(BaseClaim):
    """The claim that a guarded function runs under."""

    def __init__(
        self, client: Onceward, held: Held, checkpoint: Checkpoint | None, lost: asyncio.Event
    ) -> None:
        super().__init__(held, checkpoint)
        self._client = client
        self._lost = lost

    def begin(self) -> Awaitable[None]:
        """Marks that the effect begins, with the option ``marks_begin``, and prolongs the lease.

        Await it right before the effect. It does nothing without the option, and once it has succeeded.

        :raises OncewardError: as ``save_checkpoint``; then the effect must not begin.
        :raises RuntimeError: at once, in a thread without an event loop, such as that of a ``def`` endpoint,
            where nothing would await it: call ``anyio.from_thread.run(claim.begin)`` there.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            raise RuntimeError(
                "await begin() in the event loop: anyio.from_thread.run(claim.begin)"
            ) from None
        return self._client._calls.drive(self._held.begin())

    async def save_checkpoint(self, name: str, state: Any = None) -> None:
        """Saves this attempt's progress for a later attempt that takes over, and prolongs the lease.

        :param name: 1-128 bytes, such as "charged".
        :param state: a JSON value of at most 16 KiB.
        :raises OncewardError: CLAIM_SUPERSEDED if another holder has taken over.
        """
        await self._client._calls.drive(self._held.save_checkpoint(name, state))

    async def wait_until_lost(self) -> None:
        """Returns once the claim is lost, or the client closes."""
        await self._lost.wait()


class ClaimScope(BaseScope[Claim]):
    """The claim of an ``async with`` block.

    ``replayed`` says whether the operation was done before, with ``value``.
    """

    async def complete(self, value: Any) -> Any:
        """Stores the value, once. Returns it as a duplicate will get it. :raises CompletionError:"""
        claim = self._end()
        self.value = (await claim._client._shielded(claim._held.complete(Effect(value)))).value
        return self.value

    async def release(self) -> None:
        """Gives the claim up before its effect: a retry runs at once."""
        claim = self._end()
        await claim._client._shielded(claim._held.release(NoEffectError()))


class Onceward:
    """A client of the service. Create one per process and event loop; it connects at the first call.

    The parameters are those of ``onceward.Onceward``.

    :raises InvalidRequestError: for an invalid option.
    """

    def __init__(
        self,
        address: str | Sequence[str],
        *,
        api_key: str | None = None,
        token: Token | None = None,
        owner: str | None = None,
        wait_ms: int = DEFAULT_WAIT_MS,
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
        classify_error: Callable[[Exception], Classification] | None = None,
        on_error: OnError = "release",
        describe_error: Callable[[BaseException], str] | None = None,
        tls_ca: Pem | None = None,
        tls_cert: Pem | None = None,
        tls_key: Pem | None = None,
    ) -> None:
        owner = default_owner() if owner is None else owner
        self._defaults = Defaults(owner, wait_ms, timeout_ms, classify_error, describe_error, on_error)
        operation_of(
            "defaults", "key", {"owner": owner, "wait_ms": wait_ms, "timeout_ms": timeout_ms}, self._defaults
        )
        homes = Homes(grpc.aio, address, Tls(tls_ca, tls_cert, tls_key))
        self._calls = Calls(homes, credential_of(api_key, token))
        self._leases: set[Lease] = set()
        self._has_warned = False
        #: Runs, and what they left to do.
        self._work: set[asyncio.Future[Any]] = set()

    async def run(
        self, namespace: str, key: str, fn: Callable[[Claim], Awaitable[T] | T], **options: Unpack[RunOptions]
    ) -> T:
        """Runs the function unless the operation was done before. Returns its value, now and on every repeat.

        The function may be a coroutine function. A run that is cancelled before the function begins gives its
        claim back; one that is cancelled later cancels the function, and leaves the outcome unknown. The
        errors are those of the blocking client.
        """
        return (await self.run_detailed(namespace, key, fn, **options)).value

    async def run_detailed(
        self, namespace: str, key: str, fn: Callable[[Claim], Awaitable[T] | T], **options: Unpack[RunOptions]
    ) -> RunResult[T]:
        """Does what ``run`` does, and returns whether the value was replayed, and when the key expires."""
        refuse_deferred_function(fn, awaits=True)
        operation = operation_of(namespace, key, options, self._defaults)
        with _Counted(self._work):
            async with self._begun(operation) as begun:
                if isinstance(begun, RunResult):
                    return begun
                held, claim = begun
                return await self._shielded(finish(held, await _effect_of(fn, claim)))

    async def seen(self, namespace: str, key: str, **options: Unpack[SeenOptions]) -> bool:
        """Returns whether the key was completed before, as that of the blocking client."""
        return await self._seen(seen_operation_of(namespace, key, options, self._defaults))

    async def seen_all(
        self, namespace: str, keys: Sequence[str], **options: Unpack[SeenOptions]
    ) -> list[bool]:
        """Does what ``seen`` does for many keys, in few batches. The answers are in the order of the keys.

        Of equal keys, the later ones were seen. If one key's call fails, its error is raised after all have
        ended.
        """
        operations = seen_operations_of(namespace, keys, options, self._defaults)
        answers = await asyncio.gather(*map(self._seen, operations.values()), return_exceptions=True)
        found: dict[str, bool] = {}
        for key, answer in zip(operations, answers, strict=True):
            if isinstance(answer, BaseException):
                raise answer
            found[key] = answer
        return seen_in_order(keys, found)

    async def _seen(self, operation: Operation) -> bool:
        with _Counted(self._work):
            return was_seen(await self._acquire(operation, now_ms() + operation.wait_ms))

    def once(
        self,
        namespace: str,
        *,
        key: Callable[..., str],
        fingerprint: Callable[..., object] | None = None,
        key_created_at: Callable[..., datetime] | None = None,
        **options: Unpack[OnceOptions],
    ) -> Callable[[Callable[P, Awaitable[T]]], Callable[P, Awaitable[T]]]:
        """Returns a decorator: the function runs once for each key that ``key`` returns for its arguments.

        ``current_claim()`` returns the claim within the function.
        """

        def decorate(fn: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
            refuse_deferred_function(fn, awaits=True)
            own = options_of_function(fn, options)

            @functools.wraps(fn)
            async def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
                request = None if fingerprint is None else fingerprint(*args, **kwargs)
                created_at = None if key_created_at is None else key_created_at(*args, **kwargs)
                named: RunOptions = {**own, "fingerprint": request, "key_created_at": created_at}
                resolve = own.get("resolve")
                if resolve is not None:
                    named["resolve"] = lambda claim: resolve(claim, *args, **kwargs)
                return await self.run(namespace, key(*args, **kwargs), lambda _: fn(*args, **kwargs), **named)

            return guarded

        return decorate

    @asynccontextmanager
    async def claim(
        self, namespace: str, key: str, **options: Unpack[RunOptions]
    ) -> AsyncIterator[ClaimScope]:
        """Claims for an ``async with`` block, which calls ``complete`` unless the operation was done before.

        A block that ends without ``complete`` or ``release``, such as by an early ``return``, leaves the
        outcome unknown, unless ``begin`` was still to mark it; an error ends it as an error of ``run``'s
        function.
        """
        operation = operation_of(namespace, key, options, self._defaults)
        with _Counted(self._work):
            async with self._begun(operation) as begun:
                if isinstance(begun, RunResult):
                    yield ClaimScope(None, begun.value)
                    return
                held, claim = begun
                scope = ClaimScope(claim)
                try:
                    yield scope
                except BaseException as error:
                    if not scope._ended:
                        await self._shielded(finish(held, Effect(error=error)))
                    raise
                if not scope._ended and held.settle_unbegun():
                    await self._shielded(held.release(NoEffectError()))

    async def close(self, timeout_ms: int | None = None) -> None:
        """Refuses new runs, ends waiting ones with CLOSED, waits for running functions, and closes the
        connection.

        :param timeout_ms: how long to wait. Then the claims of running functions are lost with CLOSED, and
            functions that
            end within a further second are still stored. Default: no limit.
        """
        self._calls.end_waits()
        if not await self._ended_within(None if timeout_ms is None else timeout_ms / 1000):
            for lease in self._leases:
                lease.interrupt(closed_error())
            await self._ended_within(_CLOSING_GRACE_S)
        for lease in self._leases:
            lease.heartbeat_failed(closed_error())
        await self._calls.disconnect()

    async def __aenter__(self) -> Onceward:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @asynccontextmanager
    async def _begun(self, operation: Operation) -> AsyncIterator[RunResult[Any] | tuple[Held, Claim]]:
        """Has the result of an operation whose function does not run, or the claim of one that may, until the
        block ends. Asks ``resolve`` first about an earlier attempt.
        """
        wait_until_ms = now_ms() + operation.wait_ms
        while True:
            acquired = await self._acquire(operation, wait_until_ms)
            if isinstance(acquired, Done):
                yield replayed(operation, acquired)
                return
            async with self._holding(operation, acquired) as (held, claim):
                found = None
                if operation.resolve is not None and is_to_be_resolved(operation, acquired):
                    searched = await _effect_of(operation.resolve, claim)
                    found = await self._shielded(settle_search(held, searched, wait_until_ms))
                    held.is_interrupted = False
                if operation.resolve is not None and found is None:
                    try:
                        await self._shielded(held.begin())
                    except BaseException:
                        await self._shielded(held.give_back("not begun"))
                        raise
                if not isinstance(found, StillOpen):
                    yield (held, claim) if found is None else found
                    return
            await self._calls.drive_until_closing(pause(found))

    async def _acquire(self, operation: Operation, wait_until_ms: float) -> Acquired:
        if self._calls.is_closing:
            raise closed_error()
        refuse_within_itself(operation)
        warn_of_timestamp(operation.key)
        return await self._calls.drive_until_closing(acquire(operation, wait_until_ms, self._in_background))

    @asynccontextmanager
    async def _holding(
        self, operation: Operation, acquired: Granted | Recorded | Unguarded
    ) -> AsyncIterator[tuple[Held, Claim]]:
        """Keeps the lease of the claim until the block ends."""
        lost = asyncio.Event()
        if not isinstance(acquired, Granted):
            held, checkpoint = hold(operation, acquired, None)
            yield held, Claim(self, held, checkpoint, lost)
            return
        lease = Lease(granted_ref(operation, acquired), lambda _: lost.set())
        lease.granted(acquired.sent_at_ms, acquired.remaining_ms)
        held, checkpoint = hold(operation, acquired, lease)
        self._leases.add(lease)
        beating = asyncio.ensure_future(self._beat(held, lease))
        try:
            yield held, Claim(self, held, checkpoint, lost)
        finally:
            lease.end()
            self._leases.discard(lease)
            beating.cancel()

    async def _beat(self, held: Held, lease: Lease) -> None:
        """Sends the heartbeats of a claim, and notices the end of its lease also while one is unanswered."""
        heartbeats: set[asyncio.Task[None]] = set()
        while True:
            if lease.due():
                heartbeats = {asyncio.ensure_future(self._heartbeat(held, lease))}
            delay_ms = min(MAX_LOOK_INTERVAL_MS, max(0.0, lease.next_at_ms() - lease_now_ms()))
            looks_at_ms = now_ms() + delay_ms
            # The end of a heartbeat changes when the next one is due.
            if heartbeats:
                done, heartbeats = await asyncio.wait(heartbeats, timeout=delay_ms / 1000)
            else:
                await asyncio.sleep(delay_ms / 1000)
            self._warn_if_late(now_ms() - looks_at_ms, lease)

    def _warn_if_late(self, late_ms: float, lease: Lease) -> None:
        """Warns once if a function blocks the event loop.

        A thread could send heartbeats meanwhile, but would need a connection and a token of its own, and keep
        the claim of a loop that is stuck.
        """
        if self._has_warned or late_ms < max(_MIN_LATE_MS, lease.length_ms * _LATE_FRACTION):
            return
        self._has_warned = True
        message = (
            f"The event loop was blocked, and a heartbeat is {late_ms:.0f} ms late for a lease of "
            f"{lease.length_ms:.0f} ms: call what blocks by asyncio.to_thread"
        )
        warnings.warn(message, RuntimeWarning, stacklevel=2)

    async def _heartbeat(self, held: Held, lease: Lease) -> None:
        sent_at_ms = lease_now_ms()
        try:
            reply = await self._calls.call(held.heartbeat())
        except OncewardError as error:
            lease.heartbeat_failed(error)
        else:
            lease.heartbeat_answered(sent_at_ms, duration_ms(reply.lease_remaining))

    async def _shielded(self, flow: Flow[T]) -> T:
        """Drives a flow to its end, also if its caller is cancelled: the effect has happened."""

        async def settled() -> tuple[Any, BaseException | None]:
            # The function's error is not raised in this task, which would make another one of a
            # CancelledError, and stop the event loop with a SystemExit.
            try:
                return await self._calls.drive(flow), None
            except BaseException as error:
                return None, error

        work = asyncio.ensure_future(settled())
        self._note(work)
        value, error = await asyncio.shield(work)
        if error is not None:
            raise error
        done: T = value
        return done

    def _in_background(self, flow: Flow[None]) -> None:
        self._note(asyncio.ensure_future(self._calls.drive_in_background(flow)))

    def _note(self, work: asyncio.Future[Any]) -> None:
        self._work.add(work)
        work.add_done_callback(self._work.discard)

    async def _ended_within(self, timeout_s: float | None) -> bool:
        async def ended() -> None:
            while self._work:
                await asyncio.wait(set(self._work))

        try:
            await asyncio.wait_for(ended(), timeout_s)
        except (TimeoutError, asyncio.TimeoutError):
            return False
        return True


class _Counted:
    """Counts a run among the work of a client."""

    def __init__(self, work: set[asyncio.Future[Any]]) -> None:
        self._work = work
        self._end: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def __enter__(self) -> None:
        self._work.add(self._end)

    def __exit__(self, *_: object) -> None:
        self._work.discard(self._end)
        self._end.set_result(None)


async def _effect_of(fn: Callable[[Claim], Any], claim: Claim) -> Effect:
    """Calls the function. Returns its outcome, also of a cancellation."""
    entered = enter_claim(claim)
    cancellations = _cancellations()
    try:
        value = fn(claim)
        if inspect.isawaitable(value):
            value = await value
        refuse_deferred(value)
        return Effect(value)
    except BaseException as error:
        claim._held.is_interrupted = _cancellations() > cancellations
        return Effect(error=error)
    finally:
        leave_claim(entered)


def _cancellations() -> int:
    """Returns how often the current task was cancelled, without what a time limit within it took back."""
    task = asyncio.current_task()
    # Python 3.10 does not count them.
    return task.cancelling() if task is not None and hasattr(task, "cancelling") else 0
