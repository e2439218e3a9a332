import { once } from "node:events";
import { createServer, type ServerHttp2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import { createOnceward } from "@onceward/client";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { createTestDatabase, type TestDatabase } from "../helpers/database/database.ts";
import { startTcpProxy } from "../helpers/network/tcp-proxy.ts";
import { startTestServer, type TestServer } from "../helpers/servers/server.ts";
import { createTenant, type TestTenant } from "../helpers/servers/tenants.ts";

let database: TestDatabase;
let server: TestServer;

beforeAll(async () => {
  database = await createTestDatabase();
  server = await startTestServer(database.url);
});

afterAll(async () => {
  await server?.stop();
  await database?.drop();
});

const operation = { namespace: "charges", key: "order-1" };

/** The state of the tenant's only record, as the database has it: 1 in progress, 2 completed. */
async function untilState({ id }: TestTenant, state: number): Promise<void> {
  await vi.waitFor(async () => {
    const rows = await database.query("select state::int from records where tenant_id = $1", [id]);
    expect(rows).toEqual([{ state }]);
  }, 30_000);
}

/** The same replica, back on the same port. */
async function restartServer(): Promise<void> {
  await server.stop();
  server = await startTestServer(database.url, { ONCEWARD_GRPC_PORT: String(server.grpcPort) });
}

test("a completion during an outage is made after it", async () => {
  const { apiKey } = await createTenant(database);
  await using onceward = createOnceward({ address: `http://127.0.0.1:${server.grpcPort}`, apiKey });
  const restarted = Promise.withResolvers<void>();
  const fn = vi.fn(async () => {
    const port = server.grpcPort;
    await server.stop();
    restarted.resolve(
      startTestServer(database.url, { ONCEWARD_GRPC_PORT: String(port) }).then((started) => {
        server = started;
      }),
    );
    return "charged";
  });
  expect(await onceward.run(operation, fn)).toBe("charged");
  await restarted.promise;
  expect(await onceward.run(operation, fn)).toBe("charged");
  expect(fn).toHaveBeenCalledOnce();
});

test("a client outlives a restart of the service", async () => {
  const { apiKey } = await createTenant(database);
  await using onceward = createOnceward({ address: `http://127.0.0.1:${server.grpcPort}`, apiKey });
  await onceward.run(operation, () => "before");
  await restartServer();
  expect(await onceward.run(operation, () => "after")).toBe("before");
});

test("a waiter outlives a restart of the service", async () => {
  const { apiKey } = await createTenant(database);
  await using onceward = createOnceward({ address: `http://127.0.0.1:${server.grpcPort}`, apiKey });
  const held = Promise.withResolvers<string>();
  const holder = onceward.run(operation, () => held.promise);
  await vi.waitFor(async () => expect((await onceward.calls.lookup(operation)).record).toBeDefined(), 30_000);
  const waiter = onceward.run(operation, () => "again");
  await restartServer();
  held.resolve("once");
  expect(await holder).toBe("once");
  expect(await waiter).toBe("once");
});

test("a run survives a load balancer without replicas that answers 503 with an HTML page", async () => {
  const { apiKey } = await createTenant(database);
  const pages = vi.fn();
  const balancer = createServer((_, response) => {
    pages();
    response.writeHead(503, { "content-type": "text/html" });
    response.end("<html><body>No healthy upstream</body></html>");
  });
  balancer.listen(0, "127.0.0.1");
  await once(balancer, "listening");
  const { port } = balancer.address() as AddressInfo;
  const connections = new Set<ServerHttp2Session>();
  balancer.on("session", (session) => connections.add(session));
  await using onceward = createOnceward({ address: `http://127.0.0.1:${port}`, apiKey });
  const run = onceward.run(operation, () => "charged");
  run.catch(() => {});
  await vi.waitUntil(() => pages.mock.calls.length >= 3, { timeout: 30_000 });
  for (const connection of connections) connection.destroy();
  balancer.close();
  await once(balancer, "close");
  const replica = await startTestServer(database.url, { ONCEWARD_GRPC_PORT: String(port) });
  onTestFinished(() => replica.stop());
  expect(await run).toBe("charged");
});

test("a claim whose reply is lost is repeated, and gets the same claim", async () => {
  const tenant = await createTenant(database);
  const proxy = await startTcpProxy(server.grpcPort);
  await using onceward = createOnceward({ address: `http://127.0.0.1:${proxy.port}`, apiKey: tenant.apiKey });
  await onceward.api.lookup(operation);
  proxy.setMode("lose-replies");
  const run = onceward.runDetailed({ ...operation, waitMs: 0 }, () => "charged");
  await untilState(tenant, 1);
  proxy.setMode("forward");
  expect(await run).toMatchObject({ value: "charged", replayed: false, attempt: 1 });
  await onceward.close();
  await proxy.close();
});

test("a completion whose reply is lost is made once", async () => {
  const tenant = await createTenant(database);
  const proxy = await startTcpProxy(server.grpcPort);
  await using onceward = createOnceward({ address: `http://127.0.0.1:${proxy.port}`, apiKey: tenant.apiKey });
  const run = onceward.runDetailed(operation, () => {
    proxy.setMode("lose-replies");
    return "charged";
  });
  await untilState(tenant, 2);
  proxy.setMode("forward");
  expect(await run).toMatchObject({ value: "charged", replayed: false });
  await onceward.close();
  await proxy.close();
});

test("a completion that can't be stored says that the effect ran", async () => {
  const { apiKey } = await createTenant(database);
  const doomed = await startTestServer(database.url);
  await using onceward = createOnceward({
    address: `http://127.0.0.1:${doomed.grpcPort}`,
    apiKey,
    timeoutMs: 100,
  });
  const run = onceward.run({ ...operation, leaseMs: 1000 }, async () => {
    await doomed.stop();
    return "charged";
  });
  await expect(run).rejects.toMatchObject({
    name: "CompletionError",
    reason: "NO_ANSWER",
    effect: { status: "fulfilled", value: "charged" },
  });
});

test("without a service nothing runs, and the caller gets the error within its timeout", async () => {
  const gone = await startTestServer(database.url);
  await gone.stop();
  const address = `http://127.0.0.1:${gone.grpcPort}`;
  await using onceward = createOnceward({ address, apiKey: "ow_x_y", timeoutMs: 200 });
  const fn = vi.fn();
  await expect(onceward.run(operation, fn)).rejects.toMatchObject({ reason: "NO_ANSWER" });
  expect(fn).not.toHaveBeenCalled();
});
