"""The refusals of the service in memory, as the service sends them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2

from .._limits import (
    FINGERPRINT_BYTES,
    MAX_CHECKPOINT_NAME_BYTES,
    MAX_CHECKPOINT_STATE_BYTES,
    MAX_CLAIM_ID_BYTES,
    MAX_KEY_BYTES,
    MAX_OWNER_BYTES,
    MAX_RELEASE_REASON_BYTES,
    NAMESPACE_PATTERN,
    NAMESPACE_RULE,
)
from .._reasons import facts_of
from ..v1.idempotency_pb2 import BatchItemError

_UNKNOWN = 2
_UNAVAILABLE = 14
#: Short, because tests need not spare the service.
_RETRY_DELAY_MS = 1


def code_of(reason: str) -> int:
    """Returns the google.rpc.Code of a reason."""
    facts = facts_of(reason)
    return _UNKNOWN if facts is None or not facts.code else int(grpc.StatusCode[facts.code].value[0])


class Refused(Exception):
    """A call that is refused."""

    def __init__(
        self,
        reason: str,
        message: str,
        violations: list[tuple[str, str]] | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code_of(reason)
        self._reason = reason
        self._message = message
        self._violations = violations or []
        self._metadata = dict(metadata or {})

    def status(self) -> bytes:
        """Returns the refusal as the details of a gRPC status."""
        details = [
            error_details_pb2.ErrorInfo(reason=self._reason, domain="onceward", metadata=self._metadata)
        ]
        if self._violations:
            listed = [
                error_details_pb2.BadRequest.FieldViolation(field=field, description=description)
                for field, description in self._violations
            ]
            details.append(error_details_pb2.BadRequest(field_violations=listed))
        if self.code == _UNAVAILABLE:
            details.append(error_details_pb2.RetryInfo(retry_delay=_retry_delay()))
        packed = []
        for detail in details:
            packed.append(AnyMessage())
            packed[-1].Pack(detail)
        status = status_pb2.Status(code=self.code, message=self._message, details=packed)
        encoded: bytes = status.SerializeToString()
        return encoded

    def item(self) -> BatchItemError:
        """Returns the refusal as the reply to an item of a batch."""
        reason = f"ERROR_REASON_{self._reason}"
        item = BatchItemError(code=self.code, message=self._message, metadata=self._metadata, reason=reason)
        for field, description in self._violations:
            item.field_violations.add(field=field, description=description)
        if self.code == _UNAVAILABLE:
            item.retry_delay.CopyFrom(_retry_delay())
        return item


def _retry_delay() -> Duration:
    delay = Duration()
    delay.FromMilliseconds(_RETRY_DELAY_MS)
    return delay


class Violations:
    """The violations of one request."""

    def __init__(self) -> None:
        self._found: list[tuple[str, str]] = []

    def add(self, field: str, description: str) -> None:
        self._found.append((field, description))

    def text(self, field: str, value: str, least: int, most: int) -> None:
        size = len(value.encode())
        if not least <= size <= most:
            self.add(field, f"must be {least}-{most} bytes of UTF-8, is {size}")
        elif any(unicodedata.category(character) == "Cc" for character in value):
            self.add(field, "must not contain control characters")

    def claim_name(self, namespace: str, key: str) -> None:
        if not re.fullmatch(NAMESPACE_PATTERN, namespace):
            self.add("namespace", NAMESPACE_RULE)
        self.text("key", key, 1, MAX_KEY_BYTES)

    def held(self, namespace: str, key: str, token: int) -> None:
        self.claim_name(namespace, key)
        if token <= 0:
            self.add("fencing_token", "must be a token that Claim returned")

    def duration(self, field: str, value: Duration, least_ms: int, most_ms: int) -> None:
        if not least_ms <= value.ToMilliseconds() <= most_ms:
            self.add(field, f"must be {least_ms}-{most_ms} ms")

    def owner(self, owner: str, claim_id: str) -> None:
        self.text("claim_id", claim_id, 0, MAX_CLAIM_ID_BYTES)
        self.text("owner", owner, 0, MAX_OWNER_BYTES)

    def fingerprint(self, value: bytes, is_required: bool) -> None:
        if value == b"" and is_required:
            self.add("fingerprint", "is required by the namespace's policy")
        elif len(value) not in (0, FINGERPRINT_BYTES):
            self.add("fingerprint", f"must be 0 or {FINGERPRINT_BYTES} bytes, is {len(value)}")

    def reason(self, value: str) -> None:
        if len(value.encode()) > MAX_RELEASE_REASON_BYTES:
            self.add("reason", f"must be at most {MAX_RELEASE_REASON_BYTES} bytes")

    def checkpoint(self, name: str, state: bytes) -> None:
        self.text("checkpoint.name", name, 1, MAX_CHECKPOINT_NAME_BYTES)
        if len(state) > MAX_CHECKPOINT_STATE_BYTES:
            self.add(
                "checkpoint.state", f"must be at most {MAX_CHECKPOINT_STATE_BYTES} bytes, is {len(state)}"
            )

    def raise_if_any(self) -> None:
        """:raises Refused: INVALID_REQUEST."""
        if self._found:
            summary = "; ".join(f"{field} {description}" for field, description in self._found)
            raise Refused("INVALID_REQUEST", summary, self._found)
