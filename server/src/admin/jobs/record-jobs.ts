import { nowBy } from "../../database/now-by.ts";
import type { Runner } from "../../database/pool.ts";
import { fromRow, type RowOf } from "../../database/rows.ts";
import { bigintArray } from "../../database/sql-arrays.ts";
import type { RecordJob, RecordJobWork, RetentionChange, RetentionChanges } from "./record-job.ts";

/** The terms of a change of retention hold an entry for each namespace, up to megabytes: its worker reads one of them. */
const COLUMNS = `
  j.id, j.tenant_id as "tenantId", j.namespace, j.kind,
  case j.kind when 'RESTAMP' then '{}'::jsonb else j.terms end as terms, j.after_namespace as "afterNamespace",
  j.after_key as "afterKey", j.starts_at <= now() as started, j.records_examined::numeric as "recordsExamined",
  j.records_changed::numeric as "recordsChanged", j.records_forgotten::numeric as "recordsForgotten", j.cancelled,
  extract(epoch from j.created_at) * 1000 as "createdAtMs",
  extract(epoch from j.starts_at) * 1000 as "startsAtMs",
  extract(epoch from j.finished_at) * 1000 as "finishedAtMs"`;

/** What a row holds as it is. */
type Plain = Omit<RecordJob, "id" | "work" | "state" | "after">;

type Row = RowOf<Plain> & {
  readonly id: string;
  readonly kind: RecordJobWork["kind"];
  /** The work without its kind. */
  readonly terms: object;
  readonly afterNamespace: string | null;
  readonly afterKey: string | null;
  readonly started: boolean;
  readonly cancelled: boolean;
};

const insertJob = {
  name: "insert_record_job",
  text: `
insert into record_jobs as j (tenant_id, namespace, kind, terms, created_at, starts_at, resolution)
values ($1::int, $2::text, $3::text, $4::jsonb, now(),
        ${nowBy("$7")} + $5::int * interval '1 millisecond', $6::text)
returning ${COLUMNS}`,
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
  const [row] = await transaction.run<Row>(insertJob, [
    job.tenantId,
    job.namespace ?? null,
    kind,
    JSON.stringify(terms),
    job.delayMs,
    job.resolution ?? null,
    latestMs ?? null,
  ]);
  if (row === undefined) throw new Error("no job was created");
  return parse(row);
}

/**
 * A clock that is set ahead ends no delay: replicas would still serve by the old policy. Delays are seconds. A job that starts
 * later than that was created while the clock was ahead, by a replica that did not know: it need not wait for so long.
 */
const IS_DUE = `(j.starts_at <= ${nowBy("$3")}
        or j.starts_at > now() + interval '600 s')`;

const takeJob = {
  name: "take_record_job",
  text: `
select ${COLUMNS}, j.resolution,
       coalesce(j.terms -> 'changes' -> 'byNamespace' -> coalesce(j.after_namespace, j.namespace),
                j.terms -> 'changes' -> 'others') as change
  from record_jobs j
 where j.finished_at is null
   and ${IS_DUE}
   and j.tenant_id > $1::int
   and j.id <> all ($2::bigint[])
   and not exists (select 1 from record_jobs earlier
                    where earlier.tenant_id = j.tenant_id and earlier.finished_at is null and j.kind <> 'DELETE'
                      and (earlier.kind = 'DELETE'
                           or (earlier.id < j.id and (earlier.kind = j.kind or (earlier.kind, j.kind) = ('RESOLVE', 'RESTAMP'))))
                   offset 0)
 order by j.tenant_id, j.id
 limit 1
   for update skip locked`,
};

type TakenRow = Row & { readonly resolution: string | null; readonly change: RetentionChange | null };

/** A job that a worker has taken. */
export interface TakenJob extends RecordJob {
  /** For `readJobResolution`. Undefined unless the job resolves. */
  readonly resolution: string | undefined;
  /** The change of retention in the namespace of `after`, or else of the job; undefined: none. */
  readonly change: RetentionChange | undefined;
}

/**
 * Locks a due job until the transaction ends, and returns it; undefined if there is none. The job is of the first tenant after
 * `afterTenantId`, or else of the first tenant of all, but not in `besides`, and no other transaction has locked it. If the
 * caller dies, its transaction ends.
 *
 * Of one tenant, jobs of one kind are taken in the order of their creation, and a re-stamping after the jobs that resolve: it may
 * end a record that they complete. Others do not wait, because a job fails for as long as its result cannot be decrypted. The
 * deletion of the tenant comes before all: it makes their changes void.
 *
 * @param latestMs as DatabaseClock.
 */
export async function takeRecordJob(
  transaction: Runner,
  afterTenantId: number,
  besides: readonly bigint[],
  latestMs?: number,
): Promise<TakenJob | undefined> {
  for (const after of afterTenantId === 0 ? [0] : [afterTenantId, 0]) {
    const [row] = await transaction.run<TakenRow>(takeJob, [after, bigintArray(besides), latestMs ?? null]);
    if (row !== undefined) {
      return { ...parse(row), resolution: row.resolution ?? undefined, change: row.change ?? undefined };
    }
  }
  return undefined;
}

const advanceJob = {
  name: "advance_record_job",
  text: `
update record_jobs set
  after_namespace = $2::text,
  after_key = $3::text,
  records_examined = records_examined + $4::int,
  records_changed = records_changed + $5::int,
  records_forgotten = records_forgotten + $6::int,
  finished_at = case when $7::boolean then now() end,
  resolution = case when not $7::boolean then resolution end
where id = $1::bigint`,
};

/** The work of one batch of a job. */
export interface JobProgress {
  /** As RecordJob.after. */
  readonly after: { readonly namespace: string; readonly key: string } | undefined;
  readonly examined: number;
  readonly changed: number;
  readonly forgotten: number;
  readonly finished: boolean;
}

/** Adds the progress of a batch, in the batch's transaction. */
export async function advanceRecordJob(
  transaction: Runner,
  id: bigint,
  progress: JobProgress,
): Promise<void> {
  const { after, examined, changed, forgotten, finished } = progress;
  const cursor = [after?.namespace ?? null, after?.key ?? null];
  await transaction.run(advanceJob, [String(id), ...cursor, examined, changed, forgotten, finished]);
}

const lockJob = {
  name: "lock_record_job",
  text: `
select ${COLUMNS}
  from record_jobs j
 where j.tenant_id = $1::int
   and j.id = $2::bigint
   and j.kind <> 'DELETE'
   for update`,
};

/**
 * Locks a tenant's job until the transaction ends: a batch of the job that runs is waited for, and no other
 * one begins. Returns undefined if the tenant has no such job; the deletion of a tenant is not one of its jobs.
 */
export async function lockRecordJob(
  transaction: Runner,
  tenantId: number,
  id: bigint,
): Promise<RecordJob | undefined> {
  const [row] = await transaction.run<Row>(lockJob, [tenantId, String(id)]);
  return row && parse(row);
}

const cancelJob = {
  name: "cancel_record_job",
  text: `
update record_jobs j set
  cancelled = true,
  finished_at = now(),
  resolution = null
where j.id = $1::bigint
returning ${COLUMNS}`,
};

/** Ends an unfinished job that the transaction has locked. */
export async function cancelRecordJob(transaction: Runner, id: bigint): Promise<RecordJob> {
  const [row] = await transaction.run<Row>(cancelJob, [String(id)]);
  if (row === undefined) throw new Error("a locked job has disappeared");
  return parse(row);
}

const readJob = {
  name: "read_record_job",
  text: `select ${COLUMNS} from record_jobs j where j.tenant_id = $1::int and j.id = $2::bigint`,
};

/** Returns a tenant's job; undefined if the tenant has no such job. */
export async function findRecordJob(
  runner: Runner,
  tenantId: number,
  id: bigint,
): Promise<RecordJob | undefined> {
  const [row] = await runner.run<Row>(readJob, [tenantId, String(id)]);
  return row && parse(row);
}

const listJobs = {
  name: "list_record_jobs",
  text: `
select ${COLUMNS}
  from record_jobs j
 where j.tenant_id = $1::int
   and ($2::bigint is null or j.id < $2::bigint)
 order by j.id desc
 limit $3::int`,
};

/** Returns at most `limit` of a tenant's jobs, newest first, whose ids are below `beforeId`. */
export async function listRecordJobs(
  runner: Runner,
  tenantId: number,
  beforeId: string | undefined,
  limit: number,
): Promise<readonly RecordJob[]> {
  return (await runner.run<Row>(listJobs, [tenantId, beforeId ?? null, limit])).map(parse);
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

const countJobs = {
  name: "count_record_jobs",
  text: `select count(*)::int as unfinished from record_jobs where finished_at is null`,
};

/** Counts the unfinished jobs of all tenants. */
export async function countUnfinishedRecordJobs(runner: Runner): Promise<number> {
  const [row] = await runner.run<{ unfinished: number }>(countJobs, []);
  return row?.unfinished ?? 0;
}

function parse(row: Row): RecordJob {
  const { id, kind, terms, afterNamespace: namespace, afterKey: key, started, cancelled, ...rest } = row;
  return {
    ...fromRow<Plain>(rest),
    id: BigInt(id),
    work: { kind, ...terms } as RecordJobWork,
    state: stateOf(row),
    after: namespace === null || key === null ? undefined : { namespace, key },
  };
}

function stateOf({ cancelled, finishedAtMs, started }: Row): RecordJob["state"] {
  if (cancelled) return "CANCELLED";
  if (finishedAtMs !== null) return "DONE";
  return started ? "RUNNING" : "WAITING";
}
