import { setTimeout as pause } from "node:timers/promises";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import { describe, expect, onTestFinished, test } from "vitest";
import { connectClient, type IdempotencyClient } from "../support/calls/clients.ts";
import { describeError } from "../support/calls/errors.ts";
import { granted } from "../support/calls/records.ts";
import { success } from "../support/calls/verbs.ts";
import {
  createCopiedDatabase,
  createDumpedDatabase,
  POSTGRES_15,
  type RestorableDatabase,
} from "../support/database/restores.ts";
import { describeWithRedis, startRedis } from "../support/redis/redis.ts";
import { repeatOften } from "../support/servers/fast-path.ts";
import type { TestServer } from "../support/servers/server.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { startServerOfTest } from "../support/servers/use-server.ts";

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
  const start = () =>
    startServerOfTest(url, { REDIS_URL: redis.url, ONCEWARD_CACHE_MIB: "64" }, { heartbeatMs: 200 });
  return await Promise.all([start(), start()]);
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

/** Waits until every replica has read a floor of tokens that the dump lacks: what was committed before it is known. */
async function untilNoticed({ query }: RestorableDatabase, floorOfDump: number): Promise<void> {
  await expect.poll(() => floorOf({ query }), PATIENCE).toBeGreaterThan(floorOfDump);
  // The second heartbeat from now began after the floor rose.
  for (const _ of [1, 2]) {
    const [now] = await query<{ at: string }>("select now()::text as at");
    const behind = () => query("select from replicas where seen_at <= $1", [now?.at]);
    await expect.poll(behind, PATIENCE).toEqual([]);
  }
}

async function floorOf({ query }: Pick<RestorableDatabase, "query">): Promise<number> {
  const [row] = await query<{ floor: string }>("select token_floor as floor from installation");
  return Number(row?.floor);
}

/** Returns the reason for which a claim is refused, or its outcome, as soon as Postgres decides it again. */
async function decisionOn(client: IdempotencyClient, claim: Parameters<IdempotencyClient["claim"]>[0]) {
  for (;;) {
    const answer = await client.claim(claim).then(({ outcome }) => outcome.case, describeError);
    if (typeof answer !== "object") return answer;
    if (answer.code !== "Unavailable") return answer.reason;
    await pause(10);
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

    test("a key that was lost is refused where late keys are, by the first answer of every replica", async () => {
      const database = await create();
      const servers = await startReplicas(database);
      const tenant = await createTenant(database, { late_keys: "REQUIRE_TIME" });
      const clients = servers.map((server) => connectClient(server, tenant.apiKey));
      await untilServed(clients);
      await database.dump();
      const floorOfDump = await floorOf(database);
      const claims = KEYS.map((key) => ({ namespace: NAMESPACE, key, keyCreatedAt: timestampNow() }));
      const [first] = clients as [IdempotencyClient, ...IdempotencyClient[]];
      for (const claim of claims) granted(await first.claim(claim));
      await untilNoticed(database, floorOfDump);
      const restored = database.restore();
      const decided = clients.flatMap((client) =>
        claims.map(async (claim) => {
          const decisions = [await decisionOn(client, claim)];
          await restored;
          return [...decisions, await decisionOn(client, claim)];
        }),
      );
      for (const [meanwhile, after] of await Promise.all(decided)) {
        // Before the restore, the first claim still holds the key.
        expect(["inProgress", "KEY_TOO_OLD"]).toContain(meanwhile);
        expect(after).toBe("KEY_TOO_OLD");
      }
      const made = { ...claims[0], key: "made-later", keyCreatedAt: timestampNow() };
      for (const client of clients)
        expect(["claimed", "inProgress"]).toContain(await decisionOn(client, made));
    });
  });
});
