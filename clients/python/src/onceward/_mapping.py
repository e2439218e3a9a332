"""gRPC's errors as errors of the client, and what they say about a retry."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from google.rpc import code_pb2, error_details_pb2, status_pb2

from ._catalogue import error_of
from ._errors import OncewardError, ResultUnavailableError, Violation
from ._printable import printable
from ._reasons import facts_of
from .v1 import facts_pb2
from .v1.errors_pb2 import ErrorReason
from .v1.idempotency_pb2 import BatchItemError

_PREFIX = "ERROR_REASON_"
#: The codes that gRPC makes of a proxy's HTTP 500 and of a stream that is reset, and also of other failures.
_UNCLEAR = (code_pb2.UNKNOWN, code_pb2.INTERNAL, code_pb2.RESOURCE_EXHAUSTED)
#: What gRPC makes of a proxy's HTTP 404, 403 and 401.
_PAGES = (code_pb2.UNIMPLEMENTED, code_pb2.PERMISSION_DENIED, code_pb2.UNAUTHENTICATED)
#: With these a whole batch may have failed because of the content of one item.
_ABOUT_CONTENT = (code_pb2.INVALID_ARGUMENT, *_UNCLEAR)


def error_from_call(error: grpc.RpcError) -> OncewardError:
    """Returns the error of an RPC, whether the service, a proxy or gRPC made it."""
    code = int(error.code().value[0])
    message = printable(error.details() or "")
    trailers: Iterable[tuple[str, str | bytes]] = error.trailing_metadata() or ()  # type: ignore[assignment]
    for name, value in trailers:
        if name == "grpc-status-details-bin" and isinstance(value, bytes):
            try:
                answered = _from_details(value, code, message)
            except (DecodeError, ValueError):
                # Damaged on its way.
                answered = None
            if answered is not None:
                return answered
    return OncewardError("NO_ANSWER", message, code=code)


def _from_details(status: bytes, code: int, message: str) -> OncewardError | None:
    """Returns the service's own error; None if the details are not the service's."""
    info, retry = error_details_pb2.ErrorInfo(), error_details_pb2.RetryInfo()
    request, invalid = error_details_pb2.RequestInfo(), error_details_pb2.BadRequest()
    for detail in status_pb2.Status.FromString(status).details:
        for known in (info, retry, request, invalid):
            if detail.Is(known.DESCRIPTOR):
                detail.Unpack(known)
    if info.domain != "onceward":
        return None
    has_delay = retry.HasField("retry_delay")
    return error_of(
        info.reason,
        message,
        code=code,
        metadata=dict(info.metadata),
        violations=_violations_of(invalid.field_violations),
        retry_delay_ms=retry.retry_delay.ToNanoseconds() / 1e6 if has_delay else None,
        request_id=request.request_id or None,
    )


def _violations_of(given: Iterable[Any]) -> list[Violation]:
    return [Violation(printable(each.field), printable(each.description)) for each in given]


def error_from_item(item: BatchItemError) -> OncewardError:
    """Returns the error of an item of a batch: the one that the call would have failed with alone."""
    known = item.reason in ErrorReason.values()
    return error_of(
        ErrorReason.Name(item.reason).removeprefix(_PREFIX) if known else f"REASON_{item.reason}",
        printable(item.message),
        code=item.code,
        metadata=dict(item.metadata),
        violations=_violations_of(item.field_violations),
        retry_delay_ms=item.retry_delay.ToNanoseconds() / 1e6 if item.HasField("retry_delay") else None,
        request_id=item.request_id or None,
    )


def is_about_content(error: OncewardError) -> bool:
    """Returns whether a whole batch may have failed because of the content of one item.

    The items are then sent one by one, so that only the invalid one fails.
    """
    if is_retryable(error) or error.reason not in ("NO_ANSWER", "INVALID_REQUEST"):
        return False
    return error.code in _ABOUT_CONTENT


def is_retryable(error: OncewardError) -> bool:
    """Returns whether a retry with the same claim id or fencing token may succeed."""
    return error.retry_delay_ms is not None or is_unavailable(error)


def is_to_be_repeated(error: OncewardError, *, held: bool = False) -> bool:
    """Returns whether a call that is safe to repeat is repeated: also if it is unclear why no answer came.

    For a claim that is held, the service was reached, so that a page is a proxy's.
    """
    codes = _UNCLEAR + _PAGES if held else _UNCLEAR
    return is_retryable(error) or (error.reason == "NO_ANSWER" and error.code in codes)


def is_unavailable(error: OncewardError) -> bool:
    """Returns whether the service is unavailable by its own answer, or the connection broke."""
    if error.code in (code_pb2.UNAVAILABLE, code_pb2.DEADLINE_EXCEEDED):
        return True
    # A proxy that ends a connection answers with these.
    return error.reason == "NO_ANSWER" and error.code in (code_pb2.ABORTED, code_pb2.CANCELLED)


def is_unreachable(error: OncewardError) -> bool:
    """Returns whether the service is unreachable.

    A contended key was reached, and is contended by other callers.
    """
    return is_unavailable(error) and error.reason != "RECORD_CONTENDED"


def may_have_happened(error: OncewardError) -> bool:
    """Returns whether a call that failed so may have had its effect: its answer was lost, or no one waited
    for it.
    """
    facts = facts_of(error.reason)
    return facts is None or facts.may_have_happened


def class_of(error: OncewardError) -> facts_pb2.ReasonClass:
    """Returns what an adapter does about an error under which the function did not run."""
    if isinstance(error, ResultUnavailableError):
        return facts_pb2.REASON_CLASS_GONE
    facts = facts_of(error.reason)
    if facts is not None and facts.reason_class not in _BY_CODE:
        return facts.reason_class
    return facts_pb2.REASON_CLASS_RETRY if is_retryable(error) else facts_pb2.REASON_CLASS_FIX


def may_pass(error: OncewardError) -> bool:
    """Returns whether the function did not run because of another holder, or the service can't decide now."""
    if is_to_be_repeated(error, held=True):
        return True
    return class_of(error) in (facts_pb2.REASON_CLASS_WAIT, facts_pb2.REASON_CLASS_RETRY)


_BY_CODE = (facts_pb2.REASON_CLASS_UNSPECIFIED, facts_pb2.REASON_CLASS_FIX)
