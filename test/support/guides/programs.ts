import { fileURLToPath } from "node:url";

/** What makes a program of a guide's snippets: the declarations before them, and the checks after them. */
export interface GuideProgram {
  readonly before: string;
  readonly after: string;
}

const ONCEWARD = `
import assert from "node:assert/strict";
import { createTestingOnceward } from "@onceward/client/testing";
const testing = createTestingOnceward({
  namespaces: { payouts: { onLeaseExpiry: "HOLD" }, invoices: { lateKeys: "REQUIRE_TIME" } },
});
const onceward = testing.onceward;
let effects = 0;
const happen = async (..._: readonly unknown[]) => ({ effect: ++effects });
interface Order { readonly id: string; readonly amount: number }
const order: Order = { id: "order-1", amount: 4200 };
const provider = { charge: happen };
`;

/** The providers of the page, in front of fakes of their kinds; each charges under the key that the page names. */
const PROVIDERS = `
import { FakeProvider, type Charge } from "${fileURLToPath(new URL("../providers/provider.ts", import.meta.url))}";
import type Stripe from "stripe";
import { CompletionError, InProgressError, type Claim } from "@onceward/client";
interface Payment { readonly id: string; readonly to: string; readonly createdAt: Date }
const nowMs = () => testing.clock.nowMs;
const kinds = ["search", "stored-answer", "latest-status", "cancel"] as const;
const fakes = new Map(kinds.map((kind) => [kind as string, new FakeProvider(kind, { nowMs, lagMs: 1_800_000 })]));
const urls = new Map<string, string>();
for (const [kind, fake] of fakes) urls.set(kind, await fake.listen());
const ask = async <T = Charge>(kind: string, method: string, path: string, body?: object): Promise<T> => {
  const answer = await fetch(urls.get(kind) + "/charges" + path, { method, body: JSON.stringify(body) ?? null });
  return (await answer.json().catch(() => ({}))) as T;
};
const post = (kind: string, operation: string, key: string) => ask(kind, "POST", "", { operation, key });
const find = (key: string | undefined) => ask<Charge[]>("search", "GET", "?key=" + key);
const stripe = {
  charges: { search: async ({ query }: { query: string }) => ({ data: await find(query.split('"')[3]) }) },
} as unknown as Stripe;
const adyen = { payments: async ({ id }: Payment, { idempotencyKey }: { idempotencyKey: string }) => {
  if (id === "refused") return { pspReference: 1, resultCode: "Refused" };
  const { id: pspReference, status } = await post("stored-answer", id, idempotencyKey);
  return { pspReference, resultCode: status === "succeeded" ? "Authorised" : "Received" };
} };
const paypal = { getOrder: async (order: string) => {
  const { id, status } = await ask("latest-status", "GET", "/" + order);
  return { id, status: status === "succeeded" ? "COMPLETED" : "APPROVED" };
} };
const square = { payments: { cancelByIdempotencyKey: ({ idempotencyKey }: { idempotencyKey: string }) =>
  ask("cancel", "DELETE", "/" + idempotencyKey) } };
const twilio = { messages: { list: async ({ to }: { to: string; dateSentAfter: Date }) =>
  (await find(to)).map(({ id, operation }) => ({ sid: id, body: "Order " + operation })) } };
`;

const EVENT = `
const event = { id: "event-1", data: { amount: 4200 } };
const mailer = { send: happen };
const findProcessed = async (_client: object, _id: string): Promise<{ effect: number } | undefined> => undefined;
import pg from "pg";
import { INBOX_MIGRATION } from "@onceward/client/inbox";
const client = new pg.Client({ connectionString: process.env.DATABASE_URL });
await client.connect();
await client.query(INBOX_MIGRATION);
const insertInvoice = async (_: object, invoice: object) => invoice;
`;

/** An agent whose model asks for one refund, each time with another id of the call. */
const AGENT = `
import { generateText, tool } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { z } from "zod";
const conversation = { id: "conversation-7", messages: [{ role: "user" as const, content: "Refund order 7." }] };
const bank = { refund: happen };
const model = new MockLanguageModelV4({
  doGenerate: async () => ({
    content: [{ type: "tool-call", toolCallId: crypto.randomUUID(), toolName: "refund", input: '{"orderId":"7","cents":5}' }],
    finishReason: { unified: "tool-calls", raw: undefined },
    usage: { inputTokens: { total: 1 }, outputTokens: { total: 1 } },
    warnings: [],
  }) as never,
});
`;

/** The programs by the names of the guides that have snippets. */
export const GUIDE_PROGRAMS: Readonly<Record<string, GuideProgram>> = {
  "keys.md": {
    before: `const refund = happen; const sendReport = happen;`,
    after: `assert.equal(effects, 2);`,
  },
  "fingerprints.md": {
    before: `interface Body { readonly amount: number; readonly currency: string }`,
    after: `assert.equal(effects, 1); assert.deepEqual(first, second);`,
  },
  "crashes.md": {
    before: `
const transfer = { id: "transfer-1" };
interface Payout { readonly id: string; readonly createdAt: Date }
const payout: Payout = { id: "payout-7", createdAt: new Date() };
const paid = new Set<string>();
const bank = {
  debit: happen,
  credit: happen,
  findPayout: async (id: string) => (paid.has(id) ? id : undefined),
  payOut: async (id: string, _: { idempotencyKey: string }) => (paid.add(id), effects++, id),
};
// A holder that paid, and died before its completion.
await onceward.api.claim({ namespace: "payouts", key: "payout-7" });
await bank.payOut("payout-7", { idempotencyKey: "the dead holder's" });
testing.clock.advance(60_000);
`,
    after: `assert.equal(effects, 3); assert.equal(await pay(payout), "payout-7");`,
  },
  "agents.md": {
    before: AGENT,
    after: `
const resumed = createAgentRun(onceward, { namespace: "agent-tools", runId: conversation.id });
await generateText({ model, messages: conversation.messages, tools: aiSdkTools(resumed, { refund }) });
assert.equal(effects, 1);
`,
  },
  "late-retries.md": {
    before: `
interface Invoice extends Order { readonly createdAt: Date }
const invoice: Invoice = { ...order, createdAt: new Date() };
let reviewed = 0;
const reviews = { add: async (_: object) => ++reviewed };
`,
    after: `
await retry(invoice);
await retry(invoice);
assert.deepEqual([effects, reviewed], [1, 0]);
// The record ends ten minutes after the retention.
testing.clock.advance(72 * 3_600_000 + 600_000);
await retry(invoice);
assert.deepEqual([effects, reviewed], [1, 1]);
`,
  },
  "emails.md": {
    before: `
import { createHash } from "node:crypto";
const hashOf = (text: string) => createHash("sha256").update(text).digest("hex");
const sent: string[] = [];
const mailer = {
  send: async ({ to, messageId }: { to: string; messageId: string; template: string; data: object }) => {
    sent.push(to);
    return { id: messageId };
  },
};
`,
    after: `
assert.deepEqual(sent, ["ada@example.com"]);
const second: string = await sendReceipt("bob@example.com");
assert.match(second, /^[\\w-]{43}$/);
assert.deepEqual(sent, ["ada@example.com", "bob@example.com"]);
`,
  },
  "providers.md": {
    before: PROVIDERS,
    after: `
const charges = {
  stripe: ["search", (claim: Claim) => claim.deriveKey("charge")],
  adyen: ["stored-answer", (claim: Claim) => claim.deriveKey("charge")],
  paypal: ["latest-status", (claim: Claim) => claim.key],
  square: ["cancel", (claim: Claim) => claim.deriveKey("charge " + claim.attempt)],
  twilio: ["search", (claim: Claim) => "to-" + claim.key],
} as const;
for (const [name, [kind, keyOf]] of Object.entries(charges) as [keyof typeof charges, typeof charges.stripe][]) {
  for (const hasCharged of [false, true]) {
    const id = name + "-" + hasCharged;
    const payment = { id, to: "to-" + id, createdAt: new Date() };
    const charge = async (claim: Claim) => (await post(kind, id, keyOf(claim))).id;
    testing.faults.failNext("complete", "INTERNAL");
    const dying = onceward.run({ namespace: "payouts", key: id }, async (claim) => hasCharged && charge(claim));
    await assert.rejects(dying, CompletionError);
    testing.clock.advance(30_000);
    const pay = onceward.namespace("payouts", { waitMs: 0 }).wrap((_: Payment, claim) => charge(claim), {
      key: () => id,
      resolve: resolve[name],
    });
    if (name !== "adyen" && name !== "paypal") await assert.rejects(pay(payment), InProgressError);
    testing.clock.advance(2 * HOUR_MS);
    const settled = await pay(payment);
    const made = fakes.get(kind)?.chargesOf(id).map((each) => each.id);
    assert.deepEqual(made, [settled], id);
  }
}
const refused = { id: "refused", to: "", createdAt: new Date() };
const found = await resolve.adyen({ deriveKey: () => "charge" } as never, refused);
assert.equal(found.kind, "did-not-happen");
for (const fake of fakes.values()) await fake[Symbol.asyncDispose]();
`,
  },
  "webhooks.md": {
    before: `
import { once } from "node:events";
import Stripe from "stripe";
const stripe = new Stripe("sk_test");
const endpointSecret = "whsec_test";
const events = [{ id: "evt_2" }];
const handle = async (_: object) => {};
const ship = happen;
`,
    after: `
const payload = JSON.stringify({ id: "evt_1", created: 1_800_000_000, type: "invoice.paid", data: { object: {} } });
const signature = stripe.webhooks.generateTestHeaderString({ payload, secret: endpointSecret });
const headers = { "content-type": "application/json", "stripe-signature": signature };
const listener = app.listen(0, "127.0.0.1");
await once(listener, "listening");
const toExpress = \`http://127.0.0.1:\${(listener.address() as { port: number }).port}/webhooks\`;
const first = await fetch(toExpress, { method: "POST", headers, body: payload });
assert.deepEqual([first.status, first.headers.get("idempotency-replayed"), effects], [200, null, 1]);
const second = await server.inject({ method: "POST", url: "/webhooks", headers, payload });
assert.deepEqual([second.statusCode, second.headers["idempotency-replayed"], effects], [200, "true", 1]);
listener.close();
await server.close();
`,
  },
  "cron.md": {
    before: `
let settled = 0;
let isDown = false;
const ledger = {
  settle: async (_day: string) => ++settled,
  report: async (day: string, _: object) => {
    if (isDown) throw new Error("down");
    return { day, ...(await happen()) };
  },
};
`,
    after: `
await closeDay("2026-03-01");
assert.deepEqual([settled, effects], [1, 1]);
// A machine that dies after its checkpoint.
isDown = true;
testing.faults.failNext("release", "INTERNAL");
await assert.rejects(closeDay("2026-03-02"), { message: "down" });
await assert.rejects(closeDay("2026-03-02"), { name: "InProgressError" });
isDown = false;
testing.clock.advance(60_000);
await closeDay("2026-03-02");
assert.deepEqual([settled, effects], [2, 2]);
`,
  },
  "imports.md": {
    before: `
interface Row { readonly file: string; readonly line: number; readonly cents: number }
const rows: Row[] = Array.from({ length: 250 }, (_, line) => ({ file: "f1", line, cents: line }));
const failed: unknown[] = [];
const accounts = {
  credit: async ({ line }: Row) => {
    if (line === 120 && effects < 250) throw new Error("down");
    return happen();
  },
};
`,
    after: `
assert.deepEqual([effects, failed.length], [249, 2]);
effects = 250;
await importFile(rows);
assert.deepEqual([effects, failed.length], [251, 2]);
await importFile([{ file: "f1", line: 0, cents: 99 }]);
assert.match(String(failed[2]), /fingerprint/i);
`,
  },
  "queues.md": {
    before: `
interface Message { readonly orderId: string; readonly body: Order; ack(): Promise<void> }
let acknowledged = 0;
const message: Message = { orderId: order.id, body: order, ack: async () => void acknowledged++ };
const added: { readonly order: Order }[] = [];
const queue = { add: async (_: string, data: { readonly order: Order }, _options: object) => void added.push(data) };
`,
    after: `
const [data] = added;
for (const id of ["1", "2"]) await processor({ id, data, timestamp: Date.now() } as Job<{ order: Order }>, "token");
assert.equal(effects, 1);
await handle(message);
await handle(message);
assert.deepEqual([effects, acknowledged], [2, 2]);
`,
  },
  "from-stripe.md": {
    before: `
const stripe = { charges: { create: async (..._: readonly unknown[]) => ({ id: "ch_" + ++effects }) } };
const mailer = { send: happen };
`,
    after: `assert.deepEqual(charge, { id: "ch_1" }); assert.equal(effects, 2);`,
  },
  "outages.md": {
    before: `const index = happen; testing.faults.failNext("claim", "DATABASE_UNAVAILABLE", 1);`,
    after: `assert.equal(effects, 2); assert.equal(unguarded, 0);`,
  },
  "from-powertools.md": {
    before: "",
    after: `
const context = { getRemainingTimeInMillis: () => 10_000 };
assert.deepEqual(await handler({ orderId: "1", amount: 1 }, context), await handler({ orderId: "1", amount: 1 }, context));
assert.equal(effects, 1);
`,
  },
  "from-a-table.md": {
    before: EVENT,
    after: `
assert.equal(replayed, false); assert.ok(receipt && value); assert.equal(effects, 2);
await client.end();
`,
  },
  "from-redis.md": {
    before: `
const locks = new Set<string>();
const redis = {
  set: async (key: string, _value: string, _options: object) =>
    locks.has(key) ? null : (locks.add(key), "OK"),
};
`,
    after: `assert.equal(effects, 1);`,
  },
  "kubernetes.md": {
    before: `
const pages = [1, 2];
const exportPage = happen;
let closes = 0;
const server = { close: () => closes++ };
`,
    after: `
process.kill(process.pid, "SIGTERM");
while (closes === 0) await new Promise((resolve) => setTimeout(resolve, 5));
assert.equal(effects, 2);
await assert.rejects(onceward.run({ namespace: "exports", key: "export-4" }, happen), { reason: "CLOSED" });
`,
  },
};

/** Returns the whole program of a guide's snippets. */
export function programOf({ before, after }: GuideProgram, snippets: readonly string[]): string {
  return [ONCEWARD, before, ...snippets, after, "export {};\n"].join("\n");
}
