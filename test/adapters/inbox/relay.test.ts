import type { Interceptor } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { createOnceward, type Onceward } from "@onceward/client";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { completeIn, deliverCompletions, startRelay } from "../../../clients/typescript/src/inbox.ts";
import { endLeases, granted } from "../../support/calls/records.ts";
import { useDatabase } from "../../support/database/use-database.ts";
import { startTestServer, type TestServer } from "../../support/servers/server.ts";
import { createTenant, type TestTenant } from "../../support/servers/tenants.ts";
import { useCallerDatabase } from "./transactions.ts";

const service = useDatabase();
let server: TestServer;
const { caller, db } = useCallerDatabase();

beforeAll(async () => {
  server = await startTestServer(service.url);
});

afterAll(async () => {
  await server?.stop();
});

// A database's completions belong to one tenant; each test has a new database.
beforeEach(async () => {
  await caller.query("delete from onceward_completions");
});

type Client = { readonly onceward: Onceward; readonly tenant: TestTenant };

async function newClient(interceptors: Interceptor[] = []): Promise<Client> {
  const tenant = await createTenant(service);
  const authorize: Interceptor = (next) => (request) => {
    request.header.set("authorization", `Bearer ${tenant.apiKey}`);
    return next(request);
  };
  const baseUrl = `http://127.0.0.1:${server.grpcPort}`;
  const transport = createGrpcTransport({ baseUrl, interceptors: [authorize, ...interceptors] });
  const onceward = createOnceward({ transport });
  onTestFinished(() => onceward.close());
  return { onceward, tenant };
}

const order = { namespace: "orders", key: "order-1" };

/** Claims, and commits a completion that is not delivered to the service. */
async function crashAfterCommit(
  onceward: Onceward,
  operation = order,
  value: unknown = "taken",
): Promise<bigint> {
  const { fencingToken } = granted(await onceward.calls.claim(operation));
  await db.transaction((tx) => completeIn(tx.executor, { ...operation, fencingToken }, () => value));
  return fencingToken;
}

async function makeDue(): Promise<void> {
  await caller.query("update onceward_completions set next_attempt_at = now()");
}

async function rows() {
  return await caller.query(
    `select key, attempts, undeliverable, delivered_at is not null as delivered from onceward_completions`,
  );
}

test("a completion that was committed before a crash is delivered once, and replayed", async () => {
  const { onceward } = await newClient();
  await crashAfterCommit(onceward);
  const deliver = () => deliverCompletions({ onceward, database: db.pool });
  expect(await deliver()).toEqual({ delivered: 1, undeliverable: 0, failed: 0 });
  await makeDue();
  expect(await deliver()).toEqual({ delivered: 0, undeliverable: 0, failed: 0 });
  expect(await onceward.run(order, () => "again")).toBe("taken");
});

test("a completion is delivered after its lease unless another holder took over", async () => {
  const { onceward, tenant } = await newClient();
  await crashAfterCommit(onceward);
  await endLeases(service, tenant);
  expect(await deliverCompletions({ onceward, database: db.pool })).toMatchObject({ delivered: 1 });
  expect(await onceward.run(order, () => "again")).toBe("taken");
});

test("a transaction that has not committed is not delivered", async () => {
  const { onceward } = await newClient();
  const { fencingToken } = granted(await onceward.calls.claim(order));
  await db.transaction(async (tx) => {
    await completeIn(tx.executor, { ...order, fencingToken }, () => "taken");
    expect(await deliverCompletions({ onceward, database: db.pool })).toMatchObject({ delivered: 0 });
  });
  expect(await deliverCompletions({ onceward, database: db.pool })).toMatchObject({ delivered: 1 });
});

test("concurrent passes share the completions, and deliver each once", async () => {
  const { onceward } = await newClient();
  await Promise.all(
    Array.from({ length: 250 }, (_, index) =>
      crashAfterCommit(onceward, { ...order, key: `order-${index}` }),
    ),
  );
  const passes = Array.from({ length: 5 }, () => deliverCompletions({ onceward, database: db.pool }));
  const counts = await Promise.all(passes);
  expect(counts.reduce((sum, { delivered }) => sum + delivered, 0)).toBe(250);
  expect(new Set((await rows()).map(({ attempts, delivered }) => `${attempts} ${delivered}`))).toEqual(
    new Set(["1 true"]),
  );
});

test.each([
  [
    "CLAIM_SUPERSEDED",
    async ({ onceward, tenant }: Client) => {
      await endLeases(service, tenant);
      await onceward.calls.claim(order);
    },
  ],
  [
    "ALREADY_RELEASED",
    async ({ onceward }: Client, fencingToken: bigint) => {
      await onceward.calls.release({ ...order, fencingToken });
    },
  ],
  [
    "ALREADY_COMPLETED",
    async ({ onceward }: Client, fencingToken: bigint) => {
      await onceward.calls.complete({ ...order, fencingToken, result: { kind: 1 } });
    },
  ],
  [
    "RECORD_NOT_FOUND",
    async ({ tenant }: Client) => {
      await service.query("update records set expires_at = now() where tenant_id = $1", [tenant.id]);
    },
  ],
])("a completion that is refused with %s is kept, reported and not tried again", async (reason, happen) => {
  const { onceward, tenant } = await newClient();
  const fencingToken = await crashAfterCommit(onceward);
  await happen({ onceward, tenant }, fencingToken);
  const onUndeliverable = vi.fn();
  const deliver = () => deliverCompletions({ onceward, database: db.pool, onUndeliverable });
  expect(await deliver()).toEqual({ delivered: 0, undeliverable: 1, failed: 0 });
  await makeDue();
  expect(await deliver()).toEqual({ delivered: 0, undeliverable: 0, failed: 0 });
  expect(onUndeliverable.mock.calls).toEqual([[{ ...order, fencingToken, reason }]]);
  expect(await rows()).toEqual([{ key: order.key, attempts: 1, undeliverable: reason, delivered: false }]);
});

test("a codec's result that the service refuses is delivered as completed without its value", async () => {
  const { onceward } = await newClient();
  const { fencingToken } = granted(await onceward.calls.claim(order));
  const codec = {
    encode: () => ({ payload: new Uint8Array(), contentType: "x".repeat(256) }),
    decode: () => "taken",
  };
  await db.transaction((tx) => completeIn(tx.executor, { ...order, fencingToken }, () => "taken", codec));
  expect(await deliverCompletions({ onceward, database: db.pool })).toMatchObject({ delivered: 1 });
  await expect(onceward.run(order, () => "again")).rejects.toMatchObject({ reason: "RESULT_LOST" });
});

test("a completion whose row was changed is kept and reported", async () => {
  const { onceward } = await newClient();
  const fencingToken = await crashAfterCommit(onceward);
  await caller.query("update onceward_completions set namespace = 'Orders'");
  const onUndeliverable = vi.fn();
  await deliverCompletions({ onceward, database: db.pool, onUndeliverable });
  const completion = { namespace: "Orders", key: order.key, fencingToken };
  expect(onUndeliverable.mock.calls).toEqual([[{ ...completion, reason: "INVALID_REQUEST" }]]);
});

test("a refused completion does not affect the others of its batch", async () => {
  const { onceward } = await newClient();
  const fencingToken = await crashAfterCommit(onceward);
  await onceward.calls.release({ ...order, fencingToken });
  await crashAfterCommit(onceward, { ...order, key: "order-2" });
  expect(await deliverCompletions({ onceward, database: db.pool })).toEqual({
    delivered: 1,
    undeliverable: 1,
    failed: 0,
  });
});

test("a corrupted row does not affect the others of its batch", async () => {
  const { onceward } = await newClient();
  await crashAfterCommit(onceward);
  await crashAfterCommit(onceward, { ...order, key: "order-2" });
  await caller.query("update onceward_completions set result = '\\xff' where key = 'order-2'");
  expect(await deliverCompletions({ onceward, database: db.pool })).toEqual({
    delivered: 1,
    undeliverable: 0,
    failed: 1,
  });
});

test("a value that is larger than the policy allows is delivered as completed without it", async () => {
  const { onceward } = await newClient();
  await crashAfterCommit(onceward, order, "x".repeat(70_000));
  expect(await deliverCompletions({ onceward, database: db.pool })).toMatchObject({ delivered: 1 });
  await expect(onceward.run(order, () => "again")).rejects.toMatchObject({ reason: "RESULT_LOST" });
});

test("while the service is unreachable a completion is retried at growing intervals", async () => {
  const { onceward } = await newClient();
  await crashAfterCommit(onceward);
  // A wrong credential, like an outage, is not an error of the completion.
  const address = `http://127.0.0.1:${server.grpcPort}`;
  await using stranger = createOnceward({ address, apiKey: "ow_unknown_key" });
  const onError = vi.fn();
  const delaysS: number[] = [];
  for (let attempt = 1; attempt <= 4; attempt++) {
    const counts = await deliverCompletions({ onceward: stranger, database: db.pool, onError });
    expect(counts).toEqual({ delivered: 0, undeliverable: 0, failed: 1 });
    const [row] = await caller.query<{ s: string }>(
      "select round(extract(epoch from next_attempt_at - now()), -1) as s from onceward_completions",
    );
    delaysS.push(Number(row?.s));
    await makeDue();
  }
  expect(delaysS).toEqual([10, 20, 40, 60]);
  expect(onError.mock.calls[0]).toMatchObject([{ reason: "CREDENTIAL_INVALID" }]);
  expect(await deliverCompletions({ onceward, database: db.pool })).toMatchObject({ delivered: 1 });
});

test("a row taken over during its delivery is delivered again with the newer token", async () => {
  let taken = 0n;
  const takeOver: Interceptor = (next) => async (request) => {
    const response = await next(request);
    if (taken > 0n)
      await caller.query("update onceward_completions set fencing_token = $1, next_attempt_at = now()", [
        String(taken + 1n),
      ]);
    return response;
  };
  const { onceward } = await newClient([takeOver]);
  taken = await crashAfterCommit(onceward);
  await deliverCompletions({ onceward, database: db.pool });
  expect(await rows()).toMatchObject([{ undeliverable: null, delivered: false }]);
});

test("a relay delivers new completions, survives outages of both sides, and closes", async () => {
  const { onceward } = await newClient();
  const port = server.grpcPort;
  const errors: unknown[] = [];
  let databaseAway = false;
  const relay = startRelay({
    onceward,
    database: async (text, params) => {
      if (databaseAway) throw new Error("the database is unreachable");
      return await db.pool(text, params);
    },
    pollMs: 10,
    onError: (error) => errors.push(error),
  });
  const untilDelivered = () =>
    vi.waitFor(async () => {
      expect(await rows()).not.toEqual([]);
      expect((await rows()).filter(({ delivered }) => !delivered)).toEqual([]);
    }, 10_000);

  await crashAfterCommit(onceward);
  await untilDelivered();

  databaseAway = true;
  await vi.waitFor(() => expect(errors.length).toBeGreaterThan(1), 30_000);
  await crashAfterCommit(onceward, { ...order, key: "order-2" });
  await server.stop();
  databaseAway = false;
  await vi.waitFor(
    () => expect(errors).toContainEqual(expect.objectContaining({ name: "OncewardError" })),
    10_000,
  );
  server = await startTestServer(service.url, { ONCEWARD_GRPC_PORT: String(port) });
  await makeDue();
  await untilDelivered();

  await relay.close();
  await crashAfterCommit(onceward, { ...order, key: "order-3" });
  expect(await rows()).toContainEqual({ key: "order-3", attempts: 0, undeliverable: null, delivered: false });
});

test.each([0, 9, Number.NaN, 3_600_001])("a relay that would poll every %d ms is refused", (pollMs) => {
  const onceward = createOnceward({ address: "http://127.0.0.1:1", apiKey: "ow_x_y" });
  expect(() => startRelay({ onceward, database: db.pool, pollMs })).toThrow(
    expect.objectContaining({ reason: "INVALID_REQUEST" }),
  );
});
