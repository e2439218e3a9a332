import { create } from "@bufbuild/protobuf";
import { loadPolicies } from "../../access/authority.ts";
import type { Call } from "../../access/call.ts";
import type { Runner } from "../../database/pool.ts";
import type { Snapshot } from "../../database/tenants/audit-events.ts";
import { Refusal } from "../../domain/refusal.ts";
import {
  type ResolveRecordRequest,
  ResolveRecordResponseSchema,
} from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { withResult } from "../../records/engine/large-results.ts";
import {
  type OpenRow,
  parseRecord,
  RECORD_SELECT,
  RESULT_KIND,
  type RecordRow,
  STATE,
  withoutValues,
} from "../../records/engine/record-row.ts";
import {
  COMPLETE_COLUMNS,
  endedAttempt,
  INLINE_RESULT,
  IS_APPENDED,
  WITH_ROOM,
} from "../../records/engine/record-sql.ts";
import type { RecordValues } from "../../records/engine/record-values.ts";
import { type LiveRecord, type RecordId, recordName } from "../../records/record.ts";
import { recordMessage } from "../../records/record-messages.ts";
import { readRecordId } from "../../records/request.ts";
import { recordChange } from "../audit/audited-change.ts";
import type { TenantRpc } from "../services.ts";
import { FORGET_COLUMNS, raiseCacheGeneration } from "./forget-records.ts";
import { parseReason, parseResolution, type Resolution } from "./resolution.ts";

/** Resolves one record, regardless of its holder. */
export const resolveRecord: TenantRpc<"resolveRecord"> = async (request, call, parts) => {
  const { pool, changes, encryption, databaseClock, onSettled, recordTarget } = parts;
  await loadPolicies([request.namespace], call);
  const command = parseResolve(request, call);
  const record = await pool.of(call).transaction(async (transaction) => {
    // A record that cannot be decrypted can be forgotten.
    const openRow = command.resolution.kind === "forget" ? withoutValues : encryption.openRow;
    const locked = await lockRecord(transaction, command.id, openRow, databaseClock.latestMs());
    const was = recordToChange(locked, command);
    if (was === undefined) return locked;
    const became = await changeRecord(transaction, command, encryption);
    await recordChange(transaction, call, {
      action: "ResolveRecord",
      target: recordTarget(command.id),
      reason: command.reason,
      before: recordSnapshot(was),
      ...(became && { after: recordSnapshot(became) }),
    });
    return became;
  });
  // Forgetting raised the tenant's generation, which invalidates its cached completions.
  changes.tenantChanged(command.id.tenantId);
  onSettled(recordName(command.id));
  return create(ResolveRecordResponseSchema, record && { record: replyRecord(record, command) });
};

/** Resolves a record, regardless of its holder. */
interface ResolveCommand {
  readonly id: RecordId;
  readonly resolution: Resolution;
  /** The administrator's text. */
  readonly reason: string;
  /** The record job that resolves it; undefined: a call for this record. */
  readonly recordJob: bigint | undefined;
  /** Resolves only the claim with this token; undefined: the newest claim. */
  readonly fencingToken: bigint | undefined;
}

/** Parses a resolution. @throws Refusal INVALID_REQUEST with every violation; NAMESPACE_DENIED; RESULT_TOO_LARGE. */
function parseResolve(request: ResolveRecordRequest, { principal }: Call): ResolveCommand {
  const { id, policy, violations } = readRecordId(request, principal);
  const { reason, fencingToken } = request;
  parseReason(reason, violations);
  if (fencingToken < 0n) violations.add("fencing_token", "must be a token that Claim returned, or 0");
  const resolution = parseResolution(request.resolution, policy, violations);
  return {
    id,
    resolution,
    reason,
    recordJob: undefined,
    fencingToken: fencingToken === 0n ? undefined : fencingToken,
  };
}

/**
 * Returns the record if the command changes it; undefined if it already is as the command asks.
 *
 * @throws Refusal RECORD_NOT_FOUND, CLAIM_SUPERSEDED, ALREADY_COMPLETED (released, or with another result).
 */
function recordToChange(
  record: LiveRecord | undefined,
  { resolution, fencingToken }: ResolveCommand,
): LiveRecord | undefined {
  if (record === undefined) {
    throw new Refusal(
      "RECORD_NOT_FOUND",
      "There is no such record: the key was never claimed, or its retention has ended.",
    );
  }
  if (fencingToken !== undefined && record.fencingToken !== fencingToken) {
    throw new Refusal("CLAIM_SUPERSEDED", "The fencing token does not name the key's newest claim.");
  }
  switch (resolution.kind) {
    case "forget":
      return record;
    case "release":
      if (record.phase.kind === "completed") {
        throw new Refusal("ALREADY_COMPLETED", "The claim was completed; only forgetting undoes that.");
      }
      return record.phase.kind === "released" ? undefined : record;
    case "complete":
      if (record.phase.kind !== "completed") return record;
      if (Buffer.compare(record.phase.resultDigest, resolution.resultDigest) === 0) return undefined;
      throw new Refusal("ALREADY_COMPLETED", "The claim was completed before, with another result.");
  }
}

const BY_KEY = "r.tenant_id = $1::int and r.namespace = $2::text and r.key = $3::text";

/**
 * Returns the row's past attempts with the one that ends, and the record job that ends it; that replaces the attempt if an earlier
 * resolution appended it.
 */
function pastAttempts(reason: string, job: string): string {
  const ended = "(extract(epoch from now() - to_timestamp(0)) * 1000)::text";
  return `case when ${IS_APPENDED} then r.past_attempts - -1
           ${WITH_ROOM}
      || ${endedAttempt({ ended, ending: "'resolved'", reason, job })}`;
}

const lockRecordRow = {
  name: "lock_record",
  text: `
select ${RECORD_SELECT},
       r.checkpoint_state,
       ${INLINE_RESULT}
  from records r
 where ${BY_KEY}
   for update`,
};

/**
 * Reads a record and locks its row until the transaction ends; undefined if there is no record. Large
 * results are not read.
 *
 * @param openRow decrypts the row, or leaves its values out.
 * @param latestMs as DatabaseClock.
 * @throws Refusal RECORD_UNREADABLE, as `openRow`; DATABASE_UNAVAILABLE if the retention has ended only by a clock that was set.
 */
export async function lockRecord(
  transaction: Runner,
  id: RecordId,
  openRow: OpenRow,
  latestMs?: number,
): Promise<LiveRecord | undefined> {
  const [row] = await transaction.run<RecordRow>(lockRecordRow, keyParameters(id));
  return row && parseRecord(row, openRow, latestMs);
}

/** Leaves the row as `forget_records` does. */
const forgetRecordRow = {
  name: "forget_record",
  text: `
update records as r set
    ${FORGET_COLUMNS}
 where ${BY_KEY}`,
};

const releaseRecordRow = {
  name: "resolve_as_released",
  text: `
with changed as (
  update records as r set
    state = ${STATE.released},
    settled_at = now(),
    release_reason = $4::text,
    past_attempts = ${pastAttempts("$4::text", "$5::text")}
 where ${BY_KEY}
  returning r.*
)
select ${RECORD_SELECT},
       r.checkpoint_state, r.result_metadata, r.result_key_id, r.checkpoint_key_id, null::bytea as result_payload
  from changed r`,
};

const completeRecordRow = {
  name: "resolve_as_completed",
  text: `
with changed as (
  update records as r set
    ${COMPLETE_COLUMNS},
    release_reason = null,
    past_attempts = ${pastAttempts("$10::text", "$11::text")}
  from (select $4::smallint as result_kind, $5::bytea as result_digest, $6::bytea as result_payload,
               $7::text as result_content_type, $8::text as result_metadata, $9::smallint as result_key_id,
               null::int as key_retention_s) i
 where ${BY_KEY}
  returning r.*
)
select ${RECORD_SELECT},
       r.checkpoint_state, r.result_metadata, r.result_key_id, r.checkpoint_key_id, null::bytea as result_payload
  from changed r`,
};

/**
 * Resolves a record that the transaction has locked.
 *
 * @returns the changed record, without the payload of its result; undefined if it was forgotten.
 * @throws Refusal RECORD_UNREADABLE, as `RecordValues.openRow`.
 */
async function changeRecord(
  transaction: Runner,
  command: ResolveCommand,
  encryption: RecordValues,
): Promise<LiveRecord | undefined> {
  const row = await resolveOneOfMany(transaction, command, encryption);
  if (row === undefined) {
    // Last, so that other administrators wait as briefly as possible for the tenant's row. Claims do not
    // wait for it.
    await raiseCacheGeneration(transaction, command.id.tenantId);
    return undefined;
  }
  const record = parseRecord(row, encryption.openRow);
  if (record === undefined) throw new Error("a locked record has disappeared");
  return record;
}

/**
 * Does the same for one of several records. It decrypts nothing, and does not raise the tenant's cache
 * generation: the caller does so once, after the last record, if records are forgotten.
 *
 * @returns the changed row; undefined if its record was forgotten.
 */
export async function resolveOneOfMany(
  transaction: Runner,
  { id, resolution, reason, recordJob }: ResolveCommand,
  encryption: RecordValues,
): Promise<RecordRow | undefined> {
  const job = recordJob?.toString() ?? null;
  switch (resolution.kind) {
    case "forget":
      await transaction.run(forgetRecordRow, keyParameters(id));
      return undefined;
    case "release":
      return onlyRow(await transaction.run(releaseRecordRow, [...keyParameters(id), reason, job]));
    case "complete": {
      const { result, resultDigest } = resolution;
      const { digest, payload, metadata } = encryption.storedResult(id, {
        digest: resultDigest,
        payload: result.payload,
        metadata: result.metadataJson || undefined,
      });
      const parameters = [
        ...keyParameters(id),
        ...[RESULT_KIND[result.kind], digest, payload, result.contentType || null, metadata ?? null],
        encryption.keyId,
        ...[reason, job],
      ];
      return onlyRow(await transaction.run(completeRecordRow, parameters));
    }
  }
}

function keyParameters({ tenantId, namespace, key }: RecordId): readonly unknown[] {
  return [tenantId, namespace, key];
}

function onlyRow([row]: readonly RecordRow[]): RecordRow {
  if (row === undefined) throw new Error("a locked record has disappeared");
  return row;
}

/** Returns the parts of a record that audit events may show: neither its key nor its result. */
function recordSnapshot({ phase, fencingToken, attempt, owner }: LiveRecord): Snapshot {
  return { state: phase.kind, fencingToken: String(fencingToken), attempt, owner };
}

/** Returns the record with the payload of the request where the database did not return the result's payload. */
function replyRecord(record: LiveRecord, { resolution }: ResolveCommand) {
  return recordMessage(resolution.kind === "complete" ? withResult(record, resolution.result) : record);
}
