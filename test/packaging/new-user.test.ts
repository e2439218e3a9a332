import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, expect, test } from "vitest";
import { compile, linkPackages, usePackedClient } from "../support/packages/packed-client.ts";

const run = promisify(execFile);
const TIMEOUT_MS = 120_000;
/** What a new user writes for a layer is at most this long. */
const MAX_LINES = 10;

const packed = usePackedClient();
let compilerErrors: readonly string[];

/** The effect, and a service in memory; every program makes two deliveries and has one effect. */
const BEFORE = `
import assert from "node:assert/strict";
import { createTestingOnceward } from "@onceward/client/testing";
interface Order { readonly id: string }
const order: Order = { id: "order-1" };
let charges = 0;
const charge = async (of: Order) => ({ charge: ++charges, of });
const { onceward } = createTestingOnceward();
`;

/** By layer: the lines of a new user, and two deliveries. */
const PROGRAMS: Readonly<Record<string, { readonly lines: string; readonly deliveries: string }>> = {
  run: {
    lines: `
const deliver = () =>
  onceward.run({ namespace: "charges", key: order.id, fingerprint: order }, () => charge(order));
`,
    deliveries: "await deliver(); await deliver();",
  },
  wrap: {
    lines: `
const chargeOnce = onceward
  .namespace("charges", { waitMs: 5_000 })
  .wrap((order: Order) => charge(order), { key: ({ id }) => id, fingerprint: (order) => order });
`,
    deliveries: "await chargeOnce(order); await chargeOnce(order);",
  },
  Express: {
    lines: `
import express from "express";
import { idempotency } from "@onceward/client/express";
const app = express();
app.use(express.json());
app.post("/charges", idempotency(onceward, { namespace: "http", caller: () => "shop" }), async (req, res) => {
  res.status(201).json(await charge(req.body));
});
`,
    deliveries: `
const server = app.listen(0, "127.0.0.1");
await new Promise((resolve) => server.once("listening", resolve));
const { port } = server.address() as { port: number };
const headers = { "content-type": "application/json", "idempotency-key": '"k-1"' };
for (const replayed of [null, "true"]) {
  const response = await fetch(\`http://127.0.0.1:\${port}/charges\`, { method: "POST", headers, body: JSON.stringify(order) });
  assert.deepEqual([response.status, response.headers.get("idempotency-replayed")], [201, replayed]);
}
server.close();
`,
  },
  NestJS: {
    lines: `
import { Body, Controller, Module, Post } from "@nestjs/common";
import { Idempotent, OncewardModule } from "@onceward/client/nestjs";
@Controller("charges")
class Charges {
  @Post() @Idempotent({ namespace: "http" })
  charge(@Body() order: Order) { return charge(order); }
}
@Module({ imports: [OncewardModule.forRoot({ client: onceward, http: { caller: () => "shop" } })], controllers: [Charges] })
class App {}
`,
    deliveries: `
import { NestFactory } from "@nestjs/core";
const app = await NestFactory.create(App, { logger: false });
await app.listen(0, "127.0.0.1");
const headers = { "content-type": "application/json", "idempotency-key": '"k-1"' };
for (const replayed of [null, "true"]) {
  const response = await fetch(\`\${await app.getUrl()}/charges\`, { method: "POST", headers, body: JSON.stringify(order) });
  assert.deepEqual([response.status, response.headers.get("idempotency-replayed")], [201, replayed]);
}
await app.close();
`,
  },
  Lambda: {
    lines: `
import { lambdaOnce } from "@onceward/client/lambda";
const handler = lambdaOnce(onceward, { namespace: "charges", key: (event: Order) => event.id }, (event) => charge(event));
`,
    deliveries: `
const context = { getRemainingTimeInMillis: () => 10_000 };
await handler(order, context); await handler(order, context);
`,
  },
  "a consumer": {
    lines: `
import { KEY_HEADER, readJson, sqsBatchOnce } from "@onceward/client/lambda";
const options = { namespace: "charges", deadLetter: "broker" } as const;
const handler = sqsBatchOnce(onceward, options, ({ body }) => charge(readJson(body) as Order));
`,
    deliveries: `
const message = (messageId: string) => ({
  messageId, receiptHandle: "r", body: JSON.stringify(order), eventSourceARN: "arn:aws:sqs:eu-central-1:1:orders",
  attributes: { SentTimestamp: String(Date.now()) },
  messageAttributes: { [KEY_HEADER]: { dataType: "String", stringValue: order.id } },
});
const context = { getRemainingTimeInMillis: () => 10_000 };
for (const id of ["m-1", "m-2"])
  assert.deepEqual(await handler({ Records: [message(id)] }, context), { batchItemFailures: [] });
`,
  },
  "an agent tool": {
    lines: `
import { aiSdkTools, createAgentRun } from "@onceward/client/agents";
import { generateText, jsonSchema, type LanguageModel, tool } from "ai";
const inputSchema = jsonSchema<Order>({ type: "object" });
const chargeByModel = (model: LanguageModel) => {
  const run = createAgentRun(onceward, { namespace: "agent-tools", runId: "conversation-1" });
  const tools = aiSdkTools(run, { charge: tool({ inputSchema, execute: (order) => charge(order) }) });
  return generateText({ model, tools, prompt: "Charge order 1." });
};
`,
    deliveries: `
import { MockLanguageModelV4 } from "ai/test";
const usage = { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } };
const modelWithCallId = (toolCallId: string) => new MockLanguageModelV4({
  doGenerate: {
    content: [{ type: "tool-call", toolCallId, toolName: "charge", input: JSON.stringify(order) }],
    finishReason: { unified: "tool-calls", raw: undefined }, usage, warnings: [],
  },
});
for (const id of ["call-1", "call-2"]) {
  const { toolResults: [result] } = await chargeByModel(modelWithCallId(id));
  assert.deepEqual(result?.output, { charge: 1, of: order });
}
`,
  },
  "a unit test": {
    lines: `
const testing = createTestingOnceward();
testing.faults.failNext("complete", "INTERNAL");
const chargeOnce = () => testing.onceward.run({ namespace: "charges", key: order.id }, () => charge(order));
await assert.rejects(chargeOnce());
charges = 0;
testing.clock.advance(30_000);
`,
    deliveries: "await chargeOnce(); await chargeOnce();",
  },
};

const fileOf = (layer: string, ending: string) => `${layer.replaceAll(" ", "-")}.${ending}`;

/** As Nest's own starter project is compiled; the other programs need no compiler. */
const compilerOptions = {
  ...{
    target: "es2022",
    module: "nodenext",
    types: ["node"],
    outDir: "out",
    strict: true,
    skipLibCheck: true,
  },
  ...{ experimentalDecorators: true, emitDecoratorMetadata: true },
};

beforeAll(async () => {
  const { project } = packed();
  const nest = ["common", "core", "platform-express"].map((part) => `@nestjs/${part}`);
  await linkPackages(project, ["ai", "express", "@types/express", "@types/node", "rxjs", ...nest]);
  for (const [layer, { lines, deliveries }] of Object.entries(PROGRAMS)) {
    const program = `${BEFORE}${lines}${deliveries}\nassert.equal(charges, 1);\n`;
    await writeFile(join(project, fileOf(layer, "ts")), program);
  }
  const files = Object.keys(PROGRAMS).map((layer) => fileOf(layer, "ts"));
  await writeFile(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, files }));
  compilerErrors = await compile(project);
});

test("what a new user writes for a layer is short and well-typed", () => {
  for (const [layer, { lines }] of Object.entries(PROGRAMS))
    expect([layer, lines.trim().split("\n").length <= MAX_LINES]).toEqual([layer, true]);
  expect(compilerErrors).toEqual([]);
});

test.each(Object.keys(PROGRAMS))(
  "from the packed package, %s has one effect for two deliveries",
  async (layer) => {
    const options = { cwd: packed().project, timeout: TIMEOUT_MS };
    const { stderr } = await run(process.execPath, [join("out", fileOf(layer, "js"))], options);
    expect(stderr).toBe("");
  },
);
