import { formatCount } from "./words.ts";

/** The counters of calls that quotas refused. */
export const REFUSALS = [
  "refusedByRate",
  "refusedByConcurrency",
  "refusedByRecords",
  "refusedByBytes",
] as const;

/** Counts by reason, of a minute or an hour. */
export type RefusalCounts = Readonly<Record<(typeof REFUSALS)[number] | "wouldBeRefused", bigint | number>>;

const REASONS: Readonly<Record<keyof RefusalCounts, string>> = {
  refusedByRate: "refused by the rate limit",
  refusedByConcurrency: "refused by the limit of calls at once",
  refusedByRecords: "refused because no room for records is left",
  refusedByBytes: "refused because no room for results is left",
  wouldBeRefused: "beyond a quota that only counts",
};

/** Returns a phrase for each reason that has a count, such as "12 refused by the rate limit". */
export function refusalWords(counts: RefusalCounts): readonly string[] {
  return [...REFUSALS, "wouldBeRefused" as const]
    .filter((name) => counts[name] > 0)
    .map((name) => `${formatCount(counts[name])} ${REASONS[name]}`);
}
