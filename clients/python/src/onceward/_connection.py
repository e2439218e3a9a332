"""The addresses and the credential of a client, and how its calls reach the service."""

from __future__ import annotations

import os
import random
import re
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import grpc
from google.rpc import code_pb2

from ._catalogue import InvalidRequestError
from ._errors import OncewardError
from ._limits import MAX_OWNER_BYTES
from ._texts import refused_field, truncate_utf8
from .v1 import idempotency_pb2

#: Long waits for a connection are the client's own, which are bounded by ``timeout_ms``.
CHANNEL_OPTIONS = (
    ("grpc.enable_retries", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2000),
    # Otherwise a new channel would share the connection that a channel found silent.
    ("grpc.use_local_subchannel_pool", 1),
)
#: By then every call on a retired channel has its answer or ran into its own deadline, but a claim that waits
#: for another holder, which is repeated.
RETIREMENT_S = 5.0
#: More than a service has replicas.
_MAX_ADDRESSES = 100
#: A path has none of the characters that a URL reads otherwise: every language's client means the same file.
_SOCKET = re.compile(r"unix:(?://)?(/[^/?#%][^?#%]*)")
_VISIBLE = re.compile(r"[\x21-\x7e]+")
_ADDRESSES = (
    'must be a URL such as "http://localhost:50051", or "unix:" and an absolute path without ?, # and %'
)


Token = Callable[[], str]
#: The bytes of a PEM file; or its path, which is read again for each connection after the file has changed.
Pem: TypeAlias = bytes | os.PathLike[str]
Metadata = tuple[tuple[str, str], ...]


class Target:
    """Where calls go: host and port, by which scheme, and whether the connection is encrypted."""

    def __init__(self, address: str) -> None:
        """:raises InvalidRequestError: unless it is a socket, or an http: or https: URL without a path."""
        if socket := _SOCKET.fullmatch(address):
            self.scheme, self.encrypted = "unix", False
            self.authority = f"unix:{socket[1]}"
            return
        url = urlsplit(address)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise refused_field("address", f"{_ADDRESSES}, is {address!r}")
        if url.username or url.password or url.query or url.fragment or url.path not in ("", "/"):
            raise refused_field("address", "must have a host and a port only")
        host = f"[{url.hostname}]" if ":" in url.hostname else url.hostname
        self.scheme, self.encrypted = url.scheme, url.scheme == "https"
        self.authority = f"{host}:{url.port or (443 if self.encrypted else 80)}"


@dataclass(frozen=True)
class Tls:
    """The certificates of connections to https: addresses."""

    ca: Pem | None = None
    cert: Pem | None = None
    key: Pem | None = None

    def read(self) -> tuple[bytes | None, bytes | None, bytes | None]:
        """Returns the bytes of the authorities, the certificate and its key. :raises InvalidRequestError:"""
        return _read("tls_ca", self.ca), _read("tls_cert", self.cert), _read("tls_key", self.key)


def _read(field: str, pem: Pem | None) -> bytes | None:
    if pem is None or isinstance(pem, bytes):
        return pem
    # The message shows no text that is not a path: it may be a private key.
    if not isinstance(pem, os.PathLike):
        raise refused_field(field, "must be the bytes of a PEM file, or its path as a pathlib.Path")
    try:
        with open(pem, "rb") as file:
            return file.read()
    except OSError as error:
        raise refused_field(field, f"can't be read: {error}") from error


class Link:
    """A channel to one address, and its methods."""

    def __init__(self, channel: Any, pems: object) -> None:
        self.channel = channel
        self.pems = pems
        #: When a call on it last got its response.
        self.answered_at_ms = 0.0
        self._methods: dict[str, Any] = {}

    def method(self, name: str) -> Any:
        """Returns what makes calls of an RPC."""
        method = self._methods.get(name)
        if method is None:
            method = self.channel.unary_unary(
                path_of(name),
                request_serializer=lambda request: request.SerializeToString(),
                response_deserializer=response_class(name).FromString,  # type: ignore[attr-defined]
            )
            self._methods[name] = method
        return method


class Links:
    """The channels of a client, one for each address. Calls go to one address until it fails."""

    def __init__(self, grpc_api: Any, address: str | Sequence[str], tls: Tls) -> None:
        """:param grpc_api: ``grpc`` or ``grpc.aio``. :raises InvalidRequestError:"""
        self._grpc = grpc_api
        addresses = [address] if isinstance(address, str) else list(address)
        if not 1 <= len(addresses) <= _MAX_ADDRESSES:
            raise refused_field("address", f"must be 1-{_MAX_ADDRESSES} addresses, is {len(addresses)}")
        self.targets = [Target(each) for each in addresses]
        self._tls = tls
        if tls != Tls() and not all(target.encrypted for target in self.targets):
            raise refused_field("tls_ca, tls_cert and tls_key", "need addresses with https://")
        if (tls.cert is None) != (tls.key is None):
            raise refused_field("tls_cert", "must be set together with tls_key")
        tls.read()
        self._lock = threading.Lock()
        self._links: dict[int, Link] = {}
        self._inherited: list[Link] = []
        # Clients of one list share the load.
        self._turn = random.randrange(len(self.targets))

    def current(self) -> Link:
        """Returns the link for the next call. :raises InvalidRequestError: for a file that can't be read."""
        with self._lock:
            link = self._links.get(self._turn)
            if link is None:
                link = self._links[self._turn] = self._open(self.targets[self._turn])
            return link

    def failed(self, link: Link, error: OncewardError, began_at_ms: float) -> Link | None:
        """Notes the failure of a call. The next ones go to another address, if there is one.

        Returns a link that is to be retired: no later call uses it. A connection that gives no answer, to
        this call and those beside it, may stay open, and silent; a new one may reach the service.
        """
        is_without_answer = error.reason == "NO_ANSWER" and error.code == code_pb2.DEADLINE_EXCEEDED
        is_silent = is_without_answer and link.answered_at_ms < began_at_ms
        is_down = error.reason in ("NO_ANSWER", "SHUTTING_DOWN") and error.code == code_pb2.UNAVAILABLE
        if not is_silent and not is_down:
            return None
        with self._lock:
            # Calls that were in flight when the address failed bring no news.
            if self._links.get(self._turn) is not link:
                return None
            retired = self._links.pop(self._turn) if is_silent or self._has_new_pems(link) else None
            self._turn = (self._turn + 1) % len(self.targets)
            return retired

    def all(self) -> list[Link]:
        """Returns the links that are not retired."""
        with self._lock:
            return list(self._links.values())

    def after_fork(self) -> None:
        """Leaves the channels to the parent process, open: their connections are shared."""
        self._lock = threading.Lock()
        self._inherited.extend(self._links.values())
        self._links = {}

    def _has_new_pems(self, link: Link) -> bool:
        try:
            return self._tls.read() != link.pems
        except InvalidRequestError:
            # Being replaced now.
            return False

    def _open(self, target: Target) -> Link:
        pems = self._tls.read()
        if not target.encrypted:
            return Link(self._grpc.insecure_channel(target.authority, options=CHANNEL_OPTIONS), pems)
        ca, cert, key = pems
        credentials = grpc.ssl_channel_credentials(ca, key, cert)
        return Link(self._grpc.secure_channel(target.authority, credentials, options=CHANNEL_OPTIONS), pems)


@dataclass(frozen=True)
class Credential:
    """What gives the credential of each call; whether it may be another one than before."""

    secret: Token
    renews: bool


def credential_of(api_key: str | None, token: Token | None) -> Credential:
    """Returns what gives the credential of each call.

    :raises InvalidRequestError: unless there is exactly one, and a key that can be in a header.
    """
    if api_key is not None and token is None:
        # The message never shows the key: even an invalid one is a secret.
        if not _VISIBLE.fullmatch(api_key):
            raise refused_field("api_key", "must be an API key (ow_…), visible ASCII without spaces")
        return Credential(lambda: api_key, False)
    if token is not None and api_key is None:
        return Credential(token, True)
    raise InvalidRequestError("api_key or token must be set, and not both")


def metadata_of(credential: Credential) -> Metadata:
    """Returns a call's metadata. :raises OncewardError: TOKEN_UNAVAILABLE."""
    try:
        secret = credential.secret()
    except Exception as error:
        message = f"The function token failed: {error}"
        raise OncewardError("TOKEN_UNAVAILABLE", message, code=code_pb2.UNAVAILABLE) from error
    return (("authorization", f"Bearer {secret}"),)


def path_of(method: str) -> str:
    """Returns the path of an RPC."""
    return f"/onceward.v1.IdempotencyService/{method}"


def response_class(method: str) -> type:
    """Returns the class of an RPC's responses."""
    made: type = getattr(idempotency_pb2, f"{method}Response")
    return made


def default_owner() -> str:
    """Returns the name of this process as a holder: its host and its process id."""
    return truncate_utf8(f"{socket.gethostname()}/{os.getpid()}", MAX_OWNER_BYTES)


def closed_error() -> OncewardError:
    """Returns the error of a call that a closed client does not make."""
    return OncewardError("CLOSED", "The client is closed.")


def unsent(error: Exception) -> OncewardError:
    """Returns the error of a call that gRPC could not send, such as one whose credential has a line break."""
    return OncewardError("NO_ANSWER", f"The call can't be sent: {error}", code=code_pb2.UNKNOWN)
