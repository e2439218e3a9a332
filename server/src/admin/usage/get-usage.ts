import { create } from "@bufbuild/protobuf";
import type { Runner } from "../../database/pool.ts";
import { countFields } from "../../domain/counts.ts";
import { duration, timestamp, Violations } from "../../domain/violations.ts";
import { GetUsageRequest_Grouping, GetUsageResponseSchema } from "../../gen/onceward/v1/tenant_admin_pb.ts";
import {
  type LatenessBucket,
  LatenessBucketSchema,
  type UsageHour,
  UsageHourSchema,
} from "../../gen/onceward/v1/tenant_pb.ts";
import { administeredPart } from "../own-tenant.ts";
import { pageSize, replyPage, scanUntil } from "../pages.ts";
import type { TenantRpc } from "../services.ts";
import { hourOf, type UsageCount } from "./add-usage.ts";
import { LAST_LATENESS_BUCKET, type LatenessCounts, latenessLimitMs } from "./lateness.ts";
import { countersBy, USAGE_COUNTERS, type UsageCounter } from "./usage.ts";

/** With 10,000 namespaces, one statement adds 60,000 rows: some tens of milliseconds. */
const HOURS_AT_ONCE = 6;

/** What an entry is of. */
const GROUPINGS: Readonly<Record<number, "hour" | "hourAndNamespace">> = {
  [GetUsageRequest_Grouping.UNSPECIFIED]: "hourAndNamespace",
  [GetUsageRequest_Grouping.HOUR]: "hour",
};

/** Returns a page of what a tenant or a namespace used, by hour. */
export const getUsage: TenantRpc<"getUsage"> = async (request, call, { pool, pageTokens, databaseClock }) => {
  const { namespace } = request;
  const violations = new Violations();
  const own = administeredPart(call, namespace, violations);
  const limit = pageSize(request.pageSize, violations);
  const beforeMs = violations.timestampMs("before", request.before);
  const afterMs = violations.timestampMs("after", request.after);
  const grouping = GROUPINGS[request.grouping];
  if (grouping === undefined) violations.add("grouping", "must be a grouping of usage");
  const scope = [own.id, "GetUsage", namespace, beforeMs, afterMs, grouping];
  const [hourMs, lastNamespace] = pageTokens.read(scope, request.pageToken, violations) ?? [];
  violations.throwIfAny();

  const query = { tenantId: own.id, namespace: namespace || undefined, afterMs, beforeMs };
  const runner = pool.of(call);
  const latestMs = databaseClock.latestMs();
  if (grouping === "hour") {
    const from = Number(hourMs ?? 0);
    const { items, next } = await scanUntil<UsageSum, number>(limit, from, (behindMs, count) =>
      sumUsage(runner, { ...query, behindMs, limit: Math.min(count, HOURS_AT_ONCE) }, latestMs),
    );
    return create(GetUsageResponseSchema, {
      hours: items.map((sum) => create(UsageHourSchema, { namespace, ...usageSum(sum) })),
      ...(next !== undefined && { nextPageToken: pageTokens.write(scope, [String(next)]) }),
    });
  }
  const behind =
    lastNamespace === undefined ? undefined : { hourMs: Number(hourMs), namespace: lastNamespace };
  const found = await readUsage(runner, { ...query, behind, limit: limit + 1 }, latestMs);
  const { messages, last } = replyPage(found, limit, UsageHourSchema, usageHour);
  return create(GetUsageResponseSchema, {
    hours: messages,
    ...(last && { nextPageToken: pageTokens.write(scope, [String(last.hourMs), last.namespace]) }),
  });
};

/** The use of a namespace in one hour. */
interface UsageHourRow extends Pick<UsageCount, "namespace" | "counters"> {
  /** Repeats by `latenessBucket`. */
  readonly repeats: LatenessCounts;
  /** The beginning of the hour, in milliseconds since the Unix epoch. */
  readonly hourMs: number;
}

/**
 * Selects hours: from the hour that contains `afterMs` (undefined: a day before the end), those that begin before `beforeMs`
 * (undefined: no end), after the last one that was read.
 */
interface UsageQuery {
  readonly tenantId: number;
  /** Undefined: all. */
  readonly namespace: string | undefined;
  readonly afterMs: number | undefined;
  readonly beforeMs: number | undefined;
  readonly behind: { readonly hourMs: number; readonly namespace: string } | undefined;
  readonly limit: number;
}

/**
 * SQL for the first hour of a query, whose parameters $3 and $4 are `afterMs` and `beforeMs`, and $7 is now by the
 * previous clock.
 */
const FIRST_HOUR = hourOf(`coalesce(
     to_timestamp($3::float8 / 1000),
     least(now(), to_timestamp($4::float8 / 1000), to_timestamp($7::float8 / 1000)) - interval '24 hours')`);

/** SQL for the hours after `hour_ms` and `namespace`. */
const COLUMNS = `
extract(epoch from u.hour) * 1000 as hour_ms, u.namespace,
       ${USAGE_COUNTERS.map((name) => `u.${name}`).join(", ")},
       (select json_agg(json_build_array(s.bucket, s.repeats) order by s.bucket)
          from (select e.bucket, sum(e.repeats) as repeats
                  from insight_hours h, unnest(h.buckets, h.repeats) as e (bucket, repeats)
                 where h.tenant_id = u.tenant_id
                   and h.namespace = u.namespace
                   and h.hour = u.hour
                 group by e.bucket) s) as repeats`.trim();

const readUsageRows = {
  name: "read_usage",
  text: `
select ${COLUMNS}
  from usage_hours u
 where tenant_id = $1::int
   and hour >= ${FIRST_HOUR}
   and hour < coalesce(to_timestamp($4::float8 / 1000), 'infinity')
   and (tenant_id, hour, namespace) > ($1::int, to_timestamp($5::float8 / 1000), $6::text)
 order by tenant_id, hour, namespace
 limit $2::int`,
};

/** SQL for the hours in which a tenant was used, by one search of the primary key for each, however many namespaces were used in it. */
const USED_HOURS = `
bounds as materialized (
  select ${FIRST_HOUR} as first, coalesce(to_timestamp($4::float8 / 1000), 'infinity') as until
), used (hour) as (
  (select u.hour
     from usage_hours u
    where u.tenant_id = $1::int
      and u.hour >= (select first from bounds)
      and u.hour > to_timestamp($5::float8 / 1000)
    order by u.tenant_id, u.hour
    limit 1)
  union all
  select (select u.hour
            from usage_hours u
           where u.tenant_id = $1::int
             and u.hour > used.hour
           order by u.tenant_id, u.hour
           limit 1)
    from used
   where used.hour < (select until from bounds)
)`.trim();

/** As `read_usage`, of one namespace: reads no row of the others. */
const readUsageOfNamespace = {
  name: "read_usage_of_namespace",
  text: `
with recursive ${USED_HOURS}
select ${COLUMNS}
  from (select hour from used where hour < (select until from bounds)) used
 cross join lateral (
   select * from usage_hours own
    where own.tenant_id = $1::int
      and own.hour = used.hour
      and own.namespace = $2::text
    limit 1) u
 order by u.hour
 limit $6::int`,
};

type Row = Readonly<Record<UsageCounter, string>> & {
  readonly hour_ms: number;
  readonly namespace: string;
  readonly repeats: readonly (readonly [bucket: number, repeats: number])[] | null;
};

function rangeOf({ afterMs, beforeMs }: Pick<UsageQuery, "afterMs" | "beforeMs">) {
  return [afterMs ?? null, beforeMs ?? null];
}

/**
 * Returns hours by hour, then namespace.
 *
 * @param latestMs as DatabaseClock.
 */
export async function readUsage(
  runner: Runner,
  query: UsageQuery,
  latestMs?: number,
): Promise<readonly UsageHourRow[]> {
  const { tenantId, namespace, behind, limit } = query;
  const range = [...rangeOf(query), behind?.hourMs ?? 0];
  const latest = latestMs ?? null;
  const rows =
    namespace === undefined
      ? await runner.run<Row>(readUsageRows, [tenantId, limit, ...range, behind?.namespace ?? "", latest])
      : await runner.run<Row>(readUsageOfNamespace, [tenantId, namespace, ...range, limit, latest]);
  return rows.map((row) => ({
    hourMs: row.hour_ms,
    namespace: row.namespace,
    counters: countersBy((name) => Number(row[name])),
    repeats: new Map(row.repeats),
  }));
}

/** The use of an hour: of all namespaces together, or of one. */
type UsageSum = Pick<UsageHourRow, "counters" | "hourMs">;

/** Adds the rows of each hour, which lie side by side in the primary key. `'~'` sorts after every namespace. */
const sumUsageRows = {
  name: "sum_usage",
  text: `
with recursive ${USED_HOURS}
select extract(epoch from used.hour) * 1000 as hour_ms, s.*
  from (select hour from used where hour < (select until from bounds) limit $6::int) used
 cross join lateral (
   select ${USAGE_COUNTERS.map((name) => `sum(u.${name})::text as ${name}`).join(", ")}
     from usage_hours u
    where u.tenant_id = $1::int
      and u.hour = used.hour
      and u.namespace >= coalesce($2::text, '')
      and u.namespace <= coalesce($2::text, '~')) s
 order by used.hour`,
};

/** The counters are null in an hour in which only other namespaces were used. */
type SumRow = Readonly<Record<UsageCounter, string | null>> & { readonly hour_ms: number };

/**
 * Sums the first `limit` hours in which the tenant was used, after the hour that was read last. `next`: the next search begins
 * after this hour; undefined: there are no more hours.
 *
 * @param latestMs as DatabaseClock.
 */
export async function sumUsage(
  runner: Runner,
  query: Omit<UsageQuery, "behind"> & { readonly behindMs: number },
  latestMs?: number,
): Promise<{ readonly items: readonly UsageSum[]; readonly next: number | undefined }> {
  const { tenantId, namespace, behindMs, limit } = query;
  const rows = await runner.run<SumRow>(sumUsageRows, [
    ...[tenantId, namespace ?? null, ...rangeOf(query), behindMs, limit, latestMs ?? null],
  ]);
  const used = rows.filter(({ claims }) => claims !== null);
  return {
    items: used.map((row) => ({ hourMs: row.hour_ms, counters: countersBy((name) => Number(row[name])) })),
    next: rows.length === limit ? rows.at(-1)?.hour_ms : undefined,
  };
}

function usageHour({ namespace, repeats, ...sum }: UsageHourRow): UsageHour {
  return create(UsageHourSchema, {
    namespace,
    ...usageSum(sum),
    repeatLateness: latenessBuckets(repeats),
  });
}

function usageSum({ hourMs, counters }: UsageSum) {
  return { hour: timestamp(hourMs), ...countFields(counters) };
}

/** Returns the buckets that have repeats, and the last one. */
function latenessBuckets(repeats: LatenessCounts): LatenessBucket[] {
  const last: [number, number][] = repeats.has(LAST_LATENESS_BUCKET) ? [] : [[LAST_LATENESS_BUCKET, 0]];
  return [...repeats, ...last].map(latenessMessage);
}

/** Returns a bucket of repeats as callers see it. */
export function latenessMessage([bucket, repeats]: readonly [
  bucket: number,
  repeats: number,
]): LatenessBucket {
  const limitMs = latenessLimitMs(bucket);
  return create(LatenessBucketSchema, {
    repeats: BigInt(repeats),
    ...(limitMs !== undefined && { upTo: duration(limitMs) }),
  });
}
