import { create } from "@bufbuild/protobuf";
import { bigintArray, booleanArray, byteaArray, intArray, textArray } from "../database/sql-arrays.ts";
import { MAX_CHECKPOINT_NAME_BYTES, MAX_CHECKPOINT_STATE_BYTES } from "../domain/limits.ts";
import type { Deadline } from "../domain/operation.ts";
import type { Principal } from "../domain/tenant.ts";
import { duration, timestamp, type Violations } from "../domain/violations.ts";
import {
  type ExtendLeaseRequest,
  type ExtendLeaseResponse,
  ExtendLeaseResponseSchema,
} from "../gen/onceward/v1/idempotency_pb.ts";
import { createBatchedWrite, type WriteParts, writeAll } from "./engine/batched-writes.ts";
import { writtenRecords } from "./engine/read-records.ts";
import { IS_PENDING, idColumns, type RecordRow, WRITTEN_SELECT } from "./engine/record-row.ts";
import { IN_KEY_ORDER, OWN_CLAIM } from "./engine/record-sql.ts";
import type { RecordsDatabase } from "./engine/sharded-batcher.ts";
import type { Checkpoint, Contended, LiveRecord, RecordId } from "./record.ts";
import { parseFencingToken, parseLeaseMs, readRecordId } from "./request.ts";
import { alreadyCompleted, alreadyReleased, ownRecord } from "./settlement.ts";
import { countFenced, type SettlingOptions, type Steps } from "./steps.ts";

/** Extends the lease of the claim that `fencingToken` identifies. */
export interface ExtendLeaseCommand {
  readonly id: RecordId;
  readonly fencingToken: bigint;
  /** Undefined: the length of the claim's own lease. */
  readonly leaseMs: number | undefined;
  /** Undefined: keeps the record's checkpoint. */
  readonly checkpoint: Checkpoint | undefined;
  /** Whether the claim's effect may begin from now on. */
  readonly begin: boolean;
}

/** Parses an ExtendLease. @throws Refusal as every parser (request.ts). */
function parseExtendLease(request: ExtendLeaseRequest, principal: Principal): ExtendLeaseCommand {
  const { id, policy, violations } = readRecordId(request, principal);
  const fencingToken = parseFencingToken(request, violations);
  const leaseMs = parseLeaseMs(request, policy, violations);
  const checkpoint = parseCheckpoint(request, violations);
  violations.throwIfAny();
  return { id, fencingToken, leaseMs, checkpoint, begin: request.begin };
}

function parseCheckpoint(
  { checkpoint }: Pick<ExtendLeaseRequest, "checkpoint">,
  violations: Violations,
): Checkpoint | undefined {
  if (checkpoint === undefined) return undefined;
  const { name, state } = checkpoint;
  violations.text("checkpoint.name", name, { minBytes: 1, maxBytes: MAX_CHECKPOINT_NAME_BYTES });
  violations.bytes("checkpoint.state", state, { maxBytes: MAX_CHECKPOINT_STATE_BYTES });
  return { name, state };
}

/** The answer to an ExtendLease. */
export interface LeaseExtension
  extends Pick<LiveRecord, "leaseExpiresAtMs" | "leaseRemainingMs" | "expiresAtMs"> {
  readonly kind: "extended";
}

/**
 * Returns the answer to an ExtendLease that changed nothing, from the record that it found.
 *
 * @throws Refusal RECORD_NOT_FOUND, CLAIM_SUPERSEDED, ALREADY_COMPLETED, ALREADY_RELEASED.
 */
export function answerExtendLease(record: LiveRecord | undefined, command: ExtendLeaseCommand): Contended {
  const own = ownRecord(record, command.fencingToken);
  switch (own.phase.kind) {
    case "completed":
      throw alreadyCompleted();
    case "released":
      throw alreadyReleased();
    case "inProgress":
    case "lapsed":
    case "ambiguous":
      return { kind: "contended" };
  }
}

const ASKED_END = "now() + coalesce(i.lease_ms, r.lease_ms) * interval '1 millisecond'";
/** Citus allows no now() within a `case`: of one that is false, the sum is null. */
const PENDING = (value: string) =>
  `coalesce(case when ${IS_PENDING} and not i.begins then ${value} end, null)`;

/**
 * Extends many leases, each only if its token is the row's and the claim is still in progress, even if its
 * lease has run out. A lease is never shortened, and a key is never forgotten before its lease ends.
 */
const extendLeases = {
  name: "extend_leases",
  text: `
with input as materialized (
  select *
    from unnest($1::int[], $2::text[], $3::text[], $4::bigint[], $5::int[], $6::text[], $7::bytea[], $9::boolean[])
           as i (tenant_id, namespace, key, fencing_token, lease_ms, checkpoint_name, checkpoint_state, begins)
   ${IN_KEY_ORDER}
), applied as (
  update records as r set
    lease_expires_at = greatest(r.lease_expires_at, ${ASKED_END}),
    pending_until = greatest(${PENDING("r.lease_expires_at")},
                             now() + ${PENDING("coalesce(i.lease_ms, r.lease_ms)")} * interval '1 millisecond'),
    expires_at = greatest(r.expires_at, ${ASKED_END}),
    checkpoint_name = coalesce(i.checkpoint_name, r.checkpoint_name),
    checkpoint_state = case when i.checkpoint_name is null then r.checkpoint_state else i.checkpoint_state end,
    checkpoint_key_id = case when i.checkpoint_name is null then r.checkpoint_key_id else $8::smallint end
  from input i
  where ${OWN_CLAIM}
  returning r.*
)
select ${WRITTEN_SELECT}
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
      booleanArray(commands.map((command) => command.begin)),
    ],
    bytesOf: (command) => command.checkpoint?.state.byteLength ?? 0,
    readWritten: writtenRecords,
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

/** Returns the steps of ExtendLease. */
export function extendLeaseSteps({
  records,
  admission,
  usage,
}: Omit<
  SettlingOptions<{ readonly extendLease: ReturnType<typeof createExtendLeases> }>,
  "onSettled"
>): Steps<ExtendLeaseRequest, ExtendLeaseCommand, LeaseExtension, ExtendLeaseResponse> {
  return {
    kind: "extend_lease",
    outcomeOf: () => "extended",
    admit: admission.countOperation,
    parse: parseExtendLease,
    run: async (commands, deadline) =>
      countFenced(usage, commands, await records.extendLease(commands, deadline)),
    answer: extendLeaseResponse,
  };
}

/** Returns the response to an ExtendLease. */
function extendLeaseResponse(extension: LeaseExtension): ExtendLeaseResponse {
  return create(ExtendLeaseResponseSchema, {
    leaseExpiresAt: timestamp(extension.leaseExpiresAtMs),
    leaseRemaining: duration(extension.leaseRemainingMs),
    expiresAt: timestamp(extension.expiresAtMs),
  });
}
