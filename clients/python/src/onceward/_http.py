"""What the guards of HTTP frameworks have in common (draft-ietf-httpapi-idempotency-key-header-07).

Keys, fingerprints of bodies and stored responses are those of the guards of other languages, so that two
services behind one route may be in different languages.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ._catalogue import ResultTooLargeError
from ._claims import is_within
from ._codec import Encoded
from ._errors import OncewardError, ResultUnavailableError
from ._fingerprint import fingerprint_of
from ._keys import join_key, parse_idempotency_key
from ._keytime import key_time
from ._limits import MAX_RESULT_BYTES
from ._mapping import is_retryable
from ._options import OnceOptions, RunOptions
from ._texts import refused_field

KEY_HEADER = "idempotency-key"
REPLAYED_HEADER = "idempotency-replayed"
DEFAULT_METHODS = ("POST", "PATCH")
DEFAULT_MAX_BODY_BYTES = 1024 * 1024

#: The methods of RFC 9110, PATCH (RFC 5789), QUERY, and those of WebDAV that change something (RFC 4918). A
#: misspelt one would guard nothing.
_KNOWN_METHODS = frozenset(
    "DELETE GET HEAD OPTIONS PATCH POST PUT QUERY COPY LOCK MKCOL MOVE PROPPATCH UNLOCK".split()
)
_REPLAY_HEADERS = frozenset(
    "cache-control content-disposition content-encoding content-language content-location content-type etag"
    " last-modified link location vary".split()
)
#: Headers of one connection (RFC 9110, 7.6.1), one message or one moment: they are not part of an outcome.
_NEVER_REPLAYED = frozenset(
    "connection content-length date keep-alive proxy-authenticate proxy-authentication-info proxy-connection"
    " set-cookie te trailer transfer-encoding upgrade".split()
)
#: These say something about the attempt (who made it, when), and not about the operation.
_OF_THE_ATTEMPT = frozenset({401, 408, 425, 429})

# The limits of idempotency.proto for a result's content type and metadata.
_MAX_CONTENT_TYPE_BYTES = 255
_MAX_METADATA_ENTRIES = 64
_MAX_METADATA_NAME_BYTES = 128
_MAX_METADATA_VALUE_BYTES = 4096
_MAX_METADATA_BYTES = 16 * 1024

_STATUS = "http-status"
_HEADER = "http-header-"
_CONTENT_TYPE = "content-type"


def is_outcome(status: int) -> bool:
    """Returns whether a status says something about the operation: below 500, but for 401, 408, 425 and
    429.
    """
    return status < 500 and status not in _OF_THE_ATTEMPT


@dataclass(frozen=True)
class Response:
    """A whole response. Names of headers are in lower case. ``body`` is None if it was too large to be
    kept.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes | None


class NotStored(Exception):
    """A response that is not the operation's outcome: the claim is released, and the next attempt runs."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status}")


@dataclass(frozen=True)
class Problem:
    """A refusal of the guard, without a call of the handler (RFC 9457)."""

    #: A URI that names the problem.
    type: str
    status: int
    title: str
    #: What the client can do about it.
    detail: str
    #: The header Retry-After, in seconds; None for none.
    retry_after_s: int | None = None

    def body(self) -> bytes:
        """Returns the problem as application/problem+json."""
        members = {"type": self.type, "title": self.title, "status": self.status, "detail": self.detail}
        return json.dumps(members, separators=(",", ":")).encode()

    def headers(self) -> dict[str, str]:
        """Returns the headers of the problem."""
        headers = {_CONTENT_TYPE: "application/problem+json"}
        return headers if self.retry_after_s is None else {**headers, "retry-after": str(self.retry_after_s)}


def _named(name: str, status: int, title: str, detail: str) -> Problem:
    return Problem(f"urn:onceward:problem:{name}", status, title, detail)


KEY_MISSING = _named(
    "key-missing",
    400,
    "This operation requires an Idempotency-Key.",
    "Send the header Idempotency-Key: new for each operation, the same for each of its attempts.",
)
KEY_MALFORMED = _named(
    "key-malformed",
    400,
    "The Idempotency-Key is malformed.",
    'The header Idempotency-Key is 1-255 characters, with or without quotes, such as "8e03978e-40d5".',
)
REQUEST_UNREADABLE = _named(
    "request-unreadable",
    400,
    "The request can't be identified.",
    "A part that identifies the request is missing, or is not well-formed Unicode.",
)
REQUEST_TOO_LARGE = _named("request-too-large", 413, "The request is too large.", "Send a smaller body.")
_KEY_REUSED = _named(
    "key-reused",
    422,
    "The Idempotency-Key was used for another request.",
    "Send this request with a new key, or repeat the first request as it was.",
)
_KEY_WITHOUT_TIME = _named(
    "key-without-time",
    400,
    "The Idempotency-Key must contain the time at which it was made.",
    "Send a UUID of version 7, or a ULID, made when the operation begins by a clock that is right.",
)
_KEY_TOO_OLD = _named(
    "key-too-old",
    410,
    "Too old to retry: find out what happened.",
    "The request may have been carried out, and its record is gone. Read the resource, and use a new key "
    "only if it was not.",
)
_IN_PROGRESS = _named(
    "in-progress",
    409,
    "A request with this Idempotency-Key is in progress.",
    "Repeat the same request later.",
)
_AMBIGUOUS = _named(
    "ambiguous",
    409,
    "It is not known whether an earlier request had its effect.",
    "The owner of this API must find out. A new key could repeat the effect.",
)
_RESULT_GONE = _named(
    "result-gone",
    410,
    "The request was carried out; its response is gone.",
    "Read the resource instead. A new key would repeat the effect.",
)
_UNAVAILABLE = _named(
    "unavailable",
    503,
    "It is unknown whether the request was carried out.",
    "Nothing was carried out now. Repeat the same request later.",
)


def problem_of(error: OncewardError) -> Problem | None:
    """Returns the problem for an error under which the handler was not called.

    None for an error that does not concern the API's client (a bad credential, a bug) but its owner.
    """
    if isinstance(error, ResultUnavailableError):
        return _RESULT_GONE
    by_reason = {
        "AMBIGUOUS": _AMBIGUOUS,
        "FINGERPRINT_MISMATCH": _KEY_REUSED,
        "KEY_TOO_OLD": _KEY_TOO_OLD,
        "IN_PROGRESS": _IN_PROGRESS,
        "CLOSED": _UNAVAILABLE,
    }
    problem = by_reason.get(error.reason)
    if problem is None and error.reason == "INVALID_REQUEST":
        is_about_time = any(each.field == "key_created_at" for each in error.violations)
        return _KEY_WITHOUT_TIME if is_about_time else None
    if problem is None and is_retryable(error):
        problem = _UNAVAILABLE
    if problem in (_IN_PROGRESS, _UNAVAILABLE) and problem is not None:
        seconds = max(1, math.ceil((error.retry_delay_ms or 0) / 1000))
        return Problem(problem.type, problem.status, problem.title, problem.detail, seconds)
    return problem


@dataclass(frozen=True)
class RequestHead:
    """What a guard reads of a request. The path is escaped as it was sent; the query has its question
    mark.
    """

    method: str
    path: str
    query: str
    #: The values of the header Idempotency-Key.
    keys: Sequence[str]


class HttpPolicy:
    """The options of a guard, checked. See the framework's middleware."""

    def __init__(
        self,
        *,
        namespace: str,
        methods: Sequence[str] = DEFAULT_METHODS,
        key_optional: bool = False,
        max_body_bytes: int = DEFAULT_MAX_BODY_BYTES,
        stores: Callable[[int], bool] = is_outcome,
        replay_headers: Sequence[str] = (),
        options: OnceOptions,
    ) -> None:
        """:raises InvalidRequestError: for options that would guard nothing, or replay what must not be."""
        if not methods:
            raise refused_field("methods", "must name a method; without one, nothing is guarded")
        for method in methods:
            if method not in _KNOWN_METHODS:
                raise refused_field("methods", f"must name methods of HTTP in upper case, names {method!r}")
        for name in replay_headers:
            if name.lower() in _NEVER_REPLAYED:
                raise refused_field("replay_headers", f"must not name {name.lower()}")
        self.namespace = namespace
        self.methods = frozenset(methods)
        self.key_optional = key_optional
        self.max_body_bytes = max_body_bytes
        self.stores = stores
        self.replayed = _REPLAY_HEADERS | {name.lower() for name in replay_headers}
        wait_ms = options.get("wait_ms") or 0
        self._options: OnceOptions = {
            **options,
            "wait_ms": wait_ms,
            "on_in_progress": "wait" if wait_ms > 0 else "throw",
            "codec": ResponseCodec(),
            "classify_error": lambda _: "release",
            "describe_error": str,
        }

    def guards(self, method: str) -> bool:
        """Returns whether requests with this method are guarded here, and not already by an outer guard."""
        return method in self.methods and not is_within(self.namespace)

    def key_of(self, head: RequestHead) -> str | Problem | None:
        """Returns the request's key, or the problem with it; None for a request that passes unguarded."""
        if not head.keys:
            return None if self.key_optional else KEY_MISSING
        key = parse_idempotency_key(",".join(head.keys))
        return KEY_MALFORMED if key is None else key

    def operation_of(self, head: RequestHead, key: str, caller: str, body: bytes) -> tuple[str, RunOptions]:
        """Returns the operation's key and options.

        :raises ValueError: for a caller that is empty.
        :raises InvalidRequestError: for a request that has no identity.
        """
        if not isinstance(caller, str) or caller == "":
            raise ValueError("caller must return a text that is not empty")
        digest = base64.urlsafe_b64encode(hashlib.sha256(body).digest()).decode().rstrip("=")
        request = {"method": head.method, "path": head.path, "query": head.query, "body": digest}
        options: RunOptions = {
            **self._options,
            "fingerprint": fingerprint_of(request),
            "key_created_at": key_time(key),
        }
        return join_key(head.method, head.path, caller, key), options

    def outcome_of(self, response: Response) -> Response:
        """Returns the part of a response that is stored. :raises NotStored:"""
        if not self.stores(response.status):
            raise NotStored(response.status)
        return Response(response.status, self.replayable(response.headers), response.body)

    def replayable(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Returns the headers that a replay has: any program with a key of the tenant may have written the
        record.
        """
        return {name: value for name, value in headers.items() if name in self.replayed}


class ResponseCodec:
    """Stores the body's bytes, its content type as the result's, and the status and other headers as
    metadata.
    """

    def encode(self, value: Any) -> Encoded:
        """Returns the stored form of a Response. :raises ResultTooLargeError:"""
        if value.body is None:
            raise _too_large("The response", MAX_RESULT_BYTES)
        content_type = value.headers.get(_CONTENT_TYPE, "")
        if len(content_type.encode()) > _MAX_CONTENT_TYPE_BYTES:
            raise _too_large(_CONTENT_TYPE, _MAX_CONTENT_TYPE_BYTES)
        metadata = {_STATUS: str(value.status)}
        for name, text in value.headers.items():
            if name == _CONTENT_TYPE:
                continue
            if len(text.encode()) > _MAX_METADATA_VALUE_BYTES:
                raise _too_large(name, _MAX_METADATA_VALUE_BYTES)
            if len(_HEADER + name) > _MAX_METADATA_NAME_BYTES:
                raise _too_large(_HEADER + name, _MAX_METADATA_NAME_BYTES)
            metadata[_HEADER + name] = text
        if len(metadata) > _MAX_METADATA_ENTRIES:
            raise _too_large("The number of headers to store", _MAX_METADATA_ENTRIES)
        if len(json.dumps(metadata, ensure_ascii=False).encode()) > _MAX_METADATA_BYTES:
            raise _too_large("The headers to store, together,", _MAX_METADATA_BYTES)
        return Encoded(value.body, content_type, metadata)

    def decode(self, stored: Encoded) -> Response:
        """Returns the Response of a stored form. :raises ValueError: for a result that is not a response."""
        status = stored.metadata.get(_STATUS, "")
        if not (status.isdecimal() and 200 <= int(status) <= 599):
            raise ValueError("the stored result is not an HTTP response")
        headers = {_CONTENT_TYPE: stored.content_type} if stored.content_type else {}
        for name, text in stored.metadata.items():
            if name.startswith(_HEADER):
                headers[name.removeprefix(_HEADER)] = text
        return Response(int(status), headers, stored.payload)


def _too_large(what: str, limit: int) -> ResultTooLargeError:
    return ResultTooLargeError(f"{what} is larger than {limit}; no policy takes more.")
