import { Code, ConnectError } from "@connectrpc/connect";
import { beforeEach, expect, test } from "vitest";
import { connectClient, type IdempotencyClient } from "../support/calls/clients.ts";
import { connectCrowd } from "../support/calls/crowd.ts";
import { errorOf } from "../support/calls/errors.ts";
import { expectReplays, startLoad } from "../support/calls/steady-load.ts";
import { complete, grant, ORDER } from "../support/calls/verbs.ts";
import { proxyDatabase } from "../support/database/database-proxy.ts";
import { useDatabase } from "../support/database/use-database.ts";
import type { TcpProxy } from "../support/network/tcp-proxy.ts";
import type { TestServer } from "../support/servers/server.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { startServerOfTest } from "../support/servers/use-server.ts";

const database = useDatabase();
let apiKey: string;
let proxy: TcpProxy;
let server: TestServer;
let client: IdempotencyClient;

beforeEach(async () => {
  ({ apiKey } = await createTenant(database));
  const proxied = await proxyDatabase(database.url);
  proxy = proxied.proxy;
  server = await startServerOfTest(proxied.url);
  client = connectClient(server, apiKey);
  await client.lookup(ORDER);
});

test("while the database refuses connections, calls are to be retried; later they succeed", async () => {
  const { fencingToken } = await grant(client);
  proxy.setMode("refuse");
  const unavailable = { code: "Unavailable", reason: "DATABASE_UNAVAILABLE", retryable: true };
  expect(await errorOf(client.claim({ ...ORDER, key: "other" }))).toMatchObject(unavailable);
  expect(await errorOf(client.release({ ...ORDER, fencingToken }))).toMatchObject(unavailable);
  expect(await errorOf(client.lookup(ORDER))).toMatchObject(unavailable);
  const { items } = await client.batch({ items: [{ request: { case: "claim", value: ORDER } }] });
  expect(items[0]?.response).toMatchObject({ case: "error", value: { code: Code.Unavailable } });
  proxy.setMode("forward");
  await client.release({ ...ORDER, fencingToken });
  expect((await grant(client)).attempt).toBe(2);
});

test("an uncached credential in an outage of the database is unavailable, not refused", async () => {
  const { apiKey: fresh } = await createTenant(database);
  proxy.setMode("refuse");
  const stranger = connectClient(server, fresh);
  expect(await errorOf(stranger.claim(ORDER))).toMatchObject({
    reason: "DATABASE_UNAVAILABLE",
    retryable: true,
  });
  proxy.setMode("forward");
  await grant(stranger);
});

test("a call without the database's answer ends at its deadline; its claim id recovers it", async () => {
  proxy.setMode("lose-replies");
  const claim = { ...ORDER, claimId: "claim-1" };
  await expect(client.claim(claim)).rejects.toMatchObject({ code: Code.Unavailable });
  proxy.setMode("forward");
  const granted = await grant(client, claim);
  expect(granted.attempt).toBe(1);

  proxy.setMode("swallow");
  const error = await client.claim({ ...ORDER, key: "late" }, { timeoutMs: 300 }).catch(ConnectError.from);
  expect(error).toMatchObject({ code: Code.DeadlineExceeded });
  proxy.setMode("forward");
  proxy.cut();
  await grant(client, { key: "late" });
});

test("a network that goes dead under load loses nothing, and the service recovers with it", async () => {
  const load = startLoad(await connectCrowd([server], apiKey, 8), "charges");
  for (const fault of ["swallow", "refuse", "lose-replies"] as const) {
    await load.more(50);
    proxy.setMode(fault);
    // Until the fault has an effect: messages in flight are stuck, cut or lost.
    await client.claim({ ...ORDER, key: fault }, { timeoutMs: 200 }).catch(() => {});
    proxy.setMode("forward");
    proxy.cut();
  }
  await load.more(50);
  await load.stop();
  await expectReplays(client, "charges", load);
}, 60_000);

test("the management port reports the process as live while the database is unreachable", async () => {
  await complete(client);
  proxy.setMode("refuse");
  await errorOf(client.claim(ORDER));
  const alive = await fetch(`http://127.0.0.1:${server.managementPort}/livez`);
  expect(alive.status).toBe(200);
});
