"""The protocols that clients of HTTP expect: their keys, statuses, bodies and headers.

The table is generated from the TypeScript client's. Its guide "Profiles of HTTP" names the sources.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ._keys import parse_idempotency_key
from ._limits import MAX_KEY_BYTES
from ._texts import refused_field

#: ``onceward``: the draft, with keys also without quotes, a mark of replays, and problem+json. ``ietf``:
#: draft-ietf-httpapi-idempotency-key-header-07 alone. ``stripe``: as Stripe's API. ``acp``: the Agentic
#: Commerce Protocol, agentic checkout 6. ``ucp``: the Universal Commerce Protocol, checkout over REST.
HttpProfile = Literal["onceward", "ietf", "stripe", "acp", "ucp"]

_TABLE: dict[str, Any] = json.loads(
    importlib.resources.files("onceward").joinpath("http_profiles.json").read_text("utf-8")
)
#: What the type of every problem begins with.
TYPE_PREFIX = "urn:onceward:problem:"
_OPAQUE_KEY = re.compile(rf"[\x20-\x7e]{{1,{MAX_KEY_BYTES}}}")


@dataclass(frozen=True)
class Problem:
    """A refusal of the guard, without a call of the handler (RFC 9457)."""

    #: Such as "key-missing".
    name: str
    status: int
    title: str
    #: What the client can do about it.
    detail: str
    #: The header Retry-After, in seconds; None for none.
    retry_after_s: int | None = None

    @property
    def type(self) -> str:
        """A URI that names the problem."""
        return f"{TYPE_PREFIX}{self.name}"


def problem_named(name: str, retry_after_s: int | None = None) -> Problem:
    """Returns a problem of the table, with the status of the profile ``onceward``."""
    return Problem(name, **_TABLE["problems"][name], retry_after_s=retry_after_s)


def _structured_key(header: str) -> str | None:
    return parse_idempotency_key(header) if header.startswith('"') else None


def _opaque_key(header: str) -> str | None:
    return header if _OPAQUE_KEY.fullmatch(header) else None


_KEY_FORMS: Mapping[str, Callable[[str], str | None]] = {
    "string or bare": parse_idempotency_key,
    "string": _structured_key,
    "opaque": _opaque_key,
}

# A middleware runs before the routing of its framework: the path stands for the route.
_SCOPES: Mapping[str, Callable[[str, str], tuple[str, ...]]] = {
    "route": lambda method, path: (method, path),
    "path": lambda method, path: (method, path),
    "all endpoints": lambda method, path: (),
}


def _stripe(problem: Problem, code: str) -> dict[str, Any]:
    if code == "idempotency_error":
        return {"error": {"type": code, "message": problem.detail}}
    kind = "invalid_request_error" if problem.status < 500 else "api_error"
    return {"error": {"type": kind, "code": code, "message": problem.detail}}


def _acp(problem: Problem, code: str) -> dict[str, Any]:
    kind = "invalid_request" if problem.status < 500 else "service_unavailable"
    return {"type": kind, "code": code, "message": problem.detail}


_FORMATS: Mapping[str, Callable[[Problem, str], dict[str, Any]]] = {
    "RFC 9457": lambda problem, _: {
        "type": problem.type,
        "title": problem.title,
        "status": problem.status,
        "detail": problem.detail,
    },
    "Stripe": _stripe,
    "ACP": _acp,
    "UCP": lambda problem, code: {"code": code, "content": problem.detail},
}


class Wire:
    """What a profile prescribes. :raises InvalidRequestError: for a profile that does not exist."""

    def __init__(self, profile: str) -> None:
        if profile not in _TABLE["profiles"]:
            known = ", ".join(_TABLE["profiles"])
            raise refused_field("profile", f"must be one of {known}, is {profile!r}")
        row = _TABLE["profiles"][profile]
        #: The methods that are guarded if the options name none.
        self.methods: tuple[str, ...] = tuple(row["methods"])
        #: Whether a request without a key is refused if the options do not say.
        self.required: bool = row["required"]
        #: Returns the key in a header's value; None if it is malformed.
        self.parse_key = _KEY_FORMS[row["key"]]
        #: Whether keys count for all endpoints.
        self.is_for_all_endpoints: bool = row["scope"] == "all endpoints"
        #: Returns the parts of an operation's key that name its endpoint.
        self.endpoint_of = _SCOPES[row["scope"]]
        #: The header, with the value "true", that marks a replay; None for none.
        self.replayed: str | None = row["replayed"]
        #: Whether responses have the request's Idempotency-Key.
        self.echoes: bool = row["echoes"]
        #: Whether 5xx are not stored even if the option ``stores`` says so.
        self.drops_server_errors: bool = row["dropsServerErrors"]
        self._compares_json = row["compares"] == "JSON body"
        self._format = row["format"]
        self._statuses: Mapping[str, int] = row["statuses"]
        self._codes: Mapping[str, str] = row["codes"]

    def identity_of(self, method: str, path: str, query: str, content_type: str, body: bytes) -> object:
        """Returns what must be the same in each attempt, in every language."""
        content = _content_of(body, content_type, self._compares_json)
        return content if self._compares_json else {"method": method, "path": path, "query": query, **content}

    def write(self, problem: Problem) -> tuple[int, str, bytes]:
        """Returns the status, the content type and the body of a refusal."""
        status = self._statuses.get(problem.name, problem.status)
        stated = Problem(problem.name, status, problem.title, problem.detail)
        code = self._codes.get(problem.name, f"idempotency_{problem.name.replace('-', '_')}")
        kind = "application/problem+json" if self._format == "RFC 9457" else "application/json"
        body = json.dumps(_FORMATS[self._format](stated, code), ensure_ascii=False, separators=(",", ":"))
        return status, kind, body.encode()


_JSON_TYPE = re.compile(r"\s*application/([^\s;]+\+)?json\s*(;|$)", re.IGNORECASE)
_MULTIPART = re.compile(r"\s*multipart/.*;\s*boundary=(?:\"([^\"]+)\"|([^\s;\"]+))", re.IGNORECASE)
_LINE_END = re.compile(rb"[ \t]*\r\n")


def _content_of(body: bytes, content_type: str, reads_as_json: bool) -> dict[str, Any]:
    """Returns a body as its JSON value, its parts or its bytes. Nothing counts as null.

    :param reads_as_json: whether a body of any type is read as JSON if it is JSON.
    """
    if body == b"":
        return {"json": None}
    if reads_as_json or _JSON_TYPE.match(content_type):
        try:
            text = body.decode("utf-8-sig")
            return {"json": json.loads(text, parse_constant=_refuse_constant, parse_int=_number)}
        except (ValueError, RecursionError):
            return {"bytes": _digest(body)}
    parts = _parts_of(body, content_type)
    return {"bytes": _digest(body)} if parts is None else {"parts": parts}


def _parts_of(body: bytes, content_type: str) -> list[str] | None:
    """Returns the hashes of a multipart body's parts (RFC 2046, 5.1.1), without the boundary, which clients
    choose for each attempt; None for another body, and for one that breaks off.
    """
    declared = _MULTIPART.match(content_type)
    if declared is None:
        return None
    # The first delimiter may begin the body, without the line break that belongs to every other one.
    body = b"\r\n" + body
    delimiter = b"\r\n--" + (declared[1] or declared[2]).encode("latin-1", "replace")
    parts: list[str] = []
    at = body.find(delimiter)
    while at != -1:
        at += len(delimiter)
        if body.startswith(b"--", at):
            return parts
        line_end = _LINE_END.match(body, at)
        if line_end is None:
            return None
        at = body.find(delimiter, line_end.end())
        if at != -1:
            parts.append(_digest(body[line_end.end() : at]))
    return None


def _number(digits: str) -> int | float:
    """Returns a whole number as other languages read it: a double, if it is beyond the exact ones."""
    return int(digits) if len(digits) < 16 else float(digits)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _digest(body: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(body).digest()).decode().rstrip("=")
