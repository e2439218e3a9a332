"""Guards Celery tasks: a task runs once, however often its message is delivered::

    app = Celery(broker="redis://localhost")
    Charge = guarded_task(lambda: Onceward(ADDRESS, api_key=API_KEY), "charges", key=lambda order:
    order["id"])

    @app.task(base=Charge, acks_late=True, reject_on_worker_lost=True)
    def charge(order): ...

With ``acks_late`` and ``reject_on_worker_lost``, a worker that dies has its message delivered again. Within
the task, ``onceward.current_claim()`` has the claim, for derived keys.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from typing import Any

import celery
from celery.exceptions import Retry, SoftTimeLimitExceeded
from typing_extensions import Unpack

from ._client import Claim, Onceward
from ._errors import OncewardError
from ._finish import _chain
from ._functions import refuse_deferred_function
from ._mapping import may_pass
from ._options import OnceOptions
from ._per_process import per_process

__all__ = ["guarded_task"]


def guarded_task(
    onceward: Callable[[], Onceward] | Onceward,
    namespace: str,
    *,
    key: Callable[..., str] | None = None,
    fingerprint: Callable[..., object] | None = None,
    key_created_at: Callable[..., datetime] | None = None,
    **options: Unpack[OnceOptions],
) -> type[celery.Task]:
    """Returns a base for tasks: each runs once for a key.

    - Tasks with one base share its keys: give each task a base of its own, or put the task into the key.
    - A repeat of a task that was done returns the stored value, which must be JSON.
    - An error of the task releases the claim, so that a retry runs; ``self.retry`` is such an error. A
      TerminalError is stored: each repeat raises it.
    - A task that can't know whether it had its effect raises an OutcomeUnknownError, also by ``self.retry``
      or ``autoretry_for``: its claim is left to the namespace's policy, and retries wait until its lease is
      over. So is that of a task that is stopped, by a time limit, a revocation or the worker's end.
    - With ``mode="at-most-once"``, a task that raised has failed, and is not retried.
    - While another worker runs the task, or the service can't be reached, the message is retried later,
      without an end, and no worker waits. An InProgressError of the task's own code is an ordinary error.
    - A coroutine function is refused with a TypeError when Celery makes the task.
    - A task that is called in the process, without a worker, runs guarded if there is a ``key``, and
      unguarded otherwise.

    :param onceward: a function that returns a client, called once in each process: workers fork.
    :param key: returns the operation's key for the task's arguments. Default: the id of the task, which its
        redeliveries and its retries keep; two calls of ``delay`` are then two operations.
    :param fingerprint: returns the request that the key stands for. Default: none.
    """
    client = per_process(onceward)

    class GuardedTask(celery.Task):  # type: ignore[misc]
        abstract = True

        def __init_subclass__(cls, **kwargs: Any) -> None:
            super().__init_subclass__(**kwargs)
            refuse_deferred_function(cls.run)

        def retry(self, *args: Any, **kwargs: Any) -> Any:
            # At most once, a retry would find the key completed, and succeed without the effect.
            last = {} if options.get("mode") is None else {"max_retries": 0}
            return super().retry(*args, **(kwargs | last))

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            # A worker has pushed the task's request already; a second one would hide its id and its retries.
            run = super().__call__ if self.request.called_directly else self.run
            name = self.request.id if key is None else key(*args, **kwargs)
            if name is None:
                return run(*args, **kwargs)
            request = None if fingerprint is None else fingerprint(*args, **kwargs)
            created_at = None if key_created_at is None else key_created_at(*args, **kwargs)
            waits = {} if self.request.called_directly else {"on_in_progress": "throw"}
            merged: Any = {**waits, **options, "fingerprint": request, "key_created_at": created_at}

            has_begun = False

            def guarded(_: Claim) -> Any:
                nonlocal has_begun
                has_begun = True
                try:
                    return run(*args, **kwargs)
                except Exception as error:
                    _add_causes(error)
                    raise

            try:
                return client().run(namespace, name, guarded, **merged)
            except OncewardError as error:
                # One of the task's own code is about another operation.
                if has_begun or not may_pass(error) or self.request.called_directly or self.request.is_eager:
                    raise
                delay_s = max(1, math.ceil((error.retry_delay_ms or 0) / 1000))
                # Not `self.retry`, which would use up the task's own retries.
                again = self.signature_from_request(
                    self.request, args, kwargs, countdown=delay_s, retries=self.request.retries
                )
                again.apply_async()
                raise Retry(str(error), error, delay_s, sig=again) from error

    return GuardedTask


def _add_causes(error: Exception) -> None:
    """Says why the task failed in words that the client knows: a retry by its error, a soft time limit by a
    timeout.
    """
    for each, _ in _chain(error, None, shown=True):
        if each.__cause__ is not None:
            continue
        if isinstance(each, SoftTimeLimitExceeded):
            each.__cause__ = TimeoutError("the task's soft time limit")
        elif isinstance(each, Retry) and isinstance(each.exc, BaseException):
            each.__cause__ = each.exc
