"""Keys that say when they were made."""

from __future__ import annotations

import os
import re
import threading
import time
from datetime import datetime, timedelta, timezone

#: A UUID with a time (RFC 9562, section 5), whose version is group 3.
_UUID = re.compile(
    r"([0-9a-f]{8})-([0-9a-f]{4})-([167])([0-9a-f]{3})-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
    re.IGNORECASE | re.ASCII,
)
#: https://github.com/ulid/spec: 26 digits of Crockford's base 32, of which the first ten are the
#: milliseconds.
_ULID = re.compile(r"([0-7][0-9a-hjkmnp-tv-z]{9})[0-9a-hjkmnp-tv-z]{16}", re.IGNORECASE | re.ASCII)
_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"
#: From 15 October 1582, when the timestamps of versions 1 and 6 begin, to 1970.
_GREGORIAN_EPOCH_MS = 12_219_292_800_000
#: The timestamps of versions 1 and 6 count units of 100 ns.
_TICKS_PER_MS = 10_000
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
#: The end of the year 9999.
_MAX_TIME_MS = 253_402_300_799_999

#: rand_a of RFC 9562, 5.7.
_COUNTER_BITS = 12
#: A clock that is set back by more is followed: a key's time then matters more than the order of keys.
_MAX_AHEAD_MS = 10_000


def key_time(key: str) -> datetime | None:
    """Returns when a key was made, to the millisecond, if the key contains it.

    The whole key is a UUID of version 1, 6 or 7, or a ULID. None for every other key, and for a time beyond
    the years of a datetime. The service reads keys in the same way.
    """
    made_ms = _key_ms(key)
    if made_ms is None or made_ms > _MAX_TIME_MS:
        return None
    return EPOCH + timedelta(milliseconds=made_ms)


def _key_ms(key: str) -> int | None:
    ulid = _ULID.fullmatch(key)
    if ulid is not None:
        made_ms = 0
        for digit in ulid[1].lower():
            made_ms = made_ms * len(_CROCKFORD) + _CROCKFORD.index(digit)
        return made_ms
    uuid = _UUID.fullmatch(key)
    if uuid is None:
        return None
    first, second, version, third = uuid.groups()
    if version == "7":
        return int(first + second, 16)
    ticks = first + second + third if version == "6" else third + second + first
    return int(ticks, 16) // _TICKS_PER_MS - _GREGORIAN_EPOCH_MS


class _Clock:
    """The time and the counter of the last key of this process (RFC 9562, 6.2, method 1)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last_ms = 0
        self._counter = 0

    def next(self, now_ms: int, random: int) -> tuple[int, int]:
        with self._lock:
            is_later = now_ms > self._last_ms or self._last_ms - now_ms > _MAX_AHEAD_MS
            if not is_later and self._counter + 1 < 1 << _COUNTER_BITS:
                self._counter += 1
                return self._last_ms, self._counter
            self._last_ms = now_ms if is_later else self._last_ms + 1
            # In the lower half, so that at least 2,048 keys of a millisecond need no later time.
            self._counter = random % (1 << (_COUNTER_BITS - 1))
            return self._last_ms, self._counter


_clock = _Clock()


def new_key() -> str:
    """Returns a new key: a UUID of version 7 (RFC 9562).

    Make it once, where the operation is created, and store it with the operation: every retry has the same
    key. Later keys of this process are larger. A reader of a key can tell when it was made.
    """
    random = os.urandom(10)
    made_ms, counter = _clock.next(time.time_ns() // 1_000_000, int.from_bytes(random[:2], "big"))
    tail = bytes([0x80 | random[2] & 0x3F]) + random[3:]
    digits = f"{made_ms:012x}7{counter:03x}{tail.hex()}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
