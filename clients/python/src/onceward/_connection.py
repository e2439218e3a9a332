"""The address and the credential of a client, and how its calls reach the service."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from urllib.parse import urlsplit

import grpc

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
)

Credential = Callable[[], str]
Metadata = tuple[tuple[str, str], ...]


class Target:
    """Where calls go: host and port, and whether the connection is encrypted."""

    def __init__(self, address: str) -> None:
        """:raises InvalidRequestError: for anything but an http: or https: URL without a path."""
        url = urlsplit(address)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise refused_field("address", f'must be a URL such as "http://localhost:50051", is {address!r}')
        if url.username or url.password or url.query or url.fragment or url.path not in ("", "/"):
            raise refused_field("address", "must have a host and a port only")
        host = f"[{url.hostname}]" if ":" in url.hostname else url.hostname
        self.encrypted = url.scheme == "https"
        self.authority = f"{host}:{url.port or (443 if self.encrypted else 80)}"


def credential_of(api_key: str | None, token: Credential | None) -> Credential:
    """Returns what gives the credential of each call.

    :raises InvalidRequestError: unless there is exactly one.
    """
    if api_key is not None and token is None:
        return lambda: api_key
    if token is not None and api_key is None:
        return token
    raise InvalidRequestError("api_key or token must be set, and not both")


def metadata_of(credential: Credential) -> Metadata:
    """Returns a call's metadata. :raises OncewardError: TOKEN_UNAVAILABLE."""
    try:
        secret = credential()
    except Exception as error:
        raise OncewardError("TOKEN_UNAVAILABLE", f"The function token failed: {error}") from error
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
    code = grpc.StatusCode.UNKNOWN.value[0]
    return OncewardError("NO_ANSWER", f"The call can't be sent: {error}", code=code)
