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

import logging
from collections.abc import Callable, Sequence

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.encoding import escape_uri_path
from typing_extensions import Unpack

from ._catalogue import InvalidRequestError
from ._claims import is_within
from ._client import Claim, Onceward
from ._errors import CompletionError, OncewardError, OutcomeUnknownError
from ._http import (
    AMBIGUOUS,
    DEFAULT_MAX_BODY_BYTES,
    REQUEST_TOO_LARGE,
    REQUEST_UNREADABLE,
    HttpPolicy,
    NotStored,
    RequestHead,
    Response,
    is_outcome,
    problem_of,
)
from ._http_profiles import HttpProfile, Problem
from ._limits import MAX_RESULT_BYTES
from ._options import OnceOptions
from ._per_process import per_process
from ._printable import printable

__all__ = ["HttpProfile", "OncewardMiddleware"]

_log = logging.getLogger("onceward")
#: The attribute of a request whose view raised an OutcomeUnknownError.
_OUTCOME_UNKNOWN = "_onceward_outcome_unknown"


class OncewardMiddleware:
    """Synchronous middleware. The first request runs the view; later ones with its key get its response.

    What it stores, replays and refuses, and its parameters, are those of
    ``onceward.starlette.OncewardMiddleware``. A response is held until it is stored, or until that has failed
    for the length of its lease. A streaming response is sent, and not stored: repeats are answered with 410.
    The OutcomeUnknownError must be that of a view: Django answers errors of other middleware before the guard
    sees them.

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
        profile: HttpProfile = "onceward",
        methods: Sequence[str] | None = None,
        key_optional: bool | None = None,
        max_body_bytes: int = DEFAULT_MAX_BODY_BYTES,
        stores: Callable[[int], bool] = is_outcome,
        replay_headers: Sequence[str] = (),
        documentation: str | None = None,
        **options: Unpack[OnceOptions],
    ) -> None:
        self._get_response = get_response
        self._client = per_process(onceward)
        self._caller = caller
        self._policy = HttpPolicy(
            namespace=namespace,
            profile=profile,
            methods=methods,
            key_optional=key_optional,
            max_body_bytes=max_body_bytes,
            stores=stores,
            replay_headers=replay_headers,
            documentation=documentation,
            options=options,
        )

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not self._policy.guards(request.method or ""):
            return self._get_response(request)
        key_header = request.headers.get("Idempotency-Key")
        query = request.META.get("QUERY_STRING", "")
        head = RequestHead(
            request.method or "",
            escape_uri_path(request.path),
            f"?{query}" if query else "",
            [] if key_header is None else [key_header],
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
        """Notes that a view can't know whether it had its effect.

        Django calls this for the error of a view. Without it, the guard would see a response with the status
        500, as after any other error.
        """
        if not isinstance(exception, OutcomeUnknownError) or not is_within(self._policy.namespace):
            return None
        setattr(request, _OUTCOME_UNKNOWN, exception)
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
        handled: list[HttpResponseBase] = []

        def handle(_: Claim) -> Response:
            response = self._get_response(request)
            unknown = getattr(request, _OUTCOME_UNKNOWN, None)
            if unknown is not None:
                raise unknown
            handled.append(response)
            return self._policy.outcome_of(_whole(response))

        try:
            replayed = self._client().run(self._policy.namespace, operation, handle, **options)
        except NotStored:
            return handled[0]
        except OutcomeUnknownError as error:
            _log.warning("It is unknown whether a request had its effect: %s", printable(error))
            return handled[0] if handled else self._refusal(head, AMBIGUOUS)
        except OncewardError as error:
            if handled and isinstance(error, CompletionError):
                # This client gets the view's response even if it could not be stored for repeats.
                _log.warning("A response could not be stored for repeats: %s", printable(error))
                return handled[0]
            problem = problem_of(error)
            if problem is not None:
                return self._refusal(head, problem)
            raise
        if handled:
            return handled[0]
        return _django_response(self._policy.replay_of(head, replayed))

    def _refusal(self, head: RequestHead, problem: Problem) -> HttpResponse:
        return _django_response(self._policy.refusal_of(head, problem))


def _whole(response: HttpResponseBase) -> Response:
    headers = {name.lower(): value for name, value in response.items()}
    body = response.content if isinstance(response, HttpResponse) else None
    if body is not None and len(body) > MAX_RESULT_BYTES:
        body = None
    return Response(response.status_code, headers, body)


def _django_response(response: Response) -> HttpResponse:
    answer = HttpResponse(response.body, status=response.status)
    del answer["Content-Type"]
    for name, value in response.headers.items():
        answer[name] = value
    return answer
