"""Keys for the calls that a guarded function makes to other services. A repeat of such a call has the same
key, also in the next attempt after a crash, and the next service answers it without a second effect::

    bank = httpx.Client(auth=HttpKeys())  # And httpx.AsyncClient; for a session of requests: its ``auth``.
    channel = grpc.intercept_channel(channel, GrpcKeys())
    channel = grpc.aio.insecure_channel(address, interceptors=[AioGrpcKeys()])

- The key is ``current_claim().derive_key(name)``. The name is ``POST bank.example.com/v1/charges``, without
  the query; of RPCs it is the procedure, ``/shop.v1.Charges/CreateCharge``. It is the same in all languages.
- Calls of one name under one claim are one operation, unless ``name`` tells them apart: the next service
  refuses the second one if its body differs (422, FINGERPRINT_MISMATCH), and else answers it with the first
  one's response.
- Safe methods, and RPCs with an ``idempotency_level``, get no key, nor do calls without a current claim.
- A key that the caller has set is kept.
- Only calls through these objects get a key, whichever host they go to: use them for hosts that may see one.
  httpx and requests send the header to the target of a redirect, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar
from urllib.parse import urlsplit

import grpc
import grpc.aio
from google.protobuf import descriptor_pool
from google.protobuf.descriptor_pb2 import MethodOptions

from ._claims import find_current_claim
from ._keys import format_idempotency_key

__all__ = ["AioGrpcKeys", "GrpcKeys", "HttpKeys"]

Request = TypeVar("Request")
_Metadata: TypeAlias = tuple[tuple[str, str | bytes], ...]

_HEADER = "idempotency-key"
#: RFC 9110, 9.2.1: they change nothing, so that a repeat needs no key.
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_PORTS = {"http": 80, "https": 443}


class HttpKeys:
    """An ``auth`` of httpx and requests that sends the current claim's key, as this module describes.

    A client that has an ``auth`` of its own calls both: ``auth=lambda request: keys(sign(request))``.

    :param name: returns the name of a request among those of one claim.
    """

    def __init__(self, *, name: Callable[[Any], str] | None = None) -> None:
        self._name = name

    def __call__(self, request: Request) -> Request:
        """Adds the header to a request, and returns it."""
        sent: Any = request
        method = sent.method.upper()
        if method not in _SAFE_METHODS and _HEADER not in sent.headers:
            key = _key_of(
                lambda: _name_of(method, str(sent.url)) if self._name is None else self._name(request)
            )
            if key is not None:
                sent.headers[_HEADER] = key
        return request


class GrpcKeys(grpc.UnaryUnaryClientInterceptor):
    """An interceptor of channels that sends the current claim's key with each unary call, as this module
    describes.

    :param name: returns the name of a call among those of one claim, from its procedure and request.
    """

    def __init__(self, *, name: Callable[[str, Any], str] | None = None) -> None:
        self._name = name

    def intercept_unary_unary(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        """Sends a call, with a key if it needs one."""
        metadata = _keyed(client_call_details, request, self._name)
        return continuation(
            client_call_details if metadata is None else _KeyedCall(client_call_details, metadata), request
        )


class AioGrpcKeys(grpc.aio.UnaryUnaryClientInterceptor):
    """``GrpcKeys`` for channels of ``grpc.aio``."""

    def __init__(self, *, name: Callable[[str, Any], str] | None = None) -> None:
        self._name = name

    async def intercept_unary_unary(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        """Sends a call, with a key if it needs one."""
        call = client_call_details
        metadata = _keyed(call, request, self._name)
        if metadata is not None:
            sent = grpc.aio.Metadata(*metadata)
            call = grpc.aio.ClientCallDetails(
                call.method, call.timeout, sent, call.credentials, call.wait_for_ready
            )
        return await continuation(call, request)


class _KeyedCall(grpc.ClientCallDetails):
    """A call with other metadata."""

    def __init__(self, call: Any, metadata: _Metadata) -> None:
        self.method = call.method
        self.timeout = call.timeout
        self.metadata = metadata
        self.credentials = call.credentials
        self.wait_for_ready = call.wait_for_ready
        self.compression = call.compression


def _keyed(call: Any, request: Any, name: Callable[[str, Any], str] | None) -> _Metadata | None:
    """Returns a call's metadata with its key; None if it needs none."""
    procedure = call.method.decode() if isinstance(call.method, bytes) else call.method
    metadata = tuple(call.metadata or ())
    if any(each == _HEADER for each, _ in metadata) or _is_idempotent(procedure):
        return None
    key = _key_of(lambda: procedure if name is None else name(procedure, request))
    return None if key is None else (*metadata, (_HEADER, key))


def _key_of(name: Callable[[], str]) -> str | None:
    claim = find_current_claim()
    return None if claim is None else format_idempotency_key(claim.derive_key(name()))


def _name_of(method: str, url: str) -> str:
    """Returns the name of a request as each language writes it: without the scheme's own port."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if ":" in host:
        host = f"[{host}]"
    if parts.port not in (None, _PORTS.get(parts.scheme)):
        host = f"{host}:{parts.port}"
    return f"{method} {host}{parts.path or '/'}"


def _is_idempotent(procedure: str) -> bool:
    """Returns whether a method's proto file says so; one that no imported module has is not."""
    try:
        found = descriptor_pool.Default().FindMethodByName(procedure.removeprefix("/").replace("/", "."))
    except KeyError:
        return False
    level: int = found.GetOptions().idempotency_level
    return level != MethodOptions.IDEMPOTENCY_UNKNOWN
