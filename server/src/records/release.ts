import { create } from "@bufbuild/protobuf";
import { MAX_RELEASE_REASON_BYTES } from "../core/domain/limits.ts";
import type { Deadline } from "../core/domain/operation.ts";
import type { Principal } from "../core/domain/tenant.ts";
import { timestamp } from "../core/messages/violations.ts";
import { bigintArray, textArray } from "../core/store/sql-arrays.ts";
import {
  type ReleaseRequest,
  type ReleaseResponse,
  ReleaseResponseSchema,
} from "../gen/onceward/v1/idempotency_pb.ts";
import { createBatchedWrite, type WriteParts, writeAll } from "./engine/batched-writes.ts";
import { writtenRecords } from "./engine/read-records.ts";
import { idColumns, type RecordRow, STATE, WRITTEN_SELECT } from "./engine/record-row.ts";
import { IN_KEY_ORDER, OWN_CLAIM } from "./engine/record-sql.ts";
import type { RecordsDatabase } from "./engine/sharded-batcher.ts";
import { type Contended, type LiveRecord, type RecordId, recordName } from "./record.ts";
import { parseFencingToken, readRecordId } from "./request.ts";
import { alreadyCompleted, ownRecord } from "./settlement.ts";
import { countFenced, type SettlingOptions, type Steps } from "./steps.ts";

/** Releases the claim that `fencingToken` identifies. */
export interface ReleaseCommand {
  readonly id: RecordId;
  readonly fencingToken: bigint;
  readonly reason: string;
}

/** Parses a Release. @throws Refusal as every parser (request.ts). */
function parseRelease(request: ReleaseRequest, principal: Principal): ReleaseCommand {
  const { id, violations } = readRecordId(request, principal);
  const fencingToken = parseFencingToken(request, violations);
  violations.prose("reason", request.reason, { maxBytes: MAX_RELEASE_REASON_BYTES });
  violations.throwIfAny();
  return { id, fencingToken, reason: request.reason };
}

/** The answer to a Release. */
export interface Release {
  readonly kind: "released";
  readonly expiresAtMs: number;
}

/**
 * Returns the answer to a Release that changed nothing, from the record that it found.
 *
 * @throws Refusal RECORD_NOT_FOUND, CLAIM_SUPERSEDED, ALREADY_COMPLETED.
 */
export function answerRelease(record: LiveRecord | undefined, command: ReleaseCommand): Release | Contended {
  const own = ownRecord(record, command.fencingToken);
  switch (own.phase.kind) {
    case "released":
      return { kind: "released", expiresAtMs: own.expiresAtMs };
    case "completed":
      throw alreadyCompleted();
    case "inProgress":
    case "lapsed":
    case "ambiguous":
      return { kind: "contended" };
  }
}

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
select ${WRITTEN_SELECT}
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
    readWritten: writtenRecords,
    maxInFlight: MAX_IN_FLIGHT,
    limiter,
  });
  // A repeat of a release finds the record that the release wrote, so both have the same answer.
  return (commands: readonly ReleaseCommand[], deadline: Deadline) =>
    writeAll(release, commands, deadline, ({ record }, command) => answerRelease(record, command));
}

/** Returns the steps of Release. */
export function releaseSteps({
  records,
  admission,
  onSettled,
  usage,
}: SettlingOptions<{ readonly release: ReturnType<typeof createReleaseRecords> }>): Steps<
  ReleaseRequest,
  ReleaseCommand,
  Release,
  ReleaseResponse
> {
  return {
    kind: "release",
    outcomeOf: () => "released",
    admit: admission.countOperation,
    parse: parseRelease,
    run: async (commands, deadline) =>
      countFenced(usage, commands, await records.release(commands, deadline)),
    answer(release, { id }) {
      onSettled(recordName(id));
      return releaseResponse(release);
    },
  };
}

/** Returns the response to a Release. */
function releaseResponse({ expiresAtMs }: Release): ReleaseResponse {
  return create(ReleaseResponseSchema, { expiresAt: timestamp(expiresAtMs) });
}
