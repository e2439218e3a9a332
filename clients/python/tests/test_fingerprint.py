"""What fingerprints make of values that only Python has.

Values of every language are in clients/conformance.
"""

import random
import struct
from datetime import datetime, timedelta, timezone

import pytest

from onceward import InvalidRequestError, fingerprint_of
from onceward._canonical import ecmascript_number


def test_a_tuple_counts_as_a_list() -> None:
    assert fingerprint_of({"lines": (1, 2)}) == fingerprint_of({"lines": [1, 2]})


def test_a_datetime_of_any_zone_counts_as_its_moment() -> None:
    utc = datetime(2026, 3, 1, 11, 30, tzinfo=timezone.utc)
    assert fingerprint_of(utc) == fingerprint_of(utc.astimezone(timezone(timedelta(hours=5))))
    assert fingerprint_of(utc) == fingerprint_of("2026-03-01T11:30:00.000Z")


def test_microseconds_count() -> None:
    moment = datetime(2026, 3, 1, microsecond=1, tzinfo=timezone.utc)
    assert fingerprint_of(moment) != fingerprint_of(moment.replace(microsecond=2))


@pytest.mark.parametrize(
    ("value", "where"),
    [
        (datetime(2026, 3, 1), "is a datetime without a time zone"),
        ({"a": [1j]}, "has a complex at /a/0"),
        ({1: "a"}, "is a member whose name is not a text"),
        ({"a/b": {"c~d": {1}}}, "has a set at /a~1b/c~0d"),
        (10**400, "is a whole number that a double does not hold"),
    ],
)
def test_a_value_without_a_json_form_is_refused_with_its_path(value: object, where: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        fingerprint_of(value)
    assert where in str(refused.value)


def test_a_value_may_occur_twice() -> None:
    line = {"id": 1}
    assert fingerprint_of([line, line]) == fingerprint_of([{"id": 1}, {"id": 1}])


def test_each_number_is_read_back_from_its_text() -> None:
    numbers = random.Random(1)
    for _ in range(10_000):
        (value,) = struct.unpack(">d", numbers.randbytes(8))
        if value == value and abs(value) != float("inf"):
            assert float(ecmascript_number(value)) == value
