import { create } from "@bufbuild/protobuf";
import { isOutdated, loadPolicies } from "../../../core/calls/authority.ts";
import type { Call } from "../../../core/calls/call.ts";
import type { DatabaseClock } from "../../../core/domain/database-clock.ts";
import {
  MAX_CHECKPOINT_NAME_BYTES,
  MAX_OWNER_BYTES,
  NAMESPACE_PATTERN,
} from "../../../core/domain/limits.ts";
import { isExpired } from "../../../core/domain/operation.ts";
import { Refusal } from "../../../core/domain/refusal.ts";
import { policyFor, type Tenant } from "../../../core/domain/tenant.ts";
import { Violations } from "../../../core/messages/violations.ts";
import type { Runner } from "../../../core/store/pool.ts";
import {
  CountAmbiguousRecordsResponseSchema,
  type ResolveAmbiguousRecordsRequest,
  ResolveAmbiguousRecordsResponseSchema,
} from "../../../gen/onceward/v1/tenant_admin_pb.ts";
import type { AmbiguousFilter, RecordJob } from "../../jobs/record-job.ts";
import type { Resolution } from "../../jobs/resolution.ts";
import { type AmbiguousRange, countMatching } from "../../jobs/store/count-matching.ts";
import { writeJobResolution } from "../../jobs/store/job-resolution.ts";
import type { AmbiguousCursor } from "../../jobs/store/list-ambiguous.ts";
import { recordChange } from "../audited-change.ts";
import type { AdministrationParts, TenantAdminRpcs } from "../services.ts";
import { recordJobMessage } from "../tenant-messages.ts";
import { administeredPart, administeredTenant, lockOwnTenant, tenantOfNamespace } from "./own-tenant.ts";
import { newRecordJob } from "./record-jobs.ts";
import { parseReason, parseResolution } from "./resolve-record.ts";

/** The count stops this long before the call's deadline, so that its answer arrives in time. */
const REPLY_MARGIN_MS = 1000;
/** The count is for people, who wait no longer than this, even with a later deadline. */
const MAX_COUNT_MS = 20_000;

/** A valid request. */
interface Command {
  readonly tenant: Tenant;
  readonly range: AmbiguousRange;
  readonly resolution: Resolution;
  readonly reason: string;
}

/** Returns the RPCs that count and resolve many records. */
export function createResolveAmbiguous({
  pool,
  admission,
  databaseClock,
  encryption,
}: AdministrationParts): TenantAdminRpcs<"countAmbiguousRecords" | "resolveAmbiguousRecords"> {
  return {
    async countAmbiguousRecords({ namespace }, call) {
      const { id: tenantId } =
        namespace === "" ? administeredTenant(call) : tenantOfNamespace(namespace, "namespace", call);
      const range = {
        tenantId,
        namespace: namespace || undefined,
        owner: "",
        checkpoint: "",
        leaseExpiredBeforeMs: undefined,
      };
      const { matching, isLowerBound } = await countAll(pool.of(call), range, call, databaseClock);
      return create(CountAmbiguousRecordsResponseSchema, { ambiguous: BigInt(matching), isLowerBound });
    },

    async resolveAmbiguousRecords(request, call) {
      if (request.namespace !== "") await loadPolicies([request.namespace], call);
      const command = parse(request, call);
      const counted = await countAll(pool.of(call), command.range, call, databaseClock);
      const { matching, isLowerBound, which } = counted;
      const reply = { matching: BigInt(matching), isLowerBound };
      if (request.validateOnly) return create(ResolveAmbiguousRecordsResponseSchema, reply);

      checkCount(request.expectedCount ?? 0n, matching, isLowerBound);
      const job = await pool
        .of(call)
        .transaction((transaction) =>
          startJob(transaction, call, { admission, databaseClock, encryption, command, matching, which }),
        );
      return create(ResolveAmbiguousRecordsResponseSchema, { ...reply, job: recordJobMessage(job) });
    },
  };
}

/** @throws Refusal INVALID_REQUEST with every violation; NAMESPACE_DENIED; RESULT_TOO_LARGE. */
function parse(request: ResolveAmbiguousRecordsRequest, call: Call): Command {
  const { namespace, owner, checkpoint, reason, validateOnly, expectedCount } = request;
  const violations = new Violations();
  const tenant = administeredPart(call, namespace, violations);
  violations.text("owner", owner, { maxBytes: MAX_OWNER_BYTES });
  violations.text("checkpoint", checkpoint, { maxBytes: MAX_CHECKPOINT_NAME_BYTES });
  const leaseExpiredBeforeMs = violations.timestampMs("lease_expired_before", request.leaseExpiredBefore);
  parseReason(reason, violations);
  if (!validateOnly && expectedCount === undefined) {
    violations.add("expected_count", "is required without validate_only");
  }
  if (expectedCount !== undefined && expectedCount < 0n) {
    violations.add("expected_count", "must not be negative");
  }
  const policy = NAMESPACE_PATTERN.test(namespace) ? policyFor(tenant, namespace) : tenant.policy;
  const resolution = parseResolution(request.resolution, policy, violations);
  const range = {
    tenantId: tenant.id,
    namespace: namespace || undefined,
    owner,
    checkpoint,
    leaseExpiredBeforeMs,
  };
  return { tenant, range, resolution, reason };
}

interface Counted {
  readonly matching: number;
  readonly isLowerBound: boolean;
  /** The filter that selects the counted records later, and none that became ambiguous in between. */
  readonly which: AmbiguousFilter;
}

/**
 * Counts the records of a range until the call's time is up.
 *
 * @throws Refusal as for a new call, if the call's principal has expired.
 */
async function countAll(
  runner: Runner,
  range: AmbiguousRange,
  asked: Call,
  databaseClock: Pick<DatabaseClock, "latestMs">,
): Promise<Counted> {
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

interface Start extends Pick<AdministrationParts, "admission" | "databaseClock" | "encryption"> {
  readonly command: Command;
  readonly matching: number;
  readonly which: AmbiguousFilter;
}

/** Creates the job with the audit event of its start. */
async function startJob(
  transaction: Runner,
  call: Call,
  { admission, databaseClock, encryption, command, matching, which }: Start,
): Promise<RecordJob> {
  const { tenant, range, resolution, reason } = command;
  const { namespace } = range;
  const target = namespace === undefined ? `tenant ${tenant.name}` : `namespace ${namespace}`;
  const locked = await lockOwnTenant(transaction, tenant);
  const { actor } = call.principal;
  const audit = { tenantName: tenant.name, actor, requestId: call.requestId, target, reason };
  const job = await newRecordJob(transaction, { admission, databaseClock }, locked, {
    namespace,
    work: { kind: "RESOLVE", which, matching, audit },
    resolution: writeJobResolution(resolution, tenant.id, encryption),
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
