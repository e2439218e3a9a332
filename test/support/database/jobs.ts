import { type JobSelection, workBatch } from "../../../server/src/admin/jobs/work-batch.ts";
import { openPool } from "../../../server/src/database/pool.ts";
import { removeSamples } from "../../../server/src/insight/samples.ts";
import type { TestDatabase } from "./database.ts";

const BATCH_RECORDS = 3;

/** Makes all waiting record jobs due, and runs them to their end, in batches of three. */
export async function runRecordJobs(database: TestDatabase): Promise<void> {
  await database.query("update record_jobs set starts_at = now() where finished_at is null");
  const pool = openPool({ databaseUrl: database.url, size: 1, throughPgBouncer: false });
  const unfinished = () => database.query("select 1 from record_jobs where finished_at is null");
  try {
    // The server's own worker may hold a job for a moment.
    while ((await unfinished()).length > 0)
      await workBatch(pool, anyTurn(BATCH_RECORDS), undefined, undefined, removeSamples);
  } finally {
    await pool.close();
  }
}

/** Selects the first due job of any tenant. */
export function anyTurn(limit: number): JobSelection {
  return { afterTenantId: 0, skippedJobIds: [], maxRowsOf: () => limit, onTaken() {} };
}
