import { describe, expect, onTestFinished, test } from "vitest";
import { saysUnavailable, startLoad } from "../support/calls/claim-load.ts";
import { connectClient, type TransportName } from "../support/calls/clients.ts";
import { errorOf } from "../support/calls/errors.ts";
import { grant, ORDER } from "../support/calls/verbs.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { healthClient } from "../support/network/health.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { startProcessOfTest } from "../support/servers/use-server.ts";
import { untilWaiting } from "../support/servers/waiters.ts";

const BOTH = ["native gRPC", "Connect with JSON"] as const satisfies readonly TransportName[];

const database = useDatabase();

const startServer = (env: Readonly<Record<string, string>> = {}) => startProcessOfTest(database.url, env);

describe.each(BOTH)("a server that is asked to stop, over %s", (transport) => {
  test("loses no acknowledged claim, and answers the others with UNAVAILABLE", async () => {
    const server = await startServer({ ONCEWARD_DRAIN_DELAY: "200ms" });
    const tenant = await createTenant(database);
    const load = startLoad(connectClient(server, tenant.apiKey, transport), 32, "stop");
    await load.untilAcknowledged(500);
    server.signal("SIGTERM");
    expect(await server.exited).toBe(0);
    await load.stop();

    const rows = await database.query<{ key: string; fencing_token: string }>(
      "select key, fencing_token from records where tenant_id = $1",
      [tenant.id],
    );
    const stored = new Map(rows.map((row) => [row.key, BigInt(row.fencing_token)]));
    const lost = [...load.acknowledged].filter(([key, token]) => stored.get(key) !== token);
    expect(lost).toEqual([]);
    expect(load.errors.filter((error) => !saysUnavailable(error)).map(String)).toEqual([]);
  });

  test("wakes waiting callers with UNAVAILABLE and a retry delay", async () => {
    const server = await startServer();
    const client = connectClient(server, (await createTenant(database)).apiKey, transport);
    await grant(client);
    const waiting = errorOf(client.claim({ ...ORDER, wait: { seconds: 60n } }));
    await untilWaiting(server, 1);
    server.signal("SIGTERM");
    expect(await waiting).toMatchObject({
      code: "Unavailable",
      reason: "SHUTTING_DOWN",
      retryable: true,
    });
    expect(await server.exited).toBe(0);
  });
});

test("a second signal, more than a second after the first one, ends a server that drains", async () => {
  const server = await startServer({ ONCEWARD_DRAIN_DELAY: "5m" });
  server.signal("SIGTERM");
  await expect.poll(() => server.output.some((line) => line.includes('"draining"'))).toBe(true);
  // An earlier one counts as the same request: npm forwards a signal that the terminal has sent to both.
  const signalAgain = setInterval(() => server.signal("SIGTERM"), 100);
  onTestFinished(() => clearInterval(signalAgain));
  expect(await server.exited).toBe(1);
});

test("a server that drains is not ready, and still serves until balancers have noticed", async () => {
  const server = await startServer({ ONCEWARD_DRAIN_DELAY: "5m" });
  const { apiKey } = await createTenant(database);
  const ready = async () => (await fetch(`http://127.0.0.1:${server.managementPort}/readyz`)).status;
  expect(await ready()).toBe(200);
  server.signal("SIGTERM");
  await expect.poll(ready).toBe(503);
  const live = await fetch(`http://127.0.0.1:${server.managementPort}/livez`);
  expect(live.status).toBe(200);
  for (const transport of BOTH) {
    await grant(connectClient(server, apiKey, transport), { key: transport });
  }
});

test("a call that does not end, such as a health watch, is cut at the drain's time limit", async () => {
  const server = await startServer({ ONCEWARD_DRAIN_TIMEOUT: "1s" });
  await healthClient(server).watch({})[Symbol.asyncIterator]().next();
  server.signal("SIGINT");
  expect(await server.exited).toBe(0);
});
