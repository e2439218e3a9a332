import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { durationMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, onTestFinished, test } from "vitest";
import { ErrorReason } from "../../clients/typescript/src/gen/onceward/v1/errors_pb.ts";
import { ApiKey_Role } from "../../clients/typescript/src/gen/onceward/v1/tenant_pb.ts";
import { VERSION } from "../../server/src/version.ts";
import { connectAdmin, connectOperator, describeAdministration } from "../support/calls/admin.ts";
import { itemErrorOf, runBatch } from "../support/calls/batches.ts";
import { connectClient } from "../support/calls/clients.ts";
import { describeError, errorOf } from "../support/calls/errors.ts";
import { readPages } from "../support/calls/pages.ts";
import { ageRecords } from "../support/calls/records.ts";
import { FORGET, resolve } from "../support/calls/resolutions.ts";
import { complete, grant, ORDER, seconds } from "../support/calls/verbs.ts";
import { createDatabaseOfTest, type TestDatabase } from "../support/database/database.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { hasRedis, startRedis } from "../support/redis/redis.ts";
import { repeatOften } from "../support/servers/fast-path.ts";
import { readMetrics } from "../support/servers/metrics.ts";
import { startTestServer, type TestServer } from "../support/servers/server.ts";
import { createApiKey, createTenant } from "../support/servers/tenants.ts";

/** The contract's bound. Changes are waited for as long as it takes, and together, so that the bound passes once. */
const EVERYWHERE = { timeout: 10_000, interval: 50 };

const HOUR_S = 3600;

describe("Within 10 s, a change through one replica is effective on the other", () => {
  const database = useDatabase();

  async function startReplicas(env: Readonly<Record<string, string>>): Promise<[TestServer, TestServer]> {
    const start = () => startTestServer(database.url, { ONCEWARD_CACHE_MIB: "16", ...env });
    const replicas: [TestServer, TestServer] = [await start(), await start()];
    onTestFinished(async () => {
      for (const replica of replicas) await replica.stop();
    });
    return replicas;
  }

  /** A tenant whose calls and completed record the other replica has just answered, so that it knows them by heart. */
  async function knownTenant([here, there]: readonly [TestServer, TestServer]) {
    const tenant = await createTenant(database);
    const adminKey = await createApiKey(database, { tenantId: tenant.id, role: "TENANT_ADMIN" });
    const elsewhere = connectClient(there, tenant.apiKey);
    await complete(elsewhere);
    expect((await elsewhere.claim(ORDER)).outcome.case).toBe("completed");
    return { tenant, elsewhere, admin: connectAdmin(here, adminKey) };
  }

  test("a record, a key, a tenant, its retention, its quotas", { timeout: 30_000 }, async () => {
    const replicas = await startReplicas({});
    const [here] = replicas;
    const operator = connectOperator(here, await createApiKey(database, { role: "OPERATOR" }));
    const forgotten = await knownTenant(replicas);
    const revoked = await knownTenant(replicas);
    const suspended = await knownTenant(replicas);
    const deleted = await knownTenant(replicas);
    const shortened = await knownTenant(replicas);
    const limited = await knownTenant(replicas);

    const { secret, apiKey } = await revoked.admin.createApiKey({ apiKey: { role: ApiKey_Role.CALLER } });
    const revokedCaller = connectClient(replicas[1], secret);
    expect((await revokedCaller.claim(ORDER)).outcome.case).toBe("completed");

    await resolve(forgotten.admin, FORGET);
    await revoked.admin.revokeApiKey({ id: apiKey?.id ?? "" });
    await operator.suspendTenant({ name: suspended.tenant.name });
    await operator.deleteTenant({ name: deleted.tenant.name });
    await operator.updateTenantLimits({
      name: limited.tenant.name,
      quotas: { operationsPerSecond: 1, burst: 1 },
    });
    // Its copies are of before it became this old.
    await ageRecords(database, shortened.tenant, 2 * HOUR_S);
    await shortened.admin.updateTenant({
      tenant: { policy: { keyRetention: seconds(HOUR_S), resultRetention: seconds(HOUR_S) } },
      applyToExisting: true,
    });
    // Re-stamping waits until all replicas have the policy, which is longer than they need.
    await database.query("update record_jobs set starts_at = now() where tenant_id = $1", [
      shortened.tenant.id,
    ]);

    const claimOf = async ({ elsewhere }: typeof forgotten) => (await elsewhere.claim(ORDER)).outcome.case;
    const refused = (call: () => Promise<unknown>, reason: unknown) =>
      expect
        .poll(
          async () =>
            call().then(
              () => "served",
              (error) => describeError(error).reason,
            ),
          EVERYWHERE,
        )
        .toEqual(reason);
    const retentionOfClaim = async () => {
      const { expiresAt } = await shortened.elsewhere.claim({ ...ORDER, key: randomUUID() });
      return Number(expiresAt?.seconds ?? 0n) - Date.now() / 1000;
    };
    await Promise.all([
      expect.poll(() => claimOf(shortened), EVERYWHERE).toBe("claimed"),
      expect.poll(retentionOfClaim, EVERYWHERE).toBeLessThan(2 * HOUR_S),
      refused(() => limited.elsewhere.lookup(ORDER), "QUOTA_RATE"),
      expect.poll(() => claimOf(forgotten), EVERYWHERE).toBe("claimed"),
      refused(() => revokedCaller.lookup(ORDER), "CREDENTIAL_INVALID"),
      refused(() => suspended.elsewhere.claim(ORDER), "TENANT_SUSPENDED"),
      refused(() => deleted.elsewhere.claim(ORDER), expect.not.stringMatching("served")),
    ]);
    // No other replica's row was deleted with it.
    expect(await claimOf(revoked)).toBe("completed");
  });

  test.runIf(hasRedis())("a forgotten record of which Redis keeps a copy", { timeout: 30_000 }, async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.stop());
    const replicas = await startReplicas({ REDIS_URL: redis.url });
    const { admin, elsewhere } = await knownTenant(replicas);
    await repeatOften(elsewhere);
    await resolve(admin, FORGET);
    const claim = async () => (await elsewhere.claim(ORDER)).outcome.case;
    await expect.poll(claim, EVERYWHERE).toBe("claimed");
  });
});

const PATIENCE = { timeout: 60_000 };

describeAdministration("ListReplicas", { tuning: { heartbeatMs: 200 } }, (world) => {
  test("shows each live replica from any of them, with its load", async () => {
    const { database } = world();
    const other = await startTestServer(database.url, { ONCEWARD_POOL_SIZE: "9" });
    onTestFinished(() => other.stop());
    const operator = await world().operator();
    const { replicaId } = await operator.getServerInfo({});
    const { replicas } = await operator.listReplicas({});
    expect(replicas).toHaveLength(2);
    expect(replicas.map(({ id }) => id)).toEqual(replicas.map(({ id }) => id).sort());
    const second = replicas.find(({ id }) => id !== replicaId);
    expect(second).toMatchObject({ version: VERSION, degraded: [], load: { poolSize: 9, poolAwaited: 0 } });
    const [row] = await database.query<{ seen: number; started: number }>(
      `select date_part('epoch', seen_at) * 1000 as seen, date_part('epoch', started_at) * 1000 as started
       from replicas where id = $1`,
      [second?.id],
    );
    expect(second?.startedAt && timestampMs(second.startedAt)).toBeCloseTo(row?.started ?? 0, -1);
    expect(second?.seenAt && timestampMs(second.seenAt)).toBeLessThanOrEqual((row?.seen ?? 0) + 1);
    expect(second?.host).toBe(hostname());
    // Both clocks are this machine's: what is left is the error of the measurement.
    const offsets = async () =>
      (await operator.listReplicas({})).replicas.map(
        ({ clockOffset }) => clockOffset && durationMs(clockOffset),
      );
    await expect
      .poll(async () => (await offsets()).every((ms) => ms !== undefined && Math.abs(ms) < 60_000), PATIENCE)
      .toBe(true);
  });

  test("shows the operations per second and the connections of a replica with calls", async () => {
    const { caller } = await world().administeredTenant();
    const operator = await world().operator();
    const { replicaId } = await operator.getServerInfo({});
    let keys = 0;
    const load = async () => {
      await grant(caller, { key: `order-${keys++}` });
      const { replicas } = await operator.listReplicas({});
      return replicas.find(({ id }) => id === replicaId)?.load;
    };
    await expect.poll(async () => (await load())?.operationsPerSecond ?? 0, PATIENCE).toBeGreaterThan(0);
    expect((await load())?.connections).toBeGreaterThan(0);
  });

  test("omits a replica without a heartbeat for ten seconds; an older one has no load", async () => {
    const { database } = world();
    await database.query(
      `insert into replicas (id, version, seen_at, clock_ahead_ms) values
       (gen_random_uuid(), 'older', now() - interval '5 seconds', null),
       (gen_random_uuid(), 'behind', now() - interval '5 seconds', -2500.4),
       (gen_random_uuid(), 'gone', now() - interval '11 seconds', null)`,
    );
    const { replicas } = await (await world().operator()).listReplicas({});
    await database.query("delete from replicas where version in ('older', 'behind', 'gone')");
    const older = replicas.find(({ version }) => version === "older");
    expect([older?.host, older?.load, older?.clockOffset]).toEqual(["", undefined, undefined]);
    expect(replicas.find(({ version }) => version === "behind")).toMatchObject({
      clockOffset: { seconds: -2n, nanos: -500_000_000 },
    });
    expect(replicas.map(({ version }) => version).sort()).toEqual([VERSION, "behind", "older"].sort());
  });

  test("has pages, whose tokens belong to this list", async () => {
    const { database } = world();
    await database.query(
      "insert into replicas (id, version, seen_at) select gen_random_uuid(), 'paged', now() + interval '1 minute' from generate_series(1, 5)",
    );
    onTestFinished(async () => {
      await database.query("delete from replicas where version = 'paged'");
    });
    const operator = await world().operator();
    const listed = await readPages("replicas", async (pageToken) => {
      const page = await operator.listReplicas({ pageSize: 2, pageToken });
      expect(page.replicas.length).toBeLessThanOrEqual(2);
      return page;
    });
    expect(listed).toHaveLength(6);
    expect(new Set(listed.map(({ id }) => id)).size).toBe(6);
    const { nextPageToken } = await operator.listReplicas({ pageSize: 1 });
    for (const request of [{ pageSize: -1 }, { pageToken: randomUUID() }]) {
      expect(await errorOf(operator.listReplicas(request))).toMatchObject({ reason: "INVALID_REQUEST" });
    }
    expect(await errorOf(operator.listTenants({ pageToken: nextPageToken }))).toMatchObject({
      reason: "INVALID_REQUEST",
    });
  });
});

async function newReplica(database: TestDatabase): Promise<TestServer> {
  const replica = await startTestServer(database.url, {}, { heartbeatMs: 200 });
  onTestFinished(() => replica.stop());
  return replica;
}

async function known(replica: TestServer): Promise<number | undefined> {
  return (await readMetrics(replica)).get("onceward_replicas");
}

test("replicas discover each other, and a replica that stops removes itself", async () => {
  const database = await createDatabaseOfTest();
  const first = await newReplica(database);
  const second = await newReplica(database);
  expect(await known(second)).toBe(2);
  await expect.poll(() => known(first), { timeout: 30_000, interval: 50 }).toBe(2);
  await second.stop();
  expect(await database.query("select 1 from replicas")).toHaveLength(1);
});

test("a replica that was killed counts for ten seconds, and is forgotten after a minute", async () => {
  const database = await createDatabaseOfTest();
  await database.query(
    `insert into replicas (id, version, seen_at)
     values (gen_random_uuid(), 'alive', now()),
            (gen_random_uuid(), 'killed', now() - interval '11 seconds'),
            (gen_random_uuid(), 'long gone', now() - interval '61 seconds')`,
  );
  expect(await known(await newReplica(database))).toBe(2);
  const rows = await database.query<{ version: string }>(
    "select version from replicas where version ~ '^[a-z]' order by version",
  );
  expect(rows.map(({ version }) => version)).toEqual(["alive", "killed"]);
});

test("a tenant's rate is shared among live replicas", async () => {
  const database = await createDatabaseOfTest();
  await database.query(
    "insert into replicas (id, version) select gen_random_uuid(), 'another' from generate_series(1, 3)",
  );
  const { apiKey } = await createTenant(database, { quota_operations_per_second: 8 });
  const client = connectClient(await newReplica(database), apiKey);
  const claims = ["a", "b", "c", "d"].map((key) => ({
    case: "claim" as const,
    value: { namespace: "charges", key },
  }));
  const [first, second, ...rest] = await runBatch(client, claims);
  expect([first?.case, second?.case]).toEqual(["claim", "claim"]);
  expect(rest.map((each) => itemErrorOf(each).reason)).toEqual([
    ErrorReason.QUOTA_RATE,
    ErrorReason.QUOTA_RATE,
  ]);
});
