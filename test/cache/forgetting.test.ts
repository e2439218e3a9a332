import { expect, test } from "vitest";
import { connectAdmin } from "../support/calls/admin.ts";
import { connectClient } from "../support/calls/clients.ts";
import { granted } from "../support/calls/records.ts";
import { complete, grant, ORDER, success } from "../support/calls/verbs.ts";
import { forgetRecords } from "../support/database/time.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { startTcpProxy } from "../support/network/tcp-proxy.ts";
import { describeWithRedis, useRedis } from "../support/redis/redis.ts";
import { copiesOf, countLooks, repeatOften, untilBypassed } from "../support/servers/fast-path.ts";
import type { TestServer } from "../support/servers/server.ts";
import { createApiKey, createTenant } from "../support/servers/tenants.ts";
import { startServerOfTest } from "../support/servers/use-server.ts";
import { useStarted } from "../support/use-started.ts";

describeWithRedis("A forgotten record", () => {
  const redis = useRedis();
  const database = useDatabase();
  const proxy = useStarted(
    () => startTcpProxy(redis.port),
    (started) => started.close(),
  );

  async function startReplica(redisPort: number, cacheMib: number) {
    const env = { REDIS_URL: `redis://127.0.0.1:${redisPort}`, ONCEWARD_CACHE_MIB: String(cacheMib) };
    const server = await startServerOfTest(database.url, env);
    await untilBypassed(server, false);
    return server;
  }

  test("stays forgotten when its completion is cached late", async () => {
    const tenant = await createTenant(database);
    const slow = connectClient(await startReplica(proxy.port, 0), tenant.apiKey);
    await repeatOften(slow);
    const { fencingToken } = await grant(slow);
    proxy.setMode("hold");
    await slow.complete({ ...ORDER, fencingToken, result: success("forgotten") });
    await forgetRecords(database, tenant);
    expect(await copiesOf(redis, ORDER.key, 0)).toEqual([]);
    proxy.setMode("forward");
    await copiesOf(redis, ORDER.key, 1);
    const server = await startReplica(redis.port, 0);
    const client = connectClient(server, tenant.apiKey);
    await repeatOften(client);
    const misses = await countLooks(server, "redis", "miss");
    expect((await grant(client)).attempt).toBe(1);
    expect(await countLooks(server, "redis", "miss")).toBe(misses + 1);
  });

  /**
   * The only test that waits for seconds: the contract's limit is 10 s, and the test checks that replicas
   * keep it by never using older data of a tenant.
   */
  test("is forgotten on every replica within 10 s, also without a connection to Redis", {
    timeout: 30_000,
  }, async () => {
    const tenant = await createTenant(database);
    const servers = [await startReplica(proxy.port, 16), await startReplica(proxy.port, 16)];
    const clients = servers.map((server) => connectClient(server, tenant.apiKey));
    const [first] = clients;
    if (first === undefined) throw new Error("a client is missing");
    await complete(first);
    const other = { ...ORDER, key: "order-2" };
    const { fencingToken } = granted(await first.claim(other));
    await first.complete({ ...other, fencingToken, result: success("done") });
    // Each replica has cached both in memory.
    for (const client of clients) for (const id of [ORDER, other]) await client.claim(id);
    proxy.setMode("refuse");
    for (const server of servers) await untilBypassed(server, true);
    const adminKey = await createApiKey(database, { tenantId: tenant.id, role: "TENANT_ADMIN" });
    const admin = connectAdmin(servers[0] as TestServer, adminKey);
    for (const id of [ORDER, other])
      await admin.resolveRecord({ ...id, resolution: { case: "forget", value: {} }, reason: "test" });
    const forgotten = clients.map((client, index) => {
      const id = [ORDER, other][index];
      const claim = async () => (await client.claim(id ?? ORDER)).outcome.case;
      return expect.poll(claim, { timeout: 10_000, interval: 50 }).toBe("claimed");
    });
    await Promise.all(forgotten);
    proxy.setMode("forward");
  });
});
