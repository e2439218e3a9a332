import type { Deadline, Settled } from "../../domain/operation.ts";
import { answerRelease, type Release, type ReleaseCommand } from "../../domain/settlement.ts";
import type { TenantLimiter } from "../batching/fair-queue.ts";
import type { RecordsDatabase } from "../batching/sharded-batcher.ts";
import { bigintArray, textArray } from "../sql-arrays.ts";
import { createBatchedWrite, readWrittenRecords, writeAll } from "./batched-writes.ts";
import type { Readings } from "./read-records.ts";
import { idColumns } from "./record-ids.ts";
import type { RecordRow } from "./record-row.ts";

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
select r.tenant_id, r.namespace, r.key, r.state, r.attempt, r.holds_on_lease_expiry, r.claim_id, r.owner,
       r.fencing_token::text as fencing_token,
       encode(r.fingerprint, 'hex') as fingerprint,
       date_part('epoch', now()) * 1000 as now_ms,
       date_part('epoch', r.first_claimed_at) * 1000 as first_claimed_at_ms,
       date_part('epoch', r.claimed_at) * 1000 as claimed_at_ms,
       date_part('epoch', r.lease_expires_at) * 1000 as lease_expires_at_ms,
       date_part('epoch', r.lease_expires_at - clock_timestamp()) * 1000 as lease_remaining_ms,
       date_part('epoch', r.settled_at) * 1000 as settled_at_ms,
       date_part('epoch', r.expires_at) * 1000 as expires_at_ms,
       date_part('epoch', r.result_expires_at) * 1000 as result_expires_at_ms,
       r.checkpoint_name, r.release_reason, r.result_kind, r.result_content_type,
       encode(r.result_digest, 'hex') as result_digest,
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
