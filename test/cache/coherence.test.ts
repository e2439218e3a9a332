import { expect, test } from "vitest";
import { connectClient } from "../support/calls/clients.ts";
import { describeError, errorOf } from "../support/calls/errors.ts";
import { granted, grantsAmong } from "../support/calls/records.ts";
import { bytes, complete, fingerprintOf, grant, ORDER, seconds, success } from "../support/calls/verbs.ts";
import { lockRows, openConnection } from "../support/database/connections.ts";
import { createDatabaseOfTest, type TestDatabase } from "../support/database/database.ts";
import { keyOfAnotherShard } from "../support/database/shards.ts";
import { statementsDuring } from "../support/database/statements.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { describeWithRedis, useRedis } from "../support/redis/redis.ts";
import { claimFromRedis, copiesOf, countLooks, repeatOften } from "../support/servers/fast-path.ts";
import { createTenant, type PolicyColumns } from "../support/servers/tenants.ts";
import { startServerOfTest, useServerOn } from "../support/servers/use-server.ts";

/** Servers without a memory cache, so that Redis answers. */
describeWithRedis("A cached completion in Redis", () => {
  const redis = useRedis();
  const database = useDatabase();
  const servers = [useServerOn(database, withRedis), useServerOn(database, withRedis)] as const;

  function withRedis() {
    return { REDIS_URL: redis.url };
  }

  /** Creates a tenant's clients of both servers, which use Redis for its namespace. */
  async function newTenant(policy: PolicyColumns = {}) {
    const tenant = await createTenant(database, policy);
    const [one, two] = [connectClient(servers[0], tenant.apiKey), connectClient(servers[1], tenant.apiKey)];
    await Promise.all([repeatOften(one), repeatOften(two)]);
    return { tenant, one, two };
  }

  /** Returns how often a server found an invalid entry. */
  const invalidLooks = () => countLooks(servers[1], "redis", "invalid");

  test("answers a repeat on another replica as Postgres would, without a statement", async () => {
    const { one, two } = await newTenant();
    const result = {
      ...success("pa\u0000id ☃"),
      contentType: "text/plain",
      metadata: { "X-Trace": "a", empty: "" },
    };
    await complete(one, result);
    const fromPostgres = await one.lookup(ORDER);
    await copiesOf(redis, ORDER.key, 1);
    const { outcome, expiresAt } = await claimFromRedis(servers[1], two);
    expect(outcome).toMatchObject({ case: "completed", value: { result, resultExpired: false } });
    expect(expiresAt).toEqual(fromPostgres.record?.expiresAt);
    await expect
      .poll(() => statementsDuring(servers[1], () => two.claim(ORDER)), { timeout: 30_000 })
      .toEqual({});
    await redis.command("flushall");
  });

  test("is made of completed records only, and a miss grants nothing", async () => {
    const { one, two } = await newTenant();
    await redis.command("flushall");
    const claims = await Promise.all(
      Array.from({ length: 40 }, (_, index) => (index % 2 ? one : two).claim(ORDER)),
    );
    expect(grantsAmong(claims)).toHaveLength(1);
    await one.release({ ...ORDER, fencingToken: grantsAmong(claims)[0]?.fencingToken ?? 0n });
    expect(await copiesOf(redis, ORDER.key, 0)).toEqual([]);
    await complete(one);
    await redis.command("flushall");
    expect((await two.claim(ORDER)).outcome.case).toBe("completed");
    await redis.command("flushall");
  });

  test("answers a claim with another fingerprint by the mismatch, without one by the result", async () => {
    const { one, two } = await newTenant();
    const { fencingToken } = await grant(one, { fingerprint: fingerprintOf("10 EUR") });
    await one.complete({ ...ORDER, fencingToken, result: success("paid") });
    await claimFromRedis(servers[1], two);
    await claimFromRedis(servers[1], two, { ...ORDER, ...{ fingerprint: fingerprintOf("10 EUR") } });
    const hits = await countLooks(servers[1], "redis", "hit");
    await expect
      .poll(async () => {
        const other = { ...ORDER, fingerprint: fingerprintOf("99 EUR") };
        expect(await errorOf(two.claim(other))).toMatchObject({ reason: "FINGERPRINT_MISMATCH" });
        return countLooks(servers[1], "redis", "hit");
      })
      .toBeGreaterThan(hits);
    await redis.command("flushall");
  });

  test("that was altered, truncated or stored under another name is not answered", async () => {
    const { one, two } = await newTenant();
    await complete(one, success("mine"));
    const other = { ...ORDER, key: "order-2" };
    const { fencingToken } = granted(await one.claim(other));
    await one.complete({ ...other, fencingToken, result: success("another's") });
    const [name = ""] = await copiesOf(redis, ORDER.key, 1);
    const [otherName = ""] = await copiesOf(redis, other.key, 1);
    const whole = (await redis.command("get", name)) as Buffer;
    const flipped = Buffer.from(whole);
    flipped.writeUInt8(flipped.readUInt8(flipped.length - 1) ^ 1, flipped.length - 1);
    const swapped = (await redis.command("get", otherName)) as Buffer;
    for (const value of [flipped, whole.subarray(0, -1), swapped, Buffer.alloc(0), Buffer.from("{}")]) {
      const before = await invalidLooks();
      await expect
        .poll(async () => {
          await redis.command("set", name, value);
          const { outcome } = await two.claim(ORDER);
          expect(outcome).toMatchObject({ case: "completed", value: { result: success("mine") } });
          return invalidLooks();
        })
        .toBeGreaterThan(before);
    }
    await redis.command("flushall");
  });

  test("is written after the commit, and not at all without a commit", async () => {
    const { tenant, one } = await newTenant();
    const { fencingToken } = await grant(one);
    const locker = await openConnection(database);
    await lockRows(locker, tenant, [ORDER.key]);
    const completing = untilUnlocked(() => one.complete({ ...ORDER, fencingToken, result: success("paid") }));
    // Redis receives writes in order: once the marker exists, an entry written before it would exist, too.
    // On Citus, a statement that waits for a row keeps statements of its shard waiting.
    const marker = { namespace: "markers", key: await keyOfAnotherShard(database, ORDER.key) };
    await repeatOften(one, marker);
    const { fencingToken: markerToken } = granted(await one.claim(marker));
    await one.complete({ ...marker, fencingToken: markerToken, result: success("marker") });
    await copiesOf(redis, marker.key, 1);
    expect(await copiesOf(redis, ORDER.key, 0)).toEqual([]);
    await locker.query("rollback");
    await completing;
    await copiesOf(redis, ORDER.key, 1);
    const late = { ...ORDER, fencingToken, result: success("other") };
    expect(await errorOf(one.complete(late))).toMatchObject({ reason: "ALREADY_COMPLETED" });
    await redis.command("flushall");
  });

  test("expires no later than the result's retention", async () => {
    const { one } = await newTenant({ key_retention_s: 7200, result_retention_s: 90 });
    const tightened = await grant(one, { retention: seconds(60) });
    await one.complete({ ...ORDER, fencingToken: tightened.fencingToken, result: success("paid") });
    const asStamped = { ...ORDER, key: "order-3" };
    const { fencingToken } = granted(await one.claim(asStamped));
    await one.complete({ ...asStamped, fencingToken, result: success("paid") });
    for (const [key, retentionMs] of [
      [ORDER.key, 60_000],
      [asStamped.key, 90_000],
    ] as const) {
      const [name = ""] = await copiesOf(redis, key, 1);
      const leftMs = Number(await redis.command("pttl", name));
      expect(leftMs).toBeGreaterThan(0);
      expect(leftMs).toBeLessThanOrEqual(retentionMs);
    }
    await redis.command("flushall");
  });

  test("that Redis holds past the end of the retention is not answered", async () => {
    const { tenant, one, two } = await newTenant();
    await complete(one, success("paid"));
    await redis.command("flushall");
    // Postgres counts in whole seconds from the claim; that its end is near is what SQL is for.
    const [row] = await database.query<{ ends_at_ms: number }>(
      `update records set result_expires_at = now() + interval '5 seconds'
        where tenant_id = $1 and key = $2
       returning date_part('epoch', result_expires_at - to_timestamp(0)) * 1000 as ends_at_ms`,
      [tenant.id, ORDER.key],
    );
    expect((await two.claim(ORDER)).outcome).toMatchObject({ value: { resultExpired: false } });
    const [name = ""] = await copiesOf(redis, ORDER.key, 1);
    const copy = (await redis.command("get", name)) as Buffer;
    const readTime = async () => {
      const [now] = await database.query<{ ms: number }>("select date_part('epoch', now()) * 1000 as ms");
      return now?.ms ?? 0;
    };
    await expect.poll(readTime, { timeout: 30_000 }).toBeGreaterThanOrEqual(row?.ends_at_ms ?? Infinity);
    // Redis removes a copy at its end.
    await redis.command("set", name, copy);
    expect((await two.claim(ORDER)).outcome).toMatchObject({ value: { resultExpired: true } });
    await redis.command("flushall");
  });

  test("is never found by another tenant under any key", async () => {
    const mine = await newTenant();
    const theirs = await newTenant();
    await complete(mine.one, success("mine"));
    await copiesOf(redis, ORDER.key, 1);
    await claimFromRedis(servers[1], mine.two);
    expect((await theirs.two.claim(ORDER)).outcome.case).toBe("claimed");
    await redis.command("flushall");
  });

  test("is never found by another installation that shares the Redis", async () => {
    const [first, second] = [await createDatabaseOfTest(), await createDatabaseOfTest()];
    // Both databases are copies of one template.
    await second.query("update installation set id = gen_random_uuid()");
    const connectTenant = async (own: TestDatabase) => {
      const { id, apiKey } = await createTenant(own);
      return { id, client: connectClient(await startServerOfTest(own.url, withRedis()), apiKey) };
    };
    const [{ id, client: one }, { id: otherId, client: two }] = [
      await connectTenant(first),
      await connectTenant(second),
    ];
    // The names differ in the installation's id only.
    expect(id).toBe(otherId);
    await Promise.all([repeatOften(one), repeatOften(two)]);
    await complete(one, success("the first's"));
    await copiesOf(redis, ORDER.key, 1);
    expect((await two.claim(ORDER)).outcome.case).toBe("claimed");
    await redis.command("flushall");
  });

  test("is not made of a payload that would evict hundreds of others", async () => {
    const { one } = await newTenant();
    await complete(one, success("x".repeat(20_000)));
    const next = { ...ORDER, key: "order-4" };
    const { fencingToken } = granted(await one.claim(next));
    await one.complete({ ...next, fencingToken, result: success("small") });
    await copiesOf(redis, next.key, 1);
    expect(await copiesOf(redis, ORDER.key, 0)).toEqual([]);
    expect((await one.claim(ORDER)).outcome).toMatchObject({
      value: { result: { payload: bytes("x".repeat(20_000)) } },
    });
  });
});

/** Makes a call again while it waits in vain for another transaction's lock, which a slow machine holds for long. */
async function untilUnlocked<Response>(call: () => Promise<Response>): Promise<Response> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (describeError(error).reason !== "RECORD_CONTENDED") throw error;
    }
  }
}
