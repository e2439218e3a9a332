"""Guarded tools in the frameworks of agents, with models that are scripted."""

import asyncio
import json
from typing import Any

import pytest

from onceward import aio, current_claim
from onceward.agents import (
    AgentRun,
    langgraph_response,
    langgraph_step,
    once_tool,
    openai_step,
    thread_runs,
)
from onceward.testing import TestingOnceward


def test_the_tools_of_the_openai_agents_sdk() -> None:
    agents = pytest.importorskip("agents", reason="openai-agents is not installed")
    from openai.types.responses import (
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    class Scripted(agents.Model):  # type: ignore[misc]
        """Refunds order 7 in each of its first two responses, and then repeats what the tools said."""

        def __init__(self) -> None:
            self.told: list[str] = []
            self._calls = 0

        async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> Any:
            self.told = [item["output"] for item in input if item.get("type") == "function_call_output"]
            usage = agents.Usage(requests=1)
            if len(self.told) == 2:
                text = ResponseOutputText(type="output_text", text="done", annotations=[])
                message = ResponseOutputMessage(
                    id="m", type="message", role="assistant", status="completed", content=[text]
                )
                return agents.ModelResponse(output=[message], usage=usage, response_id=None)
            self._calls += 1
            call = ResponseFunctionToolCall(
                type="function_call",
                name="refund",
                call_id=f"{id(self)}-{self._calls}",
                arguments=json.dumps({"order": "7", "cents": 100}),
            )
            return agents.ModelResponse(output=[call], usage=usage, response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    effects: list[str] = []

    async def execute(onceward: aio.Onceward) -> tuple[list[str], Any]:
        run = AgentRun(onceward, "agent-tools", "conversation-1:message-1")

        @agents.function_tool
        @once_tool(run, context="ctx", step=openai_step, key_argument="bank_key")
        async def refund(ctx: agents.RunContextWrapper[None], bank_key: str, order: str, cents: int) -> str:
            """Refunds an order."""
            assert bank_key == current_claim().derive_key("tool")
            effects.append(current_claim().key)
            return f"refunded {order}"

        model = Scripted()
        agent = agents.Agent(name="support", model=model, tools=[refund])
        config = agents.RunConfig(tracing_disabled=True)
        await agents.Runner.run(agent, "Refund order 7, twice.", run_config=config)
        return model.told, refund

    async def execute_twice(testing: TestingOnceward) -> None:
        async with testing.aio() as onceward:
            told, tool = await execute(onceward)
            assert told == ["refunded 7", "refunded 7"]
            # As if the process had been started again before the run's end was stored.
            assert (await execute(onceward))[0] == told
            assert (tool.name, tool.description) == ("refund", "Refunds an order.")
            assert sorted(tool.params_json_schema["properties"]) == ["cents", "order"]

    with TestingOnceward() as testing:
        asyncio.run(execute_twice(testing))
    assert effects == ["conversation-1%3Amessage-1:1:refund", "conversation-1%3Amessage-1:2:refund"]


def test_the_tools_of_langgraph() -> None:
    pytest.importorskip("langgraph", reason="langgraph is not installed")
    from langchain_core.messages import AIMessage, HumanMessage
    from langchain_core.tools import tool
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode, ToolRuntime

    effects: list[str] = []
    mails: list[str] = []
    with TestingOnceward() as testing:

        @tool
        @once_tool(
            thread_runs(testing.onceward, "agent-tools"),
            context="runtime",
            step=langgraph_step,
            response=langgraph_response,
            key_argument="bank_key",
        )
        def refund(bank_key: str, order: str, runtime: ToolRuntime) -> str:
            """Refunds an order."""
            assert bank_key == current_claim().derive_key("tool")
            effects.append(current_claim().key)
            return f"refunded {order}"

        @tool
        def mail(order: str) -> str:
            """Sends a mail."""
            mails.append(order)
            if len(mails) == 1:
                raise ConnectionError("the mail server is down")
            return "sent"

        def model(_: MessagesState) -> Any:
            calls = [
                {"name": name, "args": {"order": "7"}, "id": str(index), "type": "tool_call"}
                for index, name in enumerate(("refund", "refund", "mail"))
            ]
            return {"messages": [AIMessage("", tool_calls=calls)]}

        graph = StateGraph(MessagesState)
        graph.add_node("model", model)
        graph.add_node("tools", ToolNode([refund, mail], handle_tool_errors=False))
        graph.add_edge(START, "model")
        graph.add_edge("model", "tools")
        app = graph.compile(checkpointer=InMemorySaver())
        # One call at a time.
        thread: Any = {"configurable": {"thread_id": "thread-1"}, "max_concurrency": 1}
        with pytest.raises(ConnectionError):
            app.invoke({"messages": [HumanMessage("Refund order 7.")]}, thread)
        # The step did not end: resuming the thread repeats its calls.
        messages = app.invoke(None, thread)["messages"]
        assert [each.content for each in messages[-3:]] == ["refunded 7", "refunded 7", "sent"]
        assert sorted(refund.tool_call_schema.model_json_schema()["properties"]) == ["order"]
    assert len(effects) == 2 and len(mails) == 2


def test_the_tools_of_a_server_of_mcp() -> None:
    pytest.importorskip("mcp", reason="mcp is not installed")
    from mcp import Client
    from mcp.server.mcpserver import MCPServer

    effects: list[str] = []

    async def call_twice(testing: TestingOnceward) -> list[Any]:
        async with testing.aio() as onceward:
            run = AgentRun(onceward, "agent-tools", "refunds")
            server = MCPServer("refunds")

            @server.tool()
            @once_tool(run, key=lambda order, cents: order, key_argument="bank_key")
            async def refund(bank_key: str, order: str, cents: int) -> str:
                """Refunds an order."""
                assert bank_key == current_claim().derive_key("tool")
                effects.append(current_claim().key)
                return f"refunded {order}"

            async with Client(server) as client:
                given = {"order": "7", "cents": 100}
                results = [await client.call_tool("refund", given) for _ in range(2)]
                results.append(await client.call_tool("refund", {**given, "cents": 200}))
                return [each.content[0].text for each in results]

    with TestingOnceward() as testing:
        first, second, changed = asyncio.run(call_twice(testing))
    assert (first, second) == ("refunded 7", "refunded 7")
    assert changed.startswith("NOT RUN. ")
    assert effects == ["7"]
