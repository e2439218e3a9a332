"""Guards Django views by the header Idempotency-Key: one effect and one answer for all requests with one key.

In a module of your project::

    def idempotency(get_response):
        return OncewardMiddleware(
            get_response,
            onceward=lambda: Onceward(ADDRESS, api_key=API_KEY),
            namespace="charges",
            caller=lambda request: str(request.user.pk),
        )

and its path in the setting ``MIDDLEWARE``, below the middleware that authenticates. Within the view,
``onceward.current_claim()`` has the claim, for derived keys.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.encoding import escape_uri_path
from typing_extensions import Unpack

from ._catalogue import InvalidRequestError
from ._claims import current_claim, is_within
from ._client import Claim, Onceward
from ._errors import OncewardError, OutcomeUnknownError
from ._http import (
    AMBIGUOUS,
    REQUEST_TOO_LARGE,
    REQUEST_UNREADABLE,
    GuardedResponse,
    HttpOptions,
    HttpPolicy,
    RequestHead,
    ResponseUnknown,
    is_declared_unknown,
    problem_of,
)
from ._http_profiles import HttpProfile, Problem
from ._limits import MAX_RESULT_BYTES
from ._per_process import per_process
from ._printable import printable

__all__ = ["GuardedResponse", "HttpOptions", "HttpProfile", "OncewardMiddleware"]

_log = logging.getLogger("onceward")
#: The attribute of a request with the error of its view, which Django answers itself.
_ERROR = "_onceward_error"


class OncewardMiddleware:
    """Synchronous middleware. The first request runs the view; later ones with its key get its response.

    What it stores, replays and refuses, and its parameters, are those of
    ``onceward.starlette.OncewardMiddleware``. A response is held until it is stored, or until that has failed
    for the length of its lease. A streaming response is read before it is sent; one above 1 MiB is sent, and
    not stored, as one of an asynchronous iterator: repeats are answered with 410. An error must be that of a
    view: of other middleware the guard sees Django's response alone.

    :param onceward: a client; or a function that returns one, which is called once in each process: servers
        that fork need it.
    :raises InvalidRequestError: for options that would guard nothing, or replay what must not be.
    """

    def __init__(
        self,
        get_response: Callable[[HttpRequest], HttpResponseBase],
        *,
        onceward: Onceward | Callable[[], Onceward],
        namespace: str,
        caller: Callable[[HttpRequest], str],
        **options: Unpack[HttpOptions],
    ) -> None:
        self._get_response = get_response
        self._client = per_process(onceward)
        self._caller = caller
        self._policy = HttpPolicy(namespace, options)

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not self._policy.guards(request.method or "", request.path):
            return self._get_response(request)
        key_header = request.headers.get(self._policy.key_header)
        query = request.META.get("QUERY_STRING", "")
        head = RequestHead(
            request.method or "",
            _path_of(request),
            f"?{query}" if query else "",
            request.headers.get("Content-Type", ""),
            [] if key_header is None else [key_header],
            request.headers.get("Accept-Encoding"),
        )
        key = self._policy.key_of(head)
        if key is None:
            return self._get_response(request)
        if isinstance(key, Problem):
            return self._refusal(head, key)
        answer = self._guard(request, head, key)
        for name, value in self._policy.own_headers(head).items():
            answer[name] = value
        return answer

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Notes the error of a view, for which Django calls this: the guard would see its response alone."""
        if not is_within(self._policy.namespace):
            return None
        setattr(request, _ERROR, exception)
        if not is_declared_unknown(current_claim(), exception):
            return None
        # The guard answers; without a response here, Django would log the error and answer itself.
        return HttpResponse(status=AMBIGUOUS.status)

    def _guard(self, request: HttpRequest, head: RequestHead, key: str) -> HttpResponseBase:
        try:
            if int(request.META.get("CONTENT_LENGTH") or 0) > self._policy.max_body_bytes:
                return self._refusal(head, REQUEST_TOO_LARGE)
            operation, options = self._policy.operation_of(head, key, self._caller(request), request.body)
        except RequestDataTooBig:
            return self._refusal(head, REQUEST_TOO_LARGE)
        except InvalidRequestError:
            return self._refusal(head, REQUEST_UNREADABLE)
        claims: list[Claim] = []
        handled: list[HttpResponseBase] = []

        def handle(claim: Claim) -> GuardedResponse:
            claims.append(claim)
            response = self._get_response(request)
            handled.append(response)
            error = getattr(request, _ERROR, None)
            # Of an error that Django answers as one of the client, such as Http404, the response counts.
            if error is not None and (response.status_code >= 500 or is_declared_unknown(claim, error)):
                raise error
            return self._policy.outcome_of(claim, _whole(response))

        try:
            replayed = self._client().run(self._policy.namespace, operation, handle, **options)
        except Exception as error:
            if claims and is_declared_unknown(claims[0], error):
                _log.warning("It is unknown whether a request had its effect: %s", printable(error))
                return self._refusal(head, AMBIGUOUS)
            if handled:
                # This client gets the view's response even if it could not be stored for repeats.
                if isinstance(error, (OncewardError, ResponseUnknown)):
                    _log.warning("A response could not be stored for repeats: %s", printable(error))
                return handled[0]
            problem = problem_of(error) if isinstance(error, OncewardError) and not claims else None
            if problem is None:
                raise
            return self._refusal(head, problem)
        if handled:
            return handled[0]
        return _django_response(self._policy.replay_of(head, replayed))

    def _refusal(self, head: RequestHead, problem: Problem) -> HttpResponse:
        return _django_response(self._policy.refusal_of(head, problem))


def _path_of(request: HttpRequest) -> str:
    """Returns the path as it was sent, if the server says so, as gunicorn, uWSGI and those of ASGI do."""
    raw = getattr(request, "scope", {}).get("raw_path", b"").decode("latin-1")
    sent = raw or request.META.get("RAW_URI") or request.META.get("REQUEST_URI") or ""
    return sent.partition("?")[0] if sent.startswith("/") else escape_uri_path(request.path)


def _whole(response: HttpResponseBase) -> GuardedResponse:
    """Returns a response with its body, if that can be stored.

    :raises OutcomeUnknownError: for one that is cut short.
    """
    headers = {name.lower(): value for name, value in response.items()}
    body = response.content if isinstance(response, HttpResponse) else None
    if isinstance(response, StreamingHttpResponse) and not response.is_async:
        body = _first_bytes(response)
    if body is not None and len(body) > MAX_RESULT_BYTES:
        body = None
    return GuardedResponse(response.status_code, headers, body)


def _first_bytes(response: StreamingHttpResponse) -> bytes:
    """Returns the body, or so much of it that it is too large to be stored. It is sent nevertheless."""
    parts, read = response.streaming_content, bytearray()
    try:
        for part in parts:
            read += part
            if len(read) > MAX_RESULT_BYTES:
                break
    except Exception as error:
        raise OutcomeUnknownError("the response was cut short") from error
    response.streaming_content = itertools.chain([bytes(read)], parts)
    return bytes(read)


def _django_response(response: GuardedResponse) -> HttpResponse:
    answer = HttpResponse(response.body, status=response.status)
    del answer["Content-Type"]
    for name, value in response.headers.items():
        answer[name] = value
    return answer
