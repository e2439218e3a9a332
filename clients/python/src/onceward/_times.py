"""Times of the service."""

from datetime import datetime, timezone

from google.protobuf.timestamp_pb2 import Timestamp


def datetime_of(timestamp: Timestamp) -> datetime:
    """Returns a time of the service, in UTC."""
    return timestamp.ToDatetime(tzinfo=timezone.utc)
