import { inspect } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { advanceRecordJob, takeRecordJob } from "../../server/src/admin/jobs/job-queue.ts";
import { insertRecordJob } from "../../server/src/admin/jobs/record-jobs.ts";
import { createJobScheduler } from "../../server/src/admin/jobs/scheduler.ts";
import { workBatch } from "../../server/src/admin/jobs/work-batch.ts";
import { createJobWorker } from "../../server/src/admin/jobs/worker.ts";
import { UNCHECKED_CLOCK } from "../../server/src/domain/database-clock.ts";
import { PLAIN_VALUES } from "../../server/src/records/engine/record-values.ts";
import { createLog } from "../../server/src/telemetry/log.ts";
import { createMetrics } from "../../server/src/telemetry/metrics.ts";
import { describeAdministration } from "../support/calls/admin.ts";
import { errorOf } from "../support/calls/errors.ts";
import { grant, seconds } from "../support/calls/verbs.ts";
import { openStorePool } from "../support/database/connections.ts";
import { createDatabaseOfTest, type TestDatabase } from "../support/database/database.ts";
import { anyTurn } from "../support/database/jobs.ts";
import { createTenant, type TestTenant } from "../support/servers/tenants.ts";

/** Makes jobs of a tenant that are due; without terms, a job that resolves fails. */
async function makeJobs(database: TestDatabase, { id }: TestTenant, kind: string, count = 1): Promise<void> {
  await database.query(
    "insert into record_jobs (tenant_id, kind, terms, starts_at) select $1, $2, '{}', now() from generate_series(1, $3::int)",
    [id, kind, count],
  );
}

test("workers serve tenants in rotation, however many jobs each has", async () => {
  const database = await createDatabaseOfTest();
  const tenants: TestTenant[] = [];
  for (const jobs of [5, 1, 2]) {
    const tenant = await createTenant(database);
    await makeJobs(database, tenant, "FORGET", jobs);
    tenants.push(tenant);
  }
  const pool = openStorePool(database);
  const turns = createJobScheduler();
  const worked: number[] = [];
  for (let done = await workBatch(pool, turns.next(0)); done !== undefined; ) {
    turns.succeeded();
    worked.push(tenants.findIndex(({ id }) => id === done?.job.tenantId));
    done = await workBatch(pool, turns.next(0));
  }
  expect(worked).toEqual([0, 1, 2, 0, 2, 0, 0, 0]);
});

test("a job that always fails delays no other tenant's job and no namespace's deletion", async () => {
  const database = await createDatabaseOfTest();
  const [failing, other] = [await createTenant(database), await createTenant(database)];
  for (const kind of ["RESOLVE", "FORGET", "RESTAMP"]) await makeJobs(database, failing, kind, 2);
  await makeJobs(database, other, "FORGET", 5);
  const failures: unknown[] = [];
  const worker = createJobWorker({
    databaseClock: UNCHECKED_CLOCK,
    pool: openStorePool(database),
    metrics: createMetrics("0.0.0"),
    log: createLog("silent", { write: () => true }),
    onFailed: (error) => failures.push(error),
    onSettled: () => {},
    encryption: PLAIN_VALUES,
    intervalMs: 100,
  });
  worker.start();
  onTestFinished(() => worker.stop());
  const unfinished = async () =>
    (
      await database.query<{ kind: string }>(
        "select distinct kind from record_jobs where finished_at is null order by kind",
      )
    ).map((row) => row.kind);
  await expect.poll(unfinished).toEqual(["RESOLVE", "RESTAMP"]);
  await expect.poll(() => failures.length).toBeGreaterThan(1);
  // The job is one that can be done after all.
  await database.query("update record_jobs set kind = 'FORGET' where tenant_id = $1", [failing.id]);
  await expect.poll(unfinished).toEqual([]);
});

test("a worker reads the change of retention in one namespace, however many have one", async () => {
  const database = await createDatabaseOfTest();
  const { id: tenantId } = await createTenant(database);
  const pool = openStorePool(database);
  const change = (s: number) => {
    const becomes = { keyRetentionS: s, resultRetentionS: s, failureRetentionS: s };
    return { was: { ...becomes, keyRetentionS: 60 }, becomes };
  };
  const byNamespace = Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`ns-${n}`, change(n)]));
  const work = { kind: "RESTAMP", changes: { byNamespace, others: change(5000) } } as const;
  const { id } = await insertRecordJob(pool, { tenantId, namespace: undefined, work, delayMs: 0 });
  const nothing = { examined: 0, changed: 0, forgotten: 0, finished: false };
  for (const [namespace, retentionS] of [
    ["ns-7", 7],
    ["other", 5000],
  ] as const) {
    await advanceRecordJob(pool, id, { ...nothing, after: { namespace, key: "order-1" } });
    const job = await takeRecordJob(pool, 0, []);
    expect(job).toMatchObject({ work: { kind: "RESTAMP" }, change: change(retentionS) });
    expect(inspect(job, { depth: null }).length).toBeLessThan(2000);
  }
});

test("a deleted tenant's data is removed in bounded batches, and the tenant last", async () => {
  const database = await createDatabaseOfTest();
  const tenant = await createTenant(database);
  await database.query(
    `with usage as (
       insert into usage_hours (tenant_id, hour, namespace, repeat_lateness)
       select $1, now(), 'ns-' || n, '{}' from generate_series(1, 7) n
     ), deleted as (
       update tenants set deleted_at = now() where id = $1
     )
     insert into namespaces (tenant_id, name) select $1, 'ns-' || n from generate_series(1, 5) n`,
    [tenant.id],
  );
  await makeJobs(database, tenant, "DELETE");
  const pool = openStorePool(database);
  const left: number[] = [];
  while ((await workBatch(pool, anyTurn(4))) !== undefined) {
    const [row] = await database.query<{ rows: number }>(
      `select (select count(*) from usage_hours) + (select count(*) from namespaces) + (select count(*) from api_keys)
              + (select count(*) from tenants) as rows`,
    );
    left.push(Number(row?.rows));
  }
  // 13 rows, then the tenant: with less than a batch of rows.
  expect(left).toEqual([10, 6, 2, 0]);
});

describeAdministration("the unfinished record jobs of a tenant", (world) => {
  test("are bounded; another tenant's are not", async () => {
    const { admin, caller, tenant } = await world().administeredTenant();
    await admin.updateNamespace({ namespace: { name: "charges" }, allowMissing: true });
    await grant(caller);
    const restamp = () =>
      admin.updateTenant({ tenant: { policy: { keyRetention: seconds(3600) } }, applyToExisting: true });
    for (let jobs = 0; jobs < 20; jobs++) await restamp();
    const refusal = {
      code: "ResourceExhausted",
      reason: "QUOTA_RECORD_JOBS",
      metadata: { scope: "service", limit: "20" },
      retryable: true,
    };
    const namespace = { name: "charges", policy: { keyRetention: seconds(60) } };
    const calls = [
      restamp,
      () => admin.updateNamespace({ namespace, applyToExisting: true }),
      () => admin.deleteNamespace({ name: "charges", force: true }),
    ];
    for (const call of calls) expect(await errorOf(call())).toMatchObject(refusal);
    expect((await admin.getNamespace({ name: "charges" })).namespace?.policy?.keyRetention).toBeUndefined();
    const other = await world().administeredTenant();
    await other.admin.updateTenant({ tenant: { policy: {} }, applyToExisting: true });

    await world().database.query("update record_jobs set finished_at = now() where tenant_id = $1", [
      tenant.id,
    ]);
    await restamp();
  });
});

describeAdministration("declared namespaces", (world) => {
  const declare = (admin: Awaited<ReturnType<typeof named>>["admin"], name: string, validateOnly = false) =>
    admin.updateNamespace({ namespace: { name }, allowMissing: true, validateOnly });
  const named = () => world().administeredTenant();

  test("are limited by the quota that the operator sets", async () => {
    const { admin, tenant } = await named();
    const operator = await world().operator();
    const { name } = tenant;
    await operator.updateTenantLimits({ name, quotas: { declaredNamespaces: 2 } });
    expect((await admin.getTenant({})).tenant?.quotas?.declaredNamespaces).toBe(2);
    for (const namespace of ["a", "b", "a"]) await declare(admin, namespace);
    const refusal = {
      code: "ResourceExhausted",
      reason: "QUOTA_NAMESPACES",
      metadata: { scope: "service", limit: "2" },
      retryable: true,
    };
    expect(await errorOf(declare(admin, "c"))).toMatchObject(refusal);
    expect(await errorOf(declare(admin, "c", true))).toMatchObject(refusal);
    await admin.deleteNamespace({ name: "a" });
    await declare(admin, "c");
    await operator.updateTenantLimits({ name, updateMask: { paths: ["quotas.declared_namespaces"] } });
    await declare(admin, "d");
  });

  test("are at most 1,000 by default, and at most 10,000 with a quota", async () => {
    const { admin, tenant } = await named();
    await world().database.query(
      "insert into namespaces (tenant_id, name) select $1, 'ns-' || n from generate_series(1, 999) n",
      [tenant.id],
    );
    await declare(admin, "the-last");
    expect(await errorOf(declare(admin, "too-many"))).toMatchObject({
      reason: "QUOTA_NAMESPACES",
      metadata: { limit: "1000" },
    });
    const operator = await world().operator();
    const tooWide = operator.updateTenantLimits({
      name: tenant.name,
      quotas: { declaredNamespaces: 10_001 },
    });
    expect(await errorOf(tooWide)).toMatchObject({ fields: ["quotas.declared_namespaces"] });
  });

  test("are only counted in a dry run", async () => {
    const { admin, tenant } = await named();
    const quotas = { declaredNamespaces: 1, dryRun: true };
    await (await world().operator()).updateTenantLimits({ name: tenant.name, quotas });
    for (const namespace of ["a", "b"]) await declare(admin, namespace);
  });
});
