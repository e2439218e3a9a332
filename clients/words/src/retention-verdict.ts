import type { Advice, Candidate, Evidence } from "./retention-advice.ts";

/** What the evidence says about the retention in force. */
export type Verdict =
  | { readonly kind: "no claims" }
  /** Later duplicates were seen than the target accepts. `better`: the shortest retention that the evidence speaks for. */
  | { readonly kind: "too short"; readonly perMonth: number; readonly better: Candidate | undefined }
  /** A shorter retention is long enough, too. */
  | { readonly kind: "longer than needed"; readonly enoughMs: number }
  | { readonly kind: "enough" }
  /**
   * No late duplicate was seen, and there is too little traffic for the target. `maxPerMillion`: what the traffic is enough
   * for.
   */
  | { readonly kind: "none seen"; readonly daysObserved: number; readonly maxPerMillion: number }
  /** Nothing speaks against it, and there is too little data to say anything. */
  | { readonly kind: "unproven"; readonly days: number };

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
  if (recommendation.kind === "retention") {
    const { retentionMs: enoughMs } = recommendation;
    if (enoughMs < retentionMs) return { kind: "longer than needed", enoughMs };
    if (enoughMs === retentionMs) return { kind: "enough" };
  }
  if (seen?.kind === "late" && seen.perMonth === 0) {
    return { kind: "none seen", daysObserved: seen.daysObserved, maxPerMillion: seen.maxPerMillion };
  }
  return { kind: "unproven", days: recommendation.kind === "missing" ? recommendation.days : 0 };
}

/** Returns the retention that a verdict advises instead of the one in force; undefined: none. */
export function advisedMs(verdict: Verdict): number | undefined {
  if (verdict.kind === "too short") return verdict.better?.retentionMs;
  return verdict.kind === "longer than needed" ? verdict.enoughMs : undefined;
}

/** The weakest target that is chosen without being asked for: one late duplicate in a thousand claims. */
const WEAKEST_TARGET = 1_000;

/**
 * Returns the strictest power of ten of late duplicates in a million claims that the traffic can show; undefined: the advice's own
 * target, or none. A shop with a thousand claims a day would wait for years to prove one in a million.
 */
export function targetOfTraffic({
  retentionMs,
  candidates,
  recommendation,
  target,
}: Advice): number | undefined {
  const current = candidates.find((candidate) => candidate.retentionMs === retentionMs)?.evidence;
  if (recommendation.kind !== "missing" || recommendation.days > 0) return undefined;
  if (current?.kind !== "late" || current.perMonth > 0) return undefined;
  const reached = 10 ** Math.ceil(Math.log10(Math.max(1, current.maxPerMillion)));
  return reached > target && reached <= WEAKEST_TARGET ? reached : undefined;
}

function isAboveTarget(
  { perMonth, daysObserved, claims }: Evidence & { kind: "late" },
  target: number,
): boolean {
  const late = (perMonth * daysObserved) / DAYS_PER_MONTH;
  return late > 0 && late * MILLION > target * claims;
}

/**
 * Returns the recommended retention, or else the shortest longer one without a late duplicate in the observed days, or else the
 * shortest with the fewest, or else the next one: how late its duplicates come is seen under it.
 */
function betterThan({ retentionMs, recommendation, candidates }: Advice): Candidate | undefined {
  const longer = candidates.filter((candidate) => candidate.retentionMs > retentionMs);
  if (recommendation.kind === "retention") {
    return longer.find((candidate) => candidate.retentionMs === recommendation.retentionMs);
  }
  const current = candidates.find((candidate) => candidate.retentionMs === retentionMs);
  const today = current === undefined ? Number.POSITIVE_INFINITY : lateOf(current);
  // Estimates of different days: a longer retention can have more.
  const observed = longer.filter((candidate) => lateOf(candidate) < today);
  const [fewest] = observed.toSorted((a, b) => lateOf(a) - lateOf(b));
  return (
    observed.find(({ evidence }) => evidence.kind === "late" && evidence.high === 0) ??
    fewest ??
    longer.find(({ evidence }) => evidence.kind === "missing")
  );
}

/** Returns how many duplicates a month come later than a candidate; infinite if it is not known. */
export function lateOf({ evidence }: Candidate): number {
  return evidence.kind === "late" ? evidence.perMonth : Number.POSITIVE_INFINITY;
}
