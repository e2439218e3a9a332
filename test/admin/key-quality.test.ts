import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { KeyDefect, type KeyQuality } from "../../clients/typescript/src/gen/onceward/v1/tenant_admin_pb.ts";
import { latenessBucket } from "../../server/src/admin/usage/lateness.ts";
import { createKeyHashes } from "../../server/src/insight/domain/key-hashes.ts";
import type { FirstClaim } from "../../server/src/insight/first-claims.ts";
import { createSampler } from "../../server/src/insight/sampler.ts";
import type { RecordId } from "../../server/src/records/record.ts";
import type { SweptNamespace } from "../../server/src/records/sweep.ts";
import { type AdministeredTenant, describeAdministration } from "../support/calls/admin.ts";
import { errorOf } from "../support/calls/errors.ts";
import { readPages } from "../support/calls/pages.ts";
import { FORGET } from "../support/calls/resolutions.ts";
import { grant, ORDER } from "../support/calls/verbs.ts";
import { openStorePool } from "../support/database/connections.ts";
import type { TestDatabase } from "../support/database/database.ts";
import { runRecordJobs } from "../support/database/jobs.ts";
import { randomFor } from "../support/seed.ts";
import { TEST_PEPPER } from "../support/servers/server.ts";
import type { TestTenant } from "../support/servers/tenants.ts";

const EAGER = { ONCEWARD_SWEEP_INTERVAL: "100ms", ONCEWARD_USAGE_FLUSH: "100ms" };
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const CHARGES = "charges";
const random = randomFor("key quality");

/** A first claim as a test plants it. */
interface Planted {
  readonly key: string;
  readonly operation?: string;
  readonly atMs: number;
}

/** Claims of the last two days, one in some seconds, of operations that each come once. */
function honest(count: number, keyOf: (i: number, atMs: number) => string = (i) => `order-${10_000 + i}`) {
  return Array.from({ length: count }, (_, i): Planted => {
    const atMs = Date.now() - 48 * HOUR_MS + (i / count) * 47 * HOUR_MS;
    return { key: keyOf(i, atMs), operation: `operation-${i}`, atMs };
  });
}

/** One claim in 20 again a minute later, under the key that `keyOf` returns. */
function retriesOf(claims: readonly Planted[], keyOf: (claim: Planted) => string): readonly Planted[] {
  return claims.flatMap((claim, i) =>
    i % 20 === 0 ? [{ ...claim, key: keyOf(claim), atMs: claim.atMs + MINUTE_MS }] : [],
  );
}

function fingerprintOf({ operation }: Pick<Planted, "operation">): Uint8Array | undefined {
  return operation === undefined ? undefined : createHash("sha256").update(operation).digest();
}

function observedClaim(id: RecordId, fingerprint: Uint8Array | undefined, atMs: number): FirstClaim {
  return { id, fingerprint, atMs, retentionS: 86_400, isObserved: true };
}

/** Stores claims as the sampler of a server would, as `claims` of which some were repeated under their key. */
async function plant(
  database: TestDatabase,
  { id }: TestTenant,
  planted: readonly Planted[],
  counted: { readonly claims: number; readonly repeats?: number },
): Promise<void> {
  const observed = planted.map((claim) =>
    observedClaim({ tenantId: id, namespace: CHARGES, key: claim.key }, fingerprintOf(claim), claim.atMs),
  );
  const failures: unknown[] = [];
  const sampler = createSampler({
    pool: openStorePool(database),
    firstClaims: { take: () => observed.splice(0, 400), beginInterval() {} },
    pepper: TEST_PEPPER,
    intervalMs: 1,
    onFailed: (error) => failures.push(error),
    onDropped: () => failures.push("dropped"),
  });
  sampler.start();
  await expect.poll(() => observed.length).toBe(0);
  await sampler.stop();
  expect(failures).toEqual([]);
  await database.query(
    `insert into insight_hours (tenant_id, namespace, hour, retention_s, claims, first_claims, buckets, repeats)
     values ($1, $2, date_trunc('hour', now()) - interval '2 days', 86400, $3, $3, $4, $5)`,
    [
      ...[id, CHARGES, counted.claims],
      ...(counted.repeats ? [[latenessBucket(MINUTE_MS)], [counted.repeats]] : [[], []]),
    ],
  );
}

async function qualityOf({ admin }: AdministeredTenant): Promise<KeyQuality> {
  const { namespaces } = await admin.getKeyQuality({ namespace: CHARGES });
  const [quality] = namespaces;
  if (quality === undefined) throw new Error("the namespace is missing");
  return quality;
}

async function suspicionsOf(tenant: AdministeredTenant) {
  const { suspicions } = await qualityOf(tenant);
  return suspicions.map(({ defect, evidence, examples, advice }) => {
    expect(advice).not.toBe("");
    return {
      defect,
      evidence: evidence.map(({ measure, count, of }) => [measure, count, of]),
      examples: examples.map(({ key }) => key).sort(),
    };
  });
}

/** Expects this suspicion alone, once what the server noted is stored. */
function expectSuspicion(tenant: AdministeredTenant, expected: object) {
  return expect.poll(() => suspicionsOf(tenant)).toEqual([expected]);
}

describeAdministration("key quality", { env: EAGER }, (world) => {
  const newTenant = () => world().administeredTenant({ key_retention_s: 86_400 });

  /**
   * Plants claims, and then claims those with `live` keys, so that there are records to show. The server stores
   * these claims soon, not at once.
   */
  async function tenantWith(
    planted: readonly Planted[],
    counted: { readonly claims: number; readonly repeats?: number },
    live: readonly Planted[] = [],
  ) {
    const tenant = await newTenant();
    await plant(world().database, tenant.tenant, planted, counted);
    for (const claim of live) {
      const fingerprint = fingerprintOf(claim);
      await grant(tenant.caller, {
        namespace: CHARGES,
        key: claim.key,
        ...(fingerprint && { fingerprint }),
      });
    }
    return tenant;
  }

  test("suspects nothing of honest claims that look like defects", async () => {
    const claims = honest(2000, (i, atMs) =>
      i % 2 === 0 ? `order-${10_000 + i}` : `report-${new Date(atMs).toISOString().slice(0, 10)}-${i}:1`,
    );
    // Equal orders some minutes later, and items of one order.
    const twice = retriesOf(claims, ({ key }) => `${key}-again`);
    const items = retriesOf(claims, ({ key }) => key.replace(/:1$/, ":2"));
    const tenant = await tenantWith([...claims, ...twice, ...items], { claims: 40_000, repeats: 800 });
    expect(await qualityOf(tenant)).toMatchObject({
      namespace: CHARGES,
      claims: 40_000n,
      suspicions: [],
      undecided: [],
    });
  });

  test("suspects new keys for retries, and shows records with such a fingerprint", async () => {
    const claims = honest(2000, () => random.uuid());
    const retries = retriesOf(claims, () => random.uuid());
    const live = [claims[0], retries[0], claims[1]].flatMap((claim) => claim ?? []);
    const tenant = await tenantWith([...claims, ...retries], { claims: 2100 }, live);
    await expectSuspicion(tenant, {
      defect: KeyDefect.NEW_KEY_PER_RETRY,
      evidence: [
        ["other_key_within_15_minutes", 100, 2100],
        ["other_key_after_hours", 0, 2100],
        ["same_key_within_15_minutes", 0, 2100 + live.length],
      ],
      examples: [live[0]?.key, live[1]?.key].sort(),
    });
    // All keys are random UUIDs, but 2,100 claims do not show that they never repeat.
    const { suspicions, undecided } = await qualityOf(tenant);
    expect(undecided).toMatchObject([{ defect: KeyDefect.UUID_PER_CLAIM }]);
    const [share] = suspicions[0]?.evidence ?? [];
    expect(share?.shareLow).toBeGreaterThan(0.038);
    expect(share?.shareHigh).toBeLessThan(0.058);
  });

  test("suspects the number of the attempt in keys", async () => {
    const claims = honest(2000, (i) => `order-${10_000 + i}:1`);
    const retries = retriesOf(claims, ({ key }) => key.replace(/:1$/, ":2"));
    const live = [claims[0], retries[0], claims[1]].flatMap((claim) => claim ?? []);
    const tenant = await tenantWith([...claims, ...retries], { claims: 2100 }, live);
    await expectSuspicion(tenant, {
      defect: KeyDefect.ATTEMPT_IN_KEY,
      evidence: [
        ["other_counter_within_15_minutes", 100, 2100],
        ["attempt_in_key", 0, 2103],
        ["same_key_within_15_minutes", 0, 2103],
      ],
      examples: ["order-10000:1", "order-10000:2"],
    });
  });

  test.each([
    [
      KeyDefect.TIME_IN_KEY,
      (atMs: number) => `charge-${Math.round(atMs)}`,
      ["epoch_in_key", "same_key"],
      "order-1",
    ],
    [KeyDefect.UUID_PER_CLAIM, () => random.uuid(), ["random_uuid", "same_key"], "order-1"],
    [KeyDefect.UUID_PER_CLAIM, uuid7, ["uuid_made_at_claim", "same_key"], "order-1"],
  ])("suspects keys with %s that are never repeated", async (defect, keyOf, measures, other) => {
    const claims = honest(400, (_, atMs) => keyOf(atMs));
    const live = { key: keyOf(Date.now()), operation: "live", atMs: 0 };
    const tenant = await tenantWith(claims, { claims: 11_000 }, [
      live,
      { ...live, key: other, operation: "other" },
    ]);
    await expect.poll(() => suspicionsOf(tenant)).toMatchObject([{ defect, examples: [live.key] }]);
    const suspicions = await suspicionsOf(tenant);
    expect(suspicions[0]?.evidence.map(([measure]) => measure)).toEqual(measures);
    await world().database.query(
      "update insight_hours set buckets = '{3}', repeats = '{40}' where tenant_id = $1 and claims = 11000",
      [tenant.tenant.id],
    );
    await expect.poll(() => suspicionsOf(tenant)).toEqual([]);
  });

  test("suspects many random keys of costing more, also if they are repeated", async () => {
    const claims = honest(400, () => random.uuid());
    const live = { key: random.uuid(), operation: "live", atMs: 0 };
    const tenant = await tenantWith(claims, { claims: 1_000_000, repeats: 9000 }, [
      live,
      { ...live, key: "order-1", operation: "other" },
    ]);
    await expect
      .poll(() => suspicionsOf(tenant))
      .toMatchObject([{ defect: KeyDefect.RANDOM_ORDER, examples: [live.key] }]);
  });

  test("suspects a namespace without fingerprints", async () => {
    const claims = honest(400).map(({ key, atMs }) => ({ key, atMs }));
    const tenant = await tenantWith(claims, { claims: 400, repeats: 8 }, [{ key: "order-1", atMs: 0 }]);
    await expectSuspicion(tenant, {
      defect: KeyDefect.NO_FINGERPRINTS,
      evidence: [["without_fingerprint", 401, 401]],
      examples: ["order-1"],
    });
  });

  test("suspects repeats that come after expiry", async () => {
    const tenant = await tenantWith(honest(400), { claims: 20_000, repeats: 4 }, [
      { key: "order-1", operation: "1", atMs: 0 },
      { key: "order-2", operation: "2", atMs: 0 },
    ]);
    const { id } = tenant.tenant;
    await world().database.query(
      `insert into insight_late_hours (tenant_id, namespace, hour, retention_s, shift, buckets, repeats, squares)
       select $1, $2, date_trunc('hour', now()) - day * interval '1 day', 86400, 1, '{60}', '{20}', '{20}'
         from generate_series(1, 5) day`,
      [id, CHARGES],
    );
    const hash = createKeyHashes(TEST_PEPPER).ofKey({ tenantId: id, namespace: CHARGES }, "order-2");
    await world().database.query(
      `with sample as (insert into insight_sample_shifts (tenant_id, namespace, kind, since) values ($1, $2, 'key', now()))
       insert into insight_sampled_keys (tenant_id, namespace, kind, key_hash, fingerprint_hash, depth, first_claimed_at, ended_at, keep_until)
       values ($1, $2, 'key', $3, '', 0, now(), 'infinity', 'infinity')`,
      [id, CHARGES, hash],
    );
    await expectSuspicion(tenant, {
      defect: KeyDefect.REPEATS_AFTER_EXPIRY,
      evidence: [["repeats_after_expiry", 200, 204]],
      examples: ["order-2"],
    });
  });

  test("shows at most five records that have the sign", async () => {
    const live = Array.from({ length: 7 }, (_, n) => ({
      key: random.uuid(),
      operation: `live-${n}`,
      atMs: 0,
    }));
    const tenant = await tenantWith(
      honest(400, () => random.uuid()),
      { claims: 11_000 },
      live,
    );
    await expect.poll(async () => (await suspicionsOf(tenant))[0]?.examples.length).toBe(5);
  });

  test("says what is missing where the data is too little", async () => {
    const tenant = await newTenant();
    const empty = await qualityOf(tenant);
    expect(empty).toMatchObject({ claims: 0n, suspicions: [] });
    expect(empty.observedSince).toBeUndefined();
    expect(empty.undecided.map(({ defect, insufficient }) => [defect, insufficient?.missingClaims])).toEqual([
      [KeyDefect.NEW_KEY_PER_RETRY, 1000n],
      [KeyDefect.TIME_IN_KEY, 300n],
      [KeyDefect.ATTEMPT_IN_KEY, 1000n],
      [KeyDefect.UUID_PER_CLAIM, 300n],
      [KeyDefect.NO_FINGERPRINTS, 300n],
    ]);
  });

  test("lists at most 20 namespaces in a page, regardless of the page size in the request", async () => {
    const tenant = await newTenant();
    const names = Array.from({ length: 21 }, (_, n) => `charges-${String(n).padStart(2, "0")}`);
    for (const namespace of names) await grant(tenant.caller, { namespace });
    const first = async () => await tenant.admin.getKeyQuality({ pageSize: 1000 });
    await expect.poll(async () => (await first()).nextPageToken).not.toBe("");
    expect((await first()).namespaces.map(({ namespace }) => namespace)).toEqual(names.slice(0, 20));
  });

  test("lists all namespaces in pages", async () => {
    const tenant = await newTenant();
    const names = ["charges", "mail", "refunds"];
    for (const namespace of names) await grant(tenant.caller, { namespace });
    const all = async () => (await tenant.admin.getKeyQuality({})).namespaces.map((each) => each.namespace);
    await expect.poll(all).toEqual(names);
    const page = (pageToken: string) => tenant.admin.getKeyQuality({ pageSize: 1, pageToken });
    expect((await readPages("namespaces", page)).map(({ namespace }) => namespace)).toEqual(names);
  });

  test.each([
    [{ namespace: "Charges" }, "namespace"],
    [{ pageSize: -1 }, "page_size"],
    [{ pageToken: "none" }, "page_token"],
  ])("refuses %j", async (request, field) => {
    const { admin } = await newTenant();
    const error = await errorOf(admin.getKeyQuality(request));
    expect(error).toMatchObject({ reason: "INVALID_REQUEST", fields: [field] });
  });
});

function uuid7(atMs: number): string {
  const hex = Math.round(atMs).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7${random.uuid().slice(15)}`;
}

describeAdministration("what is observed of keys", { env: EAGER }, (world) => {
  const TABLES = ["insight_key_days", "insight_sample_shifts", "insight_sampled_keys"];
  const query = (table: string, { id }: TestTenant) =>
    world().database.query(`select * from ${table} where tenant_id = $1`, [id]);

  async function tenantWithClaim(key = ORDER.key) {
    const tenant = await world().administeredTenant({ key_retention_s: 86_400 });
    await grant(tenant.caller, { key, fingerprint: createHash("sha256").update("order").digest() });
    await expect.poll(() => query("insight_sampled_keys", tenant.tenant)).toHaveLength(1);
    return tenant;
  }

  test("is stored once for a first claim, as hashes that are keyed with the pepper", async () => {
    const tenant = await tenantWithClaim("order-7:2");
    await tenant.caller.claim({ ...ORDER, key: "order-7:2" });
    await grant(tenant.caller, { key: "order-8" });
    const days = () => query("insight_key_days", tenant.tenant);
    await expect.poll(days).toMatchObject([{ claims: "2", without_fingerprint: "1" }]);
    const of = { tenantId: tenant.tenant.id, namespace: ORDER.namespace };
    const hashes = createKeyHashes(TEST_PEPPER);
    const fingerprint = createHash("sha256").update("order").digest();
    expect(await query("insight_sampled_keys", tenant.tenant)).toMatchObject([
      {
        key_hash: hashes.ofKey(of, "order-7:2"),
        stem_hash: hashes.ofKey(of, "order-7"),
        fingerprint_hash: hashes.ofFingerprint(of, fingerprint),
      },
    ]);
    expect(hashes.ofKey(of, "order-7:2")).not.toEqual(createKeyHashes("another").ofKey(of, "order-7:2"));
  });

  test("leaves no hash of a record that is forgotten", async () => {
    const { admin, caller, tenant } = await tenantWithClaim();
    await grant(caller, { key: "order-2", fingerprint: createHash("sha256").update("2").digest() });
    await expect.poll(() => query("insight_sampled_keys", tenant)).toHaveLength(2);
    await admin.resolveRecord({ ...ORDER, resolution: FORGET, reason: "test" });
    // The sweep deletes a forgotten row after the time in which its token may still be used.
    await world().database.query(
      "update records set expires_at = '-infinity', sweep_at = now() - interval '1 hour' where tenant_id = $1 and state = 0",
      [tenant.id],
    );
    await expect.poll(() => query("insight_sampled_keys", tenant)).toHaveLength(1);
    const of = { tenantId: tenant.id, namespace: ORDER.namespace };
    expect(await query("insight_sampled_keys", tenant)).toMatchObject([
      { key_hash: createKeyHashes(TEST_PEPPER).ofKey(of, "order-2") },
    ]);
  });

  test("is stored once the database accepts it again after failed statements, and counted once", async () => {
    const { tenant } = await world().administeredTenant();
    const { database } = world();
    const of = { tenantId: tenant.id, namespace: ORDER.namespace };
    let next: FirstClaim[] = [];
    let failures = 0;
    const dropped: unknown[] = [];
    const sampler = createSampler({
      pool: openStorePool(database),
      firstClaims: { take: () => next.splice(0), beginInterval() {} },
      pepper: TEST_PEPPER,
      intervalMs: 1,
      onFailed: () => {
        failures++;
      },
      onDropped: () => dropped.push("dropped"),
    });
    const claims = Array.from({ length: 300 }, (_, n) => {
      const fingerprint = createHash("sha256").update(`${n}`).digest();
      return observedClaim({ ...of, key: `order-${n}` }, fingerprint, Date.now());
    });
    const untilFailed = async (times: number) => {
      const before = failures;
      await expect.poll(() => failures).toBeGreaterThanOrEqual(before + times);
    };
    const stored = async () => ({
      days: (await query("insight_key_days", tenant)).map((row) => (row as { claims: string }).claims),
      keys: (await query("insight_sampled_keys", tenant)).length,
    });
    // The statement that adds keys also counts shapes.
    await database.query("alter table insight_sampled_keys rename to away");
    sampler.start();
    next = claims.slice(0, 200);
    await untilFailed(2);
    next = claims.slice(200);
    await untilFailed(1);
    await database.query("alter table away rename to insight_sampled_keys");
    await expect.poll(stored).toEqual({ days: ["300"], keys: 300 });

    // Forgotten keys wait for a turn, and then until the statement succeeds.
    await database.query("alter table insight_sampled_keys rename to away");
    const forgotten = claims.slice(0, 20).map(({ id }) => ({ key: id.key, forgotten: true }));
    sampler.swept([{ ...of, sampled: forgotten } as unknown as SweptNamespace]);
    await untilFailed(2);
    await database.query("alter table away rename to insight_sampled_keys");
    await expect.poll(stored).toEqual({ days: ["300"], keys: 280 });
    await sampler.stop();
    expect(await stored()).toEqual({ days: ["300"], keys: 280 });
    expect(dropped).toEqual([]);
  });

  test("leaves no hash behind when a namespace is deleted", async () => {
    const { admin, tenant } = await tenantWithClaim();
    await admin.updateNamespace({ namespace: { name: ORDER.namespace }, allowMissing: true });
    await admin.deleteNamespace({ name: ORDER.namespace, force: true });
    await runRecordJobs(world().database);
    for (const table of ["insight_sample_shifts", "insight_sampled_keys"]) {
      expect(await query(table, tenant)).toEqual([]);
    }
  });

  test("leaves nothing behind when a tenant is deleted", async () => {
    const { tenant } = await tenantWithClaim();
    const operator = await world().operator();
    await operator.deleteTenant({ name: tenant.name, reason: "test" });
    await runRecordJobs(world().database);
    for (const table of TABLES) await expect.poll(() => query(table, tenant)).toEqual([]);
  });
});
