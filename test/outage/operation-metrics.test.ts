import { describe, expect, test } from "vitest";
import { type ItemRequest, runBatch } from "../support/calls/batches.ts";
import { connectClient, type IdempotencyClient } from "../support/calls/clients.ts";
import { errorOf } from "../support/calls/errors.ts";
import { grant, ORDER, success } from "../support/calls/verbs.ts";
import { openConnection, untilBlocked } from "../support/database/connections.ts";
import { proxyDatabase } from "../support/database/database-proxy.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { openBatchStream } from "../support/network/open-batch-stream.ts";
import { openSession } from "../support/network/open-session.ts";
import { readMetrics } from "../support/servers/metrics.ts";
import type { TestServer } from "../support/servers/server.ts";
import { createTenant, type TestTenant } from "../support/servers/tenants.ts";
import { startServerOfTest } from "../support/servers/use-server.ts";

const database = useDatabase();

/** Calls operations at once, each answered or refused. */
type Send = (server: TestServer, tenant: TestTenant, requests: readonly ItemRequest[]) => Promise<unknown>;

function callOne(client: IdempotencyClient, request: ItemRequest): Promise<unknown> {
  switch (request.case) {
    case "claim":
      return client.claim(request.value);
    case "complete":
      return client.complete(request.value);
    case "release":
      return client.release(request.value);
    case "extendLease":
      return client.extendLease(request.value);
    case "lookup":
      return client.lookup(request.value);
    case undefined:
      throw new Error("a request of no kind");
  }
}

const WAYS: Readonly<Record<string, Send>> = {
  "single calls": (server, tenant, requests) => {
    const client = connectClient(server, tenant.apiKey);
    return Promise.allSettled(requests.map((request) => callOne(client, request)));
  },
  Batch: (server, tenant, requests) => runBatch(connectClient(server, tenant.apiKey), requests),
  BatchStream: async (server, tenant, requests) => {
    const stream = openBatchStream(await openSession(server.grpcPort), tenant.apiKey);
    stream.send({ id: 1, items: requests.map((request) => ({ request })) });
    await stream.answerTo(1);
  },
};

/** Returns how many operations the metrics count of each kind and outcome, and how many durations of each kind. */
async function countedBy(server: TestServer): Promise<Readonly<Record<string, number>>> {
  const counts: Record<string, number> = {};
  for (const [name, value] of await readMetrics(server)) {
    const [, kind, outcome] = /^onceward_operations_total\{kind="(\w+)",outcome="(\w+)"\}$/.exec(name) ?? [];
    if (kind !== undefined && value > 0) counts[`${kind} ${outcome}`] = value;
    const [, timed] = /^onceward_operation_duration_seconds_count\{kind="(\w+)"\}$/.exec(name) ?? [];
    if (timed !== undefined && value > 0) counts[timed] = value;
  }
  return counts;
}

const key = (name: string) => ({ ...ORDER, key: name });
const times = (count: number, request: (index: number) => ItemRequest) =>
  Array.from({ length: count }, (_, index) => request(index));

describe.each(Object.keys(WAYS))("operations by %s", (way) => {
  const send = WAYS[way] as Send;

  async function start(url: string) {
    const server = await startServerOfTest(url);
    const tenant = await createTenant(database);
    return { server, tenant, client: connectClient(server, tenant.apiKey) };
  }

  test("are counted by their outcome or the reason of their error", async () => {
    const { server, tenant, client } = await start(database.url);
    const held = await grant(client, key("held"));
    const done = await grant(client, key("done"));
    const result = success("paid");
    await client.complete({ ...key("done"), fencingToken: done.fencingToken, result });
    const released = await grant(client, key("released"));
    await client.release({ ...key("released"), fencingToken: released.fencingToken });
    await grant(client, { ...key("bound"), fingerprint: Buffer.alloc(32, 1) });
    const before = await countedBy(server);
    const wrong = { fencingToken: 1n, result };
    await send(server, tenant, [
      { case: "claim", value: key("new") },
      { case: "claim", value: key("held") },
      { case: "claim", value: key("done") },
      { case: "claim", value: key("released") },
      { case: "claim", value: { ...key("bound"), fingerprint: Buffer.alloc(32, 2) } },
      { case: "claim", value: key("") },
      ...times(50, () => ({ case: "complete" as const, value: { ...key("held"), ...wrong } })),
      { case: "complete", value: { ...key("done"), fencingToken: done.fencingToken, result } },
      { case: "release", value: { ...key("nobody's"), fencingToken: 1n } },
      { case: "extendLease", value: { ...key("held"), fencingToken: held.fencingToken } },
      { case: "extendLease", value: { ...key("done"), fencingToken: done.fencingToken } },
      { case: "lookup", value: key("held") },
      { case: "lookup", value: key("nobody's") },
    ]);
    const after = await countedBy(server);
    const added = Object.entries(after)
      .map(([name, count]) => [name, count - (before[name] ?? 0)] as const)
      .filter(([, count]) => count > 0);
    expect(Object.fromEntries(added)).toEqual({
      claim: 6,
      "claim claimed": 1,
      "claim in_progress": 1,
      "claim completed": 1,
      "claim reclaimed": 1,
      "claim fingerprint_mismatch": 1,
      "claim invalid_request": 1,
      complete: 51,
      "complete claim_superseded": 50,
      "complete repeated": 1,
      release: 1,
      "release record_not_found": 1,
      extend_lease: 2,
      "extend_lease extended": 1,
      "extend_lease already_completed": 1,
      lookup: 2,
      "lookup found": 1,
      "lookup not_found": 1,
    });
  });

  test("are counted by their error while the database is unreachable", async () => {
    const { proxy, url } = await proxyDatabase(database.url);
    const { server, tenant, client } = await start(url);
    await client.lookup(ORDER);
    proxy.setMode("refuse");
    await send(
      server,
      tenant,
      times(50, (index) => ({ case: "claim", value: key(`order-${index}`) })),
    );
    expect(await countedBy(server)).toEqual({
      lookup: 1,
      "lookup not_found": 1,
      claim: 50,
      "claim database_unavailable": 50,
    });
    proxy.setMode("forward");
  });
});

test("an operation that is refused for a quota is counted once, and so is one whose wait ends", async () => {
  const server = await startServerOfTest(database.url);
  const clientOf = (tenant: TestTenant) => connectClient(server, tenant.apiKey);
  const unlimited = clientOf(await createTenant(database));
  await grant(unlimited, ORDER);
  await unlimited.claim({ ...ORDER, wait: { seconds: 0n, nanos: 1_000_000 } });
  const limited = clientOf(await createTenant(database, { quota_operations_per_second: 1 }));
  await grant(limited, ORDER);
  // On a slow machine the quota has a token again.
  let repeats = 0;
  while (!((await limited.claim(ORDER).catch((error) => error)) instanceof Error)) repeats++;
  expect(await countedBy(server)).toEqual({
    claim: 4 + repeats,
    "claim claimed": 2,
    "claim in_progress": 1 + repeats,
    "claim quota_rate": 1,
  });
});

test("an operation that is queued is counted until its deadline passes, and then as dropped", async () => {
  const server = await startServerOfTest(database.url);
  const client = connectClient(server, (await createTenant(database)).apiKey);
  await client.lookup(ORDER);
  const metric = async (name: string) => (await readMetrics(server)).get(name);
  const depth = () => metric('onceward_batch_queue_depth{statement="read_records"}');
  expect([await depth(), await metric("onceward_deadline_drops_total")]).toEqual([0, 0]);
  const locker = await openConnection(database);
  await locker.query("begin");
  await locker.query("lock table records in access exclusive mode");
  const blocked: Promise<unknown>[] = [];
  // Two statements read at a time, so another one waits for the blocked ones.
  for (const statements of [1, 2]) {
    blocked.push(errorOf(client.lookup(ORDER)));
    await untilBlocked(database, statements);
  }
  const late = errorOf(client.lookup(ORDER, { timeoutMs: 300 }));
  await expect.poll(depth, { timeout: 30_000 }).toBe(1);
  expect(await metric("onceward_calls_in_flight")).toBeGreaterThan(0);
  expect(await late).toMatchObject({ code: "DeadlineExceeded" });
  await Promise.all(blocked);
  await expect.poll(() => metric("onceward_deadline_drops_total"), { timeout: 30_000 }).toBe(1);
  expect([await depth(), await metric("onceward_calls_in_flight")]).toEqual([0, 0]);
});
