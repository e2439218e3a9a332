import { createOnceward } from "@onceward/client";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { useDatabase } from "../support/database/use-database.ts";
import { startTestServer, type TestServer } from "../support/servers/server.ts";
import { createTenant } from "../support/servers/tenants.ts";

const database = useDatabase();
let server: TestServer;

beforeAll(async () => {
  server = await startTestServer(database.url);
});

afterAll(() => server?.stop());

const operation = { namespace: "charges", key: "order-1" };

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
