import { durationMs } from "@bufbuild/protobuf/wkt";
import {
  type GetRetentionAdviceResponse,
  GetRetentionAdviceResponse_Verdict,
  type RetentionCandidate,
} from "@onceward/client/proto";

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
  readonly verdict: Verdict;
  /** The candidate that is advised in place of the retention in force. */
  readonly advised: Candidate | undefined;
  /** The duplicates of the observed time that came up to a time after their first claim, and later than the one before. */
  readonly lateness: readonly { readonly upToMs: number; readonly repeats: number }[];
}

/** What the service says of the retention in force. The words of `Verdict` in the contract. */
export type Verdict =
  | "no claims"
  | "all refused"
  | "too short"
  | "longer than needed"
  | "enough"
  | "none late"
  | "unproven";

const VERDICTS: Readonly<Record<GetRetentionAdviceResponse_Verdict, Verdict>> = {
  [GetRetentionAdviceResponse_Verdict.UNSPECIFIED]: "unproven",
  [GetRetentionAdviceResponse_Verdict.NO_CLAIMS]: "no claims",
  [GetRetentionAdviceResponse_Verdict.ALL_REFUSED]: "all refused",
  [GetRetentionAdviceResponse_Verdict.TOO_SHORT]: "too short",
  [GetRetentionAdviceResponse_Verdict.LONGER_THAN_NEEDED]: "longer than needed",
  [GetRetentionAdviceResponse_Verdict.ENOUGH]: "enough",
  [GetRetentionAdviceResponse_Verdict.NONE_LATE]: "none late",
  [GetRetentionAdviceResponse_Verdict.UNPROVEN]: "unproven",
};

const MS_PER_SECOND = 1_000;

/** Returns the advice of an answer. */
export function adviceOf(answer: GetRetentionAdviceResponse): Advice {
  const { keyRetention, observedSince, maxLatePerMillion, advisedRetention, verdict, lateness } = answer;
  const candidates = answer.candidates.map(candidateOf);
  const advisedMs = advisedRetention && durationMs(advisedRetention);
  return {
    retentionMs: keyRetention === undefined ? 0 : durationMs(keyRetention),
    observedSince:
      observedSince === undefined ? undefined : new Date(Number(observedSince.seconds) * MS_PER_SECOND),
    target: maxLatePerMillion,
    candidates,
    verdict: VERDICTS[verdict] ?? "unproven",
    advised: candidates.find(({ retentionMs }) => retentionMs === advisedMs),
    lateness: lateness.map(({ upTo, repeats }) => ({
      upToMs: upTo === undefined ? Number.POSITIVE_INFINITY : durationMs(upTo),
      repeats: Number(repeats),
    })),
  };
}

/** Returns what is known about the retention in force; undefined: nothing. */
export function evidenceInForce({ candidates, retentionMs }: Advice): Evidence | undefined {
  return candidates.find((candidate) => candidate.retentionMs === retentionMs)?.evidence;
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
