"""The options of a run, and their checks."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Generic, Literal, TypedDict, TypeVar, cast

from ._codec import Codec, JsonCodec
from ._errors import ClaimRef, Violation
from ._limits import (
    MAX_CLAIM_ID_BYTES,
    MAX_KEY_BYTES,
    MAX_LEASE_MS,
    MAX_OWNER_BYTES,
    MIN_LEASE_MS,
    NAMESPACE_PATTERN,
    NAMESPACE_RULE,
)
from ._shapes import codec_of, codec_of_function
from ._texts import raise_if_any, text_violations

T = TypeVar("T")
Classification = Literal["release", "terminal"]
OnError = Literal["release", "unknown"]

#: Longer than most operations last.
DEFAULT_WAIT_MS = 30_000
#: Long enough for a replica to be replaced, short enough for a caller who waits.
DEFAULT_TIMEOUT_MS = 15_000


class ClaimOptions(TypedDict, total=False):
    """The options of every claim. Each is optional."""

    #: While another holder runs the operation: wait for ``wait_ms``, or raise InProgressError at once.
    on_in_progress: Literal["wait", "throw"]
    #: How long to wait for another holder. Default: 30,000, or the client's.
    wait_ms: int | None
    #: How long to retry calls that the service does not answer. Default: 15,000, or the client's.
    timeout_ms: int | None
    #: The name of the holder, shown to other callers. Default: host and process, or the client's.
    owner: str | None
    #: If the service is unreachable: raise, so that nothing runs, or run the function without a claim.
    on_unavailable: Literal["throw", "proceed"]
    #: Whether to run although it is unknown if an earlier attempt had its effect.
    accept_ambiguous: bool


class RequestOptions(TypedDict, total=False):
    """The options that say what a key stands for. Each is optional."""

    #: The request that the key belongs to, as ``fingerprint_of`` takes it: another one under the key is
    #: refused.
    fingerprint: object
    #: When the operation was created, the same on every delivery, for a policy that refuses late keys. A
    #: datetime with a time zone. Default: the time in the key, if it is a UUID of version 1, 6 or 7, or a
    #: ULID.
    key_created_at: datetime | None


class GuardOptions(ClaimOptions, total=False):
    """The options of runs that the guards of HTTP have, too. Each is optional."""

    #: How long the claim outlives a process that dies, at least 1,000. Default: the namespace's policy.
    lease_ms: int | None
    #: Finds out what became of the effect of an earlier attempt whose lease ended without an outcome, for
    #: example by asking the provider for ``claim.derive_key``'s key. Called under the claim, before the
    #: function, whether the namespace's policy is HOLD or RECLAIM. Returns Happened, DidNotHappen, StillOpen
    #: or Unknown; an error means Unknown. Unless it is known what happened, the record is given back as it
    #: was. Not called with ``accept_ambiguous``. With a client for asyncio it may be a coroutine function.
    #: ``once`` passes it the function's arguments, too, and an agent the call.
    resolve: Callable[..., Any] | None
    #: Whether ``claim.begin()`` marks when the effect begins, so that a crash or an error before that is not
    #: ambiguous: the next delivery runs, regardless of policy and ``on_error``, unless the error is terminal.
    #: The function calls ``begin`` right before its effect; with ``resolve``, the run does so before the
    #: function. It costs a call. Default: False.
    marks_begin: bool
    #: Whether an error of the function releases the claim, which is the default, or is stored as a
    #: TerminalError.
    classify_error: Callable[[Exception], Classification] | None
    #: What any other error of the function means: no effect, so that the claim is released, which is the
    #: default; or an unknown outcome, unless it is a NoEffectError. For money: "unknown".
    on_error: OnError | None
    #: The text that is stored as the reason of a release. Default: the name of the error's class, without its
    #: message.
    describe_error: Callable[[BaseException], str] | None
    #: The type of the function's value, for a dataclass, a pydantic model or TypeAdapter, a date or time,
    #: Decimal or UUID, or a list, tuple or dict of them: it is stored as JSON, and restored. A type that has
    #: no such form is refused. Default: JSON as it is; of ``once``, the function's annotation.
    returns: Any
    #: Stores the function's value, and restores it. Default: JSON.
    codec: Codec


class OnceOptions(GuardOptions, total=False):
    """The options that the runs of a function share. Each is optional."""

    #: ``at-most-once``: the key is completed in the call that claims it, before the function runs. That saves
    #: a call; but a function that raises, or whose process dies, does not run again, its value is not stored,
    #: and duplicates get None. There is no lease, token or checkpoint, and ``resolve`` is refused. Default:
    #: the value is stored, and a function that raised runs again.
    mode: Literal["at-most-once"] | None
    #: ``mark``: of a success, only that it happened is stored and not its value, such as a secret that is
    #: shown once. A duplicate raises a ResultUnavailableError (RESULT_LOST). Default: the value is stored.
    stores: Literal["mark"] | None


class RunOptions(OnceOptions, RequestOptions, total=False):
    """The options of a run beside its namespace and key. Each is optional."""


class SeenOptions(ClaimOptions, RequestOptions, total=False):
    """The options of ``seen``. Each is optional."""

    #: The id of this attempt, at most 128 bytes: a repeat with the same id gets the same answer. Default: a
    #: new one.
    claim_id: str


@dataclass(frozen=True)
class Defaults:
    """What the client sets for all of its runs."""

    owner: str
    wait_ms: int = DEFAULT_WAIT_MS
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    classify_error: Callable[[Exception], Classification] | None = None
    describe_error: Callable[[BaseException], str] | None = None
    on_error: OnError = "release"


@dataclass(frozen=True)
class RunResult(Generic[T]):
    """The result of a run. ``attempt`` and ``fencing_token`` are None for a replay, and 0 without a guard."""

    value: T
    replayed: bool
    #: False if the service was unreachable and ``on_unavailable`` is "proceed".
    guarded: bool
    completed_at: datetime
    #: When the key is forgotten: a retry after this moment is a new operation.
    expires_at: datetime
    attempt: int | None = None
    fencing_token: int | None = None


@dataclass(frozen=True)
class Operation:
    """A run whose options are checked and complete."""

    namespace: str
    key: str
    fingerprint: object
    lease_ms: int | None
    wait_ms: int
    timeout_ms: int
    owner: str
    proceeds: bool
    accept_ambiguous: bool
    classify_error: Callable[[Exception], Classification] | None
    describe_error: Callable[[BaseException], str] | None
    on_error: OnError = "release"
    key_created_at: datetime | None = None
    resolve: Callable[..., Any] | None = None
    marks_begin: bool = False
    codec: Codec = field(default_factory=JsonCodec)
    #: The id of its claims.
    claim_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    #: The claim completes the key itself.
    completes: bool = False
    #: Of a value, only that it was returned is stored.
    marks: bool = False

    @property
    def ref(self) -> ClaimRef:
        """How errors name a run that was granted no claim."""
        return ClaimRef(self.namespace, self.key)


def options_of_function(fn: Callable[..., Any], options: OnceOptions) -> OnceOptions:
    """Returns the options of a function's runs, with the codec for its values.

    :raises InvalidRequestError: for a type of values that can't be stored.
    """
    if options.get("codec") is not None:
        return options
    returns = options.get("returns")
    codec = codec_of_function(fn) if returns is None else codec_of(returns)
    return options if codec is None else {**options, "returns": None, "codec": codec}


def operation_of(namespace: str, key: str, options: RunOptions, defaults: Defaults) -> Operation:
    """Returns the operation. :raises InvalidRequestError: with every violation."""
    owner, wait_ms, timeout_ms = options.get("owner"), options.get("wait_ms"), options.get("timeout_ms")
    on_in_progress, on_unavailable = (
        options.get("on_in_progress", "wait"),
        options.get("on_unavailable", "throw"),
    )
    lease_ms = options.get("lease_ms")
    violations: list[Violation] = []
    if not isinstance(namespace, str) or not NAMESPACE_PATTERN.fullmatch(namespace):
        violations.append(Violation("namespace", NAMESPACE_RULE))
    if lease_ms is not None:
        violations += _whole_number("lease_ms", lease_ms, MIN_LEASE_MS, MAX_LEASE_MS)
    if owner is not None:
        violations += text_violations("owner", owner, 0, MAX_OWNER_BYTES)
    if wait_ms is not None:
        violations += _whole_number("wait_ms", wait_ms, 0, 2**53)
    if timeout_ms is not None:
        violations += _whole_number("timeout_ms", timeout_ms, 1, 2**53)
    if on_in_progress not in ("wait", "throw"):
        violations.append(Violation("on_in_progress", 'must be "wait" or "throw"'))
    if on_unavailable not in ("throw", "proceed"):
        violations.append(Violation("on_unavailable", 'must be "throw" or "proceed"'))
    on_error = options.get("on_error") or defaults.on_error
    if on_error not in ("release", "unknown"):
        violations.append(Violation("on_error", 'must be "release" or "unknown"'))
    returns, codec = options.get("returns"), options.get("codec")
    if returns is not None and codec is not None:
        violations.append(Violation("returns", "must not be set together with codec"))
    key_created_at = options.get("key_created_at")
    if key_created_at is not None and (
        not isinstance(key_created_at, datetime) or key_created_at.utcoffset() is None
    ):
        violations.append(Violation("key_created_at", "must be a datetime with a time zone"))
    resolve = options.get("resolve")
    if resolve is not None and not callable(resolve):
        violations.append(Violation("resolve", "must be a function"))
    mode, stores = options.get("mode"), options.get("stores")
    if stores not in (None, "mark"):
        violations.append(Violation("stores", 'must be "mark" or None'))
    if mode not in (None, "at-most-once"):
        violations.append(Violation("mode", 'must be "at-most-once" or None'))
    if resolve is not None and mode is not None:
        violations.append(Violation("resolve", "does not combine with mode"))
    marks_begin = options.get("marks_begin", False)
    if not isinstance(marks_begin, bool):
        violations.append(Violation("marks_begin", "must be True or False"))
    violations += text_violations("key", key, 1, MAX_KEY_BYTES)
    raise_if_any(violations)
    return Operation(
        namespace=namespace,
        key=key,
        fingerprint=options.get("fingerprint"),
        lease_ms=lease_ms,
        wait_ms=0 if on_in_progress == "throw" else defaults.wait_ms if wait_ms is None else wait_ms,
        timeout_ms=defaults.timeout_ms if timeout_ms is None else timeout_ms,
        owner=defaults.owner if owner is None else owner,
        proceeds=on_unavailable == "proceed",
        accept_ambiguous=options.get("accept_ambiguous", False),
        classify_error=options.get("classify_error") or defaults.classify_error,
        describe_error=options.get("describe_error") or defaults.describe_error,
        on_error=on_error,
        key_created_at=key_created_at,
        resolve=resolve,
        marks_begin=marks_begin,
        completes=mode is not None,
        marks=stores is not None,
        codec=codec or (JsonCodec() if returns is None else codec_of(returns)),
    )


def seen_operation_of(namespace: str, key: str, options: SeenOptions, defaults: Defaults) -> Operation:
    """Returns the operation of ``seen``. :raises InvalidRequestError:"""
    claim_id = options.get("claim_id")
    if claim_id is not None:
        raise_if_any(text_violations("claim_id", claim_id, 1, MAX_CLAIM_ID_BYTES))
    operation = replace(operation_of(namespace, key, cast(RunOptions, options), defaults), completes=True)
    return operation if claim_id is None else replace(operation, claim_id=claim_id)


def seen_operations_of(
    namespace: str, keys: Sequence[str], options: SeenOptions, defaults: Defaults
) -> dict[str, Operation]:
    """Returns the operation of each key, once. :raises InvalidRequestError:"""
    if isinstance(keys, str):
        raise_if_any([Violation("keys", "must be a sequence of keys")])
    return {key: seen_operation_of(namespace, key, options, defaults) for key in dict.fromkeys(keys)}


def seen_in_order(keys: Sequence[str], answers: Mapping[str, bool]) -> list[bool]:
    """Returns the answer for each key in order. Of equal keys, the later ones were seen."""
    first = {key: index for index, key in reversed(list(enumerate(keys)))}
    return [first[key] < index or answers[key] for index, key in enumerate(keys)]


def _whole_number(name: str, value: Any, minimum: int, maximum: int) -> list[Violation]:
    if isinstance(value, int) and not isinstance(value, bool) and minimum <= value <= maximum:
        return []
    return [Violation(name, f"must be a whole number of milliseconds, {minimum}-{maximum}")]
