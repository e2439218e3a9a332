import { latenessLimitMs } from "../../admin/usage/lateness.ts";
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
  /** Late repeats in the observed days, as estimated. */
  readonly repeats: number;
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

/** What is known about the retention in force; `advisedS`: the candidate that is advised in its place. */
export type Verdict =
  | { readonly kind: "noClaims" | "enough" | "noneLate" | "unproven"; readonly advisedS?: undefined }
  /** More late repeats were seen than the target accepts. Undefined: no longer candidate is known to be better. */
  | { readonly kind: "tooShort"; readonly advisedS: number | undefined }
  | { readonly kind: "longerThanNeeded"; readonly advisedS: number };

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
): { readonly candidates: readonly Candidate[]; readonly verdict: Verdict } {
  const perSecond = firstClaimsPerSecond(observations);
  const candidates = candidatesFor(options).map((retentionS) => ({
    retentionS,
    rows: perSecond === undefined ? undefined : perSecond * retentionS,
    evidence: assess(observations, retentionS, options.targetShare),
  }));
  return {
    candidates,
    verdict:
      observations.sinceMs === undefined
        ? { kind: "noClaims" }
        : judge(candidates, options, [...latenessOf(observations)]),
  };
}

const MINUTE_S = 60;
const HOUR_S = 3600;
const DAY_S = 86_400;
/**
 * The retentions that are advised. They do not depend on the one in force: what is advised is still the answer once it was
 * followed.
 */
const STEPS_S = [
  ...[5, 15, 30].map((minutes) => minutes * MINUTE_S),
  ...[1, 6, 12, 24, 48, 72].map((hours) => hours * HOUR_S),
  ...[7, 14, 30, 60, 90, 180, 400].map((days) => days * DAY_S),
];

function candidatesFor({ retentionS, minRetentionS, maxRetentionS }: AdviceOptions): readonly number[] {
  const allowed = STEPS_S.filter((s) => s >= minRetentionS && s <= maxRetentionS);
  return [...new Set([...allowed, retentionS])].sort((a, b) => a - b);
}

/** The repeats of each `latenessBucket`. */
type Lateness = readonly (readonly [bucket: number, repeats: number])[];

function judge(
  candidates: readonly Candidate[],
  { retentionS, targetShare }: AdviceOptions,
  lateness: Lateness,
): Verdict {
  const inForce = candidates.find((candidate) => candidate.retentionS === retentionS);
  if (inForce?.evidence.kind !== "late") return { kind: "unproven" };
  const { late } = inForce.evidence;
  if (late.repeats > targetShare * late.claims)
    return { kind: "tooShort", advisedS: longerThan(inForce, candidates, targetShare, lateness) };
  const advisedS = shorterThan(retentionS, candidates, targetShare);
  if (advisedS !== undefined) return { kind: "longerThanNeeded", advisedS };
  if (late.shareBound <= targetShare) return { kind: "enough" };
  return { kind: late.repeats === 0 ? "noneLate" : "unproven" };
}

/**
 * Returns the shortest longer retention that is long enough, or under which no repeat was late; else the one with the fewest late repeats; else
 * the shortest one that was not observed long enough and lasts beyond the most of the late repeats that were seen.
 */
function longerThan(
  inForce: Candidate,
  candidates: readonly Candidate[],
  targetShare: number,
  lateness: Lateness,
): number | undefined {
  const longer = candidates.filter((candidate) => candidate.retentionS > inForce.retentionS);
  const isGood = ({ evidence }: Candidate) =>
    evidence.kind === "late" && (evidence.late.repeats === 0 || evidence.late.shareBound <= targetShare);
  // Estimates of different days: a longer retention can have more.
  const [fewest] = longer
    .filter(({ evidence }) => lateAMonth(evidence) < lateAMonth(inForce.evidence))
    .sort((a, b) => lateAMonth(a.evidence) - lateAMonth(b.evidence));
  const caughtBy = ({ retentionS: limitS }: Candidate) =>
    total(lateness, ([bucket, repeats]) =>
      (latenessLimitMs(bucket) ?? Number.POSITIVE_INFINITY) <= limitS * 1000 ? repeats : 0,
    );
  const [most] = longer
    .filter((each) => each.evidence.kind === "insufficient" && caughtBy(each) > caughtBy(inForce))
    .sort((a, b) => caughtBy(b) - caughtBy(a));
  return (longer.find(isGood) ?? fewest ?? most)?.retentionS;
}

function lateAMonth(evidence: Candidate["evidence"]): number {
  return evidence.kind === "late" ? evidence.late.perMonth : Number.POSITIVE_INFINITY;
}

/** A person who repeats by hand may take this long: a shorter retention is never advised. */
const SHORTEST_ADVISED_S = HOUR_S;
/** Shortening can wait for what happens once in four weeks. */
const MIN_DAYS_TO_SHORTEN = 28;
/** Repeats later than a retention come of keys that are older: they were seen for as long again. */
const MIN_RETENTIONS_TO_SHORTEN = 2;

/**
 * Returns a shorter retention that is long enough, as are all between it and the one in force. It is one step longer than the
 * evidence asks for, because the latest repeat of the next months may be somewhat later than those that were seen.
 */
function shorterThan(
  retentionS: number,
  candidates: readonly Candidate[],
  targetShare: number,
): number | undefined {
  const upTo = candidates.filter((candidate) => candidate.retentionS <= retentionS);
  const isEnough = ({ evidence, retentionS: shorterS }: Candidate) =>
    evidence.kind === "late" &&
    evidence.late.shareBound <= targetShare &&
    evidence.late.daysObserved >=
      Math.max(MIN_DAYS_TO_SHORTEN, (MIN_RETENTIONS_TO_SHORTEN * shorterS) / DAY_S);
  const lastShort = upTo.findLastIndex((candidate) => !isEnough(candidate));
  const [, advised] = upTo
    .slice(lastShort + 1)
    .filter((candidate) => STEPS_S.includes(candidate.retentionS))
    .filter((_, index, enough) => index === 0 || (enough[index]?.retentionS ?? 0) >= SHORTEST_ADVISED_S);
  return advised !== undefined && advised.retentionS < retentionS ? advised.retentionS : undefined;
}

/** Returns the repeats of the observed time by `latenessBucket`, also those that were late, as estimated from their sample. */
export function latenessOf({ claims, late }: Observations): ReadonlyMap<number, number> {
  const sums = new Map<number, number>();
  const add = (bucket: number, repeats: number) => sums.set(bucket, (sums.get(bucket) ?? 0) + repeats);
  for (const { repeats } of claims) for (const each of repeats) add(each.bucket, each.repeats);
  for (const { repeats, shift } of late)
    for (const each of repeats) add(each.bucket, each.repeats * 2 ** shift);
  return sums;
}

function firstClaimsPerSecond({ claims, sinceMs, nowMs }: Observations): number | undefined {
  const first = claims.reduce((sum, { firstClaims }) => sum + firstClaims, 0);
  if (first === 0 || sinceMs === undefined || nowMs <= sinceMs) return undefined;
  return (1000 * first) / (nowMs - sinceMs);
}

function assess(observations: Observations, retentionS: number, targetShare: number): Candidate["evidence"] {
  const days = evidenceOf(observations, retentionS);
  const daysObserved = total(days, (day) => day.days);
  const claims = total(days, (day) => day.claims);
  const late = weighLate(days, observations.shift);
  const missing = {
    missingDays: Math.max(0, Math.ceil(MIN_DAYS - daysObserved)),
    missingClaims: Math.max(0, claimsNeeded(late, targetShare) - claims),
  };
  if (missing.missingDays > 0 || claims === 0) return { kind: "insufficient", missing };
  const perMonth = DAYS_PER_MONTH / daysObserved;
  const { low, high } = late.interval;
  return {
    kind: "late",
    late: {
      repeats: late.repeats,
      perMonth: late.repeats * perMonth,
      perMonthInterval: { low: low * perMonth, high: high * perMonth },
      daysWithLate: late.daysWithLate,
      daysObserved,
      claims,
      shareBound: shareBound(late, claims),
    },
  };
}

/**
 * A day that was not seen may bring this many times what the largest one that was seen did. With 1, the bound
 * covers 94 % of rare redrives in the simulation (test/lab/insight/README.md).
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
