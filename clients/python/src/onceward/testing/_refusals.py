"""Refusals, as the service sends them."""

from __future__ import annotations

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2

from .._reasons import facts_of
from ..v1.idempotency_pb2 import BatchItemError

#: Short, because tests need not spare the service.
_RETRY_DELAY_MS = 1


class Refused(Exception):
    """A call that is refused."""

    def __init__(self, reason: str, message: str, **metadata: str) -> None:
        super().__init__(message)
        facts = facts_of(reason)
        #: The status of a call of its own.
        self.code = grpc.StatusCode[facts.code if facts is not None and facts.code else "UNKNOWN"]
        #: The error as the reply to an item of a batch.
        self.item = BatchItemError(
            code=self.code.value[0], reason=f"ERROR_REASON_{reason}", message=message, metadata=metadata
        )
        if self.code is grpc.StatusCode.UNAVAILABLE:
            self.item.retry_delay.FromMilliseconds(_RETRY_DELAY_MS)
        self._reason = reason

    def status(self) -> bytes:
        """Returns the details of the status of a call of its own."""
        item = self.item
        details: list[Message] = [
            error_details_pb2.ErrorInfo(reason=self._reason, domain="onceward", metadata=item.metadata)
        ]
        if item.field_violations:
            listed = [
                error_details_pb2.BadRequest.FieldViolation(field=each.field, description=each.description)
                for each in item.field_violations
            ]
            details.append(error_details_pb2.BadRequest(field_violations=listed))
        if item.HasField("retry_delay"):
            details.append(error_details_pb2.RetryInfo(retry_delay=item.retry_delay))
        status = status_pb2.Status(code=item.code, message=item.message)
        for detail in details:
            packed = AnyMessage()
            packed.Pack(detail)
            status.details.append(packed)
        encoded: bytes = status.SerializeToString()
        return encoded


def raise_if_any(**violations: str | None) -> None:
    """Refuses a request whose fields have violations; None: the field has none. :raises Refused:"""
    found = {field: description for field, description in violations.items() if description}
    if found:
        refused = Refused("INVALID_REQUEST", "; ".join(f"{field} {found[field]}" for field in found))
        for field, description in found.items():
            refused.item.field_violations.add(field=field, description=description)
        raise refused
