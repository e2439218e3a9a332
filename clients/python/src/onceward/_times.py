"""Times of the service."""

from datetime import datetime, timezone

from google.protobuf.timestamp_pb2 import Timestamp


def datetime_of(timestamp: Timestamp) -> datetime:
    """Returns a time of the service, in UTC; one that no datetime has becomes the nearest."""
    try:
        return timestamp.ToDatetime(tzinfo=timezone.utc)
    except (ValueError, OverflowError):
        nearest = datetime.max if timestamp.seconds > 0 else datetime.min
        return nearest.replace(tzinfo=timezone.utc)
