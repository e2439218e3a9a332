"""Guards the tools of agents: a tool call happens once, however often a model repeats it, a framework
repeats its step, or a restarted process resumes its run. For the OpenAI Agents SDK, LangGraph, servers of
MCP, and any other framework whose tools are functions::

    run = AgentRun(onceward, namespace="agent-tools", run_id=conversation.id)

    @function_tool
    @once_tool(run, context="ctx", step=openai_step)
    def refund(ctx: RunContextWrapper[None], order_id: str, cents: int) -> str: ...

The runtime names each call: by the run's id, the step and the tool. The arguments are the fingerprint. The
model's id of the call is never a part, because a repeated step has another one. Within the tool,
``onceward.current_claim()`` has the claim, for derived keys.

Create an AgentRun each time the run is started or resumed. At most one process at a time may execute a run.
Keys are those of ``@onceward/client/agents``.
"""

from __future__ import annotations

import functools
import inspect
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, ParamSpec, TypeVar

from typing_extensions import Unpack

from . import aio
from ._agent_blocked import BlockedReason, ToolBlockedError, blocked_reason
from ._agent_slots import MAX_CALLS_PER_STEP, Slot, StepSlots
from ._client import Onceward
from ._errors import CompletionError, OncewardError
from ._fingerprint import fingerprint_of
from ._finish import ClaimAbandoned, judge
from ._flow import drive_awaiting, drive_steps
from ._functions import is_coroutine_function, refuse_deferred_function
from ._keytime import key_time
from ._limits import MAX_KEY_BYTES
from ._mapping import is_unavailable
from ._options import GuardOptions, operation_of
from ._resolve import Unknown
from ._texts import raise_if_any, refused_field, text_violations

__all__ = [
    "AgentRun",
    "BlockedReason",
    "ToolBlockedError",
    "ToolCall",
    "langgraph_response",
    "langgraph_step",
    "once_tool",
    "openai_step",
    "thread_runs",
]

T = TypeVar("T")
P = ParamSpec("P")

#: A run remembers this many steps and calls with unknown outcomes, and ``thread_runs`` this many threads; the
#: service knows the others.
_MAX_REMEMBERED = 1024

#: Work that blocks or returns an awaitable; its driver sends the result.
_Steps = Generator[Callable[[], Any], Any, T]


@dataclass(frozen=True)
class ToolCall:
    """One call of a tool by a model."""

    #: The tool's name.
    tool: str
    #: The number or name of the model response that made the call, within the run: the same when the step is
    #: repeated, and different for each other step.
    step: str | int
    #: The arguments: a JSON value. Their fingerprint is compared when the call is repeated.
    arguments: object
    #: The operation's own key, if the arguments have one, such as "refund:" and an order's id: it replaces
    #: the run, the step and the tool, so that a repeat in a later step or in another run is recognised, too.
    key: str | None = None
    #: When the operation was created. Default: without ``key`` the run's, and with it the time in the key.
    key_created_at: datetime | None = None
    #: A name that the calls of one model response share, and that no other response has. Default: calls that
    #: run at the same time are of one response.
    response: str | None = None
    #: The framework's id of the call: only to recognise the same call, never part of the key.
    call_id: str | None = None


class AgentRun:
    """One run of an agent, whose tool calls happen once.

    :param onceward: a client; one for asyncio makes ``call`` return an awaitable.
    :param namespace: the operations' namespace, such as "agent-tools". Give it the policy HOLD.
    :param run_id: 1-255 bytes, which the runtime makes when the run begins, stores with the run's messages,
        and uses again when the run is resumed: a conversation's or a job's id, never a process's.
    :param run_created_at: when the run began, for a policy that refuses late keys. Default: the time in its
        id.
    :param on_crash: what to do about a call whose process stopped after the tool began: "hold", so that it
        does not run again until its outcome is known, or "policy", so that the namespace's policy decides.
        "hold" sets ``marks_begin``.
    :param options: those of runs. ``resolve`` gets the claim and the call. ``on_unavailable="proceed"`` runs
        a call only if it has its own ``key``, and unless this run knows that the tool may have begun.
    :raises InvalidRequestError: for an invalid option.
    """

    def __init__(
        self,
        onceward: Onceward | aio.Onceward,
        namespace: str,
        run_id: str,
        *,
        run_created_at: datetime | None = None,
        on_crash: Literal["hold", "policy"] = "hold",
        **options: Unpack[GuardOptions],
    ) -> None:
        raise_if_any(text_violations("run_id", run_id, 1, MAX_KEY_BYTES))
        if on_crash not in ("hold", "policy"):
            raise refused_field("on_crash", 'must be "hold" or "policy"')
        checked: Any = options
        self._timeout_ms = operation_of(namespace, "key", checked, onceward._defaults).timeout_ms
        self._onceward = onceward
        self._namespace = namespace
        self._run_id = run_id
        self._created_at = run_created_at or key_time(run_id)
        self._holds = on_crash == "hold"
        self._resolve = options.get("resolve")
        self._options = options
        self._lock = threading.Lock()
        self._steps: OrderedDict[tuple[str | int, str], StepSlots] = OrderedDict()
        #: Calls with unknown outcomes: a later step that repeats one gets its key, and the key's time.
        self._unknown: OrderedDict[tuple[str, bytes], tuple[str, datetime | None, bool]] = OrderedDict()
        #: The keys of the calls that this process runs.
        self._running: set[str] = set()

    @property
    def is_asyncio(self) -> bool:
        """Whether ``call`` returns an awaitable."""
        return isinstance(self._onceward, aio.Onceward)

    def call(self, call: ToolCall, fn: Callable[[Any], T]) -> T:
        """Runs a tool unless this call of it was done before. Returns its value, now and on every repeat.

        ``fn`` gets the claim. With a client for asyncio, the result is awaited, and ``fn`` may be a coroutine
        function. An error of the tool is raised unchanged, and the next attempt runs the tool again, unless
        ``on_error`` is "unknown"; a TerminalError is stored. A tool that can't know whether it had its effect
        raises an OutcomeUnknownError: the call is then blocked (AMBIGUOUS), as one that was interrupted, that
        ran into a timeout, or whose process stopped. A value that can't be stored is returned once, and
        duplicates are blocked.

        :raises ToolBlockedError: if the tool did not run, or its outcome is unknown, with a text for the
            model.
        :raises OncewardError: if the program or its credential is wrong.
        :raises TypeError: for a coroutine function with a blocking client, and a generator function.
        """
        refuse_deferred_function(fn, awaits=self.is_asyncio)
        value: T = self._drive(self._call(call, fn))
        return value

    def _drive(self, steps: _Steps[T]) -> Any:
        if self.is_asyncio:
            return drive_awaiting(steps, _awaited)
        return drive_steps(steps, lambda work: work())

    def _call(self, call: ToolCall, fn: Callable[[Any], Any]) -> _Steps[Any]:
        violations = text_violations("tool", call.tool, 1, MAX_KEY_BYTES)
        if not isinstance(call.step, int):
            violations += text_violations("step", call.step, 1, MAX_KEY_BYTES)
        if call.key is not None:
            violations += text_violations(f"the key of {call.tool}", call.key, 1, MAX_KEY_BYTES)
        raise_if_any(violations)
        fingerprint = fingerprint_of(call.arguments)
        operation = (call.tool, fingerprint)
        slots, slot = None, None
        earlier = self._unknown.get(operation)
        if call.key is not None:
            key, created_at = call.key, call.key_created_at
        elif earlier is not None:
            key, created_at, _ = earlier
        else:
            slots = self._slots_of(call)
            slot = yield from self._take(slots, call, fingerprint)
            key, created_at = slot.key, call.key_created_at or self._created_at
        attempt = _Attempt(call, key, created_at, fingerprint)
        attempt.has_ended = earlier is not None and earlier[2] and earlier[0] == key
        with self._lock:
            attempt.may_have_begun = earlier is not None or key in self._running
            if not attempt.may_have_begun:
                self._running.add(key)
        try:
            value = yield from self._run(attempt, fn)
            if not attempt.is_unknown:
                with self._lock:
                    self._unknown.pop(operation, None)
            return value
        finally:
            if slots is not None and slot is not None:
                slots.release(slot)
            with self._lock:
                if not attempt.may_have_begun:
                    self._running.discard(key)
                if attempt.is_unknown:
                    stays = attempt.has_ended and self._holds and self._resolve is None
                    _remember(self._unknown, operation, (key, created_at, stays))

    def _slots_of(self, call: ToolCall) -> StepSlots:
        name = (call.step, call.tool)
        parts = (self._run_id, call.step, call.tool)
        with self._lock:
            slots = self._steps.get(name) or StepSlots(self._namespace, parts, self._timeout_ms)
            _remember(self._steps, name, slots)
        return slots

    def _take(self, slots: StepSlots, call: ToolCall, fingerprint: bytes) -> _Steps[Slot]:
        try:
            calls: Any = self._onceward._calls
            slot = yield lambda: calls.drive(slots.take(fingerprint, call.response, call.call_id))
        except OncewardError as error:
            if not is_unavailable(error):
                raise
            raise ToolBlockedError("UNAVAILABLE", call.tool, slots.key) from error
        if slot == "changed":
            raise ToolBlockedError("ARGUMENTS_CHANGED", call.tool, slots.key, of_step=True)
        if slot == "full":
            limit = f"must have at most {MAX_CALLS_PER_STEP} calls of the tool {call.tool}"
            raise refused_field("step", limit)
        found: Slot = slot
        return found

    def _run(self, attempt: _Attempt, fn: Callable[[Any], Any]) -> _Steps[Any]:
        runner: Any = self._onceward

        def guarded(claim: Any) -> Any:
            attempt.claim = claim
            return self._drive(_run_tool(claim, fn))

        def resolve(claim: Any) -> Any:
            return Unknown() if self._resolve is None else self._resolve(claim, attempt.call)

        options: Any = {
            **self._options,
            "fingerprint": attempt.fingerprint,
            "key_created_at": attempt.key_created_at,
            # With it, the run marks the begin of the tool.
            "resolve": resolve if self._holds or self._resolve is not None else None,
            **({"marks_begin": True} if self._holds else {}),
            **({"on_unavailable": "throw"} if attempt.may_have_begun else {}),
            **({"wait_ms": 0} if attempt.has_ended else {}),
        }
        try:
            return (yield lambda: runner.run(self._namespace, attempt.key, guarded, **options))
        except BaseException as error:
            return attempt.settle(error)


@dataclass
class _Attempt:
    """One attempt to make a tool call: what it learns, and what it means for the model."""

    call: ToolCall
    key: str
    key_created_at: datetime | None
    fingerprint: bytes
    #: The claim, once the tool has begun.
    claim: Any = None
    #: Whether the outcome of the call is unknown, so that a later call with the same arguments is a repeat.
    is_unknown: bool = False
    #: Whether this run knows that the tool may have begun.
    may_have_begun: bool = False
    #: Whether this attempt, or an earlier one of this run, has ended with an unknown outcome.
    has_ended: bool = False

    def settle(self, error: BaseException) -> Any:
        """Returns the tool's value if only its storage failed.

        :raises ToolBlockedError: if the tool did not run; else the tool's own error.
        """
        held = None if self.claim is None else self.claim._held
        # That of a nested run says nothing about this claim.
        if held is not None and isinstance(error, CompletionError) and error.claim == held.ref:
            self.is_unknown = not error.stored
            if error.effect.error is None:
                return error.effect.value
            raise error.effect.error
        if isinstance(error, ClaimAbandoned):
            self.is_unknown = self.has_ended = True
            cause = error.__cause__
            if cause is not None and not isinstance(cause, Exception):
                raise cause
            raise self._blocked("AMBIGUOUS") from error
        reason = blocked_reason(error) if isinstance(error, OncewardError) and self.claim is None else None
        if reason is None:
            raise error
        raise self._blocked("AMBIGUOUS" if self.has_ended and reason == "IN_PROGRESS" else reason) from error

    def _blocked(self, reason: BlockedReason) -> ToolBlockedError:
        self.is_unknown = reason in ("AMBIGUOUS", "IN_PROGRESS", "TOO_OLD")
        return ToolBlockedError(reason, self.call.tool, self.key)


def once_tool(
    run: AgentRun | Callable[[Any], AgentRun],
    *,
    step: Callable[[Any], str | int] | None = None,
    response: Callable[[Any], tuple[str | None, str | None]] | None = None,
    context: str | None = None,
    key: Callable[..., str] | None = None,
    key_argument: str | None = None,
    name: str | None = None,
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Returns a decorator of a tool's function, below the framework's own decorator: each call of the tool
    runs once.

    The text of a blocked call is the tool's output, so that the model reads it.

    :param run: the run of the calls, or a function that returns it for the framework's context.
    :param step: returns the step of a call from the framework's context, such as ``openai_step``. Needed
        unless there is a ``key``.
    :param response: returns the names of the model response that made the call and of the call, such as
        ``langgraph_response``. Default: calls that run at the same time are of one response.
    :param context: the parameter by which the framework passes its context, which is not an argument of the
        model.
    :param key: returns the operation's own key for the arguments, see ``ToolCall.key``.
    :param key_argument: the parameter of the tool's function for an idempotency key: the function gets
        ``claim.derive_key("tool")``, regardless of the model's value, which is not part of the fingerprint.
        Frameworks that read the function's signature do not show it to the model; its docstring remains.
    :param name: the tool's name. Default: the function's.
    """
    if step is None and key is None:
        raise refused_field("step", "must be set unless there is a key")

    def decorate(fn: Callable[P, T]) -> Callable[P, T]:
        refuse_deferred_function(fn, awaits=not isinstance(run, AgentRun) or run.is_asyncio)
        signature = inspect.signature(fn)
        if key_argument is not None and key_argument not in signature.parameters:
            raise refused_field("key_argument", f"must be a parameter of {fn.__name__}, is {key_argument}")
        shown = [each for each in signature.parameters.values() if each.name != key_argument]
        visible = signature.replace(parameters=shown)

        def call_of(args: Any, kwargs: Any) -> tuple[AgentRun, ToolCall, Callable[[Any], Any]]:
            kwargs.pop(key_argument, None)
            bound = visible.bind(*args, **kwargs)
            bound.apply_defaults()
            arguments = dict(bound.arguments)

            def call_tool(claim: Any) -> Any:
                keyed = inspect.BoundArguments(signature, OrderedDict(bound.arguments))
                if key_argument is not None:
                    keyed.arguments[key_argument] = claim.derive_key("tool")
                return fn(*keyed.args, **keyed.kwargs)

            given = arguments.pop(context) if context is not None else None
            number = step(given) if key is None and step is not None else 0
            own = None if key is None else key(*args, **kwargs) or ""
            run_of_call = run if isinstance(run, AgentRun) else run(given)
            if run_of_call.is_asyncio != is_coroutine_function(fn):
                description = "must have a client for asyncio for a coroutine function, and only then"
                raise refused_field("run", description)
            origin = (None, None) if response is None else response(given)
            call = ToolCall(name or fn.__name__, number, _as_json(arguments), own, None, *origin)
            return run_of_call, call, call_tool

        def hidden(guarded: Any) -> Any:
            if key_argument is not None:
                guarded.__signature__ = visible
                annotations = guarded.__annotations__.items()
                guarded.__annotations__ = {each: hint for each, hint in annotations if each != key_argument}
            return guarded

        if is_coroutine_function(fn):

            @functools.wraps(fn)
            async def guarded_coroutine(*args: P.args, **kwargs: P.kwargs) -> Any:
                run_of_call, call, call_tool = call_of(args, kwargs)
                try:
                    # A client for asyncio, so that the run's call is an awaitable.
                    awaited: Any = run_of_call.call(call, call_tool)
                    return await awaited
                except ToolBlockedError as blocked:
                    return str(blocked)

            return hidden(guarded_coroutine)  # type: ignore[no-any-return]

        @functools.wraps(fn)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> Any:
            run_of_call, call, call_tool = call_of(args, kwargs)
            try:
                return run_of_call.call(call, call_tool)
            except ToolBlockedError as blocked:
                return str(blocked)

        return hidden(guarded)  # type: ignore[no-any-return]

    return decorate


def openai_step(context: Any) -> int:
    """Returns the step of a call in the OpenAI Agents SDK from its RunContextWrapper: the number of the run's
    model responses so far.

    A run that is resumed from its RunState continues the number. Each ``Runner.run`` that starts again begins
    at 1, so that it needs a run id of its own, such as that of the user's message.
    """
    return int(context.usage.requests)


def langgraph_step(config: Any) -> int:
    """Returns the step of a call in LangGraph from its RunnableConfig or ToolRuntime.

    LangGraph counts the steps of a thread, and continues when the thread is resumed from a checkpoint.

    :raises InvalidRequestError: outside LangGraph, and in a subgraph, whose steps begin again each time it is
        called.
    """
    metadata = getattr(config, "config", config).get("metadata") or {}
    step, namespace = metadata.get("langgraph_step"), metadata.get("langgraph_checkpoint_ns") or ""
    if not isinstance(step, int):
        raise refused_field("step", "must be a function of your own outside LangGraph")
    if "|" in namespace:
        raise refused_field("step", "must be a function of your own in a subgraph, whose steps begin again")
    return step


def langgraph_response(runtime: Any) -> tuple[str | None, str | None]:
    """Returns the ids of the message that made a call in LangGraph, and of the call, from its ToolRuntime.

    By them, equal calls of one response each run once.
    """
    state, call_id = runtime.state, runtime.tool_call_id
    messages = state.get("messages", ()) if isinstance(state, dict) else getattr(state, "messages", state)
    for message in reversed(messages):
        if any(call["id"] == call_id for call in getattr(message, "tool_calls", ())):
            return message.id, call_id
    return None, call_id


def thread_runs(
    onceward: Onceward | aio.Onceward, namespace: str, **options: Any
) -> Callable[[Any], AgentRun]:
    """Returns a function that finds the run of a call by its LangGraph thread (``configurable.thread_id``).

    For ``once_tool``: one compiled graph, with its tools, serves all threads.

    The graph needs a checkpointer: without one, the steps of a thread begin at 0 each time it is invoked.

    :param options: as AgentRun takes them.
    :raises InvalidRequestError: for an invalid option, and from the function for a call without a thread.
    """
    AgentRun(onceward, namespace, "thread", **options)
    runs: OrderedDict[str, AgentRun] = OrderedDict()
    lock = threading.Lock()

    def run_of(config: Any) -> AgentRun:
        thread = (getattr(config, "config", config).get("configurable") or {}).get("thread_id")
        if not isinstance(thread, str):
            raise refused_field("thread_id", "must be a text in the config's configurable")
        # The calls of a step arrive in several threads, and have to share their run.
        with lock:
            run = runs.get(thread) or AgentRun(onceward, namespace, thread, **options)
            _remember(runs, thread, run)
        return run

    return run_of


def _run_tool(claim: Any, fn: Callable[[Any], Any]) -> _Steps[Any]:
    """Runs a tool. :raises ClaimAbandoned: if it failed, and may have had its effect; else its own error."""
    try:
        value = yield lambda: fn(claim)
    except BaseException as error:
        if judge(claim._held, error) == "unknown":
            raise ClaimAbandoned from error
        raise
    if claim._held.marked is not None:
        raise ClaimAbandoned from claim._held.marked
    return value


async def _awaited(work: Callable[[], Any]) -> Any:
    result = work()
    return await result if inspect.isawaitable(result) else result


def _as_json(arguments: dict[str, Any]) -> object:
    """Returns arguments as JSON has them; models of pydantic as their members."""
    return json.loads(json.dumps(arguments, allow_nan=False, default=_members_of))


def _members_of(value: Any) -> object:
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise refused_field("arguments", f"must be JSON, or models of pydantic; has a {type(value).__name__}")
    return dump(mode="json")


def _remember(entries: OrderedDict[Any, Any], name: Any, value: Any) -> None:
    """Adds to a map of bounded size; the entry that was added first makes room."""
    entries[name] = value
    entries.move_to_end(name)
    if len(entries) > _MAX_REMEMBERED:
        entries.popitem(last=False)
