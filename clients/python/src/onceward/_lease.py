"""How long a claim may be relied on."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from ._errors import ClaimRef, OncewardError
from ._reasons import is_claim_over

#: Two heartbeats may fail before the lease is at risk.
_HEARTBEATS_PER_LEASE = 3
#: A tenth of the lease, for clock drift and for the function to stop in time; more than a second is of no
#: use.
_MARGIN_FRACTION = 0.1
_MAX_MARGIN_MS = 1000
#: The delay after a failed heartbeat, as a fraction of the lease.
_RETRY_FRACTION = 0.1
#: A heartbeat without an answer within this fraction of the lease is repeated, on another connection, while
#: the lease lasts; at least a second, which a busy service may take.
_ANSWER_FRACTION = 0.25
_MIN_ANSWER_MS = 1000
_MIN_INTERVAL_MS = 20
#: Timers may stop while a machine is suspended: a lease that ended meanwhile is noticed within this time.
MAX_LOOK_INTERVAL_MS = 1000
#: A jump of the wall clock against the monotonic one counts as a suspension of the machine from this length
#: on.
_MIN_SUSPENSION_MS = 50


def now_ms() -> float:
    """Returns the monotonic clock, in milliseconds."""
    return time.monotonic() * 1000


class _LeaseClock:
    """The monotonic clock plus the time during which the machine was suspended, when leases expire at the
    service.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._suspended_ms = 0.0
        self._last_offset_ms = self._offset_ms()

    def now_ms(self) -> float:
        with self._lock:
            offset_ms = self._offset_ms()
            jump_ms = offset_ms - self._last_offset_ms
            self._last_offset_ms = offset_ms
            # A clock that is set forward looks the same: a lease then counts as over, which is the safe
            # mistake.
            if jump_ms >= _MIN_SUSPENSION_MS:
                self._suspended_ms += jump_ms
            return now_ms() + self._suspended_ms

    @staticmethod
    def _offset_ms() -> float:
        return time.time() * 1000 - now_ms()


_clock = _LeaseClock()


def lease_now_ms() -> float:
    """Returns the time by which this process judges leases, in milliseconds."""
    return _clock.now_ms()


def lease_ends_at_ms(sent_at_ms: float, remaining_ms: float) -> float:
    """Returns when a lease ends for the client: counted from when its call was sent, minus a margin."""
    return sent_at_ms + remaining_ms - min(_MAX_MARGIN_MS, remaining_ms * _MARGIN_FRACTION)


def is_claim_gone(error: OncewardError) -> bool:
    """Returns whether no further heartbeat can prolong the claim."""
    return error.reason == "CLOSED" or is_claim_over(error.reason)


class Lease:
    """The state of one lease, and when its next heartbeat is due. Safe for several threads.

    A heartbeat is also sent after the loss: until another holder has taken over, it renews the lease.
    """

    def __init__(self, claim: ClaimRef, on_lost: Callable[[OncewardError], None]) -> None:
        self.claim = claim
        self._on_lost = on_lost
        self._lock = threading.RLock()
        self._length_ms = 0.0
        self._ends_at_ms = 0.0
        self._next_heartbeat_at_ms = math.inf
        self._heartbeating = False
        self._ended = False
        self._lost: OncewardError | None = None

    @property
    def ends_at_ms(self) -> float:
        """When the lease ends unless it is prolonged, minus the margin."""
        return self._ends_at_ms

    @property
    def length_ms(self) -> float:
        """The lease's length, as last granted."""
        return self._length_ms

    @property
    def heartbeat_timeout_ms(self) -> float:
        """How long a heartbeat may be without an answer, unless an attempt of any call is shorter."""
        return max(_MIN_ANSWER_MS, self._length_ms * _ANSWER_FRACTION)

    @property
    def is_over(self) -> bool:
        """Whether another holder may have taken over."""
        return lease_now_ms() >= self._ends_at_ms

    @property
    def lost(self) -> OncewardError | None:
        """Why the claim is lost; None while it is held."""
        with self._lock:
            if not self._ended and self.is_over:
                self._expire()
            return self._lost

    def granted(self, sent_at_ms: float, remaining_ms: float) -> None:
        """Notes that the service granted the lease to a call that was sent at this time."""
        with self._lock:
            self._length_ms = remaining_ms
            # Replies may overtake each other; no call shortens a lease.
            self._ends_at_ms = max(self._ends_at_ms, lease_ends_at_ms(sent_at_ms, remaining_ms))
            interval_ms = max(_MIN_INTERVAL_MS, remaining_ms / _HEARTBEATS_PER_LEASE)
            self._next_heartbeat_at_ms = sent_at_ms + interval_ms

    def next_at_ms(self) -> float:
        """Returns when ``due`` has to be called next; infinity for never."""
        with self._lock:
            if self._ended:
                return math.inf
            heartbeat_at_ms = math.inf if self._heartbeating else self._next_heartbeat_at_ms
            return min(heartbeat_at_ms, math.inf if self._lost is not None else self._ends_at_ms)

    def due(self) -> bool:
        """Notes a loss.

        Returns whether a heartbeat has to be sent now; its end is told by one of the two methods below.
        """
        with self._lock:
            if self._ended:
                return False
            if self.is_over:
                self._expire()
            if self._heartbeating or lease_now_ms() < self._next_heartbeat_at_ms:
                return False
            self._heartbeating = True
            return True

    def heartbeat_answered(self, sent_at_ms: float, remaining_ms: float) -> None:
        """Notes the answer to a heartbeat."""
        with self._lock:
            self._heartbeating = False
            self.granted(sent_at_ms, remaining_ms)

    def heartbeat_failed(self, error: OncewardError) -> None:
        """Notes the failure of a heartbeat."""
        with self._lock:
            self._heartbeating = False
            if self._ended:
                return
            if is_claim_gone(error):
                self._ended = True
                self._lose(error)
                return
            delay_ms = max(_MIN_INTERVAL_MS, self._length_ms * _RETRY_FRACTION)
            self._next_heartbeat_at_ms = lease_now_ms() + delay_ms

    def interrupt(self, error: OncewardError) -> None:
        """Tells the function to end. The heartbeats continue: it may still have its effect."""
        with self._lock:
            self._lose(error)

    def end(self) -> None:
        """Ends the heartbeats: the claim is completed or released."""
        with self._lock:
            self._ended = True

    def _expire(self) -> None:
        self._lose(lease_lost(self.claim))

    def _lose(self, error: OncewardError) -> None:
        if self._lost is None:
            self._lost = error
            self._on_lost(error)


def lease_lost(claim: ClaimRef) -> OncewardError:
    """Returns the error of a lease that expired before it was renewed."""
    return OncewardError("LEASE_LOST", "The lease expired before a heartbeat was answered.", claim=claim)
