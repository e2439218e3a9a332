"""What the guards of HTTP frameworks have in common (draft-ietf-httpapi-idempotency-key-header-07).

Keys, fingerprints of bodies and stored responses are those of the guards of other languages, so that two
services behind one route may be in different languages.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ._claims import BaseClaim, is_within
from ._codec import MARK, Encoded
from ._content_coding import in_accepted_coding
from ._errors import NoEffectError, OncewardError, OutcomeUnknownError
from ._fingerprint import fingerprint_of
from ._finish import _own_word
from ._http_profiles import TYPE_PREFIX, HttpProfile, Problem, Wire, problem_named
from ._keys import join_key
from ._keytime import key_time
from ._limits import (
    MAX_CONTENT_TYPE_BYTES,
    MAX_KEY_BYTES,
    MAX_METADATA_BYTES,
    MAX_METADATA_ENTRIES,
    MAX_METADATA_NAME_BYTES,
    MAX_METADATA_VALUE_BYTES,
    MAX_RESULT_BYTES,
)
from ._mapping import class_of
from ._options import GuardOptions, RunOptions
from ._texts import raise_if_any, refused_field, text_violations
from .v1 import facts_pb2

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

_STATUS = "http-status"
_HEADER = "http-header-"
_CONTENT_TYPE = "content-type"

#: The URL is a part of a header's value: it must not end the link.
_LINK = re.compile(r"https?://[\x21-\x3b\x3d\x3f-\x7e]+")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9a-z]{1,255}")
_PRINTABLE = re.compile(r"[\x20-\x7e]+")
#: The link (RFC 6903, 6) that marks a response in every format as the refusal of a guard.
_MARK = re.compile(f'<{TYPE_PREFIX}([a-z-]+)>; rel="type"')


@dataclass(frozen=True)
class GuardedResponse:
    """A whole response. Names of headers are in lower case. ``body`` is None if it was too large to be
    kept.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes | None

    @property
    def json(self) -> Any:
        """The value of a JSON body; None for another body."""
        try:
            return json.loads(self.body or b"")
        except (ValueError, RecursionError):
            return None


#: Whether a response is stored, the claim is released, or the outcome is unknown.
Stored = Literal[True, False, "unknown"]


def is_outcome(response: GuardedResponse) -> Stored:
    """Returns whether a response says something about the operation: below 500, but for 401, 408, 425 and
    429.

    "unknown" for 502, 504, and 503 without Retry-After: a time limit or a gateway may answer so while the
    handler still runs, and load shedding sends Retry-After.
    """
    status = response.status
    if status in (502, 504) or (status == 503 and "retry-after" not in response.headers):
        return "unknown"
    return status < 500 and status not in _OF_THE_ATTEMPT


class NotStored(NoEffectError):
    """A response that is not the operation's outcome: the claim is released, and the next attempt runs."""


class ResponseUnknown(OutcomeUnknownError):
    """A response after which it is unknown whether the request had its effect. The client gets it."""


def describe_release(error: BaseException) -> str:
    """Returns the reason of a release: a status, or the name of an error's class."""
    return str(error) if isinstance(error, NotStored) else type(error).__name__


def is_declared_unknown(claim: BaseClaim, error: BaseException | None) -> bool:
    """Returns whether the handler said that its outcome is unknown: its client gets the problem."""
    if claim._held.marked is not None:
        return True
    word = None if error is None else _own_word(error, claim._held.handled_before)
    return isinstance(word, OutcomeUnknownError) and not isinstance(word, ResponseUnknown)


AMBIGUOUS = problem_named("ambiguous")
KEY_MISSING = problem_named("key-missing")
KEY_MALFORMED = problem_named("key-malformed")
REQUEST_UNREADABLE = problem_named("request-unreadable")
#: Where the framework limits bodies, as in TypeScript, this one is the framework's.
REQUEST_TOO_LARGE = Problem("request-too-large", 413, "The request is too large.", "Send a smaller body.")
_PROBLEMS = {
    facts_pb2.REASON_CLASS_RETRY: "unavailable",
    facts_pb2.REASON_CLASS_WAIT: "in-progress",
    facts_pb2.REASON_CLASS_ASK: "ambiguous",
    facts_pb2.REASON_CLASS_GONE: "result-gone",
    facts_pb2.REASON_CLASS_REUSED: "key-reused",
    facts_pb2.REASON_CLASS_TOO_OLD: "key-too-old",
}


def problem_of(error: OncewardError) -> Problem | None:
    """Returns the problem for an error under which the handler was not called.

    None for an error that does not concern the API's client (a bad credential, a bug) but its owner.
    """
    if error.reason == "INVALID_REQUEST":
        is_about_time = any(each.field == "key_created_at" for each in error.violations)
        return problem_named("key-without-time") if is_about_time else None
    name = _PROBLEMS.get(class_of(error))
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
    content_type: str
    #: The values of the key's header.
    keys: Sequence[str]
    #: None if the request has no such header.
    accept_encoding: str | None

    @property
    def key(self) -> str | None:
        """The header's whole value; None if the request has none."""
        return ",".join(self.keys) if self.keys else None


class HttpOptions(GuardOptions, total=False):
    """How the requests of an API are guarded. Each is optional, as those of ``run``.

    ``wait_ms`` is how long a request waits for another one with its key before it is answered with 409;
    default: 0. With ``on_error="unknown"``, no response of 500 or above releases the claim, either.
    ``resolve`` returns ``Happened`` of a GuardedResponse, to be sent and stored.
    """

    #: The protocol that clients expect: ``onceward``, ``ietf``, ``stripe``, ``acp`` or ``ucp``. A change of
    #: it begins new operations.
    profile: HttpProfile
    #: Those that are guarded; requests with others pass. Default: POST and PATCH, or the profile's.
    methods: Sequence[str]
    #: The paths that are guarded, or a function that returns whether one is; requests to others pass, such as
    #: those of a login. Default: all.
    paths: Collection[str] | Callable[[str], bool]
    #: The operation's name, which replaces method and path in its key: services in several languages behind
    #: one route, which write it differently, then have the same operations. Not for ``stripe``, whose keys
    #: count for all endpoints.
    operation: str
    #: The header of the key, for the profile ``onceward`` alone. Default: Idempotency-Key.
    header: str
    #: Whether a request without a key passes, unguarded. Default: as the profile says; otherwise it is
    #: answered with 400.
    key_optional: bool | None
    #: Of a guarded request, which is read whole for the fingerprint; a larger one gets 413. Default: 1 MiB.
    max_body_bytes: int
    #: Whether a response is the operation's outcome, to be replayed; otherwise the claim is released, and the
    #: next attempt runs; "unknown" leaves the claim to the namespace's policy. Default: below 500, but for
    #: 401, 408, 425 and 429; "unknown" for 502, 504, and 503 without Retry-After, which a time limit sends
    #: while the handler still runs. ``acp`` never stores a 5xx. The refusal of another guard within the
    #: application, or of a service whose response it passes on with its header Link, is never stored.
    #: ``mark``: of a response below 400, only that it happened is kept, such as of a secret that is shown
    #: once; duplicates are answered with 410, ``result-gone``.
    stores: Callable[[GuardedResponse], Stored] | Literal["mark"]
    #: Headers to replay beside those that describe the body, Location, Link, ETag, Last-Modified,
    #: Cache-Control and Vary.
    replay_headers: Sequence[str]
    #: The URL of the API's page about keys, to which refusals link. Default: no link.
    documentation: str | None


class HttpPolicy:
    """The options of a guard, checked."""

    def __init__(self, namespace: str, options: HttpOptions) -> None:
        """:raises InvalidRequestError: for options that would guard nothing, or replay what must not be."""
        for name in options:
            if name not in HttpOptions.__annotations__:
                raise refused_field(name, "is not an option of this guard")
        wire = Wire(options.get("profile", "onceward"))
        methods = wire.methods if (given := options.get("methods")) is None else given
        if not methods:
            raise refused_field("methods", "must name a method; without one, nothing is guarded")
        for method in methods:
            if method not in _KNOWN_METHODS:
                raise refused_field("methods", f"must name methods of HTTP in upper case, names {method!r}")
        replay_headers = options.get("replay_headers", ())
        for name in replay_headers:
            if name.lower() in _NEVER_REPLAYED:
                raise refused_field("replay_headers", f"must not name {name.lower()}")
        documentation = options.get("documentation")
        if documentation is not None and not _LINK.fullmatch(documentation):
            raise refused_field("documentation", "must be an absolute URL of http or https")
        paths = options.get("paths", lambda _: True)
        if isinstance(paths, str) or paths == []:
            raise refused_field("paths", "must be paths, at least one, or a function")
        stores = options.get("stores", is_outcome)
        if stores != "mark" and not callable(stores):
            raise refused_field("stores", 'must be a function or "mark"')
        key_optional = options.get("key_optional")
        operation = options.get("operation")
        if operation is not None:
            raise_if_any(text_violations("operation", operation, 1, MAX_KEY_BYTES))
            if wire.is_for_all_endpoints:
                raise refused_field(
                    "operation", "must not be set: the profile's keys count for all endpoints"
                )
        self._header = options.get("header", "Idempotency-Key")
        #: In lower case.
        self.key_header = self._header.lower()
        if not _TOKEN.fullmatch(self.key_header):
            raise refused_field("header", "must be the name of a header, 1-255 characters")
        if self.key_header != KEY_HEADER and options.get("profile", "onceward") != "onceward":
            raise refused_field("header", "must be Idempotency-Key: the profile names it")
        self.namespace = namespace
        self.key_optional = not wire.required if key_optional is None else key_optional
        self.max_body_bytes = options.get("max_body_bytes", DEFAULT_MAX_BODY_BYTES)
        self._methods = frozenset(methods)
        self._guards_path = paths if callable(paths) else frozenset(paths).__contains__
        self._operation = operation
        self._wire = wire
        self._documentation = documentation
        self._stores = is_outcome if stores == "mark" else stores
        self._replayed = _REPLAY_HEADERS | {name.lower() for name in replay_headers}
        wait_ms = options.get("wait_ms") or 0
        of_run: Any = {name: each for name, each in options.items() if name in GuardOptions.__annotations__}
        self._options: RunOptions = of_run | {
            "wait_ms": wait_ms,
            "on_in_progress": "wait" if wait_ms > 0 else "throw",
            "codec": MarkCodec() if stores == "mark" else ResponseCodec(),
            "classify_error": lambda _: "release",
            "describe_error": describe_release,
        }

    def guards(self, method: str, path: str) -> bool:
        """Returns whether such requests are guarded here, and not already by an outer guard."""
        return method in self._methods and self._guards_path(path) and not is_within(self.namespace)

    def key_of(self, head: RequestHead) -> str | Problem | None:
        """Returns the request's key, or the problem with it; None for a request that passes unguarded."""
        header = head.key
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
        identity = self._wire.identity_of(head.method, head.path, head.query, head.content_type, body)
        options: RunOptions = {
            **self._options,
            "fingerprint": fingerprint_of(identity),
            "key_created_at": key_time(key),
        }
        route = self._wire.endpoint_of(head.method, head.path)
        named = route if self._operation is None else (self._operation,)
        return join_key(*named, caller, key), options

    def outcome_of(self, claim: BaseClaim, response: GuardedResponse) -> GuardedResponse:
        """Returns the part of a response that is stored.

        What another guard refuses, within this one or in a service whose response the handler passes on, is
        not this operation's outcome.

        :raises ResponseUnknown: if it is unknown whether the effect happened.
        :raises NotStored:
        """
        refusal = _MARK.search(response.headers.get("link", ""))
        if refusal is not None and refusal[1] == AMBIGUOUS.name:
            raise ResponseUnknown("another guard does not know whether the request had its effect")
        try:
            verdict = False if refusal is not None else self._stores(response)
        except Exception as error:
            # The effect has happened.
            raise ResponseUnknown("the option stores failed") from error
        if verdict is True and self._wire.drops_server_errors and response.status >= 500:
            verdict = is_outcome(response)
        if not verdict and response.status >= 500 and claim._held.operation.on_error == "unknown":
            verdict = "unknown"
        if verdict == "unknown":
            raise ResponseUnknown(f"HTTP {response.status}")
        if not verdict:
            raise NotStored(f"HTTP {response.status}")
        return GuardedResponse(response.status, self.replayable(response.headers), response.body)

    def own_headers(self, head: RequestHead) -> dict[str, str]:
        """Returns the headers that the guard adds to each response to a request with a key."""
        header = head.key
        is_echoed = self._wire.echoes and header is not None and _PRINTABLE.fullmatch(header)
        return {self.key_header: header} if is_echoed and header is not None else {}

    def refusal_of(self, head: RequestHead, problem: Problem) -> GuardedResponse:
        """Returns a refusal in the profile's format."""
        title, detail = (
            text.replace("Idempotency-Key", self._header) for text in (problem.title, problem.detail)
        )
        status, content_type, body = self._wire.write(replace(problem, title=title, detail=detail))
        headers = {_CONTENT_TYPE: content_type, **self.own_headers(head)}
        headers["link"] = f'<{problem.type}>; rel="type"'
        if self._documentation is not None:
            headers["link"] += f', <{self._documentation}>; rel="describedby"'
        if problem.retry_after_s is not None:
            headers["retry-after"] = str(problem.retry_after_s)
        return GuardedResponse(status, headers, body)

    def replay_of(self, head: RequestHead, stored: GuardedResponse) -> GuardedResponse:
        """Returns the response to a repeat."""
        mark = {} if self._wire.replayed is None else {self._wire.replayed: "true"}
        coded, body = in_accepted_coding(stored.headers, stored.body, head.accept_encoding)
        return GuardedResponse(
            stored.status, {**self.replayable(coded), **mark, **self.own_headers(head)}, body
        )

    def replayable(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Returns the headers that a replay has: any program with a key of the tenant may have written the
        record.
        """
        return {name: value for name, value in headers.items() if name in self._replayed}


class ResponseCodec:
    """Stores the body's bytes, its content type as the result's, and the status and other headers as
    metadata.
    """

    def encode(self, value: Any) -> Encoded:
        """Returns the stored form of a response. :raises OncewardError: RESULT_TOO_LARGE."""
        if value.body is None:
            raise _too_large("The response", MAX_RESULT_BYTES)
        content_type = value.headers.get(_CONTENT_TYPE, "")
        if len(content_type.encode()) > MAX_CONTENT_TYPE_BYTES:
            raise _too_large(_CONTENT_TYPE, MAX_CONTENT_TYPE_BYTES)
        metadata = {_STATUS: str(value.status)}
        for name, text in value.headers.items():
            if name == _CONTENT_TYPE:
                continue
            if len(text.encode()) > MAX_METADATA_VALUE_BYTES:
                raise _too_large(name, MAX_METADATA_VALUE_BYTES)
            if len(_HEADER + name) > MAX_METADATA_NAME_BYTES:
                raise _too_large(_HEADER + name, MAX_METADATA_NAME_BYTES)
            metadata[_HEADER + name] = text
        if len(metadata) > MAX_METADATA_ENTRIES:
            raise _too_large("The number of headers to store", MAX_METADATA_ENTRIES)
        if len(json.dumps(metadata, ensure_ascii=False).encode()) > MAX_METADATA_BYTES:
            raise _too_large("The headers to store, together,", MAX_METADATA_BYTES)
        return Encoded(value.body, content_type, metadata)

    def decode(self, stored: Encoded) -> GuardedResponse:
        """Returns the response of a stored form. :raises ValueError: for a result that is not a response."""
        status = stored.metadata.get(_STATUS, "")
        if not (status.isdecimal() and 200 <= int(status) <= 599):
            raise ValueError("the stored result is not an HTTP response")
        headers = {_CONTENT_TYPE: stored.content_type} if stored.content_type else {}
        for name, text in stored.metadata.items():
            if name.startswith(_HEADER):
                headers[name.removeprefix(_HEADER)] = text
        return GuardedResponse(int(status), headers, stored.payload)


class MarkCodec(ResponseCodec):
    """Stores of a response below 400 only that it was sent. A refusal has no secret, and was not carried
    out.
    """

    def encode(self, value: Any) -> Encoded:
        """Returns the stored form of a response. :raises OncewardError: RESULT_TOO_LARGE."""
        return Encoded(b"", "", MARK) if value.status < 400 else super().encode(value)


def _too_large(what: str, limit: int) -> OncewardError:
    return OncewardError("RESULT_TOO_LARGE", f"{what} is larger than {limit}; no policy takes more.")
