import { expect, test } from "vitest";
import { RecordJob_State } from "../../clients/typescript/src/gen/onceward/v1/tenant_pb.ts";
import { workBatch } from "../../server/src/admin/jobs/work-batch.ts";
import type { Pool } from "../../server/src/database/pool.ts";
import { type AdministeredTenant, connectAdmin, describeAdministration } from "../support/calls/admin.ts";
import { errorOf } from "../support/calls/errors.ts";
import { copyRecord } from "../support/calls/records.ts";
import { grant, seconds } from "../support/calls/verbs.ts";
import { openStorePool, untilBlocked } from "../support/database/connections.ts";
import { anyTurn } from "../support/database/jobs.ts";
import { createApiKey } from "../support/servers/tenants.ts";

const RECORDS = 60_000;

/** A job's transaction is ended when it is idle for half a second, which a busy machine may need between two statements. */
const STAY_OPEN = {
  name: "stay_open",
  text: "select set_config('idle_in_transaction_session_timeout', '30s', true)",
};

/** Returns a pool whose next transaction of a job waits, after its first page, until `proceed` is called. */
function pausingPool(pool: Pool) {
  const paused = Promise.withResolvers<void>();
  let isPaused = false;
  const resumed = Promise.withResolvers<void>();
  const pausing: Pick<Pool, "transaction"> = {
    transaction: (work) =>
      pool.transaction((transaction) =>
        work({
          async run(statement, parameters) {
            if (statement.name === "advance_record_job") {
              await transaction.run(STAY_OPEN, []);
              isPaused = true;
              paused.resolve();
              await resumed.promise;
            }
            return transaction.run(statement, parameters);
          },
        }),
      ),
  };
  return { pausing, untilPaused: paused.promise, isPaused: () => isPaused, proceed: resumed.resolve };
}

describeAdministration("CancelRecordJob", (world) => {
  async function insertJob(
    { tenant }: Pick<AdministeredTenant, "tenant">,
    kind: string,
    startsAt = "now()",
  ): Promise<bigint> {
    const [row] = await world().database.query<{ id: string }>(
      `insert into record_jobs (tenant_id, namespace, kind, terms, starts_at)
       values ($1, 'charges', $2, '{}', ${startsAt}) returning id`,
      [tenant.id, kind],
    );
    return BigInt(row?.id ?? 0);
  }

  const progressOf = async (id: bigint) =>
    (
      await world().database.query<{ examined: number; forgotten: number; kept: number }>(
        `select j.examined, r.forgotten, r.kept
           from (select records_examined::int as examined from record_jobs where id = $1) j
          cross join (select (count(*) filter (where state = 0))::int as forgotten,
                             (count(*) filter (where state <> 0))::int as kept
                        from records
                       where tenant_id = (select tenant_id from record_jobs where id = $1)) r`,
        [String(id)],
      )
    )[0];

  test("ends a job that waits, once, and is an audit event", async () => {
    const { admin, caller } = await world().administeredTenant();
    await grant(caller);
    const policy = { keyRetention: seconds(3600) };
    const { job } = await admin.updateTenant({ tenant: { policy }, applyToExisting: true });
    const id = job?.id ?? 0n;
    expect(job?.state).toBe(RecordJob_State.WAITING);
    const { job: cancelled } = await admin.cancelRecordJob({ id });
    expect(cancelled).toMatchObject({ id, state: RecordJob_State.CANCELLED, recordsChanged: 0n });
    expect(cancelled?.finishedAt).toBeDefined();
    expect((await admin.cancelRecordJob({ id })).job).toEqual(cancelled);
    expect((await admin.getRecordJob({ id })).job).toEqual(cancelled);
    const { events } = await admin.listAuditEvents({ action: "CancelRecordJob" });
    expect(events).toMatchObject([
      {
        target: `record job ${id}`,
        before: { kind: "RESTAMP", state: "WAITING", recordsChanged: 0 },
        after: { kind: "RESTAMP", state: "CANCELLED", recordsChanged: 0 },
      },
    ]);
  });

  test("ends a job that another replica works on after its batch, and keeps the batch's progress", async () => {
    const { admin, caller, tenant } = await world().administeredTenant();
    const { database } = world();
    await grant(caller, { key: "order-0" });
    await copyRecord(database, tenant, "order-0", { count: RECORDS, keySql: "'order-' || n" });
    const { pausing, untilPaused, isPaused, proceed } = pausingPool(openStorePool(database));
    const id = await insertJob({ tenant }, "FORGET");
    // The server's own worker may hold the job, for no longer than a batch.
    let working: ReturnType<typeof workBatch>;
    do {
      working = workBatch(pausing, anyTurn(7));
      await Promise.race([working, untilPaused]);
    } while (!isPaused());
    const cancelling = admin.cancelRecordJob({ id });
    await untilBlocked(database);
    proceed();
    const { job } = await cancelling;
    expect((await working)?.job.id).toBe(id);
    const progress = await progressOf(id);
    expect(job).toMatchObject({
      state: RecordJob_State.CANCELLED,
      recordsExamined: BigInt(progress?.examined ?? -1),
      recordsChanged: BigInt(progress?.forgotten ?? -1),
    });
    expect(progress?.forgotten).toBeGreaterThanOrEqual(7);
    expect(progress?.kept).toBeGreaterThan(0);
    expect(await workBatch(openStorePool(database), anyTurn(7))).toBeUndefined();
    expect(await progressOf(id)).toEqual(progress);
  });

  test("leaves a job that is done as it is", async () => {
    const one = await world().administeredTenant();
    const id = await insertJob(one, "FORGET");
    await expect
      .poll(async () => (await one.admin.getRecordJob({ id })).job?.state)
      .toBe(RecordJob_State.DONE);
    const { job } = await one.admin.getRecordJob({ id });
    expect((await one.admin.cancelRecordJob({ id })).job).toEqual(job);
    expect((await one.admin.listAuditEvents({ action: "CancelRecordJob" })).events).toEqual([]);
  });

  test("finds no job of another tenant or namespace, and no deletion of a tenant", async () => {
    const one = await world().administeredTenant();
    const other = await world().administeredTenant();
    const later = "now() + interval '5 minutes'";
    const [forget, deletion] = [await insertJob(one, "FORGET", later), await insertJob(one, "DELETE", later)];
    const limited = connectAdmin(
      world().server,
      await createApiKey(world().database, {
        tenantId: one.tenant.id,
        role: "TENANT_ADMIN",
        namespaces: ["refunds"],
      }),
    );
    for (const cancel of [
      () => other.admin.cancelRecordJob({ id: forget }),
      () => other.admin.getRecordJob({ id: forget }),
      () => one.admin.cancelRecordJob({ id: deletion }),
      () => limited.cancelRecordJob({ id: forget }),
      () => one.admin.cancelRecordJob({ id: 0n }),
    ]) {
      expect(await errorOf(cancel())).toMatchObject({ code: "NotFound", reason: "RECORD_JOB_NOT_FOUND" });
    }
    const unfinished = await world().database.query(
      "select 1 from record_jobs where tenant_id = $1 and finished_at is null",
      [one.tenant.id],
    );
    expect(unfinished).toHaveLength(2);
    expect((await one.admin.cancelRecordJob({ id: forget })).job?.state).toBe(RecordJob_State.CANCELLED);
  });
});
