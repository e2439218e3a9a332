import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { UsageHour, UsageMinute } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { ALL_REFUSALS, refusedBesideClaims } from "@onceward/words/refusals";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../format/duration.ts";

/** What a chart can show, by the words of the address: bars of equal times, the last one of the present. */
export const RANGES = {
  "1h": { label: "1 hour", bars: 60, stepMs: MINUTE_MS },
  "24h": { label: "24 hours", bars: 24, stepMs: HOUR_MS },
  "7d": { label: "7 days", bars: 28, stepMs: 6 * HOUR_MS },
  "30d": { label: "30 days", bars: 30, stepMs: DAY_MS },
} as const;
export type Range = keyof typeof RANGES;

/** Returns a range in a sentence, such as "the last 24 hours". */
export function lastOf(range: Range): string {
  return `the last ${RANGES[range].label.replace(/^1 /, "")}`;
}

/** What is counted: claims and what became of them. */
export const COUNTS = ["claims", "duplicates", "ambiguous", "mismatches", "fenced", "refused"] as const;

/** The name of a count. */
export type Count = (typeof COUNTS)[number];

const ALL_COUNTS = [...new Set([...COUNTS, ...ALL_REFUSALS, "wouldBeRefused" as const, "settled" as const])];
type Counts = Readonly<Record<(typeof ALL_COUNTS)[number], number>>;
const NONE = Object.fromEntries(ALL_COUNTS.map((count) => [count, 0])) as Counts;

/** The counts of the time of a bar, of all namespaces together; refusals also by cause. */
export interface Bar extends Counts {
  readonly from: Date;
}

/** Returns the beginning of the bar that contains a time. */
export function barOf(at: Date, range: Range): Date {
  const { stepMs } = RANGES[range];
  return new Date(Math.floor(at.getTime() / stepMs) * stepMs);
}

/** Returns the beginning of the first bar of a range whose last bar begins at `current`. */
export function firstOf(current: Date, range: Range): Date {
  const { bars, stepMs } = RANGES[range];
  return new Date(current.getTime() - (bars - 1) * stepMs);
}

type Counted = Counts & { readonly at: Date };

/** Returns the bars of a range that ends with `current`, the oldest first, with the sums of what was counted in them. */
export function sumByBar(counted: readonly Counted[], current: Date, range: Range): readonly Bar[] {
  const { bars, stepMs } = RANGES[range];
  const first = firstOf(current, range).getTime();
  const sums = Array.from({ length: bars }, (_, index) => ({
    from: new Date(first + index * stepMs),
    ...(NONE as Record<keyof Counts, number>),
  }));
  for (const { at, ...counts } of counted) {
    const sum = sums[Math.floor((at.getTime() - first) / stepMs)];
    if (sum === undefined) continue;
    for (const count of ALL_COUNTS) sum[count] += counts[count];
  }
  return sums;
}

/** Returns what was counted in an hour. */
export function ofHour(row: UsageHour): Counted {
  const byCause = Object.fromEntries(ALL_REFUSALS.map((name) => [name, Number(row[name])]));
  return {
    ...NONE,
    ...byCause,
    at: row.hour === undefined ? new Date(0) : timestampDate(row.hour),
    claims: Number(row.claims),
    duplicates: Number(row.replayed + row.inProgress),
    ambiguous: Number(row.ambiguous),
    settled: Number(row.settled),
    refused: refusedBesideClaims(row),
    wouldBeRefused: Number(row.wouldBeRefused),
  };
}

/** Returns what was counted in a minute: without what minutes do not tell apart. */
export function ofMinute(row: UsageMinute): Counted {
  return {
    ...NONE,
    at: row.minute === undefined ? new Date(0) : timestampDate(row.minute),
    claims: Number(row.claims),
    duplicates: Number(row.duplicates),
    mismatches: Number(row.mismatches),
    refused: Number(row.refused + row.lateKeysRefused),
  };
}

/** Returns the total of a count. */
export function totalOf(bars: readonly Bar[], count: keyof Counts): number {
  return bars.reduce((sum, bar) => sum + bar[count], 0);
}
