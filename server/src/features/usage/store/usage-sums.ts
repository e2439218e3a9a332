import type { Runner } from "../../../core/store/pool.ts";
import { USAGE_COUNTERS, type UsageCounter } from "../usage.ts";
import { USED_HOURS, type UsageQuery } from "./usage.ts";

/** The use of an hour: of all namespaces together, or of one. */
export interface UsageSum {
  readonly counters: Readonly<Record<UsageCounter, number>>;
  /** The beginning of the hour, in milliseconds since the Unix epoch. */
  readonly hourMs: number;
}

/** Selects hours, as UsageQuery; `behindMs` is the last hour that was read. */
export interface UsageSumQuery extends Omit<UsageQuery, "behind"> {
  readonly behindMs: number;
}

/** The sums that one statement found. */
export interface FoundSums {
  readonly sums: readonly UsageSum[];
  /** The next search begins behind this hour, in milliseconds since the Unix epoch; undefined: there are no more hours. */
  readonly nextMs: number | undefined;
}

const SUMS = USAGE_COUNTERS.map((name) => `sum(u.${name})::text as ${name}`).join(", ");

/** Adds the rows of each hour, which lie side by side in the primary key. `'~'` sorts behind every namespace. */
const sumUsageRows = {
  name: "sum_usage",
  text: `
with recursive ${USED_HOURS}
select date_part('epoch', used.hour) * 1000 as hour_ms, s.*
  from (select hour from used where hour < (select until from bounds) limit $6::int) used
 cross join lateral (
   select ${SUMS}
     from usage_hours u
    where u.tenant_id = $1::int
      and u.hour = used.hour
      and u.namespace >= coalesce($2::text, '')
      and u.namespace <= coalesce($2::text, '~')) s
 order by used.hour`,
};

/** The counters are null in an hour in which only other namespaces were used. */
type Row = Readonly<Record<UsageCounter, string | null>> & { readonly hour_ms: number };

/**
 * Sums the first `limit` hours in which the tenant was used.
 *
 * @param latestMs as DatabaseClock.
 */
export async function sumUsage(runner: Runner, query: UsageSumQuery, latestMs?: number): Promise<FoundSums> {
  const { tenantId, namespace, afterMs, beforeMs, behindMs, limit } = query;
  const rows = await runner.run<Row>(sumUsageRows, [
    tenantId,
    namespace ?? null,
    afterMs ?? null,
    beforeMs ?? null,
    behindMs,
    limit,
    latestMs ?? null,
  ]);
  const sums = rows
    .filter(({ claims }) => claims !== null)
    .map((row) => ({
      hourMs: row.hour_ms,
      counters: Object.fromEntries(USAGE_COUNTERS.map((name) => [name, Number(row[name])])) as Record<
        UsageCounter,
        number
      >,
    }));
  return { sums, nextMs: rows.length === limit ? rows.at(-1)?.hour_ms : undefined };
}
