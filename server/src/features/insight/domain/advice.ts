import {
  type Interval,
  observationsNeeded,
  shareUpperBound,
  sumInterval,
  sumUpperBound,
} from "./intervals.ts";
import { type DayOfEvidence, evidenceOf, type Observations } from "./observations.ts";

/** Of every interval and bound. */
export const CONFIDENCE = 0.95;
/** A shorter time may miss a weekend, on which no person retries by hand. */
export const MIN_DAYS = 7;
const DAYS_PER_MONTH = 30;

/** How many days or claims more the data needs. 0: none more of this kind. */
export interface MissingData {
  readonly missingDays: number;
  readonly missingClaims: number;
}

/** What would have happened with a retention in the observed days. */
export interface LateRepeats {
  /** Late repeats in 30 days, as estimated. */
  readonly perMonth: number;
  /** Contains their true number in the observed days, per 30 days. */
  readonly perMonthInterval: Interval;
  /** Days on which a late repeat was seen. */
  readonly daysWithLate: number;
  readonly daysObserved: number;
  readonly claims: number;
  /**
   * The bound that the long-term share of late repeats among claims stays below. The repeats of one day count
   * as one event, because one cause, such as a redrive, may have brought them all.
   */
  readonly shareBound: number;
}

/** A retention, and what is known about it. */
export interface Candidate {
  readonly retentionS: number;
  readonly evidence:
    | { readonly kind: "late"; readonly late: LateRepeats }
    | { readonly kind: "insufficient"; readonly missing: MissingData };
  /** Records that a namespace with this rate of claims keeps; undefined if no claim was seen. */
  readonly rows: number | undefined;
}

export type Recommendation =
  /** The smallest candidate whose bound is at most the target. */
  | { readonly kind: "retention"; readonly retentionS: number }
  /** No bound is low enough yet, and the data does not show that it never will be. */
  | { readonly kind: "insufficient"; readonly missing: MissingData }
  /** Later repeats than the target allows were seen for every candidate. */
  | { readonly kind: "none" };

export interface AdviceOptions {
  /** The retention in force. */
  readonly retentionS: number;
  /** The retentions that the namespace's policy may have. */
  readonly minRetentionS: number;
  readonly maxRetentionS: number;
  /** The share of claims that may be late repeats. */
  readonly targetShare: number;
}

/** Returns what observations say about retentions, by retention. It never extrapolates beyond what could be seen. */
export function adviseRetention(
  observations: Observations,
  options: AdviceOptions,
): { readonly candidates: readonly Candidate[]; readonly recommendation: Recommendation } {
  const perSecond = firstClaimsPerSecond(observations);
  const assessed = candidatesFor(options).map((retentionS) => ({
    retentionS,
    rows: perSecond === undefined ? undefined : perSecond * retentionS,
    ...assess(observations, retentionS, options.targetShare),
  }));
  return { candidates: assessed, recommendation: recommend(assessed, options.targetShare) };
}

const MINUTE_S = 60;
const HOUR_S = 3600;
const DAY_S = 86_400;
const ROUND_S = [
  ...[5, 15, 30].map((minutes) => minutes * MINUTE_S),
  ...[1, 6, 12, 24].map((hours) => hours * HOUR_S),
  ...[3, 7, 14, 30, 90].map((days) => days * DAY_S),
];
/** Halves, doubles and so on of the retention in force. */
const MULTIPLES = [0.25, 0.5, 1, 2, 3, 4];
/** Round retentions are considered up to this many times above and below the one in force. */
const MAX_RATIO = 30;

function candidatesFor({ retentionS, minRetentionS, maxRetentionS }: AdviceOptions): readonly number[] {
  const multiples = MULTIPLES.map((factor) => Math.round(retentionS * factor));
  const round = ROUND_S.filter((s) => s * MAX_RATIO >= retentionS && s <= retentionS * MAX_RATIO);
  const all = [...multiples, ...round].filter((s) => s >= minRetentionS && s <= maxRetentionS);
  return [...new Set([...all, retentionS])].sort((a, b) => a - b);
}

function firstClaimsPerSecond({ claims, sinceMs, nowMs }: Observations): number | undefined {
  const first = claims.reduce((sum, { firstClaims }) => sum + firstClaims, 0);
  if (first === 0 || sinceMs === undefined || nowMs <= sinceMs) return undefined;
  return (1000 * first) / (nowMs - sinceMs);
}

interface Assessed extends Candidate {
  /** What is missing to get the bound below the target; undefined: more data of this kind will not. */
  readonly missingForTarget: MissingData | undefined;
}

function assess(
  observations: Observations,
  retentionS: number,
  targetShare: number,
): Pick<Assessed, "evidence" | "missingForTarget"> {
  const days = evidenceOf(observations, retentionS);
  const daysObserved = total(days, (day) => day.days);
  const claims = total(days, (day) => day.claims);
  const late = weighLate(days, observations.shift);
  const missing = {
    missingDays: Math.max(0, Math.ceil(MIN_DAYS - daysObserved)),
    missingClaims: Math.max(0, claimsNeeded(late, targetShare) - claims),
  };
  if (missing.missingDays > 0 || claims === 0) {
    return { evidence: { kind: "insufficient", missing }, missingForTarget: missing };
  }
  const perMonth = DAYS_PER_MONTH / daysObserved;
  const { low, high } = late.interval;
  return {
    evidence: {
      kind: "late",
      late: {
        perMonth: late.repeats * perMonth,
        perMonthInterval: { low: low * perMonth, high: high * perMonth },
        daysWithLate: late.daysWithLate,
        daysObserved,
        claims,
        shareBound: shareBound(late, claims),
      },
    },
    missingForTarget: late.repeats > targetShare * claims ? undefined : missing,
  };
}

function recommend(assessed: readonly Assessed[], targetShare: number): Recommendation {
  const fitting = assessed.find(
    ({ evidence }) => evidence.kind === "late" && evidence.late.shareBound <= targetShare,
  );
  if (fitting !== undefined) return { kind: "retention", retentionS: fitting.retentionS };
  const [nearest] = assessed
    .flatMap(({ missingForTarget }) => missingForTarget ?? [])
    .sort((a, b) => a.missingClaims - b.missingClaims || a.missingDays - b.missingDays);
  return nearest === undefined ? { kind: "none" } : { kind: "insufficient", missing: nearest };
}

/**
 * A day that was not seen may bring this many times what the largest one that was seen did. With 1, the bound
 * covers 94 % of rare redrives in the simulation (test/tools/insight/README.md).
 */
const LARGER_DAY = 3;

/** The late repeats of some days. */
type WeighedLate = ReturnType<typeof weighLate>;

function weighLate(days: readonly DayOfEvidence[], shift: number) {
  const sampled = days.flatMap((day) => day.sampled);
  const seen = total(days, (day) => day.seenAtMost);
  const atMost = total(sampled, (each) => 2 ** each.shift * each.repeatsAtMost);
  const unit = Math.max(2 ** shift, ...sampled.map((each) => 2 ** each.shift));
  // Without a sample, nothing is estimated.
  const largest = unit === 1 ? 0 : unit * mostPerKey(sampled);
  const low = {
    sum: total(sampled, (each) => 2 ** each.shift * each.repeatsAtLeast),
    squares: total(sampled, (each) => 4 ** each.shift * each.squaresAtLeast),
    largest,
  };
  const squaresAtMost = total(sampled, (each) => 4 ** each.shift * each.squaresAtMost);
  const high = { sum: atMost, squares: squaresAtMost, largest };
  const ofDays = days.map(repeatsOfDay).filter((repeats) => repeats > 0);
  // One cause brings the repeats of a day, and one key's repeats are sampled together: both count.
  const clustered = {
    sum: seen + atMost,
    squares: total(ofDays, (repeats) => repeats * repeats) + high.squares,
    largest: Math.max(unit, largest, LARGER_DAY * Math.max(0, ...ofDays)),
  };
  return {
    repeats: seen + atMost,
    /** Contains the true number in these days. */
    interval: {
      low: total(days, (day) => day.seenAtLeast) + sumInterval(low, CONFIDENCE).low,
      high: seen + sumInterval(high, CONFIDENCE).high,
    },
    daysWithLate: ofDays.length,
    /** The upper bound of the number that is expected in as many days; undefined without a late repeat. */
    expectedBound: ofDays.length === 0 ? undefined : sumUpperBound(clustered, CONFIDENCE),
    /** The largest number of repeats that one sampled repeat stands for. */
    unit,
  };
}

function repeatsOfDay({ seenAtMost, sampled }: DayOfEvidence): number {
  return seenAtMost + total(sampled, (each) => 2 ** each.shift * each.repeatsAtMost);
}

/** How often a sampled key came back late; at least 1. */
function mostPerKey(sampled: DayOfEvidence["sampled"]): number {
  const averages = sampled.map((each) => Math.ceil(each.squaresAtMost / Math.max(1, each.repeatsAtMost)));
  return Math.max(1, ...averages);
}

function shareBound({ expectedBound, unit }: WeighedLate, claims: number): number {
  if (expectedBound === undefined) return shareUpperBound(0, claims / unit, CONFIDENCE);
  return Math.min(1, expectedBound / claims);
}

/** Returns how many claims bring the bound down to the target, if no further repeat is late. */
function claimsNeeded({ expectedBound, unit }: WeighedLate, targetShare: number): number {
  if (expectedBound === undefined) return observationsNeeded(targetShare, CONFIDENCE) * unit;
  return Math.ceil(expectedBound / targetShare);
}

function total<Item>(items: readonly Item[], countOf: (item: Item) => number): number {
  return items.reduce((sum, item) => sum + countOf(item), 0);
}
