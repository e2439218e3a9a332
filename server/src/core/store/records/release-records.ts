import type { Deadline, Settled } from "../../domain/operation.ts";
import { answerRelease, type Release, type ReleaseCommand } from "../../domain/settlement.ts";
import type { TenantLimiter } from "../batching/fair-queue.ts";
import type { RecordsDatabase } from "../batching/sharded-batcher.ts";
import { bigintArray, textArray } from "../sql-arrays.ts";
import { createBatchedWrite, readWrittenRecords, writeAll } from "./batched-writes.ts";
import type { Readings } from "./read-records.ts";
import { idColumns } from "./record-ids.ts";
import { RECORD_SELECT, type RecordRow } from "./record-row.ts";

/**
 * Releases many claims, each only if its token is the row's and the claim is still in progress, even if its
 * lease has run out.
 */
const releaseRecords = {
  name: "release_records",
  text: `
with input as materialized (
  select *
    from unnest($1::int[], $2::text[], $3::text[], $4::bigint[], $5::text[])
           as i (tenant_id, namespace, key, fencing_token, release_reason)
   order by i.tenant_id, i.namespace collate "C", i.key collate "C"
), applied as (
  update records as r set
    state = 3 /* released */,
    settled_at = now(),
    release_reason = i.release_reason
  from input i
  where r.tenant_id = i.tenant_id
    and r.namespace = i.namespace
    and r.key = i.key
    and r.key >= i.key
    and (i.tenant_id % 1, i.tenant_id % -1) = (0, 0)
    and r.fencing_token = i.fencing_token
    and r.state = 1 /* in progress */
    and r.expires_at > now()
  returning r.*
)
select ${RECORD_SELECT},
       r.checkpoint_state, r.result_metadata, null::bytea as result_payload
  from applied r`,
};

const MAX_IN_FLIGHT = 1;

/** Releases claims. Each release settles separately, at the index of its command. */
export type ReleaseRecords = (
  commands: readonly ReleaseCommand[],
  deadline: Deadline,
) => Promise<readonly Settled<Release>[]>;

/**
 * Returns a function that releases claims, batched over all its callers. It refuses commands as
 * `answerRelease` does.
 */
export function createReleaseRecords(
  database: RecordsDatabase,
  readings: Readings,
  limiter: TenantLimiter,
): ReleaseRecords {
  const release = createBatchedWrite<ReleaseCommand, RecordRow>(database, readings, {
    statement: releaseRecords,
    parametersOf: (commands) => [
      ...idColumns(commands.map((command) => command.id)),
      bigintArray(commands.map((command) => command.fencingToken)),
      textArray(commands.map((command) => command.reason || undefined)),
    ],
    readWritten: (rows, commands) => readWrittenRecords(rows, commands),
    maxInFlight: MAX_IN_FLIGHT,
    limiter,
  });
  // A repeat of a release finds the record that the release wrote, so both have the same answer.
  return (commands, deadline) =>
    writeAll(release, commands, deadline, ({ record }, command) => answerRelease(record, command));
}
