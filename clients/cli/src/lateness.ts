import { durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import type { LatenessBucket, UsageHour } from "@onceward/client/proto";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#words/durations";
import { formatDuration } from "./times.ts";

/** The number of duplicates that came at most `upTo` after the first claim, and later than the previous bucket's. */
export type Bucket = Pick<LatenessBucket, "upTo" | "repeats">;

const BAR_WIDTH = 30;

/** Returns the buckets of each namespace, summed over its hours. */
export function sumLateness(hours: readonly UsageHour[]): ReadonlyMap<string, readonly Bucket[]> {
  const names = [...new Set(hours.map(({ namespace }) => namespace))].sort();
  return new Map(
    names.map((name) => {
      const own = hours.filter(({ namespace }) => namespace === name);
      return [name, sum(own.flatMap(({ repeatLateness }) => repeatLateness))];
    }),
  );
}

/** Returns a chart of how late a namespace's recognised duplicates came; empty without any. It says nothing about a retention. */
export function describeLateness(namespace: string, buckets: readonly Bucket[]): string {
  const total = buckets.reduce((sum, { repeats }) => sum + repeats, 0n);
  if (total === 0n) return "";
  const most = buckets.reduce((max, { repeats }) => (repeats > max ? repeats : max), 0n);
  const last = buckets.findLastIndex(({ repeats }) => repeats > 0n);
  const shown = buckets.slice(0, last + 1);
  const labels = shown.map(({ upTo }) => (upTo === undefined ? "later" : `≤ ${formatDuration(upTo)}`));
  const labelWidth = Math.max(...labels.map(({ length }) => length));
  const countWidth = `${most}`.length;
  const lines = shown.map(({ repeats }, index) => {
    const bar = "█".repeat(Math.ceil((Number(repeats) / Number(most)) * BAR_WIDTH));
    return `  ${labels[index]?.padEnd(labelWidth)}  ${`${repeats}`.padStart(countWidth)}  ${bar}`.trimEnd();
  });
  const title = `How late duplicates came in ${namespace}, since their key was first claimed:`;
  const missing = `Those that came after the end of their record are missing: see onceward advice ${namespace}`;
  return `\n${[title, ...lines, missing].join("\n")}\n`;
}

/**
 * The lines of the chart: from a client's own retry over a user who returns after half an hour to a deploy that is
 * fixed after the weekend. The service's buckets are finer.
 */
const LINES_MS = [
  1000,
  10_000,
  ...[1, 5, 30].map((minutes) => minutes * MINUTE_MS),
  ...[2, 6, 24].map((hours) => hours * HOUR_MS),
  ...[3, 7, 30, 90].map((days) => days * DAY_MS),
];

/** Returns the sums of the buckets of each line, up to the last line with duplicates. */
function sum(buckets: readonly LatenessBucket[]): readonly Bucket[] {
  const byLimit = new Map<number, Bucket>();
  for (const { upTo, repeats } of buckets) {
    const bucketMs = upTo === undefined ? Number.POSITIVE_INFINITY : durationMs(upTo);
    const limitMs = LINES_MS.find((lineMs) => bucketMs <= lineMs) ?? Number.POSITIVE_INFINITY;
    const before = byLimit.get(limitMs)?.repeats ?? 0n;
    byLimit.set(limitMs, {
      ...(Number.isFinite(limitMs) && { upTo: durationFromMs(limitMs) }),
      repeats: before + repeats,
    });
  }
  return [...byLimit].sort(([a], [b]) => a - b).map(([, bucket]) => bucket);
}
