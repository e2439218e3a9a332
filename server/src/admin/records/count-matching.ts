import { nowBy } from "../../database/now-by.ts";
import type { Runner } from "../../database/pool.ts";
import { HELD_FROM, isHeld } from "../../records/engine/record-sql.ts";
import type { RecordFilter } from "./find-records.ts";
import { type AmbiguousCursor, BEFORE_ALL_AMBIGUOUS } from "./list-ambiguous.ts";

/** Which ambiguous records of a tenant to count. */
export type AmbiguousRange = Pick<
  RecordFilter,
  "tenantId" | "namespace" | "owner" | "checkpoint" | "leaseExpiredBeforeMs"
>;

/** Rows that one statement examines: some tens of milliseconds. */
const MAX_EXAMINED_ROWS = 5000;

/**
 * Counts by the previous clock. It also bounds the ends of leases: a job that resolves the counted
 * records begins when the clock is right again, and must not reach those that became ambiguous after the count.
 */
const countMatchingRows = {
  name: "count_matching_ambiguous",
  text: `
with examined as materialized (
  select r.ambiguous_from, r.namespace, r.key,
         r.expires_at > ${nowBy("$9")}
           and ${isHeld(nowBy("$9"), "$9")}
           and ${HELD_FROM} < coalesce(to_timestamp($6::float8 / 1000), 'infinity')
           and ($5::text is null or r.namespace = $5::text)
           and ($7::text = '' or r.owner = $7::text)
           and ($8::text = '' or coalesce(r.checkpoint_name, '') = $8::text) as wanted
    from records r
   where r.tenant_id = $1::int
     and r.ambiguous_from <= ${nowBy("$9")}
     and r.ambiguous_from < coalesce(to_timestamp($6::float8 / 1000), 'infinity')
     and (r.ambiguous_from, r.namespace, r.key) > ($2::timestamptz, $3::text, $4::text)
   order by r.ambiguous_from, r.namespace, r.key
   limit ${MAX_EXAMINED_ROWS}
), last as (
  select to_jsonb(ambiguous_from) #>> '{}' as since, namespace, key
    from examined
   order by ambiguous_from desc, namespace desc, key desc
   limit 1
)
select (select count(*) from examined)::int as examined,
       (select count(*) from examined where wanted)::int as matching,
       (select row_to_json(last) from last) as last,
       extract(epoch from ${nowBy("$9")}) * 1000 as "nowMs"`,
};

interface Row {
  readonly examined: number;
  readonly matching: number;
  readonly last: AmbiguousCursor | null;
  readonly nowMs: number;
}

/**
 * Counts the ambiguous records of a range that match, among MAX_EXAMINED_ROWS ambiguous records behind a position.
 *
 * @param latestMs as DatabaseClock: a record is ambiguous from the end of its lease until that of its retention by the
 * previous clock.
 */
export async function countMatching(
  runner: Runner,
  range: AmbiguousRange,
  behind: AmbiguousCursor = BEFORE_ALL_AMBIGUOUS,
  latestMs?: number,
) {
  const [row] = await runner.run<Row>(countMatchingRows, [
    range.tenantId,
    behind.since,
    behind.namespace,
    behind.key,
    range.namespace ?? null,
    range.leaseExpiredBeforeMs ?? null,
    range.owner,
    range.checkpoint,
    latestMs ?? null,
  ]);
  if (row === undefined) throw new Error("a count returned no row");
  const { examined, matching, last, nowMs } = row;
  return {
    matching,
    /** The database's clock at the statement, by the previous clock if it was set, in milliseconds since the Unix epoch. */
    nowMs,
    /** The next count begins after this position; undefined: there are no more records. */
    next: examined === MAX_EXAMINED_ROWS ? (last ?? undefined) : undefined,
  };
}
