import { USAGE_COUNTERS, type UsageCounter } from "../../domain/usage.ts";
import type { Runner } from "../pool.ts";
import { bigintArray, intArray, textArray } from "../sql-arrays.ts";

/** The counted use of a namespace. */
export interface UsageCount {
  readonly tenantId: number;
  readonly namespace: string;
  readonly counters: Readonly<Record<UsageCounter, number>>;
  /** Counts of repeats, by `latenessBucket`. */
  readonly repeatLateness: readonly number[];
}

const COUNTERS = USAGE_COUNTERS.join(", ");
const COUNTER_ARRAYS = USAGE_COUNTERS.map((_, index) => `$${index + 7}::bigint[]`).join(", ");
const SUMS = USAGE_COUNTERS.map((name) => `${name} = u.${name} + excluded.${name}`).join(",\n  ");

/**
 * Adds a replica's counts, unless this flush was added before: the same statement stores the number of the flush. Counts of a
 * removed tenant are dropped.
 */
const addUsageRows = {
  name: "add_usage",
  text: `
with fresh as (
  insert into replicas as r (id, version, usage_seq) values ($1::uuid, $2::text, $3::bigint)
  on conflict (id) do update set usage_seq = excluded.usage_seq
   where r.usage_seq < excluded.usage_seq
  returning 1
), input as (
  select *
    from unnest($4::int[], $5::text[], $6::text[], ${COUNTER_ARRAYS})
      as i (tenant_id, namespace, repeat_lateness, ${COUNTERS})
   order by i.tenant_id, i.namespace collate "C"
)
insert into usage_hours as u (tenant_id, hour, namespace, repeat_lateness, ${COUNTERS})
select i.tenant_id, ${hourOf("now()")}, i.namespace, i.repeat_lateness::bigint[],
       ${USAGE_COUNTERS.map((name) => `i.${name}`).join(", ")}
  from input i, fresh
 where exists (select 1 from tenants t where t.id = i.tenant_id offset 0)
on conflict (tenant_id, hour, namespace) do update set
  repeat_lateness = (
    select array_agg(was + more order by bucket)
      from unnest(u.repeat_lateness, excluded.repeat_lateness) with ordinality as sums (was, more, bucket)),
  ${SUMS}`,
};

/** Identifies a flush: by its replica, and by its number, which increases. */
export interface Flush {
  readonly replica: { readonly id: string; readonly version: string };
  readonly seq: number;
}

/** Stores counts; a retry of the same flush has no effect. */
export async function addUsage(runner: Runner, flush: Flush, counts: readonly UsageCount[]): Promise<void> {
  await runner.run(addUsageRows, [
    flush.replica.id,
    flush.replica.version,
    flush.seq,
    intArray(counts.map(({ tenantId }) => tenantId)),
    textArray(counts.map(({ namespace }) => namespace)),
    textArray(counts.map(({ repeatLateness }) => `{${repeatLateness.join(",")}}`)),
    ...USAGE_COUNTERS.map((name) => bigintArray(counts.map(({ counters }) => counters[name]))),
  ]);
}

/** The use of a namespace in one hour. */
export interface UsageHourRow extends Omit<UsageCount, "tenantId"> {
  /** The beginning of the hour, in milliseconds since the Unix epoch. */
  readonly hourMs: number;
}

/**
 * Selects hours: from the hour that contains `afterMs` (undefined: a day before the end), those that begin before `beforeMs`
 * (undefined: no end), after the last one that was read.
 */
export interface UsageQuery {
  readonly tenantId: number;
  /** Undefined: all. */
  readonly namespace: string | undefined;
  readonly afterMs: number | undefined;
  readonly beforeMs: number | undefined;
  readonly behind: { readonly hourMs: number; readonly namespace: string } | undefined;
  readonly limit: number;
}

/** The first hour: by default a day before the end. */
const FROM = `coalesce(
     to_timestamp($3::float8 / 1000), least(now(), to_timestamp($4::float8 / 1000)) - interval '1 day')`;

const readUsageRows = {
  name: "read_usage",
  text: `
select date_part('epoch', hour) * 1000 as hour_ms, namespace, repeat_lateness::text[] as repeat_lateness, ${COUNTERS}
  from usage_hours
 where tenant_id = $1::int
   and ($2::text is null or namespace = $2::text)
   and hour >= ${hourOf(FROM)}
   and hour < coalesce(to_timestamp($4::float8 / 1000), 'infinity')
   and (tenant_id, hour, namespace) > ($1::int, to_timestamp($5::float8 / 1000), $6::text)
 order by tenant_id, hour, namespace
 limit $7::int`,
};

/** Returns SQL for the hour that contains an instant, UTC. */
function hourOf(instant: string): string {
  return `date_trunc('hour', ${instant} at time zone 'utc') at time zone 'utc'`;
}

type Row = Readonly<Record<UsageCounter, string>> & {
  readonly hour_ms: number;
  readonly namespace: string;
  readonly repeat_lateness: readonly string[];
};

/** Returns hours by hour, then namespace. */
export async function readUsage(runner: Runner, query: UsageQuery): Promise<readonly UsageHourRow[]> {
  const { tenantId, namespace, afterMs, beforeMs, behind, limit } = query;
  const rows = await runner.run<Row>(readUsageRows, [
    tenantId,
    namespace ?? null,
    afterMs ?? null,
    beforeMs ?? null,
    behind?.hourMs ?? 0,
    behind?.namespace ?? "",
    limit,
  ]);
  return rows.map((row) => ({
    hourMs: row.hour_ms,
    namespace: row.namespace,
    counters: Object.fromEntries(USAGE_COUNTERS.map((name) => [name, Number(row[name])])) as Record<
      UsageCounter,
      number
    >,
    repeatLateness: row.repeat_lateness.map(Number),
  }));
}
