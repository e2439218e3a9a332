"""How a held claim ends: its outcome is stored, or it is released. Also its heartbeats and checkpoints."""

from __future__ import annotations

import asyncio
import concurrent.futures
import re
import sys
import threading
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any, Literal

import grpc

from ._acquire import MAX_LATE_ANSWERS, UnknownAttempt, about
from ._checkpoint import write_checkpoint
from ._codec import MARK, codec_error, encode_and_read, encode_without_value
from ._errors import (
    ClaimRef,
    CompletionError,
    Effect,
    NoEffectError,
    OncewardError,
    OutcomeUnknownError,
    TerminalError,
)
from ._flow import ATTEMPT_TIMEOUT_MS, Call, Flow, duration_ms, retrying
from ._lease import Lease, lease_lost, lease_now_ms, now_ms
from ._limits import MAX_RELEASE_REASON_BYTES
from ._mapping import may_have_happened
from ._options import Operation, RunResult
from ._texts import truncate_utf8
from ._times import datetime_of
from .v1.idempotency_pb2 import CompleteRequest, CompleteResponse, ExtendLeaseRequest, ReleaseRequest
from .v1.record_pb2 import Result


class Held:
    """A claim that this process holds; without a lease, what stands for one in an outage or at most once."""

    def __init__(
        self,
        operation: Operation,
        ref: ClaimRef,
        attempt: int,
        lease: Lease | None,
        unknown: UnknownAttempt | None = None,
        completion: CompleteResponse | None = None,
    ) -> None:
        self.operation = operation
        self.ref = ref
        self.attempt = attempt
        self.lease = lease
        #: The earlier attempt whose outcome is unknown; None without one.
        self.unknown = unknown
        #: What the service answered to a claim that completed its key itself; None for any other claim.
        self.completion = completion
        #: Set once the program says that the outcome is unknown: nothing is stored or released then.
        self.marked: OutcomeUnknownError | None = None
        #: Whether the function's caller left, so that its error says nothing about its effect.
        self.is_interrupted = False
        #: What the caller handles is the context of each error of the function, and not about the function.
        self.handled_before = sys.exc_info()[1]
        #: False before the mark of ``begin`` may be stored, of a claim that took over no unknown outcome.
        self._may_have_begun = not operation.marks_begin or lease is None or unknown is not None
        self._is_marked = self._is_settled = False
        self._beginning = threading.Lock()

    @property
    def fencing_token(self) -> int:
        """The claim's token; 0 without a guard."""
        return self.ref.fencing_token or 0

    def complete(self, effect: Effect) -> Flow[RunResult[Any]]:
        """Stores the function's outcome. Returns the value that a duplicate will get.

        :raises CompletionError: if the outcome could not be stored unchanged.
        :raises OutcomeUnknownError: if the claim is marked so.
        """
        if self.marked is not None:
            raise self.marked
        codec = self.operation.codec
        try:
            result, value = encode_and_read(effect, codec)
            if self.operation.marks and effect.error is None:
                result = Result(kind=result.kind, metadata=MARK)
        except Exception as error:
            raise (yield from self._complete_without_value(effect, codec_error(error))) from error
        try:
            reply = yield from self._send(result)
        except OncewardError as error:
            # The service refuses the result; the claim is still held.
            if error.reason in ("RESULT_TOO_LARGE", "INVALID_REQUEST"):
                raise (yield from self._complete_without_value(effect, error)) from error
            raise CompletionError(effect, error, stored=False, claim=self.ref) from error
        now = datetime.now(timezone.utc)
        return RunResult(
            value=value,
            replayed=False,
            guarded=reply is not None,
            completed_at=now if reply is None else datetime_of(reply.completed_at),
            expires_at=now if reply is None else datetime_of(reply.expires_at),
            attempt=self.attempt,
            fencing_token=self.fencing_token,
        )

    def _complete_without_value(self, effect: Effect, why: OncewardError) -> Flow[CompletionError]:
        """Stores the operation as done without its value, because its effect can't be undone."""
        try:
            reply = yield from self._send(encode_without_value(effect, why))
        except OncewardError as error:
            return CompletionError(effect, error, stored=False, claim=self.ref)
        return CompletionError(effect, why, stored=reply is not None, claim=self.ref)

    def _send(self, result: Result) -> Flow[CompleteResponse | None]:
        """Retries until the service answers, or until the lease has been over for as long as it lasted."""
        lease = self.lease
        if lease is None:
            return self.completion
        self.settle_unbegun()
        left_ms = max(0, lease.ends_at_ms - lease_now_ms())
        give_up_at_ms = now_ms() + left_ms + max(self.operation.timeout_ms, lease.length_ms)
        request = CompleteRequest(**self._name(), result=result)
        reply: CompleteResponse = yield from retrying(
            lambda: Call("Complete", request), give_up_at_ms, held=True
        )
        return reply

    def mark_unknown(self, error: BaseException | None) -> OutcomeUnknownError:
        """Marks the claim: its outcome is unknown. Returns the error that says so; the first call decides."""
        if self.marked is None:
            self.marked = OutcomeUnknownError("The function does not know whether it had its effect.")
            self.marked.__cause__ = error
        return self.marked

    def release(self, error: BaseException) -> Flow[None]:
        """Releases the claim, so that a retry runs at once.

        Never raises: the caller must see the function's error.
        """
        if self.lease is None or self.marked is not None:
            return
        yield from self._release(_describe(error, self.operation), give_back=False)

    def give_back(self, reason: str | BaseException) -> Flow[None]:
        """Gives the record back as it was before the claim. Never raises: else the claim ends with its lease,
        and the outcome is unknown again.
        """
        text = reason if isinstance(reason, str) else _describe(reason, self.operation)
        yield from self._release(text, give_back=True)

    def _release(self, reason: str, *, give_back: bool) -> Flow[None]:
        text = truncate_utf8(reason.replace("\0", ""), MAX_RELEASE_REASON_BYTES)
        request = ReleaseRequest(**self._name(), reason=text, give_back=give_back)
        try:
            give_up_at_ms = now_ms() + self.operation.timeout_ms
            yield from retrying(lambda: Call("Release", request), give_up_at_ms, held=True)
        except OncewardError:
            # A claim that can't be released ends with its lease.
            return

    def begin(self) -> Flow[None]:
        """Marks that the effect begins, and prolongs the lease. :raises OncewardError:"""
        if not self.operation.marks_begin or self._is_marked:
            return
        with self._beginning:
            if self._is_settled:
                # A function that was abandoned before it began may still run.
                raise lease_lost(self.ref)
            may_have_begun, self._may_have_begun = self._may_have_begun, True
        try:
            yield from self._renew(ExtendLeaseRequest(**self._name(), begin=True))
            self._is_marked = True
        except OncewardError as error:
            # A mark whose answer is lost may be stored.
            self._may_have_begun = may_have_begun or self._is_marked or may_have_happened(error)
            raise

    def settle_unbegun(self) -> bool:
        """Returns whether there was no effect, because ``begin`` was to mark it; from now on, it can't."""
        with self._beginning:
            self._is_settled = not self._may_have_begun
            return self._is_settled

    def save_checkpoint(self, name: str, state: Any) -> Flow[None]:
        """Saves a checkpoint, and prolongs the lease. :raises OncewardError:"""
        yield from self._renew(ExtendLeaseRequest(**self._name(), checkpoint=write_checkpoint(name, state)))

    def _renew(self, request: ExtendLeaseRequest) -> Flow[None]:
        """Extends the lease, which lasts when this returns; does nothing without one."""
        lease = self.lease
        if lease is None:
            return
        sent_at_ms = 0.0

        def make() -> Call:
            nonlocal sent_at_ms
            sent_at_ms = lease_now_ms()
            return Call("ExtendLease", request)

        answers = 0
        # An answer that comes late shows nothing: another holder may have taken over in the meantime.
        while answers == 0 or lease.is_over:
            if answers > MAX_LATE_ANSWERS:
                raise lease_lost(self.ref)
            try:
                reply = yield from retrying(make, now_ms() + self.operation.timeout_ms, held=True)
            except OncewardError as error:
                raise about(self.ref, error) from error
            lease.granted(sent_at_ms, duration_ms(reply.lease_remaining))
            answers += 1

    def heartbeat(self) -> Call:
        """Returns the call that prolongs the lease."""
        assert self.lease is not None
        timeout_ms = min(ATTEMPT_TIMEOUT_MS, self.lease.heartbeat_timeout_ms)
        return Call("ExtendLease", ExtendLeaseRequest(**self._name()), timeout_ms)

    def _name(self) -> dict[str, Any]:
        return {
            "namespace": self.ref.namespace,
            "key": self.ref.key,
            "fencing_token": self.fencing_token,
        }


class ClaimAbandoned(BaseException):
    """Ends a claim without an outcome: its effect may have happened, and its lease expires."""


def finish(held: Held, effect: Effect) -> Flow[RunResult[Any]]:
    """Ends a claim by the outcome of its function: completes it, or releases it and raises the function's
    error. A claim whose effect may have happened is left to its lease and the namespace's policy.
    """
    error = effect.error
    if error is None:
        return (yield from held.complete(effect))
    judgement = judge(held, error)
    if isinstance(judgement, TerminalError):
        yield from held.complete(Effect(error=judgement))
        raise judgement
    if judgement == "release":
        yield from held.release(error)
    raise error


def judge(held: Held, error: BaseException) -> TerminalError | Literal["release", "unknown"]:
    """Returns what an error of the function means for its claim: the error to be stored, that there was no
    effect, or that its outcome is unknown. Before a claim that marks when its effect begins has done so,
    there was none.
    """
    if held.marked is not None:
        return "unknown"
    unclear: Literal["release", "unknown"] = "release" if held.settle_unbegun() else "unknown"
    word = _own_word(error, held.handled_before)
    if word is not None:
        return "release" if isinstance(word, NoEffectError) else unclear
    terminal = _terminal_error_of(error, held.operation)
    if terminal is not None:
        return terminal
    is_lost = held.lease is not None and held.lease.lost is not None
    if is_lost or held.is_interrupted or _is_interruption(error, held.handled_before):
        return unclear
    return unclear if held.operation.on_error == "unknown" else "release"


def _own_word(error: BaseException, handled_before: BaseException | None) -> BaseException | None:
    """Returns the first error of the chain by which the function says whether it had its effect.

    An effect is only denied by the error or its ``__cause__``; that it is unknown is also said by what was
    being handled when the error was raised.
    """
    is_caused = True
    for each, is_context in _chain(error, handled_before):
        is_caused = is_caused and not is_context
        if isinstance(each, (ClaimAbandoned, OutcomeUnknownError)) or (
            is_caused and isinstance(each, NoEffectError)
        ):
            return each
    return None


#: The program's view of a call that was given up; the other side may have done it. In Python 3.10 the three
#: TimeoutErrors are apart.
_INTERRUPTIONS = (
    TimeoutError,
    asyncio.TimeoutError,
    asyncio.CancelledError,
    concurrent.futures.TimeoutError,
    concurrent.futures.CancelledError,
)
#: The names of classes, or of their bases, by which other libraries say that a time limit passed.
_TIMEOUT = re.compile(r"Timeout(Error|Exception|Expired)?$")
#: Those by which HTTP libraries say that no connection was made in time, so that nothing was sent.
_CONNECT_TIMEOUTS = ("ConnectTimeout", "ConnectTimeoutError")
_CUT_CODES = (grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED)


def _is_interruption(error: BaseException, handled_before: BaseException | None) -> bool:
    """Returns whether the function was stopped or a call of its own timed out: the effect may have happened.

    Some HTTP libraries have the socket's TimeoutError as the cause of theirs, also of a ``ConnectTimeout``.
    """
    is_connecting = False
    for each, _ in _chain(error, handled_before, shown=True):
        if isinstance(each, OncewardError):
            # Of a nested run: what it waited for is the service.
            return False
        if type(each).__name__ in _CONNECT_TIMEOUTS:
            is_connecting = True
        elif isinstance(each, Exception) and not _is_timeout(each):
            is_connecting = False
        elif not (is_connecting and isinstance(each, _INTERRUPTIONS)):
            return True
    return False


def _is_timeout(error: Exception) -> bool:
    if isinstance(error, grpc.RpcError):
        code = getattr(error, "code", None)
        return callable(code) and code() in _CUT_CODES
    named = any(_TIMEOUT.search(each.__name__) for each in type(error).__mro__)
    return named or isinstance(error, _INTERRUPTIONS)


def _chain(
    error: BaseException, handled_before: BaseException | None, *, shown: bool = False
) -> Iterator[tuple[BaseException, bool]]:
    """Returns the error, then its ``__cause__``, else its ``__context__``, and theirs; each with whether it
    is a context. With ``shown``, a context that ``from None`` suppresses is left out.
    """
    seen: set[int] = set()
    each: BaseException | None = error
    is_context = False
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        yield each, is_context
        if isinstance(each, TerminalError):
            # The program's judgement of its causes.
            return
        is_context = each.__cause__ is None
        if not is_context:
            each = each.__cause__
        elif each.__context__ is handled_before or (shown and each.__suppress_context__):
            return
        else:
            each = each.__context__


def _terminal_error_of(error: BaseException, operation: Operation) -> TerminalError | None:
    """Returns the error that is stored; None for an error that releases the claim."""
    if isinstance(error, TerminalError):
        return error
    if operation.classify_error is None or not isinstance(error, Exception):
        return None
    try:
        classification = operation.classify_error(error)
    except Exception:
        # The caller must see the function's own error.
        return None
    if classification != "terminal":
        return None
    terminal = TerminalError(str(error), getattr(error, "details", None), name=type(error).__name__)
    terminal.__cause__ = error
    return terminal


def _describe(error: BaseException, operation: Operation) -> str:
    """Returns the name of the error's class, never its message: the reason of a release is stored in plain
    form.
    """
    if operation.describe_error is not None:
        try:
            return str(operation.describe_error(error))
        except Exception:
            return type(error).__name__
    return type(error).__name__
