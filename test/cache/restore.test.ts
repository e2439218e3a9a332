import { describe, expect, onTestFinished, test } from "vitest";
import { connectClient, type IdempotencyClient } from "../helpers/calls/clients.ts";
import { granted } from "../helpers/calls/records.ts";
import { success } from "../helpers/calls/verbs.ts";
import {
  createCopiedDatabase,
  createDumpedDatabase,
  POSTGRES_15,
  type RestorableDatabase,
} from "../helpers/database/restores.ts";
import { describeWithRedis, startRedis } from "../helpers/redis/redis.ts";
import { repeatOften } from "../helpers/servers/fast-path.ts";
import { startTestServer, type TestServer } from "../helpers/servers/server.ts";
import { createTenant } from "../helpers/servers/tenants.ts";

const KEYS = Array.from({ length: 20 }, (_, index) => `order-${index}`);
const NAMESPACE = "charges";
/** Creates, dumps and restores a Postgres, also on a busy machine. */
const TIMEOUT_MS = 120_000;
/** A replica that lost its connection opens another one at its next statement. */
const PATIENCE = { timeout: 30_000, interval: 100 };

/** Starts two replicas with the default caches: in memory, and in a shared Redis. */
async function startReplicas({ url }: RestorableDatabase): Promise<readonly TestServer[]> {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const start = () => startTestServer(url, { REDIS_URL: redis.url, ONCEWARD_CACHE_MIB: "64" });
  const servers = await Promise.all([start(), start()]);
  onTestFinished(async () => {
    await Promise.all(servers.map((server) => server.stop()));
  });
  return servers;
}

/**
 * Claims and completes every key at the first replica, and repeats it at all, so that every replica has
 * cached it.
 */
async function work(clients: readonly IdempotencyClient[], text: string): Promise<Map<string, bigint>> {
  const tokens = new Map<string, bigint>();
  const [first] = clients as [IdempotencyClient];
  await Promise.all(clients.map((client) => repeatOften(client)));
  for (const key of KEYS) {
    const id = { namespace: NAMESPACE, key };
    const { fencingToken } = granted(await first.claim(id));
    await first.complete({ ...id, fencingToken, result: success(text) });
    for (const client of clients) expect((await client.claim(id)).outcome.case).toBe("completed");
    tokens.set(key, fencingToken);
  }
  return tokens;
}

/** Waits until each replica answers again. */
async function untilServed(clients: readonly IdempotencyClient[]): Promise<void> {
  for (const client of clients) {
    const answered = () =>
      client.lookup({ namespace: NAMESPACE, key: "any" }).then(
        () => true,
        () => false,
      );
    await expect.poll(answered, PATIENCE).toBe(true);
  }
}

describeWithRedis("Once a dump is restored under two replicas", () => {
  const kinds = [
    { kind: "a database that Postgres copied", create: createCopiedDatabase, isThere: true },
    { kind: "a pg_dump of PostgreSQL 15", create: createDumpedDatabase, isThere: POSTGRES_15 !== undefined },
  ].filter(({ isThere }) => isThere);

  describe.each(kinds)("from $kind", { timeout: TIMEOUT_MS }, ({ create }) => {
    test("a tenant that is created then is granted the keys of a tenant that was lost", async () => {
      const database = await create();
      const servers = await startReplicas(database);
      await database.dump();
      const lost = await createTenant(database);
      await work(
        servers.map((server) => connectClient(server, lost.apiKey)),
        "the lost tenant's",
      );
      await database.restore();

      const made = await createTenant(database);
      const clients = servers.map((server) => connectClient(server, made.apiKey));
      await untilServed(clients);
      for (const [place, key] of KEYS.entries()) {
        const reply = await clients[place % clients.length]?.claim({ namespace: NAMESPACE, key });
        expect(reply?.outcome.case).toBe("claimed");
      }
      for (const server of servers) {
        const { lookup } = connectClient(server, lost.apiKey);
        await expect(lookup({ namespace: NAMESPACE, key: "any" })).rejects.toThrow(/unauthenticated/);
      }
    });

    test("a key that was lost is granted at every replica with a higher token than before", async () => {
      const database = await create();
      const servers = await startReplicas(database);
      const tenant = await createTenant(database);
      const clients = servers.map((server) => connectClient(server, tenant.apiKey));
      await untilServed(clients);
      await database.dump();
      const tokens = await work(clients, "lost");
      await database.restore();

      await untilServed(clients);
      for (const [place, [key, lostToken]] of [...tokens].entries()) {
        const reply = await clients[place % clients.length]?.claim({ namespace: NAMESPACE, key });
        if (reply === undefined) throw new Error("there is no replica");
        expect(granted(reply).fencingToken).toBeGreaterThan(lostToken);
      }
    });
  });
});
