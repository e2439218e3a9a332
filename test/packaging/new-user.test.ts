import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, expect, test } from "vitest";
import { linkPackages, typeErrors, usePackedClient } from "../helpers/packages/packed-client.ts";

const run = promisify(execFile);
const TIMEOUT_MS = 60_000;
/** What a new user writes for a layer is at most this long. */
const MAX_LINES = 10;

const packed = usePackedClient();

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
const handler = sqsBatchOnce(onceward, { namespace: "charges" }, ({ body }) => charge(readJson(body) as Order));
`,
    deliveries: `
const message = (messageId: string) => ({
  messageId, receiptHandle: "r", body: JSON.stringify(order), eventSourceARN: "arn:aws:sqs:eu-central-1:1:orders",
  attributes: {},
  messageAttributes: { [KEY_HEADER]: { dataType: "String", stringValue: order.id } },
});
const context = { getRemainingTimeInMillis: () => 10_000 };
for (const id of ["m-1", "m-2"])
  assert.deepEqual(await handler({ Records: [message(id)] }, context), { batchItemFailures: [] });
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

const fileOf = (layer: string) => `${layer.replaceAll(" ", "-")}.ts`;

beforeAll(async () => {
  const { project } = packed();
  await linkPackages(project, ["express", "@types/express", "@types/node"]);
  for (const [layer, { lines, deliveries }] of Object.entries(PROGRAMS)) {
    await writeFile(
      join(project, fileOf(layer)),
      `${BEFORE}${lines}${deliveries}\nassert.equal(charges, 1);\n`,
    );
  }
});

test("what a new user writes for a layer is short and well-typed", async () => {
  for (const [layer, { lines }] of Object.entries(PROGRAMS))
    expect([layer, lines.trim().split("\n").length <= MAX_LINES]).toEqual([layer, true]);
  const [first = "", ...others] = Object.keys(PROGRAMS).map(fileOf);
  const errors = await typeErrors(packed().project, first, ["--types", "node", "--skipLibCheck", ...others]);
  expect(errors).toEqual([]);
});

test.each(Object.keys(PROGRAMS))(
  "from the packed package, %s has one effect for two deliveries",
  async (layer) => {
    const options = { cwd: packed().project, timeout: TIMEOUT_MS };
    const { stderr } = await run(process.execPath, [fileOf(layer)], options);
    expect(stderr).toBe("");
  },
);
