"""Tool calls of agents happen once. Each run is resumed by another AgentRun, as in another process."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import pytest

from onceward import (
    ClaimRef,
    CompletionError,
    DidNotHappen,
    Effect,
    Happened,
    InvalidRequestError,
    NoEffectError,
    Onceward,
    OncewardError,
    OutcomeUnknownError,
    current_claim,
)
from onceward.agents import AgentRun, ToolBlockedError, ToolCall, once_tool
from onceward.testing import TestingOnceward, TestingPolicy

_REFUND = {"order": "7", "cents": 100}


class Agent:
    """A run's process: makes tool calls with the blocking client or that for asyncio."""

    def __init__(self, testing: TestingOnceward, kind: str) -> None:
        self._testing = testing
        self._kind = kind
        self.effects: list[str] = []

    def attempt(
        self, *calls: ToolCall, fails: BaseException | None = None, marks: bool = False, **options: Any
    ) -> list[Any]:
        """Resumes the run, and makes calls one after the other. Returns the value or the error of each."""

        def tool(claim: Any) -> str:
            self.effects.append(claim.key)
            if marks:
                claim.outcome_unknown()
            if fails is not None:
                raise fails
            return f"done {len(self.effects)}"

        if self._kind == "threads":
            run = AgentRun(self._testing.onceward, "agent-tools", "run-1", **options)
            return [_outcome_of(lambda call=call: run.call(call, tool)) for call in calls]

        async def attempt() -> list[Any]:
            async with self._testing.aio() as onceward:
                run: Any = AgentRun(onceward, "agent-tools", "run-1", **options)
                outcomes = []
                for call in calls:
                    try:
                        outcomes.append(await run.call(call, tool))
                    except BaseException as error:
                        # Raised within a task, it would end the event loop.
                        outcomes.append(error)
                return outcomes

        return asyncio.run(attempt())


def _outcome_of(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except BaseException as error:
        return error


def _refund(step: int = 1, **rest: Any) -> ToolCall:
    return ToolCall("refund", step, rest.pop("arguments", _REFUND), **rest)


@pytest.fixture(params=["threads", "asyncio"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _reason(outcome: Any) -> str:
    assert isinstance(outcome, ToolBlockedError)
    return outcome.reason


def test_a_resumed_run_repeats_no_call(kind: str) -> None:
    with TestingOnceward() as testing:
        agent = Agent(testing, kind)
        assert agent.attempt(_refund()) == ["done 1"]
        assert agent.attempt(_refund(), _refund(step=2)) == ["done 1", "done 2"]
        # As the client of TypeScript names them.
        assert agent.effects == ["run-1:1:refund", "run-1:2:refund"]


def test_one_response_may_call_a_tool_twice(kind: str) -> None:
    with TestingOnceward() as testing:
        agent = Agent(testing, kind)
        calls = [_refund(response="m1"), _refund(response="m1")]
        assert agent.attempt(*calls) == ["done 1", "done 2"]
        assert agent.attempt(_refund(response="m2"), _refund(response="m2")) == ["done 1", "done 2"]
        assert agent.effects == ["run-1:1:refund", "run-1:1:refund:1"]


def test_a_repeated_step_with_other_arguments_is_blocked(kind: str) -> None:
    with TestingOnceward() as testing:
        agent = Agent(testing, kind)
        agent.attempt(_refund())
        [blocked] = agent.attempt(_refund(arguments={"order": "7", "cents": 200}))
        assert _reason(blocked) == "ARGUMENTS_CHANGED"
        assert str(blocked).endswith("call the tool in your next step.")
        assert len(agent.effects) == 1


@pytest.mark.parametrize("on_lease_expiry", ["HOLD", "RECLAIM"])
def test_a_call_whose_process_stopped_is_not_repeated_until_its_outcome_is_known(
    kind: str, on_lease_expiry: Any
) -> None:
    with TestingOnceward(policy=TestingPolicy(on_lease_expiry=on_lease_expiry)) as testing:
        agent = Agent(testing, kind)
        [stopped] = agent.attempt(_refund(), fails=asyncio.CancelledError())
        assert not isinstance(stopped, ToolBlockedError)
        testing.advance(30_000)
        for _ in range(2):
            assert [_reason(each) for each in agent.attempt(_refund())] == ["AMBIGUOUS"]
            testing.advance(30_000)
        assert len(agent.effects) == 1
        [value] = agent.attempt(_refund(), resolve=lambda claim, call: Happened(call.arguments))
        assert value == _REFUND
        assert agent.attempt(_refund()) == [_REFUND]
        assert len(agent.effects) == 1


def test_a_call_that_is_known_not_to_have_happened_runs(kind: str) -> None:
    with TestingOnceward(policy=TestingPolicy(on_lease_expiry="HOLD")) as testing:
        agent = Agent(testing, kind)
        agent.attempt(_refund(), fails=asyncio.CancelledError())
        testing.advance(30_000)
        assert agent.attempt(_refund(), resolve=lambda claim, call: DidNotHappen()) == ["done 2"]


def test_a_tool_that_was_interrupted_is_blocked(kind: str) -> None:
    caused = RuntimeError("refund failed")
    caused.__cause__ = OutcomeUnknownError("the bank timed out")
    for fails, options in (
        (caused.__cause__, {"on_crash": "policy"}),
        (TimeoutError("the bank"), {}),
        (caused, {}),
        (RuntimeError("connection reset"), {"on_error": "unknown"}),
    ):
        with TestingOnceward(policy=TestingPolicy(on_lease_expiry="HOLD")) as testing:
            agent = Agent(testing, kind)
            for _ in range(2):
                [outcome] = agent.attempt(_refund(), fails=fails, **options)
                assert _reason(outcome) == "AMBIGUOUS"
                testing.advance(30_000)
            assert len(agent.effects) == 1


def test_a_tool_that_certainly_had_no_effect_runs_again(kind: str) -> None:
    with TestingOnceward(policy=TestingPolicy(on_lease_expiry="HOLD")) as testing:
        agent = Agent(testing, kind)
        fails = NoEffectError("the bank is closed")
        agent.attempt(_refund(), fails=fails, on_error="unknown")
        assert agent.attempt(_refund()) == ["done 2"]


def test_a_tool_can_mark_its_outcome_as_unknown(kind: str) -> None:
    with TestingOnceward() as testing:
        assert [_reason(each) for each in Agent(testing, kind).attempt(_refund(), marks=True)] == [
            "AMBIGUOUS"
        ]


def test_functions_that_would_not_run_are_refused() -> None:
    async def coroutine(order: str) -> str:
        return order

    def generator(order: str) -> Any:
        yield order

    with TestingOnceward() as testing:
        run = AgentRun(testing.onceward, "agent-tools", "run-1")
        for fn in (coroutine, generator):
            with pytest.raises(TypeError, match=f"{fn.__name__} is a"):
                run.call(_refund(), fn)
            with pytest.raises(TypeError, match=f"{fn.__name__} is a"):
                once_tool(run, key=lambda order: order)(fn)
        assert testing.records() == []


def test_with_policy_the_namespace_decides(kind: str) -> None:
    with TestingOnceward() as testing:
        agent = Agent(testing, kind)
        agent.attempt(_refund(), fails=asyncio.CancelledError(), on_crash="policy")
        testing.advance(30_000)
        assert agent.attempt(_refund(), on_crash="policy") == ["done 2"]


def test_an_error_of_a_held_call_is_not_the_program_s_to_classify(kind: str) -> None:
    with TestingOnceward() as testing:
        agent = Agent(testing, kind)
        agent.attempt(_refund(), fails=asyncio.CancelledError())
        testing.advance(30_000)
        [blocked] = agent.attempt(_refund(), classify_error=lambda error: "terminal")
        assert _reason(blocked) == "AMBIGUOUS"


def test_a_key_of_the_operation_s_own_is_recognised_in_a_later_step(kind: str) -> None:
    with TestingOnceward() as testing:
        agent = Agent(testing, kind)
        assert agent.attempt(_refund(key="order-7"), _refund(step=5, key="order-7")) == ["done 1", "done 1"]
        [changed] = agent.attempt(_refund(key="order-7", arguments={}))
        assert _reason(changed) == "ARGUMENTS_CHANGED" and "next step" not in str(changed)


def test_a_call_is_blocked_while_the_service_is_unavailable(kind: str) -> None:
    with TestingOnceward() as testing:
        testing.fail_next("Lookup", "DATABASE_UNAVAILABLE", times=100)
        [blocked] = Agent(testing, kind).attempt(_refund(), timeout_ms=1)
        assert _reason(blocked) == "UNAVAILABLE"


def test_with_proceed_a_call_with_its_own_key_runs_unless_it_may_have_begun(kind: str) -> None:
    with TestingOnceward() as testing:
        agent = Agent(testing, kind)
        testing.fail_next("Claim", "DATABASE_UNAVAILABLE", times=100)
        away: Any = {"on_unavailable": "proceed", "timeout_ms": 1}
        assert agent.attempt(_refund(key="order-7"), **away) == ["done 1"]
        outcomes = agent.attempt(*[_refund(key="order-8")] * 2, fails=TimeoutError(), **away)
        assert [_reason(outcome) for outcome in outcomes] == ["AMBIGUOUS", "UNAVAILABLE"]
        testing.fail_next("Lookup", "DATABASE_UNAVAILABLE", times=100)
        assert [_reason(each) for each in agent.attempt(_refund(), **away)] == ["UNAVAILABLE"]
        assert len(agent.effects) == 2


def test_a_call_whose_outcome_is_known_to_be_unknown_does_not_wait(kind: str) -> None:
    with TestingOnceward() as testing:
        outcomes = Agent(testing, kind).attempt(_refund(), _refund(step=2), fails=TimeoutError())
        assert [_reason(outcome) for outcome in outcomes] == ["AMBIGUOUS"] * 2


def test_a_function_gets_the_key_in_a_parameter_that_frameworks_do_not_see() -> None:
    effects: list[Any] = []

    def refund(ctx: int, key: str, order: str, cents: int = 5) -> str:
        effects.append((key, order, cents))
        assert key == current_claim().derive_key("tool")
        if len(effects) == 1:
            raise ConnectionError("the bank is down")
        return key

    with TestingOnceward() as testing:

        def tool(key_argument: str = "key") -> Any:
            run = AgentRun(testing.onceward, "agent-tools", "run-1")
            return once_tool(run, context="ctx", step=lambda ctx: ctx, key_argument=key_argument)(refund)

        assert list(inspect.signature(tool()).parameters) == ["ctx", "order", "cents"]
        assert sorted(get_type_hints(tool())) == ["cents", "ctx", "order", "return"]
        with pytest.raises(ConnectionError):
            tool()(1, "7")
        first = tool()(1, "7", 5, key="the model's")
        assert tool()(1, order="7", key="another") == first
        assert tool()(2, "7") != first
        assert effects[:2] == [(first, "7", 5)] * 2 and len(effects) == 3
        with pytest.raises(InvalidRequestError, match="key_argument must be a parameter of refund"):
            tool("kee")


def test_a_mistake_of_the_program_is_no_text_for_the_model(kind: str) -> None:
    with TestingOnceward() as testing:
        testing.fail_next("Claim", "NAMESPACE_DENIED")
        [refused] = Agent(testing, kind).attempt(_refund())
        assert refused.reason == "NAMESPACE_DENIED"


def test_an_outcome_of_a_nested_run_that_is_not_stored_is_the_tool_s_own_error(kind: str) -> None:
    with TestingOnceward() as testing:
        why = OncewardError("INTERNAL", "a bug")
        nested = CompletionError(Effect("nested"), why, stored=False, claim=ClaimRef("accounts", "a-1", 1))
        assert Agent(testing, kind).attempt(_refund(), fails=nested) == [nested]


def test_the_parallel_calls_of_threads_are_of_one_response() -> None:
    from concurrent.futures import ThreadPoolExecutor
    from threading import Barrier

    with TestingOnceward() as testing, ThreadPoolExecutor(8) as threads:
        run = AgentRun(testing.onceward, "agent-tools", "run-1")
        together = Barrier(8)

        def tool(claim: Any) -> str:
            together.wait()
            return str(claim.key)

        futures = [threads.submit(run.call, _refund(), tool) for _ in range(8)]
        keys = {future.result() for future in futures}
        assert len(keys) == 8


def test_the_text_of_a_blocked_call_is_the_output_of_a_guarded_function() -> None:
    with TestingOnceward() as testing:
        run = AgentRun(testing.onceward, "agent-tools", "run-1")

        @once_tool(run, context="ctx", step=lambda ctx: ctx)
        def refund(ctx: int, order: str, cents: int = 5) -> str:
            return f"{order} {cents} {current_claim().attempt}"

        assert refund(1, "7") == "7 5 1"
        assert refund(1, order="7", cents=5) == "7 5 1"
        assert refund(2, "7").startswith("7 5")
        testing.fail_next("Claim", "KEY_TOO_OLD")
        assert refund(3, "7").startswith("OUTCOME UNKNOWN.")
        key_of: Any = {"7": "refund:7"}.get
        with pytest.raises(InvalidRequestError, match="the key of str must be 1-255 bytes"):
            once_tool(run, key=key_of, name="str")(lambda order: None)("8")


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"run_id": ""}, "run_id"),
        ({"on_crash": "no"}, "on_crash"),
        ({"lease_ms": 1}, "lease_ms"),
    ],
)
def test_an_invalid_option_is_refused(options: Any, field: str) -> None:
    with Onceward("http://127.0.0.1:1", api_key="key") as onceward:
        with pytest.raises(InvalidRequestError) as refused:
            AgentRun(onceward, "agent-tools", **{"run_id": "run-1", **options})
    assert [violation.field for violation in refused.value.violations] == [field]
