import { create } from "@bufbuild/protobuf";
import { bigintArray, booleanArray, textArray } from "../database/sql-arrays.ts";
import { MAX_RELEASE_REASON_BYTES } from "../domain/limits.ts";
import type { Deadline } from "../domain/operation.ts";
import type { Principal } from "../domain/tenant.ts";
import { timestamp } from "../domain/violations.ts";
import {
  type ReleaseRequest,
  type ReleaseResponse,
  ReleaseResponseSchema,
} from "../gen/onceward/v1/idempotency_pb.ts";
import { createBatchedWrite, type WriteParts, writeAll } from "./engine/batched-writes.ts";
import { writtenRecords } from "./engine/read-records.ts";
import { IS_GIVEN_BACK, idColumns, type RecordRow, STATE, WRITTEN_SELECT } from "./engine/record-row.ts";
import { endedAttempt, IN_KEY_ORDER, OWN_CLAIM } from "./engine/record-sql.ts";
import type { RecordsDatabase } from "./engine/sharded-batcher.ts";
import { type Contended, type LiveRecord, type RecordId, recordName } from "./record.ts";
import { parseFencingToken, readRecordId } from "./request.ts";
import { alreadyCompleted, ownRecord, settlesUnknown } from "./settlement.ts";
import { countFenced, type SettlingOptions, type Steps } from "./steps.ts";

/** Releases the claim that `fencingToken` identifies. */
export interface ReleaseCommand {
  readonly id: RecordId;
  readonly fencingToken: bigint;
  readonly reason: string;
  /** Restores the record that the claim took over, if its outcome is unknown. */
  readonly giveBack: boolean;
}

/** Parses a Release. @throws Refusal as every parser (request.ts). */
function parseRelease(request: ReleaseRequest, principal: Principal): ReleaseCommand {
  const { id, violations } = readRecordId(request, principal);
  const fencingToken = parseFencingToken(request, violations);
  violations.prose("reason", request.reason, { maxBytes: MAX_RELEASE_REASON_BYTES });
  violations.throwIfAny();
  return { id, fencingToken, reason: request.reason, giveBack: request.giveBack };
}

/** The answer to a Release. */
export interface Release {
  readonly kind: "released";
  readonly expiresAtMs: number;
  /** `settlesUnknown`. */
  readonly settles: boolean;
}

/**
 * Returns the answer to a Release, from the record that it wrote or, if it changed nothing, found.
 *
 * @throws Refusal RECORD_NOT_FOUND, CLAIM_SUPERSEDED, ALREADY_COMPLETED.
 */
export function answerRelease(
  record: LiveRecord | undefined,
  command: ReleaseCommand,
  applied: boolean,
): Release | Contended {
  const back = record?.givenBack;
  if (
    record &&
    back?.fencingToken === command.fencingToken &&
    (command.giveBack || !record.acceptedAmbiguous)
  )
    return { kind: "released", expiresAtMs: record.expiresAtMs, settles: false };
  const own = ownRecord(record, command.fencingToken);
  switch (own.phase.kind) {
    case "released":
      return {
        kind: "released",
        expiresAtMs: own.expiresAtMs,
        settles: applied && settlesUnknown(own),
      };
    case "completed":
      throw alreadyCompleted();
    case "inProgress":
    case "lapsed":
    case "ambiguous":
      if (own.givenBack === undefined || own.unknown === undefined) return { kind: "contended" };
      // It can't be given back a second time, and stays held.
      return { kind: "released", expiresAtMs: own.expiresAtMs, settles: false };
  }
}

/**
 * Whether the release says nothing about the claim that was taken over: it is given back, or its holder did not accept ambiguity,
 * which would end the time of `reclaim_within` if the record became free.
 */
const GIVES_BACK = `(r.unknown_since is not null
      and (i.give_back or (r.holds_on_lease_expiry and (not r.accepts_ambiguous or ${IS_GIVEN_BACK}))))`;

/** Returns what an update sets a column to when the claim is given back, and when it is released. */
const either = (givenBack: string, released: string) =>
  `case when ${GIVES_BACK} then ${givenBack} else ${released} end`;

/** A column of the attempt that the claim took over. */
const takenOver = (field: string) => `r.past_attempts -> -1 ->> '${field}'`;
/** Whether an earlier claim was given back to that attempt. */
const WAS_GIVEN_BACK = "r.past_attempts -> -2 ->> 'ending' = 'given back'";
/** The attempt before it, and whether that one's outcome is unknown. */
const BEFORE = `(r.past_attempts -> case when ${WAS_GIVEN_BACK} then -3 else -2 end)`;
const TOOK_OVER = `${BEFORE} ->> 'ending' = 'superseded' and ${BEFORE} ->> 'pending' is null`;
const CLAIMED_AT = `to_timestamp((${takenOver("claimed")})::numeric / 1000)`;

/**
 * Releases many claims, each only if its token is the row's and the claim is still in progress, even if its
 * lease has run out.
 *
 * A claim that is given back restores what it took over, also the token, so that a holder that was only late may still complete.
 * The claim takes the place of that one among the past attempts, and of an earlier one that was given back.
 */
const releaseRecords = {
  name: "release_records",
  text: `
with input as materialized (
  select *, now() as now
    from unnest($1::int[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::boolean[])
           as i (tenant_id, namespace, key, fencing_token, release_reason, give_back)
   ${IN_KEY_ORDER}
), applied as (
  update records as r set
    state = ${either(`${STATE.inProgress}`, `${STATE.released}`)},
    settled_at = ${either("null", "i.now")},
    release_reason = ${either("null", "i.release_reason")},
    fencing_token = ${either(`(${takenOver("token")})::bigint`, "r.fencing_token")},
    attempt = ${either(`(${takenOver("attempt")})::int`, "r.attempt")},
    owner = ${either(`coalesce(${takenOver("owner")}, '')`, "r.owner")},
    claim_id = ${either("''", "r.claim_id")},
    holds_on_lease_expiry = ${either(`${takenOver("holds")} is not null`, "r.holds_on_lease_expiry")},
    reclaim_within_s = ${either(`nullif((${takenOver("holds")})::int, 0)`, "r.reclaim_within_s")},
    claimed_at = ${either(CLAIMED_AT, "r.claimed_at")},
    unknown_since = ${either(`case when ${TOOK_OVER} then ${CLAIMED_AT} end`, "r.unknown_since")},
    lease_expires_at = ${either("r.unknown_since", "r.lease_expires_at")},
    past_attempts = ${either(
      `case when ${WAS_GIVEN_BACK} then r.past_attempts - -1 - -1
           else r.past_attempts - -1 end
           || ${endedAttempt({
             ended: "trim_scale(extract(epoch from i.now - to_timestamp(0)) * 1000)::text",
             ending: "'given back'",
             reason: "i.release_reason",
           })}`,
      "r.past_attempts",
    )}
  from input i
  where ${OWN_CLAIM}
    and not (${GIVES_BACK} and ${IS_GIVEN_BACK})
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
      booleanArray(commands.map((command) => command.giveBack)),
    ],
    readWritten: writtenRecords,
    maxInFlight: MAX_IN_FLIGHT,
    limiter,
  });
  // A repeat of a release finds the record that the release wrote, so both have the same answer.
  return (commands: readonly ReleaseCommand[], deadline: Deadline) =>
    writeAll(release, commands, deadline, ({ applied, record }, command) =>
      answerRelease(record, command, applied),
    );
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
      if (release.settles) usage.count(id, "settled");
      onSettled(recordName(id));
      return releaseResponse(release);
    },
  };
}

/** Returns the response to a Release. */
function releaseResponse({ expiresAtMs }: Release): ReleaseResponse {
  return create(ReleaseResponseSchema, { expiresAt: timestamp(expiresAtMs) });
}
