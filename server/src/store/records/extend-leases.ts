import type { Deadline } from "../../domain/deadline.ts";
import type { Settled } from "../../domain/settled.ts";
import { answerExtendLease, type ExtendLeaseCommand, type LeaseExtension } from "../../domain/settlement.ts";
import type { TenantLimiter } from "../batching/tenant-limiter.ts";
import type { Pool } from "../pool.ts";
import { bigintArray, byteaArray, intArray, textArray } from "../sql-arrays.ts";
import { APPLIED, attemptAll, createAttempts, readApplied, UNFINISHED_BY_TOKEN } from "./attempts.ts";
import type { Readings } from "./read-records.ts";
import { idColumns } from "./record-ids.ts";
import type { RecordRow } from "./record-row.ts";

/**
 * Prolongs many leases at once, each only if its token is the row's and it is still in progress, whether or not the
 * lease ran out. A lease is never shortened, and a key is never forgotten before its lease ends.
 */
const extendLeases = {
  name: "extend_leases",
  text: `
with input as materialized (
  select *
    from unnest($1::int[], $2::text[], $3::text[], $4::bigint[], $5::int[], $6::text[], $7::bytea[])
           as i (tenant_id, namespace, key, fencing_token, lease_ms, checkpoint_name, checkpoint_state)
   order by i.tenant_id, i.namespace collate "C", i.key collate "C"
), applied as (
  update records as r set
    lease_expires_at = greatest(r.lease_expires_at,
                                now() + coalesce(i.lease_ms, r.lease_ms) * interval '1 millisecond'),
    expires_at = greatest(r.expires_at, now() + coalesce(i.lease_ms, r.lease_ms) * interval '1 millisecond'),
    checkpoint_name = coalesce(i.checkpoint_name, r.checkpoint_name),
    checkpoint_state = case when i.checkpoint_name is null then r.checkpoint_state else i.checkpoint_state end
  from input i
  where ${UNFINISHED_BY_TOKEN}
  returning r.*
)
${APPLIED}`,
};

const MAX_IN_FLIGHT = 1;

/** Prolongs claims' leases and saves their checkpoints; every extension ends by itself, in its place. */
export type ExtendLeases = (
  commands: readonly ExtendLeaseCommand[],
  deadline: Deadline,
) => Promise<readonly Settled<LeaseExtension>[]>;

/** @returns what extends leases, batched over all its callers; it refuses with what `answerExtendLease` does. */
export function createExtendLeases(pool: Pool, readings: Readings, limiter: TenantLimiter): ExtendLeases {
  const attempts = createAttempts<ExtendLeaseCommand, RecordRow>(pool, readings, {
    statement: extendLeases,
    columns: (commands) => [
      ...idColumns(commands.map((command) => command.id)),
      bigintArray(commands.map((command) => command.fencingToken)),
      intArray(commands.map((command) => command.leaseMs)),
      textArray(commands.map((command) => command.checkpoint?.name)),
      byteaArray(commands.map((command) => command.checkpoint?.state)),
    ],
    bytesOf: (command) => command.checkpoint?.state.byteLength ?? 0,
    readMade: readApplied,
    maxInFlight: MAX_IN_FLIGHT,
    limiter,
  });
  return (commands, deadline) =>
    attemptAll(attempts, commands, deadline, ({ applied, record }, command) => {
      if (!applied) return answerExtendLease(record, command);
      const { leaseExpiresAtMs, leaseRemainingMs, expiresAtMs } = record;
      return { kind: "extended" as const, leaseExpiresAtMs, leaseRemainingMs, expiresAtMs };
    });
}
