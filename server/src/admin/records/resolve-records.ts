import { create } from "@bufbuild/protobuf";
import { isOutdated, loadPolicies } from "../../access/authority.ts";
import type { Call } from "../../access/call.ts";
import type { Runner } from "../../database/pool.ts";
import type { Snapshot } from "../../database/tenants/audit-events.ts";
import type { DatabaseClock } from "../../domain/database-clock.ts";
import {
  MAX_CHECKPOINT_NAME_BYTES,
  MAX_OWNER_BYTES,
  MAX_REASON_BYTES,
  NAMESPACE_PATTERN,
} from "../../domain/limits.ts";
import { isExpired } from "../../domain/operation.ts";
import type { Policy } from "../../domain/policy.ts";
import { createRecordTarget } from "../../domain/record-target.ts";
import { Refusal } from "../../domain/refusal.ts";
import { policyFor } from "../../domain/tenant.ts";
import { Violations } from "../../domain/violations.ts";
import {
  type CountAmbiguousRecordsRequest,
  CountAmbiguousRecordsResponseSchema,
  type ResolveAmbiguousRecordsRequest,
  ResolveAmbiguousRecordsResponseSchema,
  type ResolveRecordRequest,
  ResolveRecordResponseSchema,
} from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { withResult } from "../../records/engine/large-results.ts";
import { withoutValues } from "../../records/engine/record-row.ts";
import { type LiveRecord, recordName } from "../../records/record.ts";
import { recordMessage } from "../../records/record-messages.ts";
import { readRecordId } from "../../records/request.ts";
import { digestResult } from "../../records/result-digest.ts";
import { checkResultSize, parseResult } from "../../records/result-requests.ts";
import { recordChange } from "../audit/audited-change.ts";
import { writeJobResolution } from "../jobs/job-resolution.ts";
import type { AmbiguousFilter, RecordJob } from "../jobs/record-job.ts";
import { newRecordJob } from "../jobs/record-job-rpcs.ts";
import { administeredPart, lockOwnTenant } from "../own-tenant.ts";
import type { AdministrationParts, TenantAdminRpcs } from "../services.ts";
import { recordJobMessage } from "../tenants/tenant-messages.ts";
import { type AmbiguousRange, countMatching } from "./count-matching.ts";
import type { AmbiguousCursor } from "./list-ambiguous.ts";
import { type Resolution, type ResolveCommand, recordToChange } from "./resolution.ts";
import { lockRecord, resolveRecord } from "./resolve-record.ts";

/** Returns the RPCs that resolve one record, regardless of its holder, and that count and resolve many. */
export function createResolveRecords(
  parts: AdministrationParts,
): TenantAdminRpcs<"resolveRecord" | "countAmbiguousRecords" | "resolveAmbiguousRecords"> {
  const { pool, changes, encryption, databaseClock, onSettled } = parts;
  const recordTarget = createRecordTarget(parts.pepper);

  return {
    async resolveRecord(request, call) {
      await loadPolicies([request.namespace], call);
      const command = parseResolve(request, call);
      const record = await pool.of(call).transaction(async (transaction) => {
        // A record that cannot be decrypted can be forgotten.
        const openRow = command.resolution.kind === "forget" ? withoutValues : encryption.openRow;
        const locked = await lockRecord(transaction, command.id, openRow, databaseClock.latestMs());
        const was = recordToChange(locked, command);
        if (was === undefined) return locked;
        const became = await resolveRecord(transaction, command, encryption);
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
    },

    async countAmbiguousRecords(request, call) {
      const violations = new Violations();
      const { range } = parseRange(request, call, violations);
      violations.throwIfAny();
      const { matching, isLowerBound } = await countAll(pool.of(call), range, call, databaseClock);
      return create(CountAmbiguousRecordsResponseSchema, { ambiguous: BigInt(matching), isLowerBound });
    },

    async resolveAmbiguousRecords(request, call) {
      if (request.namespace !== "") await loadPolicies([request.namespace], call);
      const command = parse(request, call);
      const runner = pool.of(call);
      const { matching, isLowerBound, which } = await countAll(runner, command.range, call, databaseClock);
      const reply = { matching: BigInt(matching), isLowerBound };
      if (request.validateOnly) return create(ResolveAmbiguousRecordsResponseSchema, reply);

      checkCount(request.expectedCount ?? 0n, matching, isLowerBound);
      const job = await runner.transaction((transaction) =>
        startJob(transaction, call, parts, { ...command, matching, which }),
      );
      return create(ResolveAmbiguousRecordsResponseSchema, { ...reply, job: recordJobMessage(job) });
    },
  };
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

/** Adds a violation unless the administrator gave a reason. */
function parseReason(reason: string, violations: Violations): void {
  violations.prose("reason", reason, { maxBytes: MAX_REASON_BYTES });
  if (reason.trim() === "") violations.add("reason", "is required");
}

/** Parses how to resolve. @throws Refusal INVALID_REQUEST with every violation so far; RESULT_TOO_LARGE. */
function parseResolution(
  resolution: ResolveRecordRequest["resolution"],
  policy: Policy,
  violations: Violations,
): Resolution {
  if (resolution.case === undefined) violations.add("resolution", "must be forget, release or complete");
  const result =
    resolution.case === "complete"
      ? parseResult("complete.result", resolution.value.result, violations)
      : undefined;
  violations.throwIfAny();
  switch (resolution.case) {
    case "forget":
    case "release":
      return { kind: resolution.case };
    default:
      if (result === undefined) throw new Error("a missing result is not a violation");
      checkResultSize(result, policy);
      return { kind: "complete", result, resultDigest: digestResult(result) };
  }
}

/** Returns the record with the payload of the request where the database did not return the result's payload. */
function replyRecord(record: LiveRecord, { resolution }: ResolveCommand) {
  return recordMessage(resolution.kind === "complete" ? withResult(record, resolution.result) : record);
}

/** Returns the parts of a record that audit events may show: neither its key nor its result. */
function recordSnapshot({ phase, fencingToken, attempt, owner }: LiveRecord): Snapshot {
  return { state: phase.kind, fencingToken: String(fencingToken), attempt, owner };
}

/** The count stops this long before the call's deadline, so that its answer arrives in time. */
const REPLY_MARGIN_MS = 1000;
/** The count is for people, who wait no longer than this, even with a later deadline. */
const MAX_COUNT_MS = 20_000;

/** @throws Refusal INVALID_REQUEST with every violation; NAMESPACE_DENIED; RESULT_TOO_LARGE. */
function parse(request: ResolveAmbiguousRecordsRequest, call: Call) {
  const { namespace, reason, validateOnly, expectedCount } = request;
  const violations = new Violations();
  const { tenant, range } = parseRange(request, call, violations);
  parseReason(reason, violations);
  if (!validateOnly && expectedCount === undefined) {
    violations.add("expected_count", "is required without validate_only");
  }
  if (expectedCount !== undefined && expectedCount < 0n) {
    violations.add("expected_count", "must not be negative");
  }
  const policy = NAMESPACE_PATTERN.test(namespace) ? policyFor(tenant, namespace) : tenant.policy;
  const resolution = parseResolution(request.resolution, policy, violations);
  return { tenant, range, resolution, reason };
}

/** Parses which ambiguous records are meant. Adds a violation for everything that is malformed. @throws Refusal NAMESPACE_DENIED. */
function parseRange(
  {
    namespace,
    owner,
    checkpoint,
    leaseExpiredBefore,
  }: CountAmbiguousRecordsRequest | ResolveAmbiguousRecordsRequest,
  call: Call,
  violations: Violations,
) {
  const tenant = administeredPart(call, namespace, violations);
  violations.text("owner", owner, { maxBytes: MAX_OWNER_BYTES });
  violations.text("checkpoint", checkpoint, { maxBytes: MAX_CHECKPOINT_NAME_BYTES });
  const leaseExpiredBeforeMs = violations.timestampMs("lease_expired_before", leaseExpiredBefore);
  const which = { owner, checkpoint, leaseExpiredBeforeMs };
  return { tenant, range: { tenantId: tenant.id, namespace: namespace || undefined, ...which } };
}

/**
 * Counts the records of a range until the call's time is up. Returns also the filter that selects the counted records later, and
 * none that became ambiguous in between.
 *
 * @throws Refusal as for a new call, if the call's principal has expired.
 */
async function countAll(
  runner: Runner,
  range: AmbiguousRange,
  asked: Call,
  databaseClock: Pick<DatabaseClock, "latestMs">,
) {
  let call = asked;
  const atMs = Math.min(call.atMs - REPLY_MARGIN_MS, performance.now() + MAX_COUNT_MS);
  const { owner, checkpoint } = range;
  let which: AmbiguousFilter | undefined;
  let behind: AmbiguousCursor | undefined;
  for (let matching = 0; ; ) {
    const counted = await countMatching(runner, { ...range, ...which }, behind, databaseClock.latestMs());
    matching += counted.matching;
    which ??= {
      owner,
      checkpoint,
      leaseExpiredBeforeMs: Math.min(range.leaseExpiredBeforeMs ?? counted.nowMs, counted.nowMs),
    };
    behind = counted.next;
    if (behind === undefined) return { matching, isLowerBound: false, which };
    if (isExpired({ atMs, cancelled: call.cancelled })) return { matching, isLowerBound: true, which };
    if (isOutdated(call)) call = await call.again();
  }
}

/** @throws Refusal RECORD_COUNT_MISMATCH unless exactly the expected number of records was counted. */
function checkCount(expected: bigint, matching: number, isLowerBound: boolean): void {
  if (!isLowerBound && expected === BigInt(matching)) return;
  const counted = isLowerBound ? `at least ${matching}` : `${matching}`;
  throw new Refusal(
    "RECORD_COUNT_MISMATCH",
    `${counted} records match, and expected_count is ${expected}. Nothing was changed.`,
    {
      metadata: {
        expected_count: String(expected),
        actual_count: String(matching),
        is_lower_bound: String(isLowerBound),
      },
    },
  );
}

/** Creates the job with the audit event of its start. */
async function startJob(
  transaction: Runner,
  call: Call,
  parts: AdministrationParts,
  start: ReturnType<typeof parse> & { readonly matching: number; readonly which: AmbiguousFilter },
): Promise<RecordJob> {
  const { tenant, range, resolution, reason, matching, which } = start;
  const { namespace } = range;
  const target = namespace === undefined ? `tenant ${tenant.name}` : `namespace ${namespace}`;
  const locked = await lockOwnTenant(transaction, tenant);
  const { actor } = call.principal;
  const audit = { tenantName: tenant.name, actor, requestId: call.requestId, target, reason };
  const job = await newRecordJob(transaction, parts, locked, {
    namespace,
    work: { kind: "RESOLVE", which, matching, audit },
    resolution: writeJobResolution(resolution, tenant.id, parts.encryption),
    delayMs: 0,
  });
  await recordChange(transaction, call, {
    action: "ResolveAmbiguousRecords",
    target,
    reason,
    after: {
      recordJob: String(job.id),
      resolution: resolution.kind,
      matching,
      leaseExpiredBefore: new Date(which.leaseExpiredBeforeMs).toISOString(),
      ...(which.owner !== "" && { owner: which.owner }),
      ...(which.checkpoint !== "" && { checkpoint: which.checkpoint }),
    },
  });
  return job;
}
