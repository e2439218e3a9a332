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
import { MAX_ATTEMPTS_SHOWN } from "./attempt.ts";
import { createBatchedWrite, type WriteParts, writeAll } from "./engine/batched-writes.ts";
import { writtenRecords } from "./engine/read-records.ts";
import { idColumns, type RecordRow, STATE, WRITTEN_SELECT } from "./engine/record-row.ts";
import { endedAttempt, IN_KEY_ORDER, IS_GIVEN_BACK, OWN_CLAIM } from "./engine/record-sql.ts";
import type { RecordsDatabase } from "./engine/sharded-batcher.ts";
import { type Contended, isGivenBack, type LiveRecord, type RecordId, recordName } from "./record.ts";
import { parseFencingToken, readRecordId } from "./request.ts";
import { alreadyCompleted, ownRecord } from "./settlement.ts";
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
  /** Whether the claim had taken over one whose outcome was unknown, and was not given back. */
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
  // Repeated, by the claim's token or by that to which giving back has raised it.
  if (command.giveBack && record !== undefined && isGivenBack(record)) {
    const raisedBy = record.fencingToken - command.fencingToken;
    if (raisedBy === 1n || raisedBy === 0n)
      return { kind: "released", expiresAtMs: record.expiresAtMs, settles: false };
  }
  const own = ownRecord(record, command.fencingToken);
  switch (own.phase.kind) {
    case "released":
      return {
        kind: "released",
        expiresAtMs: own.expiresAtMs,
        settles: applied && own.unknown !== undefined,
      };
    case "completed":
      throw alreadyCompleted();
    case "inProgress":
    case "lapsed":
    case "ambiguous":
      return { kind: "contended" };
  }
}

const GIVES_BACK = "i.give_back and r.unknown_since is not null";

/** Returns what an update sets a column to when the claim is given back, and when it is released. */
const either = (givenBack: string, released: string) =>
  `case when ${GIVES_BACK} then ${givenBack} else ${released} end`;

/** A column of the attempt that the claim took over. */
const takenOver = (field: string) => `r.past_attempts -> -1 ->> '${field}'`;

/**
 * Releases many claims, each only if its token is the row's and the claim is still in progress, even if its
 * lease has run out.
 *
 * A claim that is given back restores what it took over. The token rises, so that a late heartbeat of the claim does not
 * renew the restored lease. The claim becomes the last but one of the past attempts, instead of an earlier one that was given back,
 * because the last one is that which may have had its effect.
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
    fencing_token = ${either("r.fencing_token + 1", "r.fencing_token")},
    attempt = ${either("r.attempt - 1", "r.attempt")},
    owner = ${either(`coalesce(${takenOver("owner")}, '')`, "r.owner")},
    claim_id = ${either("''", "r.claim_id")},
    holds_on_lease_expiry = ${either(`${takenOver("holds")} is not null`, "r.holds_on_lease_expiry")},
    reclaim_within_s = ${either(`nullif((${takenOver("holds")})::int, 0)`, "r.reclaim_within_s")},
    claimed_at = ${either(`to_timestamp((${takenOver("claimed")})::numeric / 1000)`, "r.claimed_at")},
    lease_expires_at = ${either("r.unknown_since", "r.lease_expires_at")},
    past_attempts = ${either(
      `case when r.past_attempts -> -2 ->> 'ending' = 'given back' then r.past_attempts - -1 - -1
           when jsonb_array_length(r.past_attempts) >= ${MAX_ATTEMPTS_SHOWN} then r.past_attempts - -1 - 0
           else r.past_attempts - -1 end
           || ${endedAttempt({
             ended: "trim_scale(extract(epoch from i.now - to_timestamp(0)) * 1000)::text",
             ending: "'given back'",
             reason: "i.release_reason",
           })}
           || (r.past_attempts -> -1)`,
      "r.past_attempts",
    )}
  from input i
  where ${OWN_CLAIM}
    and not (i.give_back and ${IS_GIVEN_BACK})
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
