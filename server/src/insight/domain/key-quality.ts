import { CONFIDENCE, type MissingData } from "./advice.ts";
import {
  type Interval,
  observationsNeeded,
  shareInterval,
  shareUpperBound,
  sumInterval,
  type WeightedSum,
} from "./intervals.ts";
import { keyShape } from "./key-shape.ts";

/*
 * What the claims of a namespace say about its keys. A suspicion is not a proof: two equal orders within a minute
 * are legitimate. So each needs evidence that honest traffic hardly gives, and nothing is ever refused for it.
 */

/** What was seen of a namespace's keys. */
export interface KeyObservations {
  readonly claims: number;
  /** Repeats of a key that were recognised. */
  readonly repeats: number;
  /** Those of them that came within PROMPT_MS. */
  readonly promptRepeats: number;
  /** Repeats that came after the end of their record, weighted by the sample. */
  readonly late: WeightedSum & {
    /** Those that were seen. */
    readonly seen: number;
    /** Days on which one was seen. */
    readonly days: number;
  };
  readonly shapes: ShapeCounts;
  readonly fingerprints: FingerprintCounts;
}

/** Some of the first claims of keys, by shape. */
export interface ShapeCounts {
  readonly claims: number;
  readonly withoutFingerprint: number;
  readonly times: number;
  readonly attempts: number;
  readonly randomUuids: number;
  readonly promptUuids: number;
}

/** Counts that grow with each claim. */
export type GrowingShapeCounts = { -readonly [Name in keyof ShapeCounts]: ShapeCounts[Name] };

/** Returns the counts before the first claim. */
export function noShapes(): GrowingShapeCounts {
  return { claims: 0, withoutFingerprint: 0, times: 0, attempts: 0, randomUuids: 0, promptUuids: 0 };
}

/** Counts a first claim of a key, at a time in milliseconds since the Unix epoch. */
export function countShape(
  shapes: GrowingShapeCounts,
  key: string,
  claimedAtMs: number,
  hasFingerprint: boolean,
): void {
  const { isTime, isAttempt, uuid } = keyShape(key, claimedAtMs);
  shapes.claims++;
  if (isTime) shapes.times++;
  if (isAttempt) shapes.attempts++;
  if (uuid === "random") shapes.randomUuids++;
  if (uuid === "prompt") shapes.promptUuids++;
  if (!hasFingerprint) shapes.withoutFingerprint++;
}

/** First claims of sampled fingerprints. Each fingerprint counts once, because one cause may bring all its claims. */
export interface FingerprintCounts {
  readonly claims: number;
  /** Fingerprints that came under another key within PROMPT_MS, other than by a counter at its end. */
  readonly prompt: number;
  /** Fingerprints that came under a key with another counter at its end within PROMPT_MS. */
  readonly counted: number;
  /** Fingerprints whose next claim came after 1 to 24 hours. */
  readonly later: number;
  /** Hours in which a next claim within PROMPT_MS could be seen. */
  readonly promptHours: number;
  /** Hours in which a next claim after 1 to 24 hours could be seen. */
  readonly laterHours: number;
}

/** Retries come within this time. */
export const PROMPT_MS = 15 * 60_000;

/** Names of counts; `KeyEvidence.measure` of `tenant_admin.proto` describes them. */
export type Measure =
  | "other_key_within_15_minutes"
  | "other_key_after_hours"
  | "other_counter_within_15_minutes"
  | "same_key_within_15_minutes"
  | "same_key"
  | "epoch_in_key"
  | "attempt_in_key"
  | "random_uuid"
  | "uuid_made_at_claim"
  | "without_fingerprint"
  | "repeats_after_expiry";

/** A count, and the share that it stands for. */
export interface KeyEvidence {
  readonly measure: Measure;
  readonly count: number;
  /** The number of which `count` is a part. */
  readonly of: number;
  /** Contains the share with CONFIDENCE. */
  readonly interval: Interval;
}

/** What is known of a defect: that it is suspected, or what is missing to say so or not. */
export type Finding = { readonly kind: SuspicionKind } & Verdict;

type Verdict =
  | { readonly verdict: "suspected"; readonly evidence: readonly KeyEvidence[] }
  | { readonly verdict: "insufficient"; readonly missing: MissingData };

/** A suspicion's bound is wrong in one namespace of a thousand: a month has many reports, a tenant many namespaces. */
const STRICT = 0.998;
/** Honest keys come twice within minutes this many times as often as hours later: most people order at the same hours. */
const MAX_HONEST_RATIO = 4;
/** Keys per retry leave few repeats of keys: less than one for this many retries under other keys. */
const MIN_RETRY_RATIO = 10;
/** Fewer sampled claims contain too few retries. */
const MIN_SAMPLED_CLAIMS = 1000;
/** Below this share of claims, a repeat of a key hardly ever happens. Honest callers retry more often. */
const RARE_REPEATS = 3e-4;
/** Fewer classified claims say little about most keys. */
const MIN_CLASSIFIED = 300;
const MIN_ATTEMPT_SHARE = 0.005;
const MIN_TIME_SHARE = 0.5;
const MIN_UUID_SHARE = 0.95;
const MIN_LATE_SHARE = 0.9;
const MIN_LATE_SEEN = 20;
/** A redrive of old messages happens on one day. */
const MIN_LATE_DAYS = 3;
/** Fewer claims in the observed 30 days cost too little to change anything for it. */
const MIN_COSTLY_CLAIMS = 1e6;
/** A next claim a day later can be seen from then on. */
const MIN_LATER_HOURS = 1;

/** Each returns undefined if the data speaks against the defect, or cannot be asked for it. */
const JUDGES = {
  newKeyPerRetry,
  timeInKey,
  attemptInKey,
  uuidPerClaim,
  noFingerprints,
  repeatsAfterExpiry,
  randomOrder,
};

/** Defects of keys that can be suspected. */
export type SuspicionKind = keyof typeof JUDGES;

/** Returns what is suspected of a namespace's keys, and what cannot be said yet. */
export function judgeKeys(seen: KeyObservations): readonly Finding[] {
  return (Object.keys(JUDGES) as SuspicionKind[]).flatMap((kind) => {
    const verdict = JUDGES[kind](seen);
    return verdict === undefined ? [] : [{ kind, ...verdict }];
  });
}

function newKeyPerRetry(seen: KeyObservations): Verdict | undefined {
  const { claims, prompt, later, promptHours, laterHours } = seen.fingerprints;
  if (lacksFingerprints(seen)) return undefined;
  const missingClaims = MIN_SAMPLED_CLAIMS - claims;
  const missingDays = laterHours < MIN_LATER_HOURS ? 1 : 0;
  if (missingClaims > 0 || missingDays > 0) return insufficient(missingClaims, missingDays);
  const honestHours = MAX_HONEST_RATIO * promptHours;
  const expectedShare = honestHours / (honestHours + laterHours);
  const isExcess = shareInterval(prompt, prompt + later, STRICT).low > expectedShare;
  const excess =
    shareInterval(prompt, claims, STRICT).low - (later * honestHours) / (Math.max(laterHours, 1) * claims);
  if (!isExcess || !outweighsRepeats(seen, excess)) return undefined;
  return suspected([
    share("other_key_within_15_minutes", prompt, claims),
    share("other_key_after_hours", later, claims),
    share("same_key_within_15_minutes", seen.promptRepeats, seen.claims),
  ]);
}

function attemptInKey(seen: KeyObservations): Verdict | undefined {
  const { shapes, fingerprints } = seen;
  if (!lacksFingerprints(seen)) {
    const { claims, counted } = fingerprints;
    if (claims < MIN_SAMPLED_CLAIMS) return insufficient(MIN_SAMPLED_CLAIMS - claims);
    if (!outweighsRepeats(seen, shareInterval(counted, claims, STRICT).low)) return undefined;
    return suspected([
      share("other_counter_within_15_minutes", counted, claims),
      share("attempt_in_key", shapes.attempts, shapes.claims),
      share("same_key_within_15_minutes", seen.promptRepeats, seen.claims),
    ]);
  }
  const attempts = share("attempt_in_key", shapes.attempts, shapes.claims);
  return withoutRepeats(seen, attempts, MIN_ATTEMPT_SHARE);
}

function timeInKey(seen: KeyObservations): Verdict | undefined {
  const times = share("epoch_in_key", seen.shapes.times, seen.shapes.claims);
  return withoutRepeats(seen, times, MIN_TIME_SHARE);
}

function uuidPerClaim(seen: KeyObservations): Verdict | undefined {
  const { claims, randomUuids, promptUuids } = seen.shapes;
  const random = share("random_uuid", randomUuids, claims);
  const prompt = share("uuid_made_at_claim", promptUuids, claims);
  return withoutRepeats(seen, random.count > prompt.count ? random : prompt, MIN_UUID_SHARE);
}

function noFingerprints(seen: KeyObservations): Verdict | undefined {
  const { claims, withoutFingerprint } = seen.shapes;
  if (withoutFingerprint < claims) return undefined;
  if (claims < MIN_CLASSIFIED) return insufficient(MIN_CLASSIFIED - claims);
  return suspected([share("without_fingerprint", withoutFingerprint, claims)]);
}

function repeatsAfterExpiry({ late, repeats }: KeyObservations): Verdict | undefined {
  if (late.seen === 0) return undefined;
  if (late.seen < MIN_LATE_SEEN || late.days < MIN_LATE_DAYS) {
    // A few late repeats beside many recognised ones are not a defect, however many more come.
    if (late.sum < repeats) return undefined;
    return insufficient(MIN_LATE_SEEN - late.seen, MIN_LATE_DAYS - late.days);
  }
  const { low, high } = sumInterval(late, STRICT);
  if (low / (low + repeats) < MIN_LATE_SHARE) return undefined;
  const interval = { low: low / (low + repeats), high: high / (high + repeats) };
  return suspected([{ measure: "repeats_after_expiry", count: late.sum, of: late.sum + repeats, interval }]);
}

function randomOrder({ claims, shapes }: KeyObservations): Verdict | undefined {
  const random = share("random_uuid", shapes.randomUuids, shapes.claims);
  return claims < MIN_COSTLY_CLAIMS || random.interval.low < MIN_UUID_SHARE ? undefined : suspected([random]);
}

/** Suspects a shape that most keys have, if repeats of keys are rarer than those of any honest caller. */
function withoutRepeats(
  { claims, repeats, late, shapes }: KeyObservations,
  shape: KeyEvidence,
  minShare: number,
): Verdict | undefined {
  if (shapes.claims < MIN_CLASSIFIED) return insufficient(MIN_CLASSIFIED - shapes.claims);
  if (shape.interval.low < minShare) return undefined;
  const seen = repeats + late.seen;
  if (shareUpperBound(seen, claims, CONFIDENCE) > RARE_REPEATS) {
    if (seen > 0) return undefined;
    return insufficient(observationsNeeded(RARE_REPEATS, CONFIDENCE) - claims);
  }
  return suspected([shape, share("same_key", seen, claims)]);
}

/** Whether retries under other keys are many times as frequent as retries under the same key. */
function outweighsRepeats({ promptRepeats, claims }: KeyObservations, retryShare: number): boolean {
  return retryShare > MIN_RETRY_RATIO * shareUpperBound(promptRepeats, claims, CONFIDENCE);
}

function lacksFingerprints({ shapes, fingerprints }: KeyObservations): boolean {
  return fingerprints.claims === 0 && shapes.claims > 0 && shapes.withoutFingerprint === shapes.claims;
}

function share(measure: Measure, count: number, of: number): KeyEvidence {
  const interval = of === 0 ? { low: 0, high: 1 } : shareInterval(count, of, CONFIDENCE);
  return { measure, count, of, interval };
}

function suspected(evidence: readonly KeyEvidence[]): Verdict {
  return { verdict: "suspected", evidence };
}

function insufficient(claims: number, days = 0): Verdict {
  const missing = { missingClaims: Math.max(0, claims), missingDays: Math.max(0, days) };
  return { verdict: "insufficient", missing };
}
