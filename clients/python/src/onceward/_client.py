"""The blocking client."""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, cast, overload

import grpc
from typing_extensions import Unpack

from ._acquire import Acquired, Done, Granted, acquire, request_of, seen_of, was_seen
from ._blocking import Calls
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
from ._errors import Effect, NoEffectError
from ._finish import Held, finish
from ._flow import Call, Flow
from ._functions import Deferred, refuse_deferred, refuse_deferred_function
from ._heartbeats import Heartbeats
from ._homes import Homes
from ._lease import Lease, now_ms
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

T = TypeVar("T")
P = ParamSpec("P")

#: How long functions may take to end once ``close`` has told them to.
_CLOSING_GRACE_MS = 1000


class Claim(BaseClaim):
    """The claim that a guarded function runs under."""

    def __init__(self, client: Onceward, held: Held, checkpoint: Any, lost: threading.Event) -> None:
        super().__init__(held, checkpoint)
        self._client = client
        self._lost = lost

    def begin(self) -> None:
        """Marks that the effect begins, with the option ``marks_begin``, and prolongs the lease.

        Call it right before the effect. It does nothing without the option, and once it has succeeded.

        :raises OncewardError: as ``save_checkpoint``; then the effect must not begin.
        """
        self._client._calls.drive(self._held.begin())

    def save_checkpoint(self, name: str, state: Any = None) -> None:
        """Saves this attempt's progress for a later attempt that takes over, and prolongs the lease.

        :param name: 1-128 bytes, such as "charged".
        :param state: a JSON value of at most 16 KiB.
        :raises OncewardError: CLAIM_SUPERSEDED if another holder has taken over.
        """
        self._client._calls.drive(self._held.save_checkpoint(name, state))

    def wait_until_lost(self, timeout_s: float | None = None) -> bool:
        """Waits until the claim is lost, or the client closes. Returns whether it is."""
        return self._lost.wait(timeout_s)


class ClaimScope(BaseScope[Claim], Generic[T]):
    """The claim of a ``with`` block.

    ``replayed`` says whether the operation was done before, with ``value``.
    """

    def complete(self, value: T) -> T:
        """Stores the value, once. Returns it as a duplicate will get it. :raises CompletionError:"""
        claim = self._end()
        self.value = claim._client._calls.drive(claim._held.complete(Effect(value))).value
        done: T = self.value
        return done

    def release(self) -> None:
        """Gives the claim up before its effect: a retry runs at once."""
        claim = self._end()
        claim._client._calls.drive(claim._held.release(NoEffectError()))


class Once(Protocol):
    """The decorator that ``once`` returns."""

    @overload
    def __call__(self, fn: Callable[P, Deferred], /) -> None: ...  # type: ignore[overload-overlap]

    @overload
    def __call__(self, fn: Callable[P, T], /) -> Callable[P, T]: ...


class Onceward:
    """A client of the service. Create one per process and share it among threads; it connects at the first
    call.

    :param address: such as "http://localhost:50051"; with https: over TLS; or of a Unix socket,
        "unix:/run/onceward/onceward.sock". Of several, calls go to one until it fails, and then to the next.
    :param api_key: the credential; or ``token``, a function that returns it for each call, and once
        more for a call that the service refuses with CREDENTIAL_INVALID.
    :param tls_ca: the bytes of a PEM file with certificates of authorities, or its ``Path``: a file that has
        changed is read again after a connection failed. Default: those of gRPC.
    :param tls_cert: the client's certificate, for a service that asks for one, likewise; with ``tls_key``,
        its private key.
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
        homes = Homes(grpc, address, Tls(tls_ca, tls_cert, tls_key))
        credential = credential_of(api_key, token)
        owner = default_owner() if owner is None else owner
        self._defaults = Defaults(owner, wait_ms, timeout_ms, classify_error, describe_error, on_error)
        operation_of(
            "defaults", "key", {"owner": owner, "wait_ms": wait_ms, "timeout_ms": timeout_ms}, self._defaults
        )
        self._calls = Calls(homes, credential)
        self._heartbeats = Heartbeats(self._calls.send_heartbeat)
        self._active = 0
        self._changed = threading.Condition()
        _clients.add(self)

    # Type checkers refuse the use of the value of a function that returns None.
    @overload
    def run(
        self, namespace: str, key: str, fn: Callable[[Claim], Deferred], **options: Unpack[RunOptions]
    ) -> None: ...

    @overload
    def run(self, namespace: str, key: str, fn: Callable[[Claim], T], **options: Unpack[RunOptions]) -> T: ...

    def run(self, namespace: str, key: str, fn: Callable[[Claim], Any], **options: Unpack[RunOptions]) -> Any:
        """Runs the function unless the operation was done before. Returns its value, now and on every repeat.

        :param namespace: the group of operations that share a policy, such as "charges".
        :param key: the operation's id, the same on every delivery: never the id of an attempt, nor a time.
        :raises TerminalError: if the operation failed permanently, now or before.
        :raises TypeError: for a coroutine function or a generator function; nothing ran.
        :raises OncewardError: InProgressError, AmbiguousError, CompletionError, ResultUnavailableError, and
            the
            class of each reason of errors.proto. An error of the function is raised unchanged.
        """
        return self.run_detailed(namespace, key, fn, **options).value

    def run_detailed(
        self, namespace: str, key: str, fn: Callable[[Claim], T], **options: Unpack[RunOptions]
    ) -> RunResult[T]:
        """Does what ``run`` does, and returns whether the value was replayed, and when the key expires."""
        refuse_deferred_function(fn)
        operation = operation_of(namespace, key, options, self._defaults)
        with self._running():
            with self._begun(operation) as begun:
                if isinstance(begun, RunResult):
                    return begun
                held, claim = begun
                return self._calls.drive(finish(held, _effect_of(fn, claim)))

    def seen(self, namespace: str, key: str, **options: Unpack[SeenOptions]) -> bool:
        """Returns whether the key was completed before: False at first, and then True until it is forgotten.

        At most once: the key is completed in the same call, so that after a False, the caller alone has to
        act, and no one repeats what then fails. After an error it is unknown whether the key was completed:
        repeat with the same ``claim_id``, which gets the first answer again.

        :raises OncewardError: as ``run`` before its function.
        """
        operation = seen_operation_of(namespace, key, options, self._defaults)
        with self._running():
            return self._seen(operation)

    def _seen(self, operation: Operation) -> bool:
        return was_seen(self._acquire(operation, now_ms() + operation.wait_ms))

    def seen_all(self, namespace: str, keys: Sequence[str], **options: Unpack[SeenOptions]) -> list[bool]:
        """Does what ``seen`` does for many keys, in few batches. The answers are in the order of the keys.

        Of equal keys, the later ones were seen.
        """
        operations = seen_operations_of(namespace, keys, options, self._defaults)
        with self._running():
            if self._calls.is_closing:
                raise closed_error()
            for operation in operations.values():
                refuse_within_itself(operation)
            calls = [Call("Claim", request_of(operation)) for operation in operations.values()]
            answers = dict(zip(operations, map(seen_of, self._calls.make_all(calls)), strict=True))
            # A repeat under the same claim id gets the first answer, and waits and retries as usual.
            found = {
                key: self._seen(operations[key]) if answer is None else answer
                for key, answer in answers.items()
            }
        return seen_in_order(keys, found)

    def once(
        self,
        namespace: str,
        *,
        key: Callable[..., str],
        fingerprint: Callable[..., object] | None = None,
        key_created_at: Callable[..., datetime] | None = None,
        **options: Unpack[OnceOptions],
    ) -> Once:
        """Returns a decorator: the function runs once for each key that ``key`` returns for its arguments.

        ``current_claim()`` returns the claim within the function. The decorator raises a TypeError for a
        coroutine function or a generator function, and an InvalidRequestError for one whose annotation says
        that its values can't be stored.
        """

        def decorate(fn: Callable[P, T]) -> Callable[P, T]:
            refuse_deferred_function(fn)
            own = options_of_function(fn, options)

            @functools.wraps(fn)
            def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
                request = None if fingerprint is None else fingerprint(*args, **kwargs)
                created_at = None if key_created_at is None else key_created_at(*args, **kwargs)
                named: RunOptions = {**own, "fingerprint": request, "key_created_at": created_at}
                resolve = own.get("resolve")
                if resolve is not None:
                    named["resolve"] = lambda claim: resolve(claim, *args, **kwargs)
                return self.run(namespace, key(*args, **kwargs), lambda _: fn(*args, **kwargs), **named)

            return guarded

        return cast(Once, decorate)

    @contextmanager
    def claim(self, namespace: str, key: str, **options: Unpack[RunOptions]) -> Iterator[ClaimScope[Any]]:
        """Claims for a ``with`` block, which calls ``complete`` unless the operation was done before.

        A block that ends without ``complete`` or ``release``, such as by an early ``return``, leaves the
        outcome unknown, unless ``begin`` was still to mark it; an error ends it as an error of ``run``'s
        function.
        """
        operation = operation_of(namespace, key, options, self._defaults)
        with self._running():
            with self._begun(operation) as begun:
                if isinstance(begun, RunResult):
                    yield ClaimScope(None, begun.value)
                    return
                held, claim = begun
                scope: ClaimScope[Any] = ClaimScope(claim)
                try:
                    yield scope
                except BaseException as error:
                    if not scope._ended:
                        self._calls.drive(finish(held, Effect(error=error)))
                    raise
                if not scope._ended and held.settle_unbegun():
                    self._calls.drive(held.release(NoEffectError()))

    def close(self, timeout_ms: int | None = None) -> None:
        """Refuses new runs, ends waiting ones with CLOSED, waits for running functions, and closes the
        connection.

        :param timeout_ms: how long to wait. Then the claims of running functions are lost with CLOSED, and
            functions that
            end within a further second are still stored. Default: no limit.
        """
        self._calls.end_waits()
        if not self._ended_within(timeout_ms):
            for lease in self._heartbeats.leases():
                lease.interrupt(closed_error())
            self._ended_within(_CLOSING_GRACE_MS)
        for lease in self._heartbeats.leases():
            lease.heartbeat_failed(closed_error())
        self._calls.disconnect()

    def _after_fork(self) -> None:
        """Makes the client usable in a child process: threads, calls and claims are those of the parent."""
        self._active = 0
        self._changed = threading.Condition()
        self._heartbeats.after_fork()
        self._calls.after_fork()

    def __enter__(self) -> Onceward:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _begun(self, operation: Operation) -> Iterator[RunResult[Any] | tuple[Held, Claim]]:
        """Has the result of an operation whose function does not run, or the claim of one that may, until the
        block ends. Asks ``resolve`` first about an earlier attempt.
        """
        wait_until_ms = now_ms() + operation.wait_ms
        while True:
            acquired = self._acquire(operation, wait_until_ms)
            if isinstance(acquired, Done):
                yield replayed(operation, acquired)
                return
            with self._holding(operation, acquired) as (held, claim):
                found = None
                if operation.resolve is not None and is_to_be_resolved(operation, acquired):
                    searched = _effect_of(operation.resolve, claim)
                    found = self._calls.drive(settle_search(held, searched, wait_until_ms))
                    held.is_interrupted = False
                if operation.resolve is not None and found is None:
                    try:
                        self._calls.drive(held.begin())
                    except BaseException:
                        self._calls.drive(held.give_back("not begun"))
                        raise
                if not isinstance(found, StillOpen):
                    yield (held, claim) if found is None else found
                    return
            self._calls.drive_until_closing(pause(found))

    def _acquire(self, operation: Operation, wait_until_ms: float) -> Acquired:
        if self._calls.is_closing:
            raise closed_error()
        refuse_within_itself(operation)
        warn_of_timestamp(operation.key)
        return self._calls.drive_until_closing(acquire(operation, wait_until_ms, self._in_background))

    @contextmanager
    def _holding(self, operation: Operation, acquired: Any) -> Iterator[tuple[Held, Claim]]:
        """Keeps the lease of the claim until the block ends."""
        lost = threading.Event()
        lease = None
        if isinstance(acquired, Granted):
            lease = Lease(granted_ref(operation, acquired), lambda _: lost.set())
            lease.granted(acquired.sent_at_ms, acquired.remaining_ms)
        held, checkpoint = hold(operation, acquired, lease)
        if lease is not None:
            self._heartbeats.add(held, lease)
        try:
            yield held, Claim(self, held, checkpoint, lost)
        finally:
            self._heartbeats.remove(held)

    def _in_background(self, flow: Flow[None]) -> None:
        # Counted before the run ends, so that `close` waits for it.
        started = threading.Event()

        def start() -> None:
            with self._running():
                started.set()
                self._calls.drive_in_background(flow)

        threading.Thread(target=start, name="onceward-release", daemon=True).start()
        started.wait()

    @contextmanager
    def _running(self) -> Iterator[None]:
        with self._changed:
            self._active += 1
        try:
            yield
        finally:
            with self._changed:
                self._active -= 1
                self._changed.notify_all()

    def _ended_within(self, timeout_ms: float | None) -> bool:
        with self._changed:
            timeout_s = None if timeout_ms is None else timeout_ms / 1000
            return self._changed.wait_for(lambda: self._active <= 0, timeout_s)


_clients: weakref.WeakSet[Onceward] = weakref.WeakSet()


def _after_fork() -> None:
    for client in list(_clients):
        client._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _effect_of(fn: Callable[[Claim], T], claim: Claim) -> Effect:
    """Calls the function. Returns its outcome, also of a KeyboardInterrupt."""
    entered = enter_claim(claim)
    try:
        value = fn(claim)
        refuse_deferred(value)
        return Effect(value)
    except BaseException as error:
        return Effect(error=error)
    finally:
        leave_claim(entered)
