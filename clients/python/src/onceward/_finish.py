"""How a held claim ends: its outcome is stored, or it is released. Also its heartbeats and checkpoints."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from ._acquire import MAX_LATE_ANSWERS, about
from ._checkpoint import write_checkpoint
from ._codec import codec_error, decode_value, encode_effect, encode_without_value
from ._errors import (
    ClaimRef,
    CompletionError,
    Effect,
    OncewardError,
    OutcomeUnknownError,
    TerminalError,
)
from ._flow import Call, Flow, duration_ms, retrying
from ._lease import Lease, lease_lost, lease_now_ms, now_ms
from ._limits import MAX_RELEASE_REASON_BYTES
from ._options import Operation, RunResult
from ._texts import truncate_utf8
from ._times import datetime_of
from .v1.idempotency_pb2 import CompleteRequest, CompleteResponse, ExtendLeaseRequest, ReleaseRequest
from .v1.record_pb2 import Result


class Held:
    """A claim that this process holds; without a lease, what stands for one during an outage."""

    def __init__(self, operation: Operation, ref: ClaimRef, attempt: int, lease: Lease | None) -> None:
        self.operation = operation
        self.ref = ref
        self.attempt = attempt
        self.lease = lease

    @property
    def fencing_token(self) -> int:
        """The claim's token; 0 without a guard."""
        return self.ref.fencing_token or 0

    def complete(self, effect: Effect) -> Flow[RunResult[Any]]:
        """Stores the function's outcome. Returns the value that a duplicate will get.

        :raises CompletionError: if the outcome could not be stored unchanged.
        """
        codec = self.operation.codec
        try:
            result = encode_effect(effect, codec)
            # Decoded before it is stored: a value that can't be decoded now can't be replayed either.
            value = decode_value(result, codec) if effect.error is None else None
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
            return None
        left_ms = max(0, lease.ends_at_ms - lease_now_ms())
        give_up_at_ms = now_ms() + left_ms + max(self.operation.timeout_ms, lease.length_ms)
        request = CompleteRequest(**self._name(), result=result)
        reply: CompleteResponse = yield from retrying(lambda: Call("Complete", request), give_up_at_ms)
        return reply

    def release(self, error: BaseException) -> Flow[None]:
        """Releases the claim, so that a retry runs at once.

        Never raises: the caller must see the function's error.
        """
        if self.lease is None:
            return
        reason = truncate_utf8(_describe(error, self.operation).replace("\0", ""), MAX_RELEASE_REASON_BYTES)
        request = ReleaseRequest(**self._name(), reason=reason)
        try:
            yield from retrying(lambda: Call("Release", request), now_ms() + self.operation.timeout_ms)
        except OncewardError:
            # A claim that can't be released ends with its lease.
            return

    def save_checkpoint(self, name: str, state: Any) -> Flow[None]:
        """Saves a checkpoint, and prolongs the lease, which lasts when this returns.

        :raises OncewardError:
        """
        request = ExtendLeaseRequest(**self._name(), checkpoint=write_checkpoint(name, state))
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
                reply = yield from retrying(make, now_ms() + self.operation.timeout_ms)
            except OncewardError as error:
                raise about(self.ref, error) from error
            lease.granted(sent_at_ms, duration_ms(reply.lease_remaining))
            answers += 1

    def heartbeat(self) -> Call:
        """Returns the call that prolongs the lease."""
        return Call("ExtendLease", ExtendLeaseRequest(**self._name()))

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
    if isinstance(error, (ClaimAbandoned, OutcomeUnknownError)):
        raise error
    terminal = _terminal_error_of(error, held.operation)
    if terminal is None:
        yield from held.release(error)
        raise error
    yield from held.complete(Effect(error=terminal))
    raise terminal


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
