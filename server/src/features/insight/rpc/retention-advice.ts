import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { NAMESPACE_PATTERN, NAMESPACE_RULE } from "../../../core/domain/limits.ts";
import { resolvePolicy } from "../../../core/domain/policy.ts";
import { boundsInForce } from "../../../core/domain/policy-bounds.ts";
import { credentialInvalid } from "../../../core/domain/refusal.ts";
import { duration, timestamp, Violations } from "../../../core/messages/violations.ts";
import type { Runner } from "../../../core/store/pool.ts";
import { findTenantResource } from "../../../core/store/tenants/tenants.ts";
import {
  type GetRetentionAdviceResponse,
  GetRetentionAdviceResponseSchema,
  ListRetentionAdviceResponseSchema,
  RetentionCandidateSchema,
} from "../../../gen/onceward/v1/tenant_admin_pb.ts";
import type { AdministrationParts, TenantAdminRpcs } from "../../administration/services.ts";
import { findNamespaceResources } from "../../administration/store/namespaces.ts";
import { administeredNamespace, administeredNamespaces } from "../../administration/tenant/own-tenant.ts";
import { adviseRetention, type Candidate, type MissingData, type Recommendation } from "../domain/advice.ts";
import { readObservations } from "../store/observations.ts";

const MILLION = 1e6;
const DEFAULT_PER_MILLION = 1;
/** Below this, no namespace of the service has enough claims; above it, the target is not a target. */
const MIN_PER_MILLION = 0.001;
const MAX_PER_MILLION = 100_000;
/** Each namespace may have 90 days of hours to read. */
const MAX_NAMESPACES = 20;

/** Returns the RPCs for advice on retention. */
export function createRetentionAdviceHandlers({
  pool,
}: AdministrationParts): TenantAdminRpcs<"getRetentionAdvice" | "listRetentionAdvice"> {
  return {
    async getRetentionAdvice({ namespace, maxLatePerMillion }, call) {
      const violations = new Violations();
      violations.name("namespace", namespace);
      const perMillion = parsePerMillion(maxLatePerMillion, violations);
      violations.throwIfAny();
      const { id } = administeredNamespace(call, namespace);
      const [advice] = await advise(pool.of(call), id, { namespaces: [namespace], perMillion });
      if (advice === undefined) throw new Error("a namespace has no advice");
      return advice;
    },

    async listRetentionAdvice({ namespaces, maxLatePerMillion }, call) {
      const violations = new Violations();
      if (namespaces.length === 0 || namespaces.length > MAX_NAMESPACES) {
        violations.add("namespaces", `must be 1-${MAX_NAMESPACES} names, are ${namespaces.length}`);
      }
      if (!namespaces.every((namespace) => NAMESPACE_PATTERN.test(namespace))) {
        violations.add("namespaces", `each ${NAMESPACE_RULE}`);
      }
      const perMillion = parsePerMillion(maxLatePerMillion, violations);
      violations.throwIfAny();
      const { id } = administeredNamespaces(call, namespaces);
      const asked = { namespaces: [...new Set(namespaces)], perMillion };
      return create(ListRetentionAdviceResponseSchema, { advice: await advise(pool.of(call), id, asked) });
    },
  };
}

function parsePerMillion(asked: number, violations: Violations): number {
  const perMillion = asked === 0 ? DEFAULT_PER_MILLION : asked;
  if (!(perMillion >= MIN_PER_MILLION && perMillion <= MAX_PER_MILLION)) {
    const range = `between ${MIN_PER_MILLION} and ${MAX_PER_MILLION}`;
    violations.add("max_late_per_million", `must be ${range}, or 0 for ${DEFAULT_PER_MILLION}`);
  }
  return perMillion;
}

/** Returns the advice on each namespace, in their order. */
async function advise(
  runner: Runner,
  tenantId: number,
  { namespaces, perMillion }: { readonly namespaces: readonly string[]; readonly perMillion: number },
): Promise<GetRetentionAdviceResponse[]> {
  const tenant = await findTenantResource(runner, tenantId);
  // The tenant was just deleted, and its credentials with it.
  if (tenant === undefined) throw credentialInvalid();
  const bounds = boundsInForce(tenant.bounds);
  const declared = await findNamespaceResources(runner, tenantId, namespaces);
  const observed = await readObservations(runner, tenantId, namespaces);
  return namespaces.map((namespace) => {
    const { keyRetentionS } = resolvePolicy(tenant.policy, declared.get(namespace)?.policy ?? {});
    const observations = observed.get(namespace);
    if (observations === undefined) throw new Error("a namespace has no observations");
    const { sinceMs, meanRecordBytes = 0 } = observations;
    const { candidates, recommendation } = adviseRetention(observations, {
      retentionS: keyRetentionS,
      minRetentionS: bounds.minKeyRetentionS,
      maxRetentionS: bounds.maxKeyRetentionS,
      targetShare: perMillion / MILLION,
    });
    return create(GetRetentionAdviceResponseSchema, {
      namespace,
      keyRetention: seconds(keyRetentionS),
      ...(sinceMs !== undefined && { observedSince: timestamp(sinceMs) }),
      maxLatePerMillion: perMillion,
      candidates: candidates.map(({ retentionS, evidence, rows = 0 }) =>
        create(RetentionCandidateSchema, {
          keyRetention: seconds(retentionS),
          records: rows,
          bytes: rows * meanRecordBytes,
          evidence: evidenceMessage(evidence),
        }),
      ),
      recommendation: recommendationMessage(recommendation),
    });
  });
}

function evidenceMessage(
  evidence: Candidate["evidence"],
): NonNullable<MessageInitShape<typeof RetentionCandidateSchema>["evidence"]> {
  switch (evidence.kind) {
    case "insufficient":
      return { case: "insufficient", value: missingMessage(evidence.missing) };
    case "late": {
      const { perMonthInterval, claims, shareBound, ...observed } = evidence.late;
      return {
        case: "late",
        value: {
          ...observed,
          perMonthLow: perMonthInterval.low,
          perMonthHigh: perMonthInterval.high,
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
