import { StructuredTool, tool } from "@langchain/core/tools";
import type { Claim } from "@onceward/client";
import { claimOf, createAgentRun, type LangChainOptions, langChainTools } from "@onceward/client/agents";
import { expect, test, vi } from "vitest";
import { z } from "zod";
import { type Guarded, useGuards } from "../../adapters/consumers/fixtures.ts";

const newGuard = useGuards();
const schema = z.object({ order: z.string() });
const inStep = (step: number) => ({ metadata: { langgraph_step: step } });

/** A call as a model makes it: with another id each time. */
function callOf(order: string) {
  return { type: "tool_call" as const, id: crypto.randomUUID(), name: "refund", args: { order } };
}

function guarded(
  { onceward }: Guarded,
  bank: (order: string, claim: Claim) => unknown,
  options?: LangChainOptions,
) {
  const refund = tool(async ({ order }, config) => await bank(order, claimOf(config)), {
    name: "refund",
    description: "Refunds an order.",
    schema,
  });
  const run = createAgentRun(onceward, { namespace: "agent-tools", runId: "thread-1", waitMs: 0 });
  const [only] = langChainTools(run, [refund], options);
  if (only === undefined) throw new Error("one tool is guarded");
  return only;
}

test("a tool call runs once in its step of LangGraph, and again in the next step", async () => {
  await using guard = await newGuard();
  const bank = vi.fn((order: string, claim: Claim) => `${order} ${claim.attempt}`);
  for (const step of [1, 1, 3]) {
    const message = await guarded(guard, bank).invoke(callOf("7"), inStep(step));
    expect(message).toMatchObject({ content: "7 1", status: "success" });
  }
  expect(bank).toHaveBeenCalledTimes(2);
});

test("equal calls of one step that run at the same time are two operations", async () => {
  await using guard = await newGuard();
  const bank = vi.fn((order: string) => order);
  for (let starts = 0; starts < 2; starts++) {
    const refund = guarded(guard, bank);
    await Promise.all([callOf("7"), callOf("7")].map((call) => refund.invoke(call, inStep(1))));
  }
  expect(bank).toHaveBeenCalledTimes(2);
});

test("a blocked call answers with a text; a tool's error is thrown, and a repetition runs", async () => {
  await using guard = await newGuard();
  const bank = vi
    .fn((order: string) => order)
    .mockImplementationOnce(() => {
      throw new Error("the bank is closed");
    });
  await expect(guarded(guard, bank).invoke(callOf("7"), inStep(1))).rejects.toThrow("the bank is closed");
  await guarded(guard, bank).invoke(callOf("7"), inStep(1));
  const message = await guarded(guard, bank).invoke(callOf("8"), inStep(1));
  expect(message).toMatchObject({ content: expect.stringMatching(/^NOT RUN\. An earlier attempt/) });
  expect(bank).toHaveBeenCalledTimes(2);
});

test("a tool gets the key in an argument that the model does not see", async () => {
  await using guard = await newGuard();
  const keyed = z.object({ order: z.string(), key: z.string() });
  for (const [name, shape] of Object.entries({ zod: keyed, json: z.toJSONSchema(keyed) })) {
    const bank = vi.fn(async (order: object) => JSON.stringify(order));
    const original = tool(bank as never, { name, description: "Refunds an order.", schema: shape as never });
    const run = createAgentRun(guard.onceward, { namespace: "agent-tools", runId: "thread-1", waitMs: 0 });
    const [refund] = langChainTools(run, [original], { keyArguments: { [name]: "/key" } });
    expect(Object(refund).schema).not.toHaveProperty("properties.key");
    for (let repeats = 0; repeats < 2; repeats++) {
      const { content } = Object(await refund?.invoke({ ...callOf("7"), name }, inStep(1)));
      expect(JSON.parse(content)).toEqual({ order: "7", key: expect.stringMatching(/^[\w-]{43}$/) });
    }
    expect(bank).toHaveBeenCalledOnce();
  }
});

test("a tool of a class stays an instance of it; a step and keys can be given", async () => {
  await using guard = await newGuard();
  const bank = vi.fn(() => ["refunded", { receipt: 1 }]);
  class Refund extends StructuredTool {
    override name = "refund";
    override description = "Refunds an order.";
    override schema = schema;
    override responseFormat = "content_and_artifact";
    readonly #bank = bank;
    protected override async _call(): Promise<unknown> {
      return this.#bank();
    }
  }
  const original = new Refund();
  const start = () => createAgentRun(guard.onceward, { namespace: "agent-tools", runId: "thread-2" });
  const keys = { refund: ({ order }: { order: string }) => order };
  const [refund] = langChainTools(start(), [original], { keys });
  expect(refund).toBeInstanceOf(Refund);
  for (let repeats = 0; repeats < 2; repeats++) {
    const message = await refund?.invoke(callOf("7"));
    expect(message).toMatchObject({ content: "refunded", artifact: { receipt: 1 } });
  }
  expect(bank).toHaveBeenCalledOnce();
  const stepped = () => langChainTools(start(), [original], { step: () => "plan" })[0];
  await stepped()?.invoke(callOf("7"));
  expect(await stepped()?.invoke(callOf("8"))).toMatchObject({ content: expect.stringMatching(/^NOT RUN/) });
  const [unstepped] = langChainTools(start(), [original]);
  await expect(unstepped?.invoke(callOf("7"))).rejects.toThrow(/^step must be an option outside LangGraph/);
});
