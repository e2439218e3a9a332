import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { findNamespaceResources } from "../admin/namespaces/namespaces.ts";
import { administeredNamespace, administeredNamespaces } from "../admin/own-tenant.ts";
import type { TenantRpc } from "../admin/services.ts";
import { latenessMessage, readUsage } from "../admin/usage/get-usage.ts";
import { QUOTA_REFUSALS, type UsageCounter } from "../admin/usage/usage.ts";
import type { Runner } from "../database/pool.ts";
import { findTenantResource } from "../database/tenants/tenants.ts";
import { NAMESPACE_PATTERN, NAMESPACE_RULE } from "../domain/limits.ts";
import { resolvePolicy } from "../domain/policy.ts";
import { boundsInForce } from "../domain/policy-bounds.ts";
import { credentialInvalid } from "../domain/refusal.ts";
import { duration, timestamp, Violations } from "../domain/violations.ts";
import {
  type GetRetentionAdviceResponse,
  GetRetentionAdviceResponse_Verdict,
  GetRetentionAdviceResponseSchema,
  ListRetentionAdviceResponseSchema,
  RetentionCandidateSchema,
} from "../gen/onceward/v1/tenant_admin_pb.ts";
import { adviseRetention, type Candidate, latenessOf, type Verdict } from "./domain/advice.ts";
import { readObservations } from "./stored-observations.ts";

const MILLION = 1e6;
const DEFAULT_PER_MILLION = 1;
/** Below this, no namespace of the service has enough claims; above it, the target is not a target. */
const MIN_PER_MILLION = 0.001;
const MAX_PER_MILLION = 100_000;
/** Each namespace may have 90 days of hours to read, or 400 with so long a retention. */
const MAX_NAMESPACES = 20;

/** Returns the advice on a namespace's retention. */
export const getRetentionAdvice: TenantRpc<"getRetentionAdvice"> = async (request, call, parts) => {
  const { namespace, maxLatePerMillion } = request;
  const violations = new Violations();
  violations.name("namespace", namespace);
  const perMillion = parsePerMillion(maxLatePerMillion, violations);
  violations.throwIfAny();
  const { id } = administeredNamespace(call, namespace);
  const query = {
    tenantId: id,
    namespaces: [namespace],
    perMillion,
    latestMs: parts.databaseClock.latestMs(),
  };
  const [advice] = await advise(parts.pool.of(call), query);
  if (advice === undefined) throw new Error("a namespace has no advice");
  return advice;
};

/** Returns the advice on the retention of some namespaces. */
export const listRetentionAdvice: TenantRpc<"listRetentionAdvice"> = async (request, call, parts) => {
  const { namespaces, maxLatePerMillion } = request;
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
  const unique = [...new Set(namespaces)];
  const query = { tenantId: id, namespaces: unique, perMillion, latestMs: parts.databaseClock.latestMs() };
  return create(ListRetentionAdviceResponseSchema, { advice: await advise(parts.pool.of(call), query) });
};

function parsePerMillion(asked: number, violations: Violations): number {
  const perMillion = asked === 0 ? DEFAULT_PER_MILLION : asked;
  if (!(perMillion >= MIN_PER_MILLION && perMillion <= MAX_PER_MILLION)) {
    const range = `between ${MIN_PER_MILLION} and ${MAX_PER_MILLION}`;
    violations.add("max_late_per_million", `must be ${range}, or 0 for ${DEFAULT_PER_MILLION}`);
  }
  return perMillion;
}

/** What is asked of namespaces. */
interface AdviceQuery {
  readonly tenantId: number;
  readonly namespaces: readonly string[];
  readonly perMillion: number;
  /** As DatabaseClock. */
  readonly latestMs: number | undefined;
}

/** Returns the advice on each namespace, in their order. */
async function advise(runner: Runner, query: AdviceQuery): Promise<GetRetentionAdviceResponse[]> {
  const { tenantId, namespaces, perMillion } = query;
  const tenant = await findTenantResource(runner, tenantId);
  // The tenant was just deleted, and its credentials with it.
  if (tenant === undefined) throw credentialInvalid();
  const bounds = boundsInForce(tenant.bounds);
  const declared = await findNamespaceResources(runner, tenantId, namespaces);
  const retentions = new Map(
    namespaces.map((name) => [
      name,
      resolvePolicy(tenant.policy, declared.get(name)?.policy ?? {}).keyRetentionS,
    ]),
  );
  const observed = await readObservations(runner, tenantId, retentions);
  const refused = await findRefused(
    runner,
    query,
    namespaces.filter((name) => observed.get(name)?.sinceMs === undefined),
  );
  return namespaces.map((namespace) => {
    const observations = observed.get(namespace);
    const retentionS = retentions.get(namespace);
    if (observations === undefined || retentionS === undefined)
      throw new Error("a namespace has no observations");
    const { sinceMs, meanRecordBytes = 0 } = observations;
    const { candidates, verdict } = adviseRetention(observations, {
      retentionS,
      minRetentionS: bounds.minKeyRetentionS,
      maxRetentionS: bounds.maxKeyRetentionS,
      targetShare: perMillion / MILLION,
    });
    const { advisedS } = verdict;
    return create(GetRetentionAdviceResponseSchema, {
      namespace,
      keyRetention: seconds(retentionS),
      ...(sinceMs !== undefined && { observedSince: timestamp(sinceMs) }),
      maxLatePerMillion: perMillion,
      candidates: candidates.map(({ retentionS: candidateS, evidence, rows = 0 }) =>
        create(RetentionCandidateSchema, {
          keyRetention: seconds(candidateS),
          records: rows,
          bytes: rows * meanRecordBytes,
          evidence: evidenceMessage(evidence),
        }),
      ),
      verdict: refused.has(namespace)
        ? GetRetentionAdviceResponse_Verdict.ALL_REFUSED
        : VERDICTS[verdict.kind],
      ...(advisedS !== undefined && { advisedRetention: seconds(advisedS) }),
      lateness: [...latenessOf(observations)].sort(([a], [b]) => a - b).map(latenessMessage),
    });
  });
}

const VERDICTS: Readonly<Record<Verdict["kind"], GetRetentionAdviceResponse_Verdict>> = {
  noClaims: GetRetentionAdviceResponse_Verdict.NO_CLAIMS,
  tooShort: GetRetentionAdviceResponse_Verdict.TOO_SHORT,
  longerThanNeeded: GetRetentionAdviceResponse_Verdict.LONGER_THAN_NEEDED,
  enough: GetRetentionAdviceResponse_Verdict.ENOUGH,
  noneLate: GetRetentionAdviceResponse_Verdict.NONE_LATE,
  unproven: GetRetentionAdviceResponse_Verdict.UNPROVEN,
};

/** The present hour, and the 24 before it. */
const HOURS_OF_DAY = 25;

/** Returns those of some namespaces whose claims of the last 24 hours were all refused. */
async function findRefused(
  runner: Runner,
  { tenantId, latestMs }: AdviceQuery,
  namespaces: readonly string[],
): Promise<ReadonlySet<string>> {
  const refused = new Set<string>();
  for (const namespace of namespaces) {
    const lastDay = { afterMs: undefined, beforeMs: undefined, behind: undefined, limit: HOURS_OF_DAY };
    const hours = await readUsage(runner, { tenantId, namespace, ...lastDay }, latestMs);
    const sum = (name: UsageCounter) => hours.reduce((total, { counters }) => total + counters[name], 0);
    const attempts = ["claims", ...QUOTA_REFUSALS] as const;
    if (sum("granted") === 0 && attempts.some((name) => sum(name) > 0)) refused.add(namespace);
  }
  return refused;
}

function evidenceMessage(
  evidence: Candidate["evidence"],
): NonNullable<MessageInitShape<typeof RetentionCandidateSchema>["evidence"]> {
  switch (evidence.kind) {
    case "insufficient": {
      const { missingDays, missingClaims } = evidence.missing;
      return { case: "insufficient", value: { missingDays, missingClaims: BigInt(missingClaims) } };
    }
    case "late": {
      const { perMonthInterval, claims, shareBound, repeats: _, ...observed } = evidence.late;
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

function seconds(count: number) {
  return duration(count * 1000);
}
