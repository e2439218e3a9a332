"""How values and failures are stored, and how stored ones are read.

The same in the client of every language.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from ._canonical import number_problem
from ._errors import ClaimRef, Effect, OncewardError, ResultUnavailableError, TerminalError
from ._limits import MAX_RESULT_BYTES
from ._printable import printable
from ._texts import truncate_utf8
from .v1.idempotency_pb2 import Completed
from .v1.record_pb2 import Result

_JSON = "application/json"
_BYTES = "application/octet-stream"
#: Metadata of a result without its value, which could not be stored; says for which reason.
_LOST = "onceward-value-lost"
#: In place of a value: only that the operation happened is stored.
MARK = {_LOST: "MARK"}
#: Enough to recognise a failure whose details were too large.
_MAX_LOST_MESSAGE_BYTES = 1024


@dataclass(frozen=True)
class Encoded:
    """A value as it is stored: opaque to the service and replayed byte for byte."""

    payload: bytes
    content_type: str
    metadata: Mapping[str, str] = field(default_factory=dict)


class Codec(Protocol):
    """Encodes a run's values for storage, and decodes them. Failures are JSON with every codec."""

    def encode(self, value: Any) -> Encoded:
        """Returns the stored form. An error that it raises means that the value can't be stored."""

    def decode(self, stored: Encoded) -> Any:
        """Returns the value of a stored form. An error that it raises makes the value unavailable."""


class JsonCodec:
    """The default codec: compact JSON. A value without a JSON form is refused with RESULT_NOT_JSON."""

    def encode(self, value: Any) -> Encoded:
        """Returns the value as JSON."""
        return Encoded(encode_json(value), _JSON)

    def decode(self, stored: Encoded) -> Any:
        """Returns the value of JSON; None for no bytes."""
        if stored.payload == b"" or stored.content_type == _JSON:
            return decode_json(stored.payload)
        raise _not_json(f"it is stored as {printable(stored.content_type) or 'bytes'}")


class BytesCodec:
    """The codec for functions that return bytes: they are stored unchanged."""

    def encode(self, value: bytes) -> Encoded:
        """Returns the bytes."""
        return Encoded(bytes(value), _BYTES)

    def decode(self, stored: Encoded) -> bytes:
        """Returns the bytes. :raises TypeError: for a result of another codec."""
        if stored.content_type == _BYTES:
            return stored.payload
        raise TypeError(
            f"the result is stored as {printable(stored.content_type) or 'bytes'}, not as {_BYTES}"
        )


def encode_json(value: Any) -> bytes:
    """Returns a value as compact JSON. :raises OncewardError: RESULT_NOT_JSON."""
    try:
        _check(value, "")
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise _not_json(str(error)) from error


def _check(value: Any, path: str) -> None:
    """Refuses what JSON would change: numbers that a double does not hold, and names that are not texts."""
    if isinstance(value, Enum):
        raise TypeError(f"a {type(value).__name__} at {path or '/'}")
    if isinstance(value, (int, float)):
        problem = number_problem(value)
        if problem is not None:
            raise ValueError(f"{problem} at {path[:256] or '/'}; pass it as text")
    elif isinstance(value, dict):
        for name, member in value.items():
            if not isinstance(name, str):
                raise TypeError(f"a member whose name is a {type(name).__name__} at {path[:256] or '/'}")
            _check(member, f"{path}/{name}")
    elif isinstance(value, (list, tuple)):
        for index, each in enumerate(value):
            _check(each, f"{path}/{index}")


def decode_json(payload: bytes) -> Any:
    """Returns the value of JSON; None for no bytes. :raises OncewardError: RESULT_NOT_JSON."""
    if payload == b"":
        return None
    try:
        value = json.loads(payload)
        # Other languages read such a number rounded.
        _check(value, "")
        return value
    except (ValueError, RecursionError) as error:
        raise _not_json(str(error)) from error


def _not_json(detail: str) -> OncewardError:
    return OncewardError("RESULT_NOT_JSON", f"The value has no JSON form: {printable(detail)}")


def encode_effect(effect: Effect, codec: Codec) -> Result:
    """Returns a function's outcome as it is stored.

    :raises OncewardError: RESULT_NOT_JSON, CODEC_FAILED, RESULT_TOO_LARGE.
    """
    if effect.error is None:
        try:
            encoded = codec.encode(effect.value)
        except Exception as error:
            raise codec_error(error) from error
        kind = Result.KIND_SUCCESS
    else:
        encoded = Encoded(encode_json(_failure_of(effect.error)), _JSON)
        kind = Result.KIND_FAILURE
    size = len(encoded.payload)
    if size > MAX_RESULT_BYTES:
        raise OncewardError(
            "RESULT_TOO_LARGE", f"The result is {size} bytes; no policy takes more than {MAX_RESULT_BYTES}."
        )
    return Result(
        kind=kind, payload=encoded.payload, content_type=encoded.content_type, metadata=dict(encoded.metadata)
    )


def encode_and_read(effect: Effect, codec: Codec) -> tuple[Result, Any]:
    """Returns a function's outcome as it is stored, and its value: one that can't be read now can't be
    replayed either. Of a mark, the value is not read. :raises Exception: also the codec's errors.
    """
    result = encode_effect(effect, codec)
    if effect.error is not None:
        return result, None
    return result, effect.value if dict(result.metadata) == MARK else decode_value(result, codec)


def encode_without_value(effect: Effect, error: OncewardError) -> Result:
    """Returns an outcome without its value or details: the operation must not run again."""
    if effect.error is None:
        return Result(kind=Result.KIND_SUCCESS, metadata={_LOST: error.reason})
    failure = _failure_of(effect.error)
    failure.pop("details", None)
    failure["message"] = truncate_utf8(failure["message"], _MAX_LOST_MESSAGE_BYTES)
    return Result(kind=Result.KIND_FAILURE, payload=encode_json(failure), content_type=_JSON)


def _failure_of(error: BaseException) -> dict[str, Any]:
    if not isinstance(error, TerminalError):
        return {"message": str(error)}
    named = {} if error.name == "TerminalError" else {"name": error.name}
    details = {} if error.details is None else {"details": error.details}
    return {**named, "message": error.message, **details}


def decode_value(result: Result, codec: Codec) -> Any:
    """Returns the value of a successful result. :raises Exception: the codec's errors."""
    return codec.decode(Encoded(result.payload, result.content_type, dict(result.metadata)))


def replay(completed: Completed, codec: Codec, claim: ClaimRef) -> Any:
    """Returns the value of a completed operation.

    :raises TerminalError: if the operation failed permanently.
    :raises ResultUnavailableError: if its value is not available.
    """
    result = completed.result
    if completed.result_expired or not completed.HasField("result"):
        message = "Done before; the retention of its result has ended."
        raise ResultUnavailableError("RESULT_EXPIRED", message, claim=claim)
    if _LOST in result.metadata:
        lost = printable(result.metadata[_LOST])
        why = "is not kept" if lost == MARK[_LOST] else f"could not be stored: {lost}"
        message = f"Done before; its value {why}."
        raise ResultUnavailableError("RESULT_LOST", message, claim=claim)
    if result.kind == Result.KIND_FAILURE:
        raise _stored_failure(result)
    if result.kind != Result.KIND_SUCCESS:
        message = f"Done before; its result is of a kind that this client does not know: {result.kind}."
        raise ResultUnavailableError("INTERNAL", message, claim=claim)
    try:
        return decode_value(result, codec)
    except Exception as error:
        cause = codec_error(error)
        message = f"Done before; its value can't be read: {cause}"
        raise ResultUnavailableError(cause.reason, message, claim=claim) from error


def codec_error(error: Exception) -> OncewardError:
    """Returns a codec's error as an OncewardError: its own, or CODEC_FAILED."""
    if isinstance(error, OncewardError):
        return error
    return OncewardError("CODEC_FAILED", printable(error))


def _stored_failure(result: Result) -> TerminalError:
    """Returns a stored failure.

    One that another client stored may have any shape; then all of it becomes ``details``.
    """
    failure: Any = result.payload
    if result.content_type == _JSON:
        try:
            failure = decode_json(result.payload)
        except OncewardError:
            failure = result.payload
    if not isinstance(failure, dict) or not isinstance(failure.get("message"), str):
        return TerminalError("The operation has a terminal failure.", failure)
    name = failure.get("name")
    return TerminalError(
        failure["message"],
        failure.get("details"),
        name=name if isinstance(name, str) else "TerminalError",
    )
