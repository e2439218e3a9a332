import {
  type ClientOptions,
  createOnceward,
  type Onceward,
  type OncewardEvent,
  TerminalError,
} from "@onceward/client";
import { trace } from "@opentelemetry/api";
import type { ReadableSpan } from "@opentelemetry/sdk-trace-base";
import { expect, onTestFinished, test, vi } from "vitest";
import { tracing } from "../../clients/typescript/src/otel.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { useServer } from "../support/servers/use-server.ts";
import { newTracer } from "../support/tracing/tracer.ts";

const { database, server } = useServer();

async function newOnceward(options: ClientOptions): Promise<Onceward> {
  const { apiKey } = await createTenant(database);
  const address = `http://127.0.0.1:${server.grpcPort}`;
  const onceward = createOnceward({ ...options, address, apiKey });
  onTestFinished(() => onceward.close());
  return onceward;
}

async function newObserved(): Promise<{ onceward: Onceward; events: OncewardEvent[] }> {
  const events: OncewardEvent[] = [];
  return { onceward: await newOnceward({ onEvent: (event) => events.push(event) }), events };
}

const operation = { namespace: "charges", key: "order-1" };
const { namespace } = operation;

function declined(): never {
  throw new TerminalError("card declined");
}

function failing(): never {
  throw new Error("the provider is down");
}

test("completed operations and skipped duplicates are different events", async () => {
  const { onceward, events } = await newObserved();
  await onceward.run(operation, () => "charged");
  await onceward.run(operation, () => "charged");
  expect(events).toEqual([
    { namespace, type: "claimed", attempt: 1 },
    { namespace, type: "completed", attempt: 1 },
    { namespace, type: "duplicate-skipped", outcome: "success" },
  ]);
});

test("a failure, its repeat, a release and a value that can't be stored are different events", async () => {
  const { onceward, events } = await newObserved();
  const settle = (run: Promise<unknown>) => Promise.allSettled([run]);
  await settle(onceward.run(operation, declined));
  await settle(onceward.run(operation, declined));
  await settle(onceward.run({ ...operation, key: "order-2" }, failing));
  await settle(onceward.run<unknown>({ ...operation, key: "order-2" }, () => 1n));
  await settle(onceward.run({ ...operation, key: "order-2" }, vi.fn()));
  expect(events).toEqual([
    { namespace, type: "claimed", attempt: 1 },
    { namespace, type: "failed", attempt: 1 },
    { namespace, type: "duplicate-skipped", outcome: "failure" },
    { namespace, type: "claimed", attempt: 1 },
    { namespace, type: "released", attempt: 1 },
    { namespace, type: "claimed", attempt: 2 },
    { namespace, type: "not-stored", attempt: 2, reason: "RESULT_NOT_JSON" },
    { namespace, type: "duplicate-skipped", outcome: "lost" },
  ]);
});

test("a claim that could not be released emits not-released, and not released", async () => {
  const { onceward, events } = await newObserved();
  const run = onceward.run(operation, async () => {
    await database.query("update records set lease_expires_at = now() - interval '1 s'");
    await onceward.calls.claim({ ...operation, owner: "worker-2" });
    throw new Error("the provider is down");
  });
  await expect(run).rejects.toThrow("the provider is down");
  expect(events).toEqual([
    { namespace, type: "claimed", attempt: 1 },
    { namespace, type: "not-released", attempt: 1, reason: "CLAIM_SUPERSEDED" },
  ]);
});

test("the event released comes after the release", async () => {
  const events: OncewardEvent[] = [];
  const states: (string | undefined)[] = [];
  const onceward: Onceward = await newOnceward({
    onEvent(event) {
      events.push(event);
      if (event.type !== "released") return;
      void onceward.calls.lookup(operation).then(({ record }) => states.push(record?.releaseReason));
    },
  });
  await expect(onceward.run(operation, failing)).rejects.toThrow();
  await vi.waitFor(() => expect(states).toEqual([expect.stringContaining("Error")]), 30_000);
  expect(events.map(({ type }) => type)).toEqual(["claimed", "released"]);
});

test("waiting, and a run without its function, emit events", async () => {
  const { onceward, events } = await newObserved();
  await onceward.calls.claim({ ...operation, owner: "worker-1" });
  await expect(onceward.run({ ...operation, waitMs: 500 }, vi.fn())).rejects.toThrow("worker-1");
  await expect(onceward.run({ ...operation, key: "" }, vi.fn())).rejects.toThrow("1-255 bytes");
  expect(events).toEqual([
    { namespace, type: "waiting" },
    { namespace, type: "not-run", reason: "IN_PROGRESS" },
    { namespace, type: "not-run", reason: "INVALID_REQUEST" },
  ]);
});

test("a lost lease emits an event while the function runs", async () => {
  const { onceward, events } = await newObserved();
  const run = onceward.run({ ...operation, leaseMs: 1000 }, async () => {
    await database.query("update records set lease_expires_at = now() - interval '1 s'");
    await onceward.calls.claim({ ...operation, owner: "worker-2" });
    await vi.waitFor(() => expect(events.at(-1)).toMatchObject({ type: "lease-lost" }), 30_000);
  });
  await expect(run).rejects.toMatchObject({ name: "CompletionError" });
  const reason = "CLAIM_SUPERSEDED";
  expect(events.slice(1)).toEqual([
    { namespace, type: "lease-lost", attempt: 1, reason },
    { namespace, type: "not-stored", attempt: 1, reason },
  ]);
});

test("a key that looks like the current time emits an event, and one warning", async () => {
  const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  onTestFinished(() => warn.mockRestore());
  const { onceward, events } = await newObserved();
  const run = () => onceward.run({ namespace, key: `${Date.now()}` }, vi.fn());
  await Promise.all([run(), run()]);
  expect(events.filter(({ type }) => type === "timestamp-key")).toHaveLength(2);
  expect(warn.mock.calls).toMatchObject([[expect.any(String), { code: "ONCEWARD_TIMESTAMP_KEY" }]]);
});

test("an observer that throws has no effect on runs", async () => {
  const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  onTestFinished(() => warn.mockRestore());
  const onEvent = vi.fn(() => {
    throw new Error("the log is full");
  });
  const onceward = await newOnceward({ onEvent });
  expect(await onceward.run(operation, () => "charged")).toBe("charged");
  expect(onEvent).toHaveBeenCalledTimes(2);
  expect(warn).toHaveBeenCalledOnce();
});

/** What a span says, with its parent by name. */
function told(spans: readonly ReadableSpan[]) {
  const names = new Map(spans.map((span) => [span.spanContext().spanId, span.name]));
  return spans.map(({ name, attributes, parentSpanContext, status }) => ({
    name,
    parent: names.get(parentSpanContext?.spanId ?? ""),
    failed: status.code !== 0,
    ...attributes,
  }));
}

test("a run is a span, and within it are the claim, the function's own spans and the completion", async () => {
  const { tracer, spans } = newTracer();
  const onceward = await newOnceward({ trace: tracing(tracer) });
  await onceward.run(operation, async () => {
    tracer.startSpan("charge").end();
    expect(trace.getActiveSpan()).toBeDefined();
  });
  const common = { "onceward.namespace": namespace, failed: false };
  expect(told(spans())).toEqual([
    { ...common, name: "onceward.claim", parent: "onceward.run", "onceward.outcome": "claimed" },
    { name: "charge", parent: "onceward.run", failed: false },
    { ...common, name: "onceward.complete", parent: "onceward.run" },
    { ...common, name: "onceward.run", "onceward.outcome": "completed", "onceward.attempt": 1 },
  ]);
});

test("a failed span names the reason, and no span has keys, values or messages", async () => {
  const { tracer, spans } = newTracer();
  const onceward = await newOnceward({ trace: tracing(tracer) });
  const secret = { ...operation, key: "secret-key", fingerprint: "secret-fingerprint" };
  await onceward.run(secret, () => "secret value");
  await onceward.run(secret, vi.fn());
  await expect(onceward.run({ ...secret, fingerprint: "another secret" }, vi.fn())).rejects.toThrow();
  const thrower = onceward.run({ ...operation, key: "secret-2" }, () => {
    throw new TypeError("secret message");
  });
  await expect(thrower).rejects.toThrow();
  const runs = told(spans()).filter(({ name }) => name === "onceward.run");
  expect(runs).toMatchObject([
    { "onceward.outcome": "completed", failed: false },
    { "onceward.outcome": "duplicate-skipped", failed: false },
    { "onceward.outcome": "not-run", "error.type": "FINGERPRINT_MISMATCH", failed: true },
    { "onceward.outcome": "released", "error.type": "TypeError", failed: true },
  ]);
  const everything = spans().map(({ attributes, events, status, name }) => ({
    attributes,
    events,
    status,
    name,
  }));
  expect(JSON.stringify(everything)).not.toContain("secret");
});
