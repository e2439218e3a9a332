import type { Deadline } from "../core/domain/operation.ts";
import { bigintArray, byteaArray, intArray, textArray } from "../core/store/sql-arrays.ts";
import { createBatchedWrite, type WriteParts, writeAll } from "./engine/batched-writes.ts";
import { recordsOf } from "./engine/read-records.ts";
import { idColumns, RECORD_SELECT, type RecordRow } from "./engine/record-row.ts";
import { IN_KEY_ORDER, OWN_CLAIM } from "./engine/record-sql.ts";
import type { RecordsDatabase } from "./engine/sharded-batcher.ts";
import { answerExtendLease, type ExtendLeaseCommand } from "./settlement.ts";

/**
 * Extends many leases, each only if its token is the row's and the claim is still in progress, even if its
 * lease has run out. A lease is never shortened, and a key is never forgotten before its lease ends.
 */
const extendLeases = {
  name: "extend_leases",
  text: `
with input as materialized (
  select *
    from unnest($1::int[], $2::text[], $3::text[], $4::bigint[], $5::int[], $6::text[], $7::bytea[])
           as i (tenant_id, namespace, key, fencing_token, lease_ms, checkpoint_name, checkpoint_state)
   ${IN_KEY_ORDER}
), applied as (
  update records as r set
    lease_expires_at = greatest(r.lease_expires_at,
                                now() + coalesce(i.lease_ms, r.lease_ms) * interval '1 millisecond'),
    expires_at = greatest(r.expires_at, now() + coalesce(i.lease_ms, r.lease_ms) * interval '1 millisecond'),
    checkpoint_name = coalesce(i.checkpoint_name, r.checkpoint_name),
    checkpoint_state = case when i.checkpoint_name is null then r.checkpoint_state else i.checkpoint_state end,
    checkpoint_key_id = case when i.checkpoint_name is null then r.checkpoint_key_id else $8::smallint end
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
 * Returns a function that extends leases and saves checkpoints, batched over all its callers. Each extension settles
 * separately, at the index of its command; it is refused as `answerExtendLease` does.
 */
export function createExtendLeases(database: RecordsDatabase, { readings, values, limiter }: WriteParts) {
  const extend = createBatchedWrite<ExtendLeaseCommand, RecordRow>(database, readings, {
    statement: extendLeases,
    parametersOf: (commands) => [
      ...idColumns(commands.map((command) => command.id)),
      bigintArray(commands.map((command) => command.fencingToken)),
      intArray(commands.map((command) => command.leaseMs)),
      textArray(commands.map((command) => command.checkpoint?.name)),
      byteaArray(
        commands.map(({ id, checkpoint }) => checkpoint && values.storedState(id, checkpoint.state)),
      ),
      values.keyId,
    ],
    bytesOf: (command) => command.checkpoint?.state.byteLength ?? 0,
    readWritten: (rows, commands) =>
      recordsOf(
        rows,
        commands.map(({ id }) => id),
      ),
    maxInFlight: MAX_IN_FLIGHT,
    limiter,
  });
  return (commands: readonly ExtendLeaseCommand[], deadline: Deadline) =>
    writeAll(extend, commands, deadline, ({ applied, record }, command) => {
      if (!applied) return answerExtendLease(record, command);
      const { leaseExpiresAtMs, leaseRemainingMs, expiresAtMs } = record;
      return { kind: "extended" as const, leaseExpiresAtMs, leaseRemainingMs, expiresAtMs };
    });
}
