import { latenessFloorMs, latenessLimitMs } from "../../admin/usage/lateness.ts";

/** The claims of a namespace on one day, UTC, while one key retention was in force. */
export interface ClaimsOfDay {
  /** When the day began. */
  readonly dayMs: number;
  readonly retentionS: number;
  readonly claims: number;
  /** Claims that began an operation. */
  readonly firstClaims: number;
  /** Repeats that were recognised, by `latenessBucket`. */
  readonly repeats: readonly BucketCount[];
}

/** Repeats of one day that came after the end of their record, under one retention and one shift of the sample. */
export interface LateOfDay {
  readonly dayMs: number;
  readonly retentionS: number;
  /** Each repeat stands for 2^shift. 0: all were seen. */
  readonly shift: number;
  readonly repeats: readonly SampledCount[];
}

export interface BucketCount {
  readonly bucket: number;
  readonly repeats: number;
}

export interface SampledCount extends BucketCount {
  /** The sum, over the keys, of the squared number of repeats. */
  readonly squares: number;
}

/** What was seen of a namespace, up to now. Instants are milliseconds since the Unix epoch, on the database's clock. */
export interface Observations {
  readonly nowMs: number;
  /** When the first counted hour began; undefined: nothing was counted. */
  readonly sinceMs: number | undefined;
  /** From when on the keys that ended were sampled; undefined: none has ended. */
  readonly sampledSinceMs: number | undefined;
  /** One key in 2^shift is sampled now. */
  readonly shift: number;
  /** By day. */
  readonly claims: readonly ClaimsOfDay[];
  readonly late: readonly LateOfDay[];
}

/** What one day says about repeats that come later than a retention after the first claim. */
export interface DayOfEvidence {
  readonly dayMs: number;
  /** The part of the day that was observed, in days. */
  readonly days: number;
  readonly claims: number;
  /** Late repeats that were all seen: at least and, with those of the bucket that the retention divides, at most. */
  readonly seenAtLeast: number;
  readonly seenAtMost: number;
  /** Sampled late repeats, by the size of their sample. */
  readonly sampled: readonly SampledEvidence[];
}

export interface SampledEvidence {
  readonly shift: number;
  readonly repeatsAtLeast: number;
  readonly repeatsAtMost: number;
  readonly squaresAtLeast: number;
  readonly squaresAtMost: number;
}

const DAY_MS = 86_400_000;

/**
 * Returns the days on which a repeat later than a retention could be seen, with those that were. A repeat can
 * be seen if its record has not ended, and otherwise if its key ended while keys were sampled. So a day under
 * a shorter retention counts from when the first sampled keys were older than the asked one.
 */
export function evidenceOf(observations: Observations, retentionS: number): readonly DayOfEvidence[] {
  const { nowMs, sinceMs } = observations;
  if (sinceMs === undefined) return [];
  const claims = Map.groupBy(observations.claims, ({ dayMs }) => dayMs);
  const late = Map.groupBy(observations.late, ({ dayMs }) => dayMs);
  const days: DayOfEvidence[] = [];
  let inForceS = observations.claims[0]?.retentionS ?? retentionS;
  for (let dayMs = Math.floor(sinceMs / DAY_MS) * DAY_MS; dayMs < nowMs; dayMs += DAY_MS) {
    const ofDay = claims.get(dayMs) ?? [];
    // A day without claims has the retention of the day before.
    if (ofDay.length > 0) inForceS = Math.min(...ofDay.map((each) => each.retentionS));
    const fromMs = Math.max(dayMs, sinceMs, visibleFromMs(observations, inForceS, retentionS));
    const lengthMs = Math.min(dayMs + DAY_MS, nowMs) - fromMs;
    // Counts have no finer time than a day here: a day that is partly visible counts from the next one on.
    const isVisible = lengthMs > 0 && (fromMs === dayMs || fromMs === sinceMs);
    if (isVisible)
      days.push(evidenceOfDay(dayMs, lengthMs / DAY_MS, ofDay, late.get(dayMs) ?? [], retentionS));
  }
  return days;
}

function visibleFromMs(
  { sampledSinceMs, sinceMs = 0 }: Observations,
  inForceS: number,
  retentionS: number,
): number {
  if (retentionS <= inForceS) return sinceMs;
  if (sampledSinceMs === undefined) return Number.POSITIVE_INFINITY;
  return sampledSinceMs + (retentionS - inForceS) * 1000;
}

function evidenceOfDay(
  dayMs: number,
  days: number,
  claims: readonly ClaimsOfDay[],
  late: readonly LateOfDay[],
  retentionS: number,
): DayOfEvidence {
  const isSurelyLater = ({ bucket }: BucketCount) => latenessFloorMs(bucket) >= retentionS * 1000;
  const isMaybeLater = ({ bucket }: BucketCount) =>
    (latenessLimitMs(bucket) ?? Number.POSITIVE_INFINITY) > retentionS * 1000;
  let [seenAtLeast, seenAtMost] = [0, 0];
  const sampled: SampledEvidence[] = [];
  // What was recognised under a retention is recognised under each longer one.
  for (const { repeats } of claims.filter((each) => each.retentionS > retentionS)) {
    seenAtLeast += sum(repeats.filter(isSurelyLater), "repeats");
    seenAtMost += sum(repeats.filter(isMaybeLater), "repeats");
  }
  for (const { repeats, retentionS: wasS, shift } of late) {
    const atLeast = wasS >= retentionS ? repeats : repeats.filter(isSurelyLater);
    const atMost = wasS >= retentionS ? repeats : repeats.filter(isMaybeLater);
    if (shift === 0) {
      seenAtLeast += sum(atLeast, "repeats");
      seenAtMost += sum(atMost, "repeats");
    } else {
      sampled.push({
        shift,
        repeatsAtLeast: sum(atLeast, "repeats"),
        repeatsAtMost: sum(atMost, "repeats"),
        squaresAtLeast: sum(atLeast, "squares"),
        squaresAtMost: sum(atMost, "squares"),
      });
    }
  }
  return { dayMs, days, claims: sum(claims, "claims"), seenAtLeast, seenAtMost, sampled };
}

function sum<Field extends string>(items: readonly Readonly<Record<Field, number>>[], field: Field): number {
  return items.reduce((total, item) => total + item[field], 0);
}
