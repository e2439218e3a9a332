import { nowBy } from "../../database/now-by.ts";
import type { Runner } from "../../database/pool.ts";
import { fromRow, type RowOf } from "../../database/rows.ts";
import { POLICY_SETTLES_MS } from "../../domain/statement-times.ts";
import type { TenantResource } from "../../domain/tenant.ts";
import type { AdministrationParts } from "../services.ts";
import type { RecordJob, RecordJobWork, RetentionChanges } from "./record-job.ts";

/** The terms of a change of retention hold an entry for each namespace, up to megabytes: its worker reads one of them. */
export const JOB_COLUMNS = `
  j.id, j.tenant_id as "tenantId", j.namespace, j.kind,
  case j.kind when 'RESTAMP' then '{}'::jsonb else j.terms end as terms, j.after_namespace as "afterNamespace",
  j.after_key as "afterKey", j.starts_at <= now() as started, j.records_examined::numeric as "recordsExamined",
  j.records_changed::numeric as "recordsChanged", j.records_forgotten::numeric as "recordsForgotten", j.cancelled,
  extract(epoch from j.created_at) * 1000 as "createdAtMs",
  extract(epoch from j.starts_at) * 1000 as "startsAtMs",
  extract(epoch from j.finished_at) * 1000 as "finishedAtMs"`;

/** What a row holds as it is. */
type Plain = Omit<RecordJob, "id" | "work" | "state" | "after">;

/** A row of these columns. */
export type JobRow = RowOf<Plain> & {
  readonly id: string;
  readonly kind: RecordJobWork["kind"];
  /** The work without its kind. */
  readonly terms: object;
  readonly afterNamespace: string | null;
  readonly afterKey: string | null;
  readonly started: boolean;
  readonly cancelled: boolean;
};

/** Returns the job of a row. */
export function parseJob(row: JobRow): RecordJob {
  const { id, kind, terms, afterNamespace: namespace, afterKey: key, started, cancelled, ...rest } = row;
  return {
    ...fromRow<Plain>(rest),
    id: BigInt(id),
    work: { kind, ...terms } as RecordJobWork,
    state: stateOf(row),
    after: namespace === null || key === null ? undefined : { namespace, key },
  };
}

function stateOf({ cancelled, finishedAtMs, started }: JobRow): RecordJob["state"] {
  if (cancelled) return "CANCELLED";
  if (finishedAtMs !== null) return "DONE";
  return started ? "RUNNING" : "WAITING";
}

const insertJob = {
  name: "insert_record_job",
  text: `
insert into record_jobs as j (tenant_id, namespace, kind, terms, created_at, starts_at, resolution)
values ($1::int, $2::text, $3::text, $4::jsonb, now(),
        ${nowBy("$7")} + $5::int * interval '1 millisecond', $6::text)
returning ${JOB_COLUMNS}`,
};

/** A job that is to be created. */
export type NewRecordJob = Pick<RecordJob, "tenantId" | "namespace"> & {
  readonly work:
    | Exclude<RecordJobWork, { readonly kind: "RESTAMP" }>
    | { readonly kind: "RESTAMP"; readonly changes: RetentionChanges };
  readonly delayMs: number;
  /** As `writeJobResolution` returns it; required for a job that resolves. */
  readonly resolution?: string;
};

/**
 * Creates a job that begins after a delay, in the transaction of the change that it continues.
 *
 * @param latestMs as DatabaseClock: the delay begins by the previous clock.
 */
export async function insertRecordJob(
  transaction: Runner,
  job: NewRecordJob,
  latestMs?: number,
): Promise<RecordJob> {
  const { kind, ...terms } = job.work;
  const [row] = await transaction.run<JobRow>(insertJob, [
    job.tenantId,
    job.namespace ?? null,
    kind,
    JSON.stringify(terms),
    job.delayMs,
    job.resolution ?? null,
    latestMs ?? null,
  ]);
  if (row === undefined) throw new Error("no job was created");
  return parseJob(row);
}

const countTenantJobs = {
  name: "count_unfinished_jobs_of_tenant",
  text: `select count(*)::int as unfinished from record_jobs where tenant_id = $1::int and finished_at is null`,
};

/** Counts a tenant's unfinished jobs. */
export async function countUnfinishedJobsOf(runner: Runner, tenantId: number): Promise<number> {
  const [row] = await runner.run<{ unfinished: number }>(countTenantJobs, [tenantId]);
  return row?.unfinished ?? 0;
}

type JobParts = Pick<AdministrationParts, "admission" | "databaseClock">;

/**
 * Creates a job for a tenant that the transaction has locked.
 *
 * @throws Refusal QUOTA_RECORD_JOBS if too many of the tenant's jobs are unfinished.
 */
export async function newRecordJob(
  transaction: Runner,
  { admission, databaseClock }: JobParts,
  tenant: TenantResource,
  job: Omit<NewRecordJob, "tenantId">,
): Promise<RecordJob> {
  admission.admitRecordJob(tenant, await countUnfinishedJobsOf(transaction, tenant.id));
  return insertRecordJob(transaction, { ...job, tenantId: tenant.id }, databaseClock.latestMs());
}

/** Creates the job that changes the retention of a tenant's records, or of one namespace's. */
export function newRestamping(
  transaction: Runner,
  parts: JobParts,
  tenant: TenantResource,
  namespace: string | undefined,
  changes: RetentionChanges,
): Promise<RecordJob> {
  const work = { kind: "RESTAMP", changes } as const;
  return newRecordJob(transaction, parts, tenant, { namespace, work, delayMs: POLICY_SETTLES_MS });
}
