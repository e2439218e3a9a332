import { durationMs } from "@bufbuild/protobuf/wkt";
import type { GetRetentionAdviceResponse, RetentionCandidate } from "@onceward/client/proto";

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
