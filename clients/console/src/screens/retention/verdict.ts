import type { Advice, Candidate, Evidence } from "./candidates.ts";

/** What the evidence says about the retention in force. */
export type Verdict =
  | { readonly kind: "no claims" }
  /** Later duplicates were seen than the target accepts. `better`: the shortest retention that the evidence speaks for. */
  | { readonly kind: "too short"; readonly perMonth: number; readonly better: Candidate | undefined }
  /** A shorter retention is long enough, too. */
  | { readonly kind: "longer than needed"; readonly enoughMs: number }
  | { readonly kind: "enough" }
  /** Nothing speaks against it, and there is too little data to say that it is enough. */
  | { readonly kind: "unproven"; readonly days: number; readonly claims: bigint };

const MILLION = 1_000_000;
const DAYS_PER_MONTH = 30;

/** Judges the retention in force. */
export function judge(advice: Advice): Verdict {
  const { retentionMs, recommendation, candidates, observedSince } = advice;
  if (observedSince === undefined) return { kind: "no claims" };
  const current = candidates.find((candidate) => candidate.retentionMs === retentionMs);
  const seen = current?.evidence;
  if (seen?.kind === "late" && isAboveTarget(seen, advice.target)) {
    return { kind: "too short", perMonth: seen.perMonth, better: betterThan(advice) };
  }
  switch (recommendation.kind) {
    case "retention":
      if (recommendation.retentionMs < retentionMs) {
        return { kind: "longer than needed", enoughMs: recommendation.retentionMs };
      }
      return recommendation.retentionMs === retentionMs
        ? { kind: "enough" }
        : { kind: "unproven", days: 0, claims: 0n };
    case "missing":
      return { kind: "unproven", days: recommendation.days, claims: recommendation.claims };
    case "none":
      return { kind: "unproven", days: 0, claims: 0n };
    default:
      return recommendation satisfies never;
  }
}

function isAboveTarget(
  { perMonth, daysObserved, claims }: Evidence & { kind: "late" },
  target: number,
): boolean {
  const late = (perMonth * daysObserved) / DAYS_PER_MONTH;
  return late > 0 && late * MILLION > target * claims;
}

/** Returns the recommended retention, or else the shortest longer one without a late duplicate in the observed days. */
function betterThan({ retentionMs, recommendation, candidates }: Advice): Candidate | undefined {
  const longer = candidates.filter((candidate) => candidate.retentionMs > retentionMs);
  if (recommendation.kind === "retention") {
    return longer.find((candidate) => candidate.retentionMs === recommendation.retentionMs);
  }
  return longer.find(({ evidence }) => evidence.kind === "late" && evidence.high === 0);
}
