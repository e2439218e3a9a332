import type { Deadline } from "../../domain/deadline.ts";
import type { CachedCompletion } from "../../domain/record.ts";
import type { Settled } from "../../domain/settled.ts";
import { answerComplete, type CompleteCommand, type Completion, completed } from "../../domain/settlement.ts";
import type { TenantLimiter } from "../batching/tenant-limiter.ts";
import type { Pool } from "../pool.ts";
import { bigintArray, byteaArray, intArray, smallintArray, textArray } from "../sql-arrays.ts";
import { attemptAll, createAttempts, UNFINISHED_BY_TOKEN } from "./attempts.ts";
import { withoutLargePayload } from "./large-payloads.ts";
import type { Readings } from "./read-records.ts";
import { idColumns } from "./record-ids.ts";
import { RESULT_KIND } from "./record-row.ts";
import {
  KEY_RETENTION_S,
  RESULT_RETENTION_S,
  readStored,
  STORED,
  STORED_COLUMNS,
  type StoredRow,
} from "./stored-results.ts";

/** What a completion makes of a row `r`, from an input `i`. */
export const COMPLETED = `
    state = 2,
    settled_at = now(),
    expires_at = now() + ${KEY_RETENTION_S} * interval '1 second',
    result_expires_at = now() + ${RESULT_RETENTION_S} * interval '1 second',
    result_kind = i.result_kind,
    result_digest = i.result_digest,
    result_payload = i.result_payload,
    result_content_type = i.result_content_type,
    result_metadata = i.result_metadata`;

/**
 * Completes many claims at once, each only if its token is the row's and it is still in progress, whether or not its
 * lease runs. Retention counts from here, as stamped at the claim or tightened now. `sweep_at` stays, so that the update
 * touches no index (heap-only tuple). What was completed is answered in one row.
 */
const completeRecords = {
  name: "complete_records",
  text: `
with input as materialized (
  select *
    from (select unnest($1::int[]) as tenant_id, unnest($2::text[]) as namespace, unnest($3::text[]) as key,
                 unnest($4::bigint[]) as fencing_token, unnest($5::smallint[]) as result_kind,
                 unnest($6::bytea[]) as result_digest, unnest($7::bytea[]) as result_payload,
                 unnest($8::text[]) as result_content_type, unnest($9::text[]) as result_metadata,
                 unnest($10::int[]) as key_retention_s, generate_subscripts($1::int[], 1) as place) as i
   order by i.tenant_id, i.namespace collate "C", i.key collate "C"
), applied as (
  update records as r set ${COMPLETED}
  from input i
  where ${UNFINISHED_BY_TOKEN}
  returning ${STORED_COLUMNS}
)
${STORED}`,
};

/** As for claims. */
const MAX_IN_FLIGHT = 3;

/** Stores the outcome of each claim; every completion ends by itself, in its place. */
export type CompleteRecords = (
  commands: readonly CompleteCommand[],
  deadline: Deadline,
) => Promise<readonly Settled<Completion>[]>;

/** @returns what completes claims, batched over all its callers; it refuses with what `answerComplete` does. */
export function createCompleteRecords(
  pool: Pool,
  readings: Readings,
  limiter: TenantLimiter,
): CompleteRecords {
  const attempts = createAttempts<CompleteCommand, StoredRow, CachedCompletion>(pool, readings, {
    statement: completeRecords,
    columns: (commands) => [
      ...idColumns(commands.map((command) => command.id)),
      bigintArray(commands.map((command) => command.fencingToken)),
      smallintArray(commands.map((command) => RESULT_KIND[command.result.kind])),
      byteaArray(commands.map((command) => command.resultDigest)),
      byteaArray(commands.map((command) => command.result.payload)),
      textArray(commands.map((command) => command.result.contentType || undefined)),
      textArray(commands.map((command) => metadataJson(command.result.metadata))),
      intArray(commands.map((command) => command.keyRetentionS)),
    ],
    bytesOf: (command) => command.result.payload.byteLength,
    readMade: readStored,
    maxInFlight: MAX_IN_FLIGHT,
    limiter,
  });
  return (commands, deadline) =>
    attemptAll(attempts, commands, deadline, ({ applied, record }, command) =>
      applied ? completed(record) : answerComplete(record && withoutLargePayload(record), command),
    );
}

/** As it is stored. */
export function metadataJson(metadata: Readonly<Record<string, string>>): string | undefined {
  for (const _ in metadata) return JSON.stringify(metadata);
  return undefined;
}
