import { createOnceward } from "@onceward/client";
import { aiSdkTools, claimOf, createAgentRun } from "@onceward/client/agents";
import {
  type FlexibleSchema,
  generateText,
  jsonSchema,
  type ModelMessage,
  streamText,
  tool,
  zodSchema,
} from "ai";
import { expect, test, vi } from "vitest";
import { z } from "zod";
import { type Guarded, useGuards } from "../consumers/fixtures.ts";
import { modelOf } from "./models.ts";

const newGuard = useGuards();

interface Order {
  readonly order: string;
}

const inputSchema = jsonSchema<Order>({ type: "object", properties: { order: { type: "string" } } });
const messages: ModelMessage[] = [{ role: "user", content: "Refund order 7, twice." }];
const refund7 = { toolName: "refund", input: { order: "7" } };

/** Returns what a process does that starts or resumes the run, with the tools that it guards. */
function agentOf({ onceward }: Pick<Guarded, "onceward">, execute: (order: Order, key: string) => unknown) {
  const run = createAgentRun(onceward, { namespace: "agent-tools", runId: "run-1" });
  const refund = tool({
    description: "Refunds an order.",
    inputSchema,
    execute: (order: Order, options) => execute(order, claimOf(options).deriveKey("bank")),
  });
  const tools = aiSdkTools(run, { refund });
  return (model: ReturnType<typeof modelOf>, given = messages) =>
    generateText({ model, tools, messages: given, stopWhen: ({ steps }) => steps.length >= 3 });
}

/** Returns the outputs of tools that the model was given with its last request. */
function outputsFor(model: ReturnType<typeof modelOf>): unknown[] {
  const { prompt } = model.doGenerateCalls.at(-1) ?? { prompt: [] };
  return prompt.flatMap(({ role, content }) =>
    role === "tool"
      ? content.map((part) =>
          part.type === "tool-result" && "value" in part.output ? part.output.value : part,
        )
      : [],
  );
}

test("a run that is started again repeats no tool call, although the model makes other call ids", async () => {
  await using guard = await newGuard();
  const keys: string[] = [];
  const bank = vi.fn((_: Order, key: string) => ({ receipt: keys.push(key) }));
  const start = async () => {
    const model = modelOf([refund7, refund7], [refund7], "Done.");
    const { text } = await agentOf(guard, bank)(model);
    expect(text).toBe("Done.");
    return outputsFor(model);
  };
  const first = await start();
  expect(first).toEqual([{ receipt: 1 }, { receipt: 2 }, { receipt: 3 }]);
  expect(await start()).toEqual(first);
  expect(new Set(keys).size).toBe(3);
});

test("a run that is resumed from its stored messages continues the steps", async () => {
  await using guard = await newGuard();
  const bank = vi.fn(() => "refunded");
  const { response } = await agentOf(guard, bank)(modelOf([refund7], "Once."));
  const history = [...messages, ...response.messages.slice(0, 2)] as ModelMessage[];
  await agentOf(guard, bank)(modelOf([refund7], "Twice."), history);
  await agentOf(guard, bank)(modelOf([refund7], "Twice."), history);
  expect(bank).toHaveBeenCalledTimes(2);
});

const keyName = "idempotencyKey";
const asZod = z.object({ order: z.string(), [keyName]: z.string() });
const asJson = z.toJSONSchema(asZod) as never;

test.each([
  ["JSON Schema", jsonSchema(asJson)],
  ["JSON Schema that comes later", jsonSchema(async () => asJson)],
  ["a schema of Zod", zodSchema(asZod)],
  ["an object of Zod", asZod],
])("a tool with %s gets the key in an argument that the model does not see", async (_, schema) => {
  await using guard = await newGuard();
  const bank = vi.fn(async (order: unknown) => order);
  await expect(async () => {
    const run = createAgentRun(guard.onceward, { namespace: "agent-tools", runId: "run-1" });
    const refund = tool({ inputSchema: schema as FlexibleSchema<Order>, execute: bank });
    const { inputSchema } = aiSdkTools(run, { refund }, { keyArguments: { refund: "/kee" } }).refund;
    return Object(inputSchema).jsonSchema;
  }).rejects.toThrow("keyArguments.refund");
  for (const input of [{ order: "7" }, { order: "7", [keyName]: "the model's" }]) {
    const run = createAgentRun(guard.onceward, { namespace: "agent-tools", runId: "run-1" });
    const refund = tool({ inputSchema: schema as FlexibleSchema<Order>, execute: bank });
    const model = modelOf([{ toolName: "refund", input }], "Done.");
    const tools = aiSdkTools(run, { refund }, { keyArguments: { refund: `/${keyName}` } });
    await generateText({ model, tools, messages, stopWhen: ({ steps }) => steps.length === 2 });
    expect(JSON.stringify(model.doGenerateCalls[0]?.tools)).not.toContain(keyName);
    expect(outputsFor(model)).toEqual([{ order: "7", [keyName]: expect.stringMatching(/^[\w-]{43}$/) }]);
  }
  expect(bank).toHaveBeenCalledOnce();
});

test("a streamed response's equal calls are two operations, and its repetition adds none", async () => {
  await using guard = await newGuard();
  const bank = vi.fn(() => "refunded");
  for (let starts = 0; starts < 2; starts++) {
    const run = createAgentRun(guard.onceward, { namespace: "agent-tools", runId: "run-1" });
    const tools = aiSdkTools(run, { refund: tool({ inputSchema, execute: bank }) });
    await streamText({ model: modelOf([refund7, refund7]), tools, messages }).consumeStream();
  }
  expect(bank).toHaveBeenCalledTimes(2);
});

test("equal calls of one response are two operations although one follows the other", async () => {
  await using guard = await newGuard();
  const bank = vi.fn(() => "refunded");
  for (let starts = 0; starts < 2; starts++) {
    const run = createAgentRun(guard.onceward, { namespace: "agent-tools", runId: "run-1" });
    const { refund } = aiSdkTools(run, { refund: tool({ inputSchema, execute: bank }) });
    for (const toolCallId of ["a", "b", "b"])
      await refund.execute?.({ order: "7" }, { toolCallId, messages, context: {} } as never);
  }
  expect(bank).toHaveBeenCalledTimes(2);
});

test("after a crash the model is told that the outcome is unknown, and no tool runs", async () => {
  await using guard = await newGuard();
  const { address, tenant } = guard;
  const dying = createOnceward({ address, apiKey: tenant.apiKey });
  const begun = Promise.withResolvers<void>();
  const died = agentOf({ onceward: dying }, () => {
    begun.resolve();
    return new Promise(() => {});
  })(modelOf([refund7]));
  void Promise.allSettled([died]);
  await begun.promise;
  await dying.close({ timeoutMs: 0 });
  await guard.endLeases();
  const bank = vi.fn();
  const model = modelOf([refund7], [{ toolName: "refund", input: { order: "8" } }], "I don't know.");
  await agentOf(guard, bank)(model);
  expect(outputsFor(model)).toEqual([expect.stringContaining("OUTCOME UNKNOWN"), null]);
  expect(bank).toHaveBeenCalledOnce();
});

test("a tool that yields several outputs stores the last; one without execute is unchanged", async () => {
  await using guard = await newGuard();
  const bank = vi.fn(async function* () {
    yield "asking the bank";
    yield "refunded";
  });
  for (let starts = 0; starts < 2; starts++) {
    const model = modelOf([refund7], "Done.");
    await agentOf(guard, bank)(model);
    expect(outputsFor(model)).toEqual(["refunded"]);
  }
  expect(bank).toHaveBeenCalledOnce();
  const run = createAgentRun(guard.onceward, { namespace: "agent-tools", runId: "run-1" });
  const ask = tool({ inputSchema });
  expect(aiSdkTools(run, { ask }).ask).toBe(ask);
});
