"""The heartbeats of the blocking client: one thread for all claims that are held."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

from ._errors import OncewardError
from ._finish import Held
from ._flow import duration_ms
from ._lease import MAX_LOOK_INTERVAL_MS, Lease, lease_now_ms
from .v1.idempotency_pb2 import ExtendLeaseResponse

#: Starts a call, and tells its answer or error later, from any thread.
Send = Callable[[Held, Callable[["ExtendLeaseResponse | OncewardError"], None]], None]


class Heartbeats:
    """Keeps the leases of claims alive until they are removed."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._changed = threading.Condition()
        self._held: dict[Held, Lease] = {}
        self._thread: threading.Thread | None = None
        #: When the thread, which waits, looks again.
        self._looks_at_ms = 0.0

    def add(self, held: Held, lease: Lease) -> None:
        """Begins to prolong the lease of a claim."""
        with self._changed:
            self._held[held] = lease
            if self._thread is None:
                self._thread = threading.Thread(target=self._beat, name="onceward-heartbeats", daemon=True)
                self._thread.start()
            # Most leases need no heartbeat before the thread looks again: their runs end without waking it.
            if lease.next_at_ms() < self._looks_at_ms:
                self._changed.notify()

    def remove(self, held: Held) -> None:
        """Ends the heartbeats of a claim."""
        with self._changed:
            lease = self._held.pop(held, None)
        if lease is not None:
            lease.end()

    def leases(self) -> list[Lease]:
        """Returns the leases that are held."""
        with self._changed:
            return list(self._held.values())

    def after_fork(self) -> None:
        """Forgets the thread and the claims of the parent process, which prolongs their leases."""
        self._changed = threading.Condition()
        self._held = {}
        self._thread = None

    def _beat(self) -> None:
        while True:
            with self._changed:
                if not self._held:
                    # A thread that has nothing to do ends; the next claim starts another one.
                    self._wait(MAX_LOOK_INTERVAL_MS)
                    if not self._held:
                        self._thread = None
                        return
                due = [(held, lease) for held, lease in self._held.items() if lease.due()]
            for held, lease in due:
                self._heartbeat(held, lease)
            with self._changed:
                next_at_ms = min((lease.next_at_ms() for lease in self._held.values()), default=math.inf)
                delay_ms = min(MAX_LOOK_INTERVAL_MS, max(0.0, next_at_ms - lease_now_ms()))
                if self._held and delay_ms > 0:
                    self._wait(delay_ms)

    def _wait(self, delay_ms: float) -> None:
        self._looks_at_ms = lease_now_ms() + delay_ms
        self._changed.wait(delay_ms / 1000)

    def _heartbeat(self, held: Held, lease: Lease) -> None:
        sent_at_ms = lease_now_ms()

        def answered(answer: ExtendLeaseResponse | OncewardError) -> None:
            if isinstance(answer, OncewardError):
                lease.heartbeat_failed(answer)
            else:
                lease.heartbeat_answered(sent_at_ms, duration_ms(answer.lease_remaining))
            with self._changed:
                self._changed.notify()

        self._send(held, answered)
