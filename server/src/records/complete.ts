import { create } from "@bufbuild/protobuf";
import type { Admission } from "../access/admission.ts";
import { bigintArray, byteaArray, intArray, smallintArray, textArray } from "../database/sql-arrays.ts";
import type { Deadline } from "../domain/operation.ts";
import { Refusal } from "../domain/refusal.ts";
import { cacheEpochOf, type Principal } from "../domain/tenant.ts";
import { timestamp } from "../domain/violations.ts";
import {
  type CompleteRequest,
  type CompleteResponse,
  CompleteResponseSchema,
} from "../gen/onceward/v1/idempotency_pb.ts";
import { createBatchedWrite, type WriteParts, writeAll } from "./engine/batched-writes.ts";
import { withoutLargeResult } from "./engine/large-results.ts";
import { idColumns, RESULT_KIND } from "./engine/record-row.ts";
import {
  COMPLETE_COLUMNS,
  IN_KEY_ORDER,
  KEY_RETENTION_S,
  OWN_CLAIM,
  RESULT_RETENTION_S,
} from "./engine/record-sql.ts";
import type { RecordsDatabase } from "./engine/sharded-batcher.ts";
import {
  addMs,
  type CachedCompletion,
  type Contended,
  cachedCompletionOf,
  type LiveRecord,
  type RecordId,
  type Result,
  recordName,
} from "./record.ts";
import type { ReplayCache } from "./replay/replay-cache.ts";
import { parseFencingToken, parseRetentionS, readRecordId } from "./request.ts";
import { resultBytes } from "./result-bytes.ts";
import { digestResult } from "./result-digest.ts";
import { checkResultSize, parseResult } from "./result-requests.ts";
import { alreadyReleased, ownRecord } from "./settlement.ts";
import { countFenced, type SettlingOptions, type Steps } from "./steps.ts";

/** Stores the result of the claim that `fencingToken` identifies. */
export interface CompleteCommand {
  readonly id: RecordId;
  readonly fencingToken: bigint;
  readonly result: Result;
  readonly resultDigest: Uint8Array;
  /** Undefined: as stored at the claim. */
  readonly keyRetentionS: number | undefined;
}

/** Parses a Complete. @throws Refusal RESULT_TOO_LARGE, and as every parser (request.ts). */
function parseComplete(request: CompleteRequest, principal: Principal): CompleteCommand {
  const { id, policy, violations } = readRecordId(request, principal);
  const fencingToken = parseFencingToken(request, violations);
  const result = parseResult("result", request.result, violations);
  const retentionS = parseRetentionS(request, policy, violations);
  violations.throwIfAny();
  if (result === undefined) throw new Error("a missing result is not a violation");

  checkResultSize(result, policy);
  const keyRetentionS = policy.lateKeys === "RUN" ? retentionS : undefined;
  return { id, fencingToken, result, resultDigest: digestResult(result), keyRetentionS };
}

/** The answer to a Complete. */
export interface Completion {
  readonly kind: "completed";
  readonly completedAtMs: number;
  readonly expiresAtMs: number;
  readonly alreadyCompleted: boolean;
  /** `settlesUnknown`. */
  readonly settles: boolean;
  /** The completion for caches; undefined: its result was not read. */
  readonly copy: CachedCompletion | undefined;
}

/** Returns the answer to a Complete that stored a result, from what it stored. */
export function completed(copy: CachedCompletion, settles: boolean): Completion {
  const { completedAtMs, expiresAtMs } = copy;
  return { kind: "completed", completedAtMs, expiresAtMs, alreadyCompleted: false, settles, copy };
}

/**
 * Returns the answer to a Complete that changed nothing, from the record that it found.
 *
 * @throws Refusal RECORD_NOT_FOUND, CLAIM_SUPERSEDED, ALREADY_COMPLETED (with another result),
 *   ALREADY_RELEASED.
 */
export function answerComplete(
  record: LiveRecord | undefined,
  command: CompleteCommand,
): Completion | Contended {
  const own = ownRecord(record, command.fencingToken);
  switch (own.phase.kind) {
    case "completed":
      if (Buffer.compare(own.phase.resultDigest, command.resultDigest) !== 0) {
        throw new Refusal("ALREADY_COMPLETED", "The claim was completed before, with another result.");
      }
      return {
        kind: "completed",
        completedAtMs: own.phase.completedAtMs,
        expiresAtMs: own.expiresAtMs,
        alreadyCompleted: true,
        settles: false,
        copy: cachedCompletionOf(own),
      };
    case "released":
      throw alreadyReleased();
    case "inProgress":
    case "lapsed":
    case "ambiguous":
      return { kind: "contended" };
  }
}

/**
 * Completes many claims, each only if its token is the row's and the claim is still in progress, even if its
 * lease has run out. Retention starts now, with the periods stamped at the claim, the key's perhaps shortened
 * by the command. `sweep_at` stays, so that the update touches no index (heap-only tuple).
 *
 * Everything that was completed is returned in one row and one column, as in `claim_records`.
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
                 unnest($10::int[]) as key_retention_s, $11::smallint as result_key_id,
                 generate_subscripts($1::int[], 1) as ordinal) as i
   ${IN_KEY_ORDER}
), applied as (
  update records as r set
    ${COMPLETE_COLUMNS}
  from input i
  where ${OWN_CLAIM}
  returning i.ordinal, r.first_claimed_at, r.fingerprint, r.unknown_since, r.accepts_ambiguous,
    ${KEY_RETENTION_S} as key_retention_s,
    ${RESULT_RETENTION_S} as result_retention_s
)
select json_build_object(
         'completedAtMs', extract(epoch from now()) * 1000,
         'ordinals', json_agg(a.ordinal),
         'firstClaimedAtMs', json_agg(extract(epoch from a.first_claimed_at) * 1000),
         'keyRetentionsS', json_agg(a.key_retention_s),
         'resultRetentionsS', json_agg(a.result_retention_s),
         'fingerprints', json_agg(encode(a.fingerprint, 'hex')),
         'settled', json_agg(a.ordinal) filter (where a.unknown_since is not null and a.accepts_ambiguous)
       ) as completed
  from applied a`,
};

/** The row of `complete_records`: arrays in the same order. Null: no claim was completed. */
interface CompletedRow {
  readonly completed: {
    readonly completedAtMs: number;
    /** The commands that completed their claims, counted from 1. */
    readonly ordinals: readonly number[] | null;
    readonly firstClaimedAtMs: readonly number[] | null;
    readonly keyRetentionsS: readonly number[] | null;
    readonly resultRetentionsS: readonly number[] | null;
    /** In hexadecimal digits. */
    readonly fingerprints: readonly (string | null)[] | null;
    /** Those of them that `settlesUnknown`. */
    readonly settled: readonly number[] | null;
  };
}

/** While one statement commits, another runs and a third is on its way, as for claims. */
const MAX_IN_FLIGHT = 3;

/**
 * Returns a function that stores the results of claims, batched over all its callers. Each completion settles
 * separately, at the index of its command; it is refused as `answerComplete` does.
 */
export function createCompleteRecords(database: RecordsDatabase, { readings, values, limiter }: WriteParts) {
  const complete = createBatchedWrite<CompleteCommand, CompletedRow, Completion>(database, readings, {
    statement: completeRecords,
    parametersOf(commands) {
      const stored = commands.map(({ id, result, resultDigest: digest }) =>
        values.storedResult(id, {
          digest,
          payload: result.payload,
          metadata: result.metadataJson || undefined,
        }),
      );
      return [
        ...idColumns(commands.map((command) => command.id)),
        bigintArray(commands.map((command) => command.fencingToken)),
        smallintArray(commands.map((command) => RESULT_KIND[command.result.kind])),
        byteaArray(stored.map(({ digest }) => digest)),
        byteaArray(stored.map(({ payload }) => payload)),
        textArray(commands.map((command) => command.result.contentType || undefined)),
        textArray(stored.map(({ metadata }) => metadata)),
        intArray(commands.map((command) => command.keyRetentionS)),
        values.keyId,
      ];
    },
    bytesOf: (command) => resultBytes(command.result),
    readWritten: readCompleted,
    maxInFlight: MAX_IN_FLIGHT,
    limiter,
  });
  return (commands: readonly CompleteCommand[], deadline: Deadline) =>
    writeAll(complete, commands, deadline, ({ applied, record }, command) =>
      applied ? record : answerComplete(record && withoutLargeResult(record), command),
    );
}

/**
 * Returns the completion that each command stored, at its index; undefined for a command that stored nothing.
 */
function readCompleted(
  [row]: readonly CompletedRow[],
  commands: readonly CompleteCommand[],
): readonly (Completion | undefined)[] {
  if (row === undefined) throw new Error("complete_records returned no row");
  const {
    completedAtMs,
    ordinals,
    firstClaimedAtMs,
    keyRetentionsS,
    resultRetentionsS,
    fingerprints,
    settled,
  } = row.completed;
  const completions: (Completion | undefined)[] = commands.map(() => undefined);
  for (const [i, ordinal] of (ordinals ?? []).entries()) {
    const command = commands[ordinal - 1];
    if (command === undefined) throw new Error(`complete_records completed an unknown command, ${ordinal}`);
    const fingerprint = fingerprints?.[i];
    const copy = {
      fingerprint: fingerprint ? Buffer.from(fingerprint, "hex") : undefined,
      claimId: "",
      firstClaimedAtMs: firstClaimedAtMs?.[i] as number,
      completedAtMs,
      resultExpiresAtMs: addMs(completedAtMs, (resultRetentionsS?.[i] as number) * 1000),
      expiresAtMs: addMs(completedAtMs, (keyRetentionsS?.[i] as number) * 1000),
      result: command.result,
    };
    completions[ordinal - 1] = completed(copy, settled?.includes(ordinal) ?? false);
  }
  return completions;
}

/** Returns the steps of Complete. */
export function completeSteps({
  records,
  admission,
  replayCache,
  onSettled,
  usage,
}: SettlingOptions<{ readonly complete: ReturnType<typeof createCompleteRecords> }> & {
  readonly admission: Pick<Admission, "resultAdded">;
  readonly replayCache: Pick<ReplayCache, "keep">;
}): Steps<CompleteRequest, CompleteCommand, Completion, CompleteResponse> {
  return {
    kind: "complete",
    outcomeOf: ({ alreadyCompleted }) => (alreadyCompleted ? "repeated" : "completed"),
    admit: admission.countOperation,
    parse: parseComplete,
    run: async (commands, deadline) =>
      countFenced(usage, commands, await records.complete(commands, deadline)),
    answer(completion, { id, result }, { principal }) {
      if (!completion.alreadyCompleted) {
        usage.count(id, "completions");
        if (completion.settles) usage.count(id, "settled");
        admission.resultAdded(principal, result);
      }
      // Cached before waiters are woken, so that their claims are answered from the cache.
      const epoch = cacheEpochOf(principal);
      if (completion.copy && epoch) replayCache.keep(id, completion.copy, epoch);
      onSettled(recordName(id));
      return completeResponse(completion);
    },
  };
}

/** Returns the response to a Complete. */
function completeResponse({ completedAtMs, expiresAtMs, alreadyCompleted }: Completion): CompleteResponse {
  return create(CompleteResponseSchema, {
    completedAt: timestamp(completedAtMs),
    expiresAt: timestamp(expiresAtMs),
    alreadyCompleted,
  });
}
