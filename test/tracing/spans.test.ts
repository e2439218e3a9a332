import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import {
  connectClient,
  type IdempotencyClient,
  TRANSPORT_NAMES,
  timeoutHeader,
} from "../support/calls/clients.ts";
import { errorOf } from "../support/calls/errors.ts";
import { complete, fingerprintOf, grant, ORDER, seconds, success } from "../support/calls/verbs.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { createTenant, partsOf } from "../support/servers/tenants.ts";
import type { ReceivedSpan } from "../support/tracing/otlp-messages.ts";
import { useTracedServer } from "../support/tracing/traced-server.ts";

/** A caller's trace context. */
interface TraceContext {
  readonly traceId: string;
  readonly spanId: string;
  /** The header. */
  readonly traceparent: string;
}

/** Returns the context of a new trace. */
function newTrace({ sampled }: { readonly sampled: boolean } = { sampled: true }): TraceContext {
  const traceId = randomBytes(16).toString("hex");
  const spanId = randomBytes(8).toString("hex");
  return { traceId, spanId, traceparent: `00-${traceId}-${spanId}-${sampled ? "01" : "00"}` };
}

const SERVICE = "onceward.v1.IdempotencyService";
const [SERVER_KIND, CLIENT_KIND] = [2, 3];
const [UNSET, ERROR] = [0, 2];

const database = useDatabase();
const { collector, server } = useTracedServer(database, {
  ONCEWARD_LOG_LEVEL: "debug",
  OTEL_SERVICE_NAME: "dedupe",
  OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test",
});

async function newClient(transport?: (typeof TRANSPORT_NAMES)[number]): Promise<IdempotencyClient> {
  return connectClient(server, (await createTenant(database)).apiKey, transport);
}

/** Returns the received spans of a trace. */
function spansOf({ traceId }: Pick<TraceContext, "traceId">): readonly ReceivedSpan[] {
  return collector.spans.filter((span) => span.traceId === traceId);
}

/** Waits until the span of a trace's call has arrived. */
async function untilCall(trace: TraceContext): Promise<ReceivedSpan> {
  const find = () => spansOf(trace).find(({ kind }) => kind === SERVER_KIND);
  await expect.poll(find).toBeDefined();
  return find() as ReceivedSpan;
}

/** Waits until a statement's span has arrived as a child of a call's. */
async function untilStatement(call: ReceivedSpan): Promise<ReceivedSpan> {
  const find = () => collector.spans.find(({ parentSpanId }) => parentSpanId === call.spanId);
  await expect.poll(find).toBeDefined();
  return find() as ReceivedSpan;
}

test.for(TRANSPORT_NAMES)(
  "over %s, the caller's span is the parent of the call's, and that of its statement's",
  async (transport) => {
    const tenant = await createTenant(database);
    const client = connectClient(server, tenant.apiKey, transport);
    const trace = newTrace();
    await client.claim(ORDER, { headers: { traceparent: trace.traceparent } });
    const call = await untilCall(trace);
    expect(call).toMatchObject({
      name: `${SERVICE}/Claim`,
      parentSpanId: trace.spanId,
      statusCode: UNSET,
      links: [],
      attributes: {
        "rpc.system.name": transport === "Connect with JSON" ? "connectrpc" : "grpc",
        "rpc.method": `${SERVICE}/Claim`,
        "rpc.response.status_code": "OK",
        "onceward.tenant": tenant.name,
      },
      resource: {
        "service.name": "dedupe",
        "deployment.environment.name": "test",
        "service.version": expect.any(String),
        "service.instance.id": expect.any(String),
      },
    });
    const statements = () => spansOf(trace).filter(({ name }) => name === "claim_record");
    await expect.poll(statements).toHaveLength(1);
    expect(statements()[0]).toMatchObject({
      parentSpanId: call.spanId,
      kind: CLIENT_KIND,
      attributes: {
        "db.system.name": "postgresql",
        "db.query.summary": "claim_record",
        "db.namespace": expect.any(String),
        "onceward.operations": 1,
      },
    });
  },
);

test("a statement for many calls is linked to and from each of them", async () => {
  const client = await newClient();
  await grant(client, { key: "warm-up" });
  const traces = Array.from({ length: 60 }, () => newTrace());
  await Promise.all(
    traces.map(({ traceparent }, index) =>
      client.claim({ ...ORDER, key: `order-${index}` }, { headers: { traceparent } }),
    ),
  );
  const calls = await Promise.all(traces.map(untilCall));
  const idsOf = (spans: readonly { readonly spanId: string }[]) => spans.map(({ spanId }) => spanId).sort();
  const own = new Set(traces.map(({ traceId }) => traceId));
  const statements = () =>
    collector.spans.filter(
      ({ traceId, kind, name }) =>
        own.has(traceId) && kind === CLIENT_KIND && name.startsWith("claim_record"),
    );
  /** The calls whose operations the statements carry: the parent of each, and its links. */
  const carried = () =>
    statements().flatMap(({ parentSpanId, links }) => [{ spanId: parentSpanId }, ...links]);
  await expect.poll(() => idsOf(carried())).toEqual(idsOf(calls));
  const together = statements().filter(({ links }) => links.length > 0);
  expect(together).not.toEqual([]);
  for (const { spanId, parentSpanId, links } of together) {
    for (const link of links) {
      expect(calls.find((call) => call.spanId === link.spanId)?.links).toMatchObject([{ spanId }]);
    }
    expect(calls.find((call) => call.spanId === parentSpanId)?.links).toEqual([]);
  }
});

test("an item of a batch that has a trace context is a span of its trace, linked to the batch's", async () => {
  const client = await newClient();
  const [batchTrace, itemTrace] = [newTrace(), newTrace()];
  const claim = { case: "claim", value: ORDER } as const;
  const invalid = { case: "claim", value: { ...ORDER, key: "" } } as const;
  const unsampled = newTrace({ sampled: false });
  await client.batch(
    {
      items: [
        { request: claim },
        { request: invalid, traceparent: itemTrace.traceparent },
        { request: invalid, traceparent: "not a trace context" },
        { request: invalid, traceparent: `${newTrace().traceparent}${"-".repeat(1000)}` },
        { request: invalid, traceparent: unsampled.traceparent },
      ],
    },
    { headers: { traceparent: batchTrace.traceparent } },
  );
  const batch = await untilCall(batchTrace);
  expect(batch).toMatchObject({
    name: `${SERVICE}/Batch`,
    parentSpanId: batchTrace.spanId,
    attributes: { "onceward.batch.items": 5 },
  });
  expect(await untilCall(itemTrace)).toMatchObject({
    name: `${SERVICE}/Claim`,
    parentSpanId: itemTrace.spanId,
    links: [{ spanId: batch.spanId }],
    attributes: { "rpc.response.status_code": "INVALID_ARGUMENT", "onceward.reason": "INVALID_REQUEST" },
  });
  const linked = collector.spans.filter(({ links }) => links.some(({ spanId }) => spanId === batch.spanId));
  expect(linked).toHaveLength(1);
});

test("the span of a call, and of an item of a batch, has the outcome of its operation", async () => {
  const client = await newClient();
  const outcomeOf = async (send: (headers: { traceparent: string }) => Promise<unknown>) => {
    const trace = newTrace();
    await send({ traceparent: trace.traceparent });
    return (await untilCall(trace)).attributes["onceward.outcome"];
  };
  const claiming = () => outcomeOf((headers) => client.claim(ORDER, { headers }));
  const { fencingToken } = await grant(client);
  expect(await claiming()).toBe("in_progress");
  const id = { ...ORDER, fencingToken };
  expect(await outcomeOf((headers) => client.release(id, { headers }))).toBe("released");
  expect(await claiming()).toBe("claimed");
  const held = { ...ORDER, key: "held", fencingToken: (await grant(client, { key: "held" })).fencingToken };
  const completion = { ...held, result: success("done") };
  const completing = () => outcomeOf((headers) => client.complete(completion, { headers }));
  expect([await completing(), await completing()]).toEqual(["completed", "repeated"]);
  const request = { case: "claim", value: { ...ORDER, key: "held" } } as const;
  const inBatch = ({ traceparent }: { traceparent: string }) =>
    client.batch({ items: [{ request, traceparent }] });
  expect(await outcomeOf(inBatch)).toBe("completed");
});

test("lookups of cached completions are events of the call's span", async () => {
  const client = await newClient();
  await complete(client);
  const trace = newTrace();
  await client.claim(ORDER, { headers: { traceparent: trace.traceparent } });
  const { events } = await untilCall(trace);
  expect(events).toEqual([
    {
      name: "onceward.cache",
      attributes: { "onceward.cache.layer": "memory", "onceward.cache.result": "hit" },
    },
  ]);
});

test("a wait is two events of the call's span", async () => {
  const client = await newClient();
  const { fencingToken } = await grant(client);
  const trace = newTrace();
  const waiting = client.claim(
    { ...ORDER, wait: seconds(30) },
    { headers: { traceparent: trace.traceparent } },
  );
  const settling = (async () => {
    await expect
      .poll(async () => (await fetch(`http://127.0.0.1:${server.managementPort}/metrics`)).text())
      .toContain("onceward_waiters 1");
    await client.complete({ ...ORDER, fencingToken, result: success("done") });
  })();
  await Promise.all([waiting, settling]);
  const { events } = await untilCall(trace);
  expect(events.map(({ name }) => name)).toEqual([
    "onceward.cache",
    "onceward.wait.started",
    "onceward.wait.ended",
    "onceward.cache",
  ]);
});

test("a call that the server failed has the status error; a refusal has its reason", async () => {
  const client = await newClient();
  const [refused, failed] = [newTrace(), newTrace()];
  await errorOf(client.claim({ ...ORDER, key: "" }, { headers: { traceparent: refused.traceparent } }));
  const headers = { traceparent: failed.traceparent, ...timeoutHeader("native gRPC", 0) };
  await errorOf(client.claim(ORDER, { headers }));
  expect(await untilCall(refused)).toMatchObject({
    statusCode: UNSET,
    attributes: { "rpc.response.status_code": "INVALID_ARGUMENT", "onceward.reason": "INVALID_REQUEST" },
  });
  const call = await untilCall(failed);
  expect(call).toMatchObject({
    statusCode: ERROR,
    attributes: { "rpc.response.status_code": "DEADLINE_EXCEEDED", "error.type": "DEADLINE_EXCEEDED" },
  });
});

test("a call whose trace is not sampled makes no span, and neither does its statement", async () => {
  const client = await newClient();
  const [unsampled, sampled] = [newTrace({ sampled: false }), newTrace()];
  await client.claim(ORDER, { headers: { traceparent: unsampled.traceparent } });
  await client.claim({ ...ORDER, key: "order-2" }, { headers: { traceparent: sampled.traceparent } });
  await untilStatement(await untilCall(sampled));
  expect(spansOf(unsampled)).toEqual([]);
});

test.for([
  ["malformed", "00-0123-4567-01"],
  ["with an id of zeros", `00-${"0".repeat(32)}-${"1".repeat(16)}-01`],
  ["over-long", `01-${"a".repeat(32)}-${"b".repeat(16)}-01-${"c".repeat(1000)}`],
] as const)("a trace context that is %s is ignored: the call begins a trace", async ([, traceparent]) => {
  const tenant = await createTenant(database);
  await connectClient(server, tenant.apiKey).claim(ORDER, { headers: { traceparent } });
  const find = () => collector.spans.find(({ attributes }) => attributes["onceward.tenant"] === tenant.name);
  await expect.poll(find).toMatchObject({
    name: `${SERVICE}/Claim`,
    parentSpanId: "",
    traceId: expect.stringMatching(/^[\da-f]{32}$/),
  });
  expect(find()?.traceId).not.toBe("a".repeat(32));
});

test("the log lines of a call, and of an error in it, have the ids of its span", async () => {
  const client = await newClient();
  const trace = newTrace();
  await client.claim(ORDER, { headers: { traceparent: trace.traceparent } });
  const { spanId } = await untilCall(trace);
  const lines = () =>
    server.output.filter((line) => line.includes(trace.traceId)).map((line) => JSON.parse(line));
  const ids = { trace_id: trace.traceId, span_id: spanId };
  await expect.poll(lines).toMatchObject([
    { msg: "operation", kind: "claim", ...ids },
    { msg: "call", method: "Claim", ...ids },
  ]);
  // A name that no longer exists makes the next statement fail by a defect.
  const failed = newTrace();
  await database.query("alter table records rename to moved");
  try {
    await errorOf(
      client.claim({ ...ORDER, key: "order-2" }, { headers: { traceparent: failed.traceparent } }),
    );
  } finally {
    await database.query("alter table moved rename to records");
  }
  const call = await untilCall(failed);
  expect(call).toMatchObject({ statusCode: ERROR, attributes: { "rpc.response.status_code": "INTERNAL" } });
  expect(await untilStatement(call)).toMatchObject({
    statusCode: ERROR,
    attributes: { "error.type": "42P01", "db.response.status_code": "42P01" },
  });
  await expect
    .poll(() =>
      server.output.filter((line) => line.includes(failed.traceId)).map((line) => JSON.parse(line).msg),
    )
    .toEqual(["operation refused", "a call failed by a defect", "call"]);
});

test("no span has a key, a result, a fingerprint, an owner or a credential", async () => {
  const tenant = await createTenant(database);
  const client = connectClient(server, tenant.apiKey);
  const trace = newTrace();
  const headers = { traceparent: trace.traceparent };
  const request = {
    ...ORDER,
    key: "canary-key",
    owner: "canary-owner",
    fingerprint: fingerprintOf("canary"),
  };
  const { fencingToken } = await grant(client, request);
  await client.claim(request, { headers });
  const { key } = request;
  await client.complete({ ...ORDER, key, fencingToken, result: success("canary-result") }, { headers });
  await errorOf(
    client.complete({ ...ORDER, key, fencingToken: 1n, result: success("canary-result") }, { headers }),
  );
  await expect.poll(() => spansOf(trace).filter(({ kind }) => kind === SERVER_KIND)).toHaveLength(3);
  const everything = Buffer.concat(collector.bodies);
  const secrets = ["canary", request.fingerprint, partsOf(tenant.apiKey).secret];
  expect(everything.includes(tenant.name)).toBe(true);
  expect(secrets.filter((each) => everything.includes(each))).toEqual([]);
});
