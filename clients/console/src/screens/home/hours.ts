import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { UsageHour } from "@onceward/gen/onceward/v1/tenant_pb.ts";

export const HOUR_MS = 3_600_000;
export const HOURS_SHOWN = 24;

/** What is counted in an hour: outcomes of claims, and refusals. */
export const COUNTS = ["granted", "replayed", "inProgress", "ambiguous", "mismatches", "fenced"] as const;

/** The name of a count. */
export type Count = (typeof COUNTS)[number];

/** The counts of an hour, of all namespaces together. */
export interface HourSum extends Readonly<Record<Count, number>> {
  readonly hour: Date;
}

/** Returns the beginning of the hour of a time. */
export function hourOf(at: Date): Date {
  return new Date(Math.floor(at.getTime() / HOUR_MS) * HOUR_MS);
}

/** Returns the 24 hours that end with `current`, the oldest first, with the sums of their rows; without a row: zeros. */
export function sumByHour(rows: readonly UsageHour[], current: Date): readonly HourSum[] {
  const first = current.getTime() - (HOURS_SHOWN - 1) * HOUR_MS;
  const hours = Array.from({ length: HOURS_SHOWN }, (_, index) => ({
    hour: new Date(first + index * HOUR_MS),
    ...{ granted: 0, replayed: 0, inProgress: 0, ambiguous: 0, mismatches: 0, fenced: 0 },
  }));
  for (const row of rows) {
    if (row.hour === undefined) continue;
    const sum = hours[Math.floor((timestampDate(row.hour).getTime() - first) / HOUR_MS)];
    if (sum === undefined) continue;
    for (const count of COUNTS) sum[count] += Number(row[count]);
  }
  return hours;
}

/** Returns the total of a count. */
export function totalOf(hours: readonly HourSum[], count: Count): number {
  return hours.reduce((sum, hour) => sum + hour[count], 0);
}
