import { describe, expect, onTestFinished, test } from "vitest";
import { RecordJob_Kind, RecordJob_State } from "../../clients/typescript/src/gen/onceward/v1/tenant_pb.ts";
import { workBatch } from "../../server/src/admin/jobs/work-batch.ts";
import { openPool } from "../../server/src/database/pool.ts";
import { type AdministeredTenant, type AdminWorld, describeAdministration } from "../support/calls/admin.ts";
import { ageRecords, granted } from "../support/calls/records.ts";
import { failure, seconds, success } from "../support/calls/verbs.ts";
import { anyTurn, runRecordJobs } from "../support/database/jobs.ts";
import { countRows, secondsBetween, sweep } from "../support/database/time.ts";

const HOUR_S = 3600;
const DAY_S = 24 * HOUR_S;
const CHARGES = "charges";

async function withCharges(world: AdminWorld, keyRetentionS: number): Promise<AdministeredTenant> {
  const administered = await world.administeredTenant();
  await setRetention(administered, keyRetentionS);
  return administered;
}

function setRetention(
  { admin }: AdministeredTenant,
  keyRetentionS: number,
  how: { applyToExisting?: boolean; validateOnly?: boolean } = {},
) {
  const namespace = { name: CHARGES, policy: { keyRetention: seconds(keyRetentionS) } };
  return admin.updateNamespace({ namespace, allowMissing: true, ...how });
}

async function claim({ caller }: AdministeredTenant, key: string, retentionS?: number) {
  const retention = retentionS === undefined ? {} : { retention: seconds(retentionS) };
  return granted(await caller.claim({ namespace: CHARGES, key, ...retention }));
}

async function complete(
  tenant: AdministeredTenant,
  key: string,
  result = success("done"),
  retentionS?: number,
) {
  const { fencingToken } = await claim(tenant, key, retentionS);
  await tenant.caller.complete({ namespace: CHARGES, key, fencingToken, result });
}

/** For how long a record is remembered after its claim, and its result after its completion. */
async function remembered({ caller }: AdministeredTenant, key: string) {
  const { record } = await caller.lookup({ namespace: CHARGES, key });
  if (record === undefined) return undefined;
  return {
    keyS: Math.round(secondsBetween(record.completedAt ?? record.claimedAt, record.expiresAt)),
    ...(record.completedAt && {
      resultS: Math.round(secondsBetween(record.completedAt, record.resultExpiresAt)),
    }),
  };
}

describeAdministration("a change of retention", (world: () => AdminWorld) => {
  test("changes no existing record without apply_to_existing", async () => {
    const tenant = await withCharges(world(), DAY_S);
    await complete(tenant, "before");
    const { job } = await setRetention(tenant, HOUR_S);
    expect(job).toBeUndefined();
    expect(await remembered(tenant, "before")).toEqual({ keyS: DAY_S, resultS: DAY_S });
  });

  test("changes no record that was claimed after the job began: a later policy may have stamped it", async () => {
    const tenant = await withCharges(world(), DAY_S);
    await complete(tenant, "before");
    await setRetention(tenant, HOUR_S, { applyToExisting: true });
    await setRetention(tenant, 2 * DAY_S);
    await claim(tenant, "after");
    await ageRecords(world().database, tenant.tenant, -60, "after");
    await runRecordJobs(world().database);
    expect(await remembered(tenant, "before")).toEqual({ keyS: HOUR_S, resultS: HOUR_S });
    expect(await remembered(tenant, "after")).toEqual({ keyS: 2 * DAY_S });
  });

  test("changes a record that a replica stamped by the old policy after the job was created", async () => {
    const tenant = await withCharges(world(), DAY_S);
    await claim(tenant, "stale");
    await setRetention(tenant, HOUR_S, { applyToExisting: true });
    await world().database.query("update records set claimed_at = now() where tenant_id = $1", [
      tenant.tenant.id,
    ]);
    await runRecordJobs(world().database);
    expect(await remembered(tenant, "stale")).toEqual({ keyS: HOUR_S });
  });

  test("re-stamps existing records in every state with apply_to_existing", async () => {
    const tenant = await withCharges(world(), DAY_S);
    await claim(tenant, "held");
    await complete(tenant, "done");
    await complete(tenant, "failed", failure("no"));
    const { fencingToken } = await claim(tenant, "released");
    await tenant.caller.release({ namespace: CHARGES, key: "released", fencingToken });
    const { job } = await setRetention(tenant, HOUR_S, { applyToExisting: true });
    expect(job).toMatchObject({
      kind: RecordJob_Kind.RESTAMP,
      namespace: CHARGES,
      state: RecordJob_State.WAITING,
    });
    await runRecordJobs(world().database);
    expect(await remembered(tenant, "held")).toEqual({ keyS: HOUR_S });
    expect(await remembered(tenant, "released")).toEqual({ keyS: HOUR_S });
    expect(await remembered(tenant, "done")).toEqual({ keyS: HOUR_S, resultS: HOUR_S });
    expect(await remembered(tenant, "failed")).toEqual({ keyS: HOUR_S, resultS: HOUR_S });
    const later = await tenant.caller.claim({ namespace: CHARGES, key: "held" });
    expect(later.outcome.case).toBe("inProgress");
  });

  test("extends the retention of records that followed the policy, not of shorter claims", async () => {
    const tenant = await withCharges(world(), HOUR_S);
    await complete(tenant, "follows");
    await complete(tenant, "asked for less", success("done"), 600);
    await claim(tenant, "held for less", 600);
    await setRetention(tenant, DAY_S, { applyToExisting: true });
    await runRecordJobs(world().database);
    expect(await remembered(tenant, "follows")).toEqual({ keyS: DAY_S, resultS: DAY_S });
    expect(await remembered(tenant, "asked for less")).toEqual({ keyS: 600, resultS: 600 });
    expect(await remembered(tenant, "held for less")).toEqual({ keyS: 600 });
  });

  test("shortens the retention that a claim asked for where the policy is shorter still", async () => {
    const tenant = await withCharges(world(), DAY_S);
    await complete(tenant, "asked for less", success("done"), HOUR_S);
    await setRetention(tenant, 600, { applyToExisting: true });
    await runRecordJobs(world().database);
    expect(await remembered(tenant, "asked for less")).toEqual({ keyS: 600, resultS: 600 });
  });

  test("invalidates cached copies only if a completed record ends earlier", async () => {
    const { database } = world();
    const tenant = await withCharges(world(), DAY_S);
    await complete(tenant, "done");
    await claim(tenant, "held");
    const isRaisedBy = async (keyRetentionS: number) => {
      const generation = () =>
        database.query("select cache_generation from tenants where id = $1", [tenant.tenant.id]);
      const before = await generation();
      const { job } = await setRetention(tenant, keyRetentionS, { applyToExisting: true });
      await runRecordJobs(database);
      expect((await tenant.admin.getRecordJob({ id: job?.id ?? 0n })).job?.recordsChanged).toBe(2n);
      return JSON.stringify(await generation()) !== JSON.stringify(before);
    };
    expect(await isRaisedBy(2 * DAY_S)).toBe(false);
    expect(await isRaisedBy(DAY_S)).toBe(true);
  });

  test("forgets at once the records that the new retention has expired, and the sweep removes them", async () => {
    const tenant = await withCharges(world(), DAY_S);
    await complete(tenant, "old");
    await ageRecords(world().database, tenant.tenant, 2 * HOUR_S);
    await complete(tenant, "new");
    await setRetention(tenant, HOUR_S, { applyToExisting: true });
    await runRecordJobs(world().database);
    expect(await remembered(tenant, "old")).toBeUndefined();
    expect((await claim(tenant, "old")).attempt).toBe(1);
    expect(await remembered(tenant, "new")).toEqual({ keyS: HOUR_S, resultS: HOUR_S });
  });

  test("lets the sweep remove records in time after their retention was shortened", async () => {
    const tenant = await withCharges(world(), DAY_S);
    await complete(tenant, "order-1");
    await setRetention(tenant, HOUR_S, { applyToExisting: true });
    await runRecordJobs(world().database);
    await ageRecords(world().database, tenant.tenant, HOUR_S + 121);
    await sweep(world().database);
    expect(await countRows(world().database, tenant.tenant)).toBe(0);
  });

  test("keeps a lease that lasts longer than the new retention", async () => {
    const tenant = await withCharges(world(), DAY_S);
    const lease = seconds(800);
    granted(await tenant.caller.claim({ namespace: CHARGES, key: "held", lease }));
    await setRetention(tenant, 60, { applyToExisting: true });
    await runRecordJobs(world().database);
    expect((await remembered(tenant, "held"))?.keyS).toBe(800);
  });

  test("doesn't restore a result whose retention had ended", async () => {
    const tenant = await world().administeredTenant({ result_retention_s: 60, key_retention_s: HOUR_S });
    await complete(tenant, "order-1");
    await ageRecords(world().database, tenant.tenant, 120);
    await tenant.admin.updateTenant({
      tenant: { policy: { resultRetention: seconds(HOUR_S) } },
      applyToExisting: true,
    });
    await runRecordJobs(world().database);
    const { outcome } = await tenant.caller.claim({ namespace: CHARGES, key: "order-1" });
    expect(outcome).toMatchObject({ case: "completed", value: { resultExpired: true } });
  });

  test("of a tenant changes every namespace that follows it, each by its own policy", async () => {
    const tenant = await withCharges(world(), DAY_S);
    const elsewhere = { namespace: "e-mails", key: "order-1" };
    await complete(tenant, "order-1");
    granted(await tenant.caller.claim(elsewhere));
    await tenant.admin.updateTenant({
      tenant: { policy: { keyRetention: seconds(2 * HOUR_S), resultRetention: seconds(HOUR_S) } },
      applyToExisting: true,
    });
    await runRecordJobs(world().database);
    expect(await remembered(tenant, "order-1")).toEqual({ keyS: DAY_S, resultS: HOUR_S });
    const { record } = await tenant.caller.lookup(elsewhere);
    expect(Math.round(secondsBetween(record?.claimedAt, record?.expiresAt))).toBe(2 * HOUR_S);
  });

  test("is previewed: the records that would change, and those that would be forgotten at once", async () => {
    const tenant = await withCharges(world(), DAY_S);
    for (const key of ["a", "b"]) await complete(tenant, key);
    await claim(tenant, "held", DAY_S);
    await ageRecords(world().database, tenant.tenant, 2 * HOUR_S);
    await world().database.query(
      "update records set holds_on_lease_expiry = true where tenant_id = $1 and key = 'held'",
      [tenant.tenant.id],
    );
    await complete(tenant, "c");
    await claim(tenant, "tight", 120);
    const { effect, job } = await setRetention(tenant, HOUR_S, { applyToExisting: true, validateOnly: true });
    expect(effect).toMatchObject({
      recordsExamined: 5n,
      recordsChanged: 4n,
      recordsForgotten: 3n,
      ambiguousForgotten: 1n,
      truncated: false,
    });
    expect(job).toBeUndefined();
    expect(await remembered(tenant, "a")).toEqual({ keyS: DAY_S, resultS: DAY_S });

    await setRetention(tenant, HOUR_S, { applyToExisting: true });
    await runRecordJobs(world().database);
    const { jobs } = await tenant.admin.listRecordJobs({});
    expect(jobs).toMatchObject([{ recordsExamined: 5n, recordsChanged: 4n, recordsForgotten: 3n }]);
  });

  describe("as a record job", () => {
    test("is returned while it waits and when it is done, and listed newest first, page by page", async () => {
      const tenant = await withCharges(world(), DAY_S);
      const ids: bigint[] = [];
      for (const retentionS of [600, 700, 800]) {
        const { job } = await setRetention(tenant, retentionS, { applyToExisting: true });
        ids.unshift(job?.id ?? 0n);
      }
      const [newest = 0n] = ids;
      expect((await tenant.admin.getRecordJob({ id: newest })).job?.state).toBe(RecordJob_State.WAITING);
      const first = await tenant.admin.listRecordJobs({ pageSize: 2 });
      const second = await tenant.admin.listRecordJobs({ pageSize: 2, pageToken: first.nextPageToken });
      expect([...first.jobs, ...second.jobs].map(({ id }) => id)).toEqual(ids);
      expect(second.nextPageToken).toBe("");
      await runRecordJobs(world().database);
      const { job } = await tenant.admin.getRecordJob({ id: newest });
      expect(job?.state).toBe(RecordJob_State.DONE);
      expect(job?.finishedAt).toBeDefined();
    });

    test("begins when every replica uses the new policy", async () => {
      const tenant = await withCharges(world(), DAY_S);
      const { job } = await setRetention(tenant, HOUR_S, { applyToExisting: true });
      // A replica holds a policy for 9 s, and a statement that was stamped by an old one lasts 5 s.
      expect(secondsBetween(job?.createdAt, job?.startsAt)).toBeGreaterThanOrEqual(14);
    });

    test("continues after a replica died during a batch, and counts nothing twice", async () => {
      const { database } = world();
      const tenant = await withCharges(world(), DAY_S);
      for (const key of ["a", "b", "c", "d", "e"]) await complete(tenant, key);
      await setRetention(tenant, HOUR_S, { applyToExisting: true });
      await database.query("update record_jobs set starts_at = now()");
      const pool = openPool({ databaseUrl: database.url, size: 1, throughPgBouncer: false });
      onTestFinished(() => pool.close());
      await workBatch(pool, anyTurn(2));
      // The connection dies after the records were changed and before the batch commits.
      const dying = {
        ...pool,
        transaction: <Result>(work: (transaction: typeof pool) => Promise<Result>) =>
          pool.transaction(async (transaction) => {
            await work({ ...pool, run: transaction.run });
            throw new Error("the replica died");
          }),
      };
      await expect(workBatch(dying, anyTurn(2))).rejects.toThrow("the replica died");
      await runRecordJobs(database);
      const { jobs } = await tenant.admin.listRecordJobs({});
      expect(jobs).toMatchObject([{ state: RecordJob_State.DONE, recordsExamined: 5n, recordsChanged: 5n }]);
      for (const key of ["a", "e"])
        expect(await remembered(tenant, key)).toEqual({ keyS: HOUR_S, resultS: HOUR_S });
    });

    test("is processed by one replica at a time; a tenant's jobs of one kind in their order", async () => {
      const { database } = world();
      const tenant = await withCharges(world(), DAY_S);
      for (const key of ["a", "b", "c"]) await complete(tenant, key);
      await setRetention(tenant, HOUR_S, { applyToExisting: true });
      await setRetention(tenant, 2 * HOUR_S, { applyToExisting: true });
      await database.query("update record_jobs set starts_at = now()");
      const pool = openPool({ databaseUrl: database.url, size: 4, throughPgBouncer: false });
      onTestFinished(() => pool.close());
      const worked: bigint[] = [];
      const work = async () => {
        const done = await workBatch(pool, anyTurn(1));
        if (done !== undefined) worked.push(done.job.id);
      };
      while ((await database.query("select 1 from record_jobs where finished_at is null")).length > 0) {
        await Promise.all([work(), work(), work()]);
      }
      expect(worked).toEqual([...worked].sort((one, other) => Number(one - other)));
      expect(await remembered(tenant, "b")).toEqual({ keyS: 2 * HOUR_S, resultS: 2 * HOUR_S });
    });
  });

  test("a forced deletion of a namespace forgets its records, and not those claimed since", async () => {
    const tenant = await withCharges(world(), DAY_S);
    await complete(tenant, "old");
    const { fencingToken } = await claim(tenant, "held");
    const { job } = await tenant.admin.deleteNamespace({ name: CHARGES, force: true });
    expect(job?.kind).toBe(RecordJob_Kind.FORGET);
    await complete(tenant, "new");
    await runRecordJobs(world().database);
    expect(await remembered(tenant, "old")).toBeUndefined();
    expect(await remembered(tenant, "new")).toBeDefined();
    const again = await claim(tenant, "held");
    expect(again.attempt).toBe(1);
    expect(again.fencingToken).toBeGreaterThan(fencingToken);
  });
});
