import { create } from "@bufbuild/protobuf";
import { loadPolicies } from "../../access/authority.ts";
import type { Call } from "../../access/call.ts";
import { NAMESPACE_PATTERN } from "../../domain/limits.ts";
import { Refusal } from "../../domain/refusal.ts";
import { policyFor } from "../../domain/tenant.ts";
import { Violations } from "../../domain/violations.ts";
import {
  type ResolveAmbiguousRecordsRequest,
  ResolveAmbiguousRecordsResponseSchema,
} from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { recordChange } from "../audit/audited-change.ts";
import { writeJobResolution } from "../jobs/job-resolution.ts";
import { recordJobMessage } from "../jobs/record-job.ts";
import { newRecordJob } from "../jobs/record-jobs.ts";
import { lockOwnTenant } from "../own-tenant.ts";
import type { TenantRpc } from "../services.ts";
import { countAll, parseRange } from "./count-ambiguous-records.ts";
import { parseReason, parseResolution } from "./resolution.ts";

/** Creates the job that resolves many ambiguous records, with the audit event of its start; for `validate_only`, only counts them. */
export const resolveAmbiguousRecords: TenantRpc<"resolveAmbiguousRecords"> = async (request, call, parts) => {
  if (request.namespace !== "") await loadPolicies([request.namespace], call);
  const { tenant, range, resolution, reason } = parse(request, call);
  const runner = parts.pool.of(call);
  const { matching, isLowerBound, which } = await countAll(runner, range, call, parts.databaseClock);
  const reply = { matching: BigInt(matching), isLowerBound };
  if (request.validateOnly) return create(ResolveAmbiguousRecordsResponseSchema, reply);

  checkCount(request.expectedCount ?? 0n, matching, isLowerBound);
  const { namespace } = range;
  const target = namespace === undefined ? `tenant ${tenant.name}` : `namespace ${namespace}`;
  const { actor } = call.principal;
  const audit = { tenantName: tenant.name, actor, requestId: call.requestId, target, reason };
  const job = await runner.transaction(async (transaction) => {
    const locked = await lockOwnTenant(transaction, tenant);
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
  });
  return create(ResolveAmbiguousRecordsResponseSchema, { ...reply, job: recordJobMessage(job) });
};

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
