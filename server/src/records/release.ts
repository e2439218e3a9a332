import type { Deadline } from "../core/domain/operation.ts";
import { bigintArray, textArray } from "../core/store/sql-arrays.ts";
import { createBatchedWrite, type WriteParts, writeAll } from "./engine/batched-writes.ts";
import { recordsOf } from "./engine/read-records.ts";
import { idColumns, RECORD_SELECT, type RecordRow, STATE } from "./engine/record-row.ts";
import { IN_KEY_ORDER, OWN_CLAIM } from "./engine/record-sql.ts";
import type { RecordsDatabase } from "./engine/sharded-batcher.ts";
import { answerRelease, type ReleaseCommand } from "./settlement.ts";

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
   ${IN_KEY_ORDER}
), applied as (
  update records as r set
    state = ${STATE.released},
    settled_at = now(),
    release_reason = i.release_reason
  from input i
  where ${OWN_CLAIM}
  returning r.*
)
select ${RECORD_SELECT},
       r.checkpoint_state, r.result_metadata, null::bytea as result_payload
  from applied r`,
};

const MAX_IN_FLIGHT = 1;

/**
 * Returns a function that releases claims, batched over all its callers. Each release settles separately, at the
 * index of its command; it is refused as `answerRelease` does.
 */
export function createReleaseRecords(database: RecordsDatabase, { readings, limiter }: WriteParts) {
  const release = createBatchedWrite<ReleaseCommand, RecordRow>(database, readings, {
    statement: releaseRecords,
    parametersOf: (commands) => [
      ...idColumns(commands.map((command) => command.id)),
      bigintArray(commands.map((command) => command.fencingToken)),
      textArray(commands.map((command) => command.reason || undefined)),
    ],
    readWritten: (rows, commands) =>
      recordsOf(
        rows,
        commands.map(({ id }) => id),
      ),
    maxInFlight: MAX_IN_FLIGHT,
    limiter,
  });
  // A repeat of a release finds the record that the release wrote, so both have the same answer.
  return (commands: readonly ReleaseCommand[], deadline: Deadline) =>
    writeAll(release, commands, deadline, ({ record }, command) => answerRelease(record, command));
}
