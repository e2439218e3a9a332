import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { latenessBucket } from "../../server/src/admin/usage/lateness.ts";
import type { Runner } from "../../server/src/database/pool.ts";
import { createDepthOf } from "../../server/src/insight/domain/depth.ts";
import type { FirstClaim } from "../../server/src/insight/first-claims.ts";
import { createSampler, type Sampler } from "../../server/src/insight/sampler.ts";
import { connectClient, type IdempotencyClient } from "../support/calls/clients.ts";
import { ageRecords } from "../support/calls/records.ts";
import { complete, grant, ORDER } from "../support/calls/verbs.ts";
import { openStorePool } from "../support/database/connections.ts";
import { countRows, forgetRecords } from "../support/database/time.ts";
import { createTenant, type TestTenant } from "../support/servers/tenants.ts";
import { useServer } from "../support/servers/use-server.ts";

const RETENTION_S = 3600;
const { database, server } = useServer({ ONCEWARD_SWEEP_INTERVAL: "100ms", ONCEWARD_USAGE_FLUSH: "100ms" });

interface LateRow {
  readonly retention_s: number;
  readonly shift: number;
  readonly buckets: number[];
  readonly repeats: string[];
  readonly squares: string[];
}

function lateRows({ id }: TestTenant): Promise<LateRow[]> {
  return database.query<LateRow>(
    "select retention_s, shift, buckets, repeats, squares from insight_late_hours where tenant_id = $1 order by shift",
    [id],
  );
}

/** Counts the tenant's tombstones of keys that have not come back. */
async function countTombstones({ id }: TestTenant): Promise<number> {
  const rows = await database.query(
    "select 1 from insight_sampled_keys where tenant_id = $1 and ended_at < 'infinity'",
    [id],
  );
  return rows.length;
}

/** Ends the tenant's records, and resolves when the server has swept them. */
async function sweepOf(tenant: TestTenant): Promise<void> {
  await ageRecords(database, tenant, 2 * RETENTION_S);
  await expect.poll(() => countRows(database, tenant)).toBe(0);
}

/**
 * Resolves when the server counts by what it stored before. It asks once for each namespace and flush whether
 * the namespace is sampled, so a claim in between is counted, and flushed.
 */
async function untilFlushed({ id }: TestTenant, client: IdempotencyClient): Promise<void> {
  const claims = async () => {
    const [row] = await database.query<{ claims: number }>(
      "select coalesce(sum(claims), 0)::int as claims from usage_hours where tenant_id = $1",
      [id],
    );
    return row?.claims ?? 0;
  };
  for (let flushes = 0; flushes < 2; flushes++) {
    const before = await claims();
    await client.claim({ ...ORDER, key: `another-${flushes}-${before}` });
    await expect.poll(claims).toBeGreaterThan(before);
  }
}

/** Returns a tenant whose ORDER was claimed, ended, and swept by the server. */
async function tenantWithSweptOrder() {
  const tenant = await createTenant(database, { key_retention_s: RETENTION_S });
  const client = connectClient(server, tenant.apiKey);
  await complete(client);
  await ageRecords(database, tenant, 2 * RETENTION_S);
  await expect.poll(() => countRows(database, tenant)).toBe(0);
  await expect.poll(() => countTombstones(tenant)).toBe(1);
  await untilFlushed(tenant, client);
  return { tenant, client };
}

test("keys are as deep as Postgres says", async () => {
  const text = fc.oneof(
    fc.string({ maxLength: 40 }),
    fc.string({ unit: "binary", maxLength: 30 }).map((any) => any.replaceAll("\0", "").toWellFormed()),
  );
  const seed = fc.oneof(fc.constant(0n), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }));
  await fc.assert(
    fc.asyncProperty(fc.array(text, { minLength: 1, maxLength: 50 }), seed, async (keys, seed) => {
      const rows = await database.query<{ hash: string }>(
        `select (hashtextextended(key collate "C", $2::bigint) & 4294967295)::text as hash
           from unnest($1::text[]) with ordinality as k (key, i) order by i`,
        [keys, String(seed)],
      );
      const depths = rows.map(({ hash }) =>
        hash === "0" ? 32 : 31 - Math.clz32(Number(hash) & -Number(hash)),
      );
      expect(keys.map(createDepthOf(seed))).toEqual(depths);
    }),
    { numRuns: 25 },
  );
});

describe("a repeat after the end of its record", () => {
  test("is counted once by its lateness since the first claim if the sweep deleted the record", async () => {
    const { tenant, client } = await tenantWithSweptOrder();
    await grant(client);
    await client.claim(ORDER);
    await expect.poll(() => lateRows(tenant)).toHaveLength(1);
    const [row] = await lateRows(tenant);
    expect(row).toEqual({
      retention_s: RETENTION_S,
      shift: 0,
      buckets: [latenessBucket(2 * RETENTION_S * 1000)],
      repeats: ["1"],
      squares: ["1"],
    });
  });

  test("is counted again, and its square, when the key's next record has ended", async () => {
    const { tenant, client } = await tenantWithSweptOrder();
    await grant(client);
    await expect.poll(() => lateRows(tenant)).toHaveLength(1);
    await sweepOf(tenant);
    // Of ORDER, and of the two keys that untilFlushed claimed.
    await expect.poll(() => countTombstones(tenant)).toBe(3);
    await grant(client);
    await expect.poll(async () => (await lateRows(tenant))[0]?.repeats).toEqual(["2"]);
    expect((await lateRows(tenant))[0]?.squares).toEqual(["4"]);
  });

  test("is counted if the record was not swept yet", async () => {
    const tenant = await createTenant(database, { key_retention_s: RETENTION_S });
    const client = connectClient(server, tenant.apiKey);
    await complete(client);
    await ageRecords(database, tenant, RETENTION_S + 20);
    await grant(client);
    await expect
      .poll(() => lateRows(tenant))
      .toMatchObject([
        { shift: 0, buckets: [latenessBucket((RETENTION_S + 20) * 1000)], repeats: ["1"], squares: ["1"] },
      ]);
    expect(await countTombstones(tenant)).toBe(0);
  });

  test("is not a repeat if the record was forgotten, and nothing of the key is kept", async () => {
    const { tenant, client } = await tenantWithSweptOrder();
    await grant(client);
    await expect.poll(() => lateRows(tenant)).toHaveLength(1);
    await forgetRecords(database, tenant);
    await grant(client);
    await untilFlushed(tenant, client);
    await forgetRecords(database, tenant);
    await sweepOf(tenant);
    const all = () => database.query("select 1 from insight_sampled_keys where tenant_id = $1", [tenant.id]);
    await expect.poll(all).toEqual([]);
    expect(await lateRows(tenant)).toMatchObject([{ repeats: ["1"] }]);
  });
});

const PEPPER = "a pepper of two replicas";

/** A replica's sampler on the test's database, which looks the same claims up again and again. */
function startSampler(
  claims: readonly FirstClaim[] = [],
  options: {
    readonly maxTombstones?: number;
    readonly pool?: Runner;
    readonly onDropped?: (count: number) => void;
  } = {},
): Sampler & { readonly failures: unknown[] } {
  const failures: unknown[] = [];
  const sampler = createSampler({
    pool: openStorePool(database),
    firstClaims: { take: () => claims, beginInterval() {} },
    pepper: PEPPER,
    intervalMs: 1,
    onFailed: (error) => failures.push(error),
    onDropped: () => {},
    ...options,
  });
  return Object.assign(sampler, { failures });
}

/** The tenant's keys from `from` to `to`, as the sweep names them to a sampler. */
function sweptKeys({ id }: TestTenant, from: number, to: number) {
  const sampled = Array.from({ length: to - from }, (_, i) => ({
    key: `order-${from + i}`,
    firstClaimedAtMs: Date.now() - 7_200_000,
    endedAtMs: Date.now() - 3_600_000,
    forgotten: false,
  }));
  return [{ tenantId: id, namespace: "charges", deleted: 0, freedBytes: 0, sampled }];
}

/** First claims of the same keys, now. */
function claimsOf({ id }: TestTenant, count: number): readonly FirstClaim[] {
  return Array.from({ length: count }, (_, i) => ({
    id: { tenantId: id, namespace: "charges", key: `order-${i}` },
    fingerprint: undefined,
    atMs: Date.now(),
    retentionS: RETENTION_S,
    isObserved: false,
  }));
}

async function sampleOf({ id }: TestTenant) {
  const [sample] = await database.query<{ shift: number; held: number }>(
    "select shift, held from insight_sample_shifts where tenant_id = $1",
    [id],
  );
  return sample;
}

async function countLate(tenant: TestTenant): Promise<number> {
  const rows = await lateRows(tenant);
  return rows
    .flatMap(({ repeats, shift }) => repeats.map((n) => Number(n) * 2 ** shift))
    .reduce((a, b) => a + b, 0);
}

describe("the samplers of two replicas", () => {
  test("select the same keys: what one stores, the other finds, and each repeat is counted once", async () => {
    const tenant = await createTenant(database);
    const [storing, other] = [startSampler(), startSampler(claimsOf(tenant, 40))];
    const third = startSampler(claimsOf(tenant, 40));
    storing.swept(sweptKeys(tenant, 20, 60));
    await storing.stop();
    for (const sampler of [other, third]) sampler.start();
    await expect.poll(() => countLate(tenant)).toBe(20);
    for (const sampler of [other, third]) await sampler.stop();
    expect(await countLate(tenant)).toBe(20);
    expect([storing, other, third].map(({ failures }) => failures)).toEqual([[], [], []]);
  });

  test("halve the sample when it exceeds its maximum, and the estimate stays right", async () => {
    const tenant = await createTenant(database);
    const KEYS = 3000;
    const storing = startSampler(undefined, { maxTombstones: 480 });
    storing.swept(sweptKeys(tenant, 0, KEYS));
    await storing.stop();
    const { shift = 0, held = 0 } = (await sampleOf(tenant)) ?? {};
    // About 375 of 3000 keys are at least 3 deep, with a standard deviation of 18.
    expect(shift).toBe(3);
    expect(held).toBe(await countTombstones(tenant));
    expect(held).toBeGreaterThan(280);
    expect(held).toBeLessThanOrEqual(480);

    const other = startSampler(claimsOf(tenant, KEYS / 2));
    other.start();
    await expect.poll(() => countLate(tenant)).toBeGreaterThan(0);
    await other.stop();
    const rows = await lateRows(tenant);
    expect(rows.map((row) => row.shift)).toEqual([3]);
    // 1500 keys came back: five standard deviations of a sample of one in eight.
    expect(Math.abs((await countLate(tenant)) - KEYS / 2)).toBeLessThan(5 * Math.sqrt((KEYS / 2) * 7));
    expect([...storing.failures, ...other.failures]).toEqual([]);
  });

  test("ignore a claim selected before the sample was halved, unless its key is deep enough", async () => {
    const tenant = await createTenant(database);
    const storing = startSampler();
    storing.swept(sweptKeys(tenant, 0, 200));
    await storing.stop();
    // Another replica has halved the sample, and not deleted the tombstones yet.
    await database.query(
      "update insight_sample_shifts set shift = 2, changed_at = changed_at - interval '1 day' where tenant_id = $1",
      [tenant.id],
    );
    const deep = await database.query(
      "select 1 from insight_sampled_keys where tenant_id = $1 and depth >= 2",
      [tenant.id],
    );
    const other = startSampler(claimsOf(tenant, 200));
    other.start();
    await expect.poll(() => countLate(tenant)).toBeGreaterThan(0);
    await other.stop();
    expect((await lateRows(tenant)).map((row) => row.shift)).toEqual([2]);
    expect(await countLate(tenant)).toBe(4 * deep.length);
  });
});

test("a sampler whose statements fail keeps a smaller sample, which the other replicas learn", async () => {
  const tenant = await createTenant(database);
  let dropped = 0;
  const pool = openStorePool(database);
  let isBroken = true;
  const run: Runner["run"] = (...statement) =>
    isBroken ? Promise.reject(new Error("away")) : pool.run(...statement);
  const sampler = startSampler(undefined, {
    pool: { run },
    onDropped: (count) => {
      dropped += count;
    },
  });
  for (let from = 0; from < 20_000; from += 1000) sampler.swept(sweptKeys(tenant, from, from + 1000));
  sampler.start();
  await expect.poll(() => sampler.failures.length).toBeGreaterThan(2);
  isBroken = false;
  await expect.poll(() => countTombstones(tenant)).toBeGreaterThan(0);
  await sampler.stop();
  // 20,000 / 2^5 = 625 keys, with a standard deviation of 25.
  expect(await sampleOf(tenant)).toMatchObject({ shift: 5, held: await countTombstones(tenant) });
  expect(Math.abs((await countTombstones(tenant)) - 625)).toBeLessThan(125);
  expect(dropped).toBe(0);
});
