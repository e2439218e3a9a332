import type { Deadline } from "../../domain/deadline.ts";
import type { Settled } from "../../domain/settled.ts";
import { answerRelease, type Release, type ReleaseCommand } from "../../domain/settlement.ts";
import type { TenantLimiter } from "../batching/tenant-limiter.ts";
import type { Pool } from "../pool.ts";
import { bigintArray, textArray } from "../sql-arrays.ts";
import { APPLIED, attemptAll, createAttempts, readApplied, UNFINISHED_BY_TOKEN } from "./attempts.ts";
import type { Readings } from "./read-records.ts";
import { idColumns } from "./record-ids.ts";
import type { RecordRow } from "./record-row.ts";

/** Gives many claims up at once, each only if its token is the row's and it is still in progress. */
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
    state = 3,
    settled_at = now(),
    release_reason = i.release_reason
  from input i
  where ${UNFINISHED_BY_TOKEN}
  returning r.*
)
${APPLIED}`,
};

const MAX_IN_FLIGHT = 1;

/** Gives claims up unfinished; every release ends by itself, in its place. */
export type ReleaseRecords = (
  commands: readonly ReleaseCommand[],
  deadline: Deadline,
) => Promise<readonly Settled<Release>[]>;

/** @returns what releases claims, batched over all its callers; it refuses with what `answerRelease` does. */
export function createReleaseRecords(pool: Pool, readings: Readings, limiter: TenantLimiter): ReleaseRecords {
  const attempts = createAttempts<ReleaseCommand, RecordRow>(pool, readings, {
    statement: releaseRecords,
    columns: (commands) => [
      ...idColumns(commands.map((command) => command.id)),
      bigintArray(commands.map((command) => command.fencingToken)),
      textArray(commands.map((command) => command.reason || undefined)),
    ],
    readMade: readApplied,
    maxInFlight: MAX_IN_FLIGHT,
    limiter,
  });
  // A release that was applied left the record as a repeat would find it.
  return (commands, deadline) =>
    attemptAll(attempts, commands, deadline, ({ record }, command) => answerRelease(record, command));
}
