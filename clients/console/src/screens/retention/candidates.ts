import { durationMs } from "@bufbuild/protobuf/wkt";
import { createQueryOptions, useTransport } from "@connectrpc/connect-query";
import {
  type GetRetentionAdviceResponse,
  type RetentionCandidate,
  TenantAdminService,
} from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { useQueries } from "@tanstack/react-query";

/** What is known about duplicates that come later than a retention. */
export type Evidence =
  | {
      readonly kind: "late";
      /** Late duplicates in 30 days, as estimated, and the interval of 95 %. */
      readonly perMonth: number;
      readonly low: number;
      readonly high: number;
      readonly daysWithLate: number;
      readonly daysObserved: number;
      readonly claims: number;
      /** The long-term number in a million claims is below this. */
      readonly maxPerMillion: number;
    }
  | { readonly kind: "missing"; readonly days: number; readonly claims: bigint };

/** A key retention, what is known about it, and what it costs. */
export interface Candidate {
  readonly retentionMs: number;
  readonly evidence: Evidence;
  readonly records: number;
  readonly bytes: number;
}

/** The advice on a namespace. */
export interface Advice {
  /** The retention in force. */
  readonly retentionMs: number;
  /** Undefined: no claim was counted. */
  readonly observedSince: Date | undefined;
  readonly target: number;
  /** The shortest first; the retention in force is one of them. */
  readonly candidates: readonly Candidate[];
  readonly recommendation: Recommendation;
}

/** What the service recommends. */
export type Recommendation =
  | { readonly kind: "retention"; readonly retentionMs: number }
  | { readonly kind: "missing"; readonly days: number; readonly claims: bigint }
  | { readonly kind: "none" };

const MS_PER_SECOND = 1_000;

/** Returns the advice of an answer. */
export function adviceOf(answer: GetRetentionAdviceResponse): Advice {
  const { keyRetention, observedSince, maxLatePerMillion, candidates } = answer;
  return {
    retentionMs: keyRetention === undefined ? 0 : durationMs(keyRetention),
    observedSince:
      observedSince === undefined ? undefined : new Date(Number(observedSince.seconds) * MS_PER_SECOND),
    target: maxLatePerMillion,
    candidates: candidates.map(candidateOf),
    recommendation: recommendationOf(answer),
  };
}

function candidateOf({ keyRetention, evidence, records, bytes }: RetentionCandidate): Candidate {
  return {
    retentionMs: keyRetention === undefined ? 0 : durationMs(keyRetention),
    evidence: evidenceOf(evidence),
    records,
    bytes,
  };
}

function evidenceOf(evidence: RetentionCandidate["evidence"]): Evidence {
  if (evidence.case !== "late") {
    const { missingDays = 0, missingClaims = 0n } = evidence.value ?? {};
    return { kind: "missing", days: missingDays, claims: missingClaims };
  }
  const { perMonth, perMonthLow, perMonthHigh, daysWithLate, daysObserved, claims, maxPerMillion } =
    evidence.value;
  return {
    kind: "late",
    ...{ perMonth, low: perMonthLow, high: perMonthHigh, daysWithLate, daysObserved, maxPerMillion },
    claims: Number(claims),
  };
}

function recommendationOf({ recommendation }: GetRetentionAdviceResponse): Recommendation {
  switch (recommendation.case) {
    case "sufficientRetention":
      return { kind: "retention", retentionMs: durationMs(recommendation.value) };
    case "insufficient":
      return {
        kind: "missing",
        days: recommendation.value.missingDays,
        claims: recommendation.value.missingClaims,
      };
    default:
      return { kind: "none" };
  }
}

/** A retention that a person considers: a candidate, or one between two of them. */
export interface Proposal {
  readonly retentionMs: number;
  readonly records: number;
  readonly bytes: number;
  readonly evidence: Evidence | undefined;
  /** Which candidate the evidence is of; a longer retention has at most as many late duplicates as a shorter one. */
  readonly evidenceOfMs: number;
}

/**
 * Returns what is known about a retention. Between two candidates, the evidence of the shorter one bounds it; the
 * cost grows with the time, because records come at a steady rate.
 */
export function proposalOf({ candidates }: Advice, retentionMs: number): Proposal | undefined {
  const [shortest] = candidates;
  if (shortest === undefined) return undefined;
  const below = candidates.findLast((candidate) => candidate.retentionMs <= retentionMs);
  const { records, bytes, retentionMs: ms } = below ?? shortest;
  const factor = ms === 0 ? 0 : retentionMs / ms;
  return {
    retentionMs,
    records: records * factor,
    bytes: bytes * factor,
    evidence: below?.evidence,
    evidenceOfMs: below?.retentionMs ?? 0,
  };
}

/** Each namespace is a call of its own for its advice. */
export const ADVISED_AT_ONCE = 20;
/** Advice is computed from whole hours. */
const FRESH_MS = 60_000;

/** A namespace, and the advice on it; `advice` is undefined until it is answered. */
export interface AdvisedNamespace {
  readonly name: string;
  readonly advice: Advice | undefined;
  readonly error: unknown;
}

/** Returns the advice on each of at most ADVISED_AT_ONCE namespaces. */
export function useAdvice(names: readonly string[]): readonly AdvisedNamespace[] {
  const transport = useTransport();
  const answers = useQueries({
    queries: names.slice(0, ADVISED_AT_ONCE).map((namespace) => ({
      ...createQueryOptions(TenantAdminService.method.getRetentionAdvice, { namespace }, { transport }),
      staleTime: FRESH_MS,
    })),
  });
  return answers.map(({ data, error }, index) => ({
    name: names[index] ?? "",
    advice: data && adviceOf(data),
    error: error ?? undefined,
  }));
}
