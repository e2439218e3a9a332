import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import {
  Command,
  END,
  interrupt,
  MemorySaver,
  MessagesAnnotation,
  START,
  StateGraph,
} from "@langchain/langgraph";
import { createReactAgent, ToolNode } from "@langchain/langgraph/prebuilt";
import { type Claim, createOnceward } from "@onceward/client";
import { claimOf, type LangChainOptions, langChainTools, threadRuns } from "@onceward/client/agents";
import { expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import type { ModelCall } from "../../adapters/agents/models.ts";
import { type Guarded, useGuards } from "../../adapters/consumers/fixtures.ts";

/** A chat model of LangChain with these responses: tool calls, each with an id that no earlier call had, or a text. */
class ScriptedChatModel extends BaseChatModel {
  readonly #responses: (readonly ModelCall[] | string)[];

  constructor(...responses: (readonly ModelCall[] | string)[]) {
    super({});
    this.#responses = responses;
  }

  override bindTools(): this {
    return this;
  }

  _llmType(): string {
    return "scripted";
  }

  async _generate(_messages: BaseMessage[]) {
    const response = this.#responses.shift() ?? "Done.";
    const message =
      typeof response === "string"
        ? new AIMessage(response)
        : new AIMessage({
            content: "",
            tool_calls: response.map(({ toolName, input }) => ({
              type: "tool_call" as const,
              id: crypto.randomUUID(),
              name: toolName,
              args: input as Record<string, unknown>,
            })),
          });
    return { generations: [{ text: "", message }] };
  }
}

const newGuard = useGuards();
const schema = z.object({ order: z.string() });
const refund = (order: string): ModelCall => ({ toolName: "refund", input: { order } });
const ask = { messages: [{ role: "user", content: "Refund order 7." }] };
const inThread = (thread_id: string) => ({ configurable: { thread_id } });

type Bank = (order: string, claim: Claim) => unknown;

/** Returns the guarded tools of a graph, as a process makes them when it starts. */
function toolsOf({ onceward }: Pick<Guarded, "onceward">, bank: Bank, options?: LangChainOptions) {
  const original = tool(async ({ order }, config) => await bank(order, claimOf(config)), {
    name: "refund",
    description: "Refunds an order.",
    schema,
  });
  const runs = threadRuns(onceward, { namespace: "agent-tools", waitMs: 0 });
  return langChainTools(runs, [original], options);
}

function outputsOf({ messages }: { messages: readonly { getType(): string; content: unknown }[] }) {
  return messages.filter((message) => message.getType() === "tool").map(({ content }) => content);
}

test("a graph whose process died in a tool resumes; its model learns of the unknown outcome", async () => {
  await using guard = await newGuard();
  const checkpointer = new MemorySaver();
  const graphOf = (tools: ReturnType<typeof toolsOf>, ...responses: (ModelCall[] | string)[]) => {
    const llm = new ScriptedChatModel(...responses);
    return new StateGraph(MessagesAnnotation)
      .addNode("model", async ({ messages }) => ({ messages: [await llm.invoke(messages)] }))
      .addNode("tools", new ToolNode(tools))
      .addEdge(START, "model")
      .addConditionalEdges("model", ({ messages }) =>
        Reflect.get(messages.at(-1) ?? {}, "tool_calls")?.length > 0 ? "tools" : END,
      )
      .addEdge("tools", "model")
      .compile({ checkpointer });
  };
  const dying = createOnceward({ address: guard.address, apiKey: guard.tenant.apiKey });
  const begun = Promise.withResolvers<void>();
  const hanging = toolsOf({ onceward: dying }, () => {
    begun.resolve();
    return new Promise(() => {});
  });
  void Promise.allSettled([graphOf(hanging, [refund("7")]).invoke(ask, inThread("a"))]);
  await begun.promise;
  // Not before: a client that closes tells its tools to end, and a process that dies does not.
  onTestFinished(() => dying.close({ timeoutMs: 0 }));
  await guard.endLeases();

  const bank = vi.fn(() => "refunded");
  // In a later step, the model tries again all the same.
  const resumed = graphOf(toolsOf(guard, bank), [refund("7")], [refund("8")], "A person has to check.");
  const unknown = expect.stringMatching(/^OUTCOME UNKNOWN.*"a:2:refund"\.$/);
  expect(outputsOf(await resumed.invoke(null, inThread("a")))).toEqual([unknown, unknown, "refunded"]);
  expect(bank).toHaveBeenCalledOnce();
});

test("a tool that asks a person first runs when the thread is resumed, and its call runs once", async () => {
  await using guard = await newGuard();
  const bank = vi.fn((order: string) => (interrupt(`Refund ${order}?`) === "yes" ? "refunded" : "refused"));
  const checkpointer = new MemorySaver();
  const llm = new ScriptedChatModel([refund("7")], "Done.");
  const agent = createReactAgent({ llm, tools: toolsOf(guard, bank), checkpointer });
  await agent.invoke(ask, inThread("a"));
  const answered = await agent.invoke(new Command({ resume: "yes" }), inThread("a"));
  expect(outputsOf(answered)).toEqual(["refunded"]);
  expect(bank).toHaveBeenCalledTimes(2);
});

test("a tool's Command reaches the graph once; its repetition is told to the model", async () => {
  await using guard = await newGuard();
  const bank = vi.fn(() => new Command({ update: { messages: [{ role: "user", content: "Refunded." }] } }));
  const texts = [];
  for (let starts = 0; starts < 2; starts++) {
    const llm = new ScriptedChatModel([refund("7")], "Done.");
    const agent = createReactAgent({ llm, tools: toolsOf(guard, bank) });
    const { messages } = await agent.invoke(ask, inThread("a"));
    texts.push(messages.at(2)?.content);
  }
  expect(texts).toEqual(["Refunded.", expect.stringMatching(/^ALREADY DONE/)]);
  expect(bank).toHaveBeenCalledOnce();
});

test("a call without a thread, or in a subgraph without the option step, is refused", async () => {
  await using guard = await newGuard();
  const bank = vi.fn(() => "refunded");
  const alone = createReactAgent({ llm: new ScriptedChatModel([refund("7")]), tools: toolsOf(guard, bank) });
  expect(outputsOf(await alone.invoke(ask))).toEqual([expect.stringContaining("thread_id must be a text")]);

  const graphOf = (options?: LangChainOptions) => {
    const nodeOf = () =>
      createReactAgent({
        llm: new ScriptedChatModel([refund("7")], "Done."),
        tools: toolsOf(guard, bank, options),
      });
    return new StateGraph(MessagesAnnotation)
      .addNode("first", nodeOf())
      .addNode("second", nodeOf())
      .addEdge(START, "first")
      .addEdge("first", "second")
      .addEdge("second", END)
      .compile({ checkpointer: new MemorySaver() });
  };
  const refused = expect.stringContaining("step must be an option in a subgraph");
  expect(outputsOf(await graphOf().invoke(ask, inThread("b")))).toEqual([refused, refused]);
  expect(bank).not.toHaveBeenCalled();
  const step: LangChainOptions["step"] = ({ metadata }) =>
    `${String(metadata?.langgraph_checkpoint_ns).split(":")[0]} ${metadata?.langgraph_step}`;
  for (let starts = 0; starts < 2; starts++) await graphOf({ step }).invoke(ask, inThread("c"));
  expect(bank).toHaveBeenCalledTimes(2);
});

test("a thread continued from an older checkpoint repeats a call only without the option keys", async () => {
  await using guard = await newGuard();
  const runsOf = async (thread: string, options?: LangChainOptions) => {
    const bank = vi.fn(() => "refunded");
    const llm = new ScriptedChatModel([refund("7")], "Done.");
    const agent = createReactAgent({
      llm,
      tools: toolsOf(guard, bank, options),
      checkpointer: new MemorySaver(),
    });
    await agent.invoke(ask, inThread(thread));
    const steps = [];
    for await (const { next, config, metadata } of agent.getStateHistory(inThread(thread)))
      if (next.includes("tools")) steps.push({ config, step: metadata?.step });
    expect(steps).toHaveLength(1);
    for (const { config } of steps) expect(outputsOf(await agent.invoke(null, config))).toEqual(["refunded"]);
    return bank.mock.calls.length;
  };
  expect(await runsOf("a")).toBe(2);
  expect(await runsOf("b", { keys: { refund: ({ order }: { order: string }) => order } })).toBe(1);
});

test("equal calls of one response run once each, although their graph runs one after the others", async () => {
  await using guard = await newGuard();
  const bank = vi.fn(() => "refunded");
  const llm = new ScriptedChatModel([refund("7"), refund("7"), refund("7")], "Done.");
  const tools = toolsOf(guard, bank);
  const agent = createReactAgent({ llm, tools, checkpointer: new MemorySaver(), version: "v2" });
  const state = await agent.invoke(ask, { ...inThread("a"), maxConcurrency: 2 });
  expect(outputsOf(state)).toEqual(["refunded", "refunded", "refunded"]);
  expect(bank).toHaveBeenCalledTimes(3);
});
