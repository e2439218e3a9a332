"""What the guards of HTTP frameworks have in common (draft-ietf-httpapi-idempotency-key-header-07).

Keys, fingerprints of bodies and stored responses are those of the guards of other languages, so that two
services behind one route may be in different languages.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ._catalogue import ResultTooLargeError
from ._claims import is_within
from ._codec import Encoded
from ._errors import OncewardError, OutcomeUnknownError, ResultUnavailableError
from ._fingerprint import fingerprint_of
from ._http_profiles import TYPE_PREFIX, HttpProfile, Problem, Wire, problem_named
from ._keys import join_key
from ._keytime import key_time
from ._limits import MAX_RESULT_BYTES
from ._mapping import is_retryable
from ._options import OnceOptions, RunOptions
from ._texts import refused_field

KEY_HEADER = "idempotency-key"
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

#: The URL is a part of a header's value: it must not end the link.
_LINK = re.compile(r"https?://[\x21-\x3b\x3d\x3f-\x7e]+")
_PRINTABLE = re.compile(r"[\x20-\x7e]+")
#: The link (RFC 6903, 6) that marks a response in every format as the refusal of a guard.
_MARK = re.compile(f'<{TYPE_PREFIX}([a-z-]+)>; rel="type"')


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


AMBIGUOUS = problem_named("ambiguous")
KEY_MISSING = problem_named("key-missing")
KEY_MALFORMED = problem_named("key-malformed")
REQUEST_UNREADABLE = problem_named("request-unreadable")
#: Where the framework limits bodies, as in TypeScript, this one is the framework's.
REQUEST_TOO_LARGE = Problem("request-too-large", 413, "The request is too large.", "Send a smaller body.")
_PROBLEMS = {
    "AMBIGUOUS": "ambiguous",
    "FINGERPRINT_MISMATCH": "key-reused",
    "KEY_TOO_OLD": "key-too-old",
    "IN_PROGRESS": "in-progress",
    "CLOSED": "unavailable",
}


def problem_of(error: OncewardError) -> Problem | None:
    """Returns the problem for an error under which the handler was not called.

    None for an error that does not concern the API's client (a bad credential, a bug) but its owner.
    """
    if isinstance(error, ResultUnavailableError):
        return problem_named("result-gone")
    if error.reason == "INVALID_REQUEST":
        is_about_time = any(each.field == "key_created_at" for each in error.violations)
        return problem_named("key-without-time") if is_about_time else None
    name = _PROBLEMS.get(error.reason, "unavailable" if is_retryable(error) else None)
    if name is None:
        return None
    seconds = max(1, math.ceil((error.retry_delay_ms or 0) / 1000))
    return problem_named(name, seconds if name in ("in-progress", "unavailable") else None)


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

    @property
    def key_header(self) -> str | None:
        """The header's whole value; None if the request has none."""
        return ",".join(self.keys) if self.keys else None


class HttpPolicy:
    """The options of a guard, checked. See the framework's middleware."""

    def __init__(
        self,
        *,
        namespace: str,
        profile: HttpProfile = "onceward",
        methods: Sequence[str] | None = None,
        key_optional: bool | None = None,
        max_body_bytes: int = DEFAULT_MAX_BODY_BYTES,
        stores: Callable[[int], bool] = is_outcome,
        replay_headers: Sequence[str] = (),
        documentation: str | None = None,
        options: OnceOptions,
    ) -> None:
        """:raises InvalidRequestError: for options that would guard nothing, or replay what must not be."""
        wire = Wire(profile)
        methods = wire.methods if methods is None else methods
        if not methods:
            raise refused_field("methods", "must name a method; without one, nothing is guarded")
        for method in methods:
            if method not in _KNOWN_METHODS:
                raise refused_field("methods", f"must name methods of HTTP in upper case, names {method!r}")
        for name in replay_headers:
            if name.lower() in _NEVER_REPLAYED:
                raise refused_field("replay_headers", f"must not name {name.lower()}")
        if documentation is not None and not _LINK.fullmatch(documentation):
            raise refused_field("documentation", "must be an absolute URL of http or https")
        self.namespace = namespace
        self.methods = frozenset(methods)
        self.key_optional = not wire.required if key_optional is None else key_optional
        self.max_body_bytes = max_body_bytes
        self._wire = wire
        self._documentation = documentation
        self._stores = stores
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
        header = head.key_header
        if header is None:
            return None if self.key_optional else KEY_MISSING
        key = self._wire.parse_key(header)
        return KEY_MALFORMED if key is None else key

    def operation_of(self, head: RequestHead, key: str, caller: str, body: bytes) -> tuple[str, RunOptions]:
        """Returns the operation's key and options.

        :raises ValueError: for a caller that is empty.
        :raises InvalidRequestError: for a request that has no identity.
        """
        if not isinstance(caller, str) or caller == "":
            raise ValueError("caller must return a text that is not empty")
        identity = self._wire.identity_of(head.method, head.path, head.query, body)
        options: RunOptions = {
            **self._options,
            "fingerprint": fingerprint_of(identity),
            "key_created_at": key_time(key),
        }
        return join_key(*self._wire.endpoint_of(head.method, head.path), caller, key), options

    def outcome_of(self, response: Response) -> Response:
        """Returns the part of a response that is stored.

        What another guard refuses, within this one or in a service whose response the handler passes on, is
        not this operation's outcome.

        :raises OutcomeUnknownError: if the other guard does not know whether the effect happened.
        :raises NotStored:
        """
        refusal = _MARK.search(response.headers.get("link", ""))
        if refusal is not None and refusal[1] == AMBIGUOUS.name:
            raise OutcomeUnknownError("another guard does not know whether the request had its effect")
        is_dropped = self._wire.drops_server_errors and response.status >= 500
        if refusal is not None or is_dropped or not self._stores(response.status):
            raise NotStored(response.status)
        return Response(response.status, self.replayable(response.headers), response.body)

    def own_headers(self, head: RequestHead) -> dict[str, str]:
        """Returns the headers that the guard adds to each response to a request with a key."""
        header = head.key_header
        is_echoed = self._wire.echoes and header is not None and _PRINTABLE.fullmatch(header)
        return {KEY_HEADER: header} if is_echoed and header is not None else {}

    def refusal_of(self, head: RequestHead, problem: Problem) -> Response:
        """Returns a refusal in the profile's format."""
        status, content_type, body = self._wire.write(problem)
        headers = {_CONTENT_TYPE: content_type, **self.own_headers(head)}
        headers["link"] = f'<{problem.type}>; rel="type"'
        if self._documentation is not None:
            headers["link"] += f', <{self._documentation}>; rel="describedby"'
        if problem.retry_after_s is not None:
            headers["retry-after"] = str(problem.retry_after_s)
        return Response(status, headers, body)

    def replay_of(self, head: RequestHead, stored: Response) -> Response:
        """Returns the response to a repeat."""
        mark = {} if self._wire.replayed is None else {self._wire.replayed: "true"}
        headers = {**self.replayable(stored.headers), **mark, **self.own_headers(head)}
        return Response(stored.status, headers, stored.body)

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
