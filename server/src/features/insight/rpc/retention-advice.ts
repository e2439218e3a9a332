import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { resolvePolicy } from "../../../core/domain/policy.ts";
import { boundsInForce } from "../../../core/domain/policy-bounds.ts";
import { credentialInvalid } from "../../../core/domain/refusal.ts";
import { duration, timestamp, Violations } from "../../../core/messages/violations.ts";
import { findTenantResource } from "../../../core/store/tenants/tenants.ts";
import {
  type GetRetentionAdviceResponse,
  GetRetentionAdviceResponseSchema,
  type RetentionCandidate,
  RetentionCandidateSchema,
} from "../../../gen/onceward/v1/tenant_admin_pb.ts";
import type { AdministrationParts, TenantAdminRpcs } from "../../administration/services.ts";
import { findNamespaceResource } from "../../administration/store/namespaces.ts";
import { administeredNamespace } from "../../administration/tenant/own-tenant.ts";
import {
  type Advice,
  adviseRetention,
  type Candidate,
  type MissingData,
  type Recommendation,
} from "../domain/advice.ts";
import { readObservations, type StoredObservations } from "../store/observations.ts";

const MILLION = 1e6;
const DEFAULT_PER_MILLION = 1;
/** Below this, no namespace of the service has enough claims; above it, the target is not a target. */
const MIN_PER_MILLION = 0.001;
const MAX_PER_MILLION = 100_000;

/** Returns the RPC for advice on retention. */
export function createRetentionAdviceHandlers({
  pool,
}: AdministrationParts): TenantAdminRpcs<"getRetentionAdvice"> {
  return {
    async getRetentionAdvice(request, call) {
      const { namespace, maxLatePerMillion } = request;
      const violations = new Violations();
      violations.name("namespace", namespace);
      const perMillion = maxLatePerMillion === 0 ? DEFAULT_PER_MILLION : maxLatePerMillion;
      if (!(perMillion >= MIN_PER_MILLION && perMillion <= MAX_PER_MILLION)) {
        const range = `between ${MIN_PER_MILLION} and ${MAX_PER_MILLION}`;
        violations.add("max_late_per_million", `must be ${range}, or 0 for ${DEFAULT_PER_MILLION}`);
      }
      violations.throwIfAny();
      const own = administeredNamespace(call, namespace);

      const runner = pool.of(call);
      const tenant = await findTenantResource(runner, own.id);
      // The tenant was just deleted, and its credentials with it.
      if (tenant === undefined) throw credentialInvalid();
      const declared = await findNamespaceResource(runner, own.id, namespace);
      const { keyRetentionS } = resolvePolicy(tenant.policy, declared?.policy ?? {});
      const bounds = boundsInForce(tenant.bounds);
      const observations = await readObservations(runner, own.id, namespace);
      const advice = adviseRetention(observations, {
        retentionS: keyRetentionS,
        minRetentionS: bounds.minKeyRetentionS,
        maxRetentionS: bounds.maxKeyRetentionS,
        targetShare: perMillion / MILLION,
      });
      return adviceMessage(advice, { namespace, keyRetentionS, perMillion, observations });
    },
  };
}

function adviceMessage(
  { candidates, recommendation }: Advice,
  {
    namespace,
    keyRetentionS,
    perMillion,
    observations: { sinceMs, meanRecordBytes = 0 },
  }: {
    readonly namespace: string;
    readonly keyRetentionS: number;
    readonly perMillion: number;
    readonly observations: StoredObservations;
  },
): GetRetentionAdviceResponse {
  return create(GetRetentionAdviceResponseSchema, {
    namespace,
    keyRetention: seconds(keyRetentionS),
    ...(sinceMs !== undefined && { observedSince: timestamp(sinceMs) }),
    maxLatePerMillion: perMillion,
    candidates: candidates.map((candidate) => candidateMessage(candidate, meanRecordBytes)),
    recommendation: recommendationMessage(recommendation),
  });
}

function candidateMessage(
  { retentionS, evidence, rows = 0 }: Candidate,
  meanRecordBytes: number,
): RetentionCandidate {
  return create(RetentionCandidateSchema, {
    keyRetention: seconds(retentionS),
    records: rows,
    bytes: rows * meanRecordBytes,
    evidence: evidenceMessage(evidence),
  });
}

function evidenceMessage(
  evidence: Candidate["evidence"],
): NonNullable<MessageInitShape<typeof RetentionCandidateSchema>["evidence"]> {
  switch (evidence.kind) {
    case "insufficient":
      return { case: "insufficient", value: missingMessage(evidence.missing) };
    case "late": {
      const { perMonth, perMonthInterval, daysWithLate, daysObserved, claims, shareBound } = evidence.late;
      return {
        case: "late",
        value: {
          perMonth,
          perMonthLow: perMonthInterval.low,
          perMonthHigh: perMonthInterval.high,
          daysWithLate,
          daysObserved,
          claims: BigInt(claims),
          maxPerMillion: shareBound * MILLION,
        },
      };
    }
  }
}

function recommendationMessage(
  recommendation: Recommendation,
): NonNullable<MessageInitShape<typeof GetRetentionAdviceResponseSchema>["recommendation"]> {
  switch (recommendation.kind) {
    case "retention":
      return { case: "sufficientRetention", value: seconds(recommendation.retentionS) };
    case "insufficient":
      return { case: "insufficient", value: missingMessage(recommendation.missing) };
    case "none":
      return { case: "none", value: {} };
  }
}

function missingMessage({ missingDays, missingClaims }: MissingData) {
  return { missingDays, missingClaims: BigInt(missingClaims) };
}

function seconds(count: number) {
  return duration(count * 1000);
}
