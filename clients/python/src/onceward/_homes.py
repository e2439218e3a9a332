"""The homes of a client's tenant: the configured one, and those to which it has moved."""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from typing import Any

from google.rpc import code_pb2

from ._catalogue import InvalidRequestError
from ._connection import Link, Links, Target, Tls
from ._errors import OncewardError
from ._lease import now_ms
from ._mapping import is_retryable

#: More than a tenant leaves in one client's life: answers open no more connections.
_MAX_FOLLOWED = 4
#: Yields the next home to ask, and the timeout there in seconds; gets the answer, and returns the last one.
Trip = Generator[tuple[Links, float], Any, Any]


class Homes:
    """Where calls go.

    A call that is refused because its tenant has moved, with the new address, is made there at once, and so
    are later calls, until that home gives no answer. Only the scheme of the configured addresses is followed:
    never from TLS to plain text, and never from or to a socket.
    """

    def __init__(self, grpc_api: Any, address: str | Sequence[str], tls: Tls) -> None:
        """:param grpc_api: ``grpc`` or ``grpc.aio``. :raises InvalidRequestError:"""
        self._grpc = grpc_api
        self._tls = tls
        self._configured = self._current = Links(grpc_api, address, tls)
        self._followed: dict[str, Links] = {}
        self._lock = threading.Lock()

    def trip(self, timeout_ms: float) -> Trip:
        """Returns the way of a call along the homes, each once.

        An address at which the tenant is not known, or no service is, leaves the old home's refusal in force,
        which is retried.
        """
        ends_at_ms = now_ms() + timeout_ms
        begun = home = self._current
        asked: list[Links] = []
        refusal = None
        while True:
            asked.append(home)
            answer = yield home, max(1, ends_at_ms - now_ms()) / 1000
            if not isinstance(answer, OncewardError):
                if home is not begun:
                    self._current = home
                return answer
            is_lost = answer.reason == "NO_ANSWER" and answer.code != code_pb2.CANCELLED
            is_unknown = answer.reason == "CREDENTIAL_INVALID" or (is_lost and not is_retryable(answer))
            if (is_lost or is_unknown) and home is self._current:
                self._current = self._configured
            if is_unknown and refusal is not None:
                return refusal
            following = self._configured if is_unknown else None
            if answer.reason == "TENANT_MOVING":
                refusal, following = answer, self._at(answer.metadata.get("address", ""))
            if following is None or following in asked:
                return answer
            home = following

    def _at(self, address: str) -> Links | None:
        """Returns the home at an address; None if it is not followed."""
        try:
            target = Target(address)
            known = self._configured.targets
            if any(each.scheme != target.scheme or each.scheme == "unix" for each in known):
                return None
            if any(each.authority == target.authority for each in known):
                return self._configured
            with self._lock:
                if address not in self._followed and len(self._followed) < _MAX_FOLLOWED:
                    self._followed[address] = Links(self._grpc, address, self._tls)
                return self._followed.get(address)
        except (InvalidRequestError, ValueError):
            # Not an address, or a certificate that is being replaced now.
            return None

    def all(self) -> list[Link]:
        """Returns the links that are not retired."""
        return [link for home in (self._configured, *self._followed.values()) for link in home.all()]

    def after_fork(self) -> None:
        """Leaves the channels to the parent process."""
        self._lock = threading.Lock()
        for home in (self._configured, *self._followed.values()):
            home.after_fork()
