import { createOnceward, type Onceward } from "@onceward/client";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { startRuns } from "../support/calls/runs.ts";
import { startTcpProxy, type TcpProxy } from "../support/network/tcp-proxy.ts";
import { startTestServer, type TestServer } from "../support/servers/server.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { useServer } from "../support/servers/use-server.ts";

/** For changes that nothing in the test triggers: enough on a machine whose cores are each shared by many busy processes. */
const PATIENCE_MS = 90_000;

vi.setConfig({ testTimeout: 2 * PATIENCE_MS });

const { database, server: first } = useServer();
let second: TestServer;

beforeAll(async () => {
  second = await startTestServer(database.url);
});

afterAll(() => second?.stop());

/** The way to a replica, and what the client sent on it. */
interface Way {
  readonly proxy: TcpProxy;
  readonly port: number;
  writes: number;
  connections: number;
}

async function wayTo(server: TestServer): Promise<Way> {
  const sent = { writes: 0, connections: 0 };
  const proxy = await startTcpProxy(server.grpcPort, (bytes) => {
    sent.writes++;
    if (bytes.indexOf("PRI * HTTP/2.0") === 0) sent.connections++;
  });
  onTestFinished(() => proxy.close());
  return Object.assign(sent, { proxy, port: proxy.port });
}

async function newOnceward(...ports: readonly number[]): Promise<Onceward> {
  const { apiKey } = await createTenant(database);
  const address = ports.map((port) => `http://127.0.0.1:${port}`);
  // A run that fails for want of time says nothing of replicas.
  const onceward = createOnceward({ address, apiKey, timeoutMs: PATIENCE_MS });
  onTestFinished(() => onceward.close());
  return onceward;
}

test.each(["refuse", "swallow"] as const)(
  "a replica that dies under load (%s) costs no run, and is used again when it is back",
  async (death) => {
    const dying = await wayTo(first);
    const living = await wayTo(second);
    const onceward = await newOnceward(dying.port, living.port);
    const runs = startRuns(onceward);
    await runs.more(50);
    dying.proxy.setMode(death);
    await runs.more(300);
    const writesWhenDead = dying.writes;
    dying.proxy.setMode("forward");
    await vi.waitUntil(() => dying.writes > writesWhenDead + 20, { timeout: PATIENCE_MS });
    expect(await runs.stop()).toEqual([]);
  },
);

test("a replica that drains under load costs no run", async () => {
  const leaving = await startTestServer(database.url);
  const onceward = await newOnceward(leaving.grpcPort, second.grpcPort);
  const runs = startRuns(onceward);
  await runs.more(50);
  await leaving.stop();
  await runs.more(200);
  expect(await runs.stop()).toEqual([]);
});

test("connections that the server ends one after another (GOAWAY) under load cost no run", async () => {
  const aging = await startTestServer(database.url, { ONCEWARD_CONNECTION_AGE: "1s" });
  onTestFinished(() => aging.stop());
  const way = await wayTo(aging);
  const runs = startRuns(await newOnceward(way.port));
  await vi.waitUntil(() => way.connections >= 3, { timeout: PATIENCE_MS });
  expect(await runs.stop()).toEqual([]);
});

test("a waiter survives the death of the replica that it waits at", async () => {
  const dying = await wayTo(first);
  const onceward = await newOnceward(dying.port, second.grpcPort);
  const held = Promise.withResolvers<string>();
  const operation = { namespace: "charges", key: "order-1" };
  const holder = onceward.run(operation, () => held.promise);
  await vi.waitFor(async () => expect((await onceward.calls.lookup(operation)).record).toBeDefined(), {
    timeout: PATIENCE_MS,
  });
  // One at each.
  const waiters = [onceward.run(operation, () => "again"), onceward.run(operation, () => "again")];
  dying.proxy.setMode("refuse");
  held.resolve("once");
  expect(await Promise.all([holder, ...waiters])).toEqual(["once", "once", "once"]);
});

test("a completion during an outage of the only replica is made after it", async () => {
  let only = await startTestServer(database.url);
  onTestFinished(() => only.stop());
  const { grpcPort } = only;
  const onceward = await newOnceward(grpcPort);
  const restarted = Promise.withResolvers<void>();
  const fn = vi.fn(async () => {
    await only.stop();
    const restarting = startTestServer(database.url, { ONCEWARD_GRPC_PORT: String(grpcPort) });
    restarted.resolve(
      restarting.then((server) => {
        only = server;
      }),
    );
    return "charged";
  });
  const operation = { namespace: "charges", key: "order-1" };
  expect(await onceward.run(operation, fn)).toBe("charged");
  await restarted.promise;
  expect(await onceward.run(operation, fn)).toBe("charged");
  expect(fn).toHaveBeenCalledOnce();
});
