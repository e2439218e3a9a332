import { createOnceward, type Onceward } from "@onceward/client";
import { tracing } from "@onceward/client/otel";
import { createOnceward as createWebOnceward } from "@onceward/client/web";
import type { ReadableSpan } from "@opentelemetry/sdk-trace-base";
import { expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../support/database/use-database.ts";
import { createTenant } from "../support/servers/tenants.ts";
import type { ReceivedSpan } from "../support/tracing/otlp-messages.ts";
import { useTracedServer } from "../support/tracing/traced-server.ts";
import { newTracer } from "../support/tracing/tracer.ts";

const database = useDatabase();
const { collector, server } = useTracedServer(database);

/** Returns a client over gRPC, or over Connect and `fetch`, whose spans the tracer makes. */
async function newOnceward(
  tracer: ReturnType<typeof newTracer>["tracer"],
  transport: "gRPC" | "fetch" = "gRPC",
): Promise<Onceward> {
  const { apiKey } = await createTenant(database);
  const trace = tracing(tracer);
  const onceward =
    transport === "gRPC"
      ? createOnceward({ address: `http://127.0.0.1:${server.grpcPort}`, apiKey, trace })
      : createWebOnceward({ address: `http://127.0.0.1:${server.httpPort}`, apiKey, trace });
  onTestFinished(() => onceward.close());
  return onceward;
}

/** Waits until the server has a child of a client's span, and returns it. */
async function untilChild(span: ReadableSpan | undefined): Promise<ReceivedSpan> {
  const { traceId, spanId } = span?.spanContext() ?? {};
  const find = () => collector.spans.find((one) => one.traceId === traceId && one.parentSpanId === spanId);
  await expect.poll(find).toBeDefined();
  return find() as ReceivedSpan;
}

const operation = { namespace: "charges", key: "order-1" };

test.for(["gRPC", "fetch"] as const)(
  "over %s, the server's spans are children of the client's claim and completion",
  async (transport) => {
    const { tracer, spans } = newTracer();
    const onceward = await newOnceward(tracer, transport);
    await onceward.run(operation, () => "charged");
    // Over fetch, each call is a request of its own.
    for (const [name, statement, method] of [
      ["onceward.claim", "claim_record", "Claim"],
      ["onceward.complete", "complete_records", "Complete"],
    ]) {
      const call = await untilChild(spans().find((span) => span.name === name));
      expect(call.name).toBe(`onceward.v1.IdempotencyService/${transport === "gRPC" ? "Batch" : method}`);
      const children = () => collector.spans.filter(({ parentSpanId }) => parentSpanId === call.spanId);
      await expect.poll(() => children().map((child) => child.name)).toContain(statement);
    }
  },
);

test("calls of several traces in one batch are each a child of their own client's span", async () => {
  const { tracer, spans } = newTracer();
  const onceward = await newOnceward(tracer);
  await Promise.all(
    Array.from({ length: 5 }, (_, index) =>
      onceward.run({ ...operation, key: `order-${index}` }, () => index),
    ),
  );
  const claims = spans().filter(({ name }) => name === "onceward.claim");
  expect(new Set(claims.map((span) => span.spanContext().traceId)).size).toBe(5);
  const calls = await Promise.all(claims.map(untilChild));
  const batches = calls.filter(({ name }) => name.endsWith("/Batch"));
  const items = calls.filter(({ name }) => name.endsWith("/Claim"));
  expect([batches.length, items.length]).toEqual([1, 4]);
  expect(batches[0]?.attributes).toMatchObject({ "onceward.batch.items": 5 });
  for (const { links } of items) expect(links).toMatchObject([{ spanId: batches[0]?.spanId }]);
});

test("a claim that waits is a call of its own, and a child of the client's span", async () => {
  const { tracer, spans } = newTracer();
  const onceward = await newOnceward(tracer);
  let finish = () => {};
  const first = onceward.run(
    operation,
    () =>
      new Promise<string>((resolve) => {
        finish = () => resolve("charged");
      }),
  );
  await expect.poll(() => spans().map(({ name }) => name)).toEqual(["onceward.claim"]);
  const second = onceward.run(operation, () => "charged twice");
  await expect
    .poll(async () => (await fetch(`http://127.0.0.1:${server.managementPort}/metrics`)).text())
    .toContain("onceward_waiters 1");
  finish();
  expect(await Promise.all([first, second])).toEqual(["charged", "charged"]);
  const waited = spans().filter(({ name }) => name === "onceward.claim")[1];
  const { spanId } = waited?.spanContext() ?? {};
  const names = () =>
    collector.spans.filter(({ parentSpanId }) => parentSpanId === spanId).map(({ name }) => name);
  await expect.poll(names).toContain("onceward.v1.IdempotencyService/Claim");
});

test("without an active span, calls begin traces of the server's own", async () => {
  const { tracer } = newTracer();
  const onceward = await newOnceward(tracer);
  await onceward.calls.lookup(operation);
  const isRoot = ({ parentSpanId, name }: ReceivedSpan) => parentSpanId === "" && name.endsWith("/Batch");
  await expect.poll(() => collector.spans.filter(isRoot)).toHaveLength(1);
});
