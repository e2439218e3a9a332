import type { Runner } from "../../../core/store/pool.ts";
import { type AmbiguousCursor, BEFORE_ALL_AMBIGUOUS } from "./list-ambiguous.ts";

/** Which ambiguous records of a tenant to count. */
export interface AmbiguousRange {
  readonly tenantId: number;
  /** Undefined: all. */
  readonly namespace: string | undefined;
  /** Empty: any. */
  readonly owner: string;
  /** The name of the last checkpoint. Empty: any, or none. */
  readonly checkpoint: string;
  /** In milliseconds since the Unix epoch; undefined: before the statement. */
  readonly leaseExpiredBeforeMs: number | undefined;
}

/** What one statement counted. */
export interface AmbiguousCount {
  readonly matching: number;
  /** The database's clock at the statement, in milliseconds since the Unix epoch. */
  readonly nowMs: number;
  /** The next count begins behind this position; undefined: there are no more records. */
  readonly next: AmbiguousCursor | undefined;
}

/** Rows that one statement examines: some tens of milliseconds. The text of the statement holds the number. */
export const MAX_EXAMINED_ROWS = 5000;

const countMatchingRows = {
  name: "count_matching_ambiguous",
  text: `
with examined as materialized (
  select r.ambiguous_from, r.namespace, r.key,
         r.expires_at > now()
           and ($5::text is null or r.namespace = $5::text)
           and ($7::text = '' or r.owner = $7::text)
           and ($8::text = '' or coalesce(r.checkpoint_name, '') = $8::text) as wanted
    from records r
   where r.tenant_id = $1::int
     and r.ambiguous_from <= now()
     and r.ambiguous_from < coalesce(to_timestamp($6::float8 / 1000), 'infinity')
     and (r.ambiguous_from, r.namespace, r.key) > ($2::timestamptz, $3::text, $4::text)
   order by r.ambiguous_from, r.namespace, r.key
   limit 5000
), last as (
  select ambiguous_from::text as since, namespace, key
    from examined
   order by ambiguous_from desc, namespace desc, key desc
   limit 1
)
select (select count(*) from examined)::int as examined,
       (select count(*) from examined where wanted)::int as matching,
       (select since from last) as last_since,
       (select namespace from last) as last_namespace,
       (select key from last) as last_key,
       date_part('epoch', now()) * 1000 as now_ms`,
};

interface Row {
  readonly examined: number;
  readonly matching: number;
  readonly last_since: string | null;
  readonly last_namespace: string | null;
  readonly last_key: string | null;
  readonly now_ms: number;
}

/** Counts the ambiguous records of a range that match, among MAX_EXAMINED_ROWS ambiguous records behind a position. */
export async function countMatching(
  runner: Runner,
  range: AmbiguousRange,
  behind: AmbiguousCursor = BEFORE_ALL_AMBIGUOUS,
): Promise<AmbiguousCount> {
  const [row] = await runner.run<Row>(countMatchingRows, [
    range.tenantId,
    behind.since,
    behind.namespace,
    behind.key,
    range.namespace ?? null,
    range.leaseExpiredBeforeMs ?? null,
    range.owner,
    range.checkpoint,
  ]);
  if (row === undefined) throw new Error("a count returned no row");
  const {
    examined,
    matching,
    now_ms: nowMs,
    last_since: since,
    last_namespace: namespace,
    last_key: key,
  } = row;
  const isCut = examined === MAX_EXAMINED_ROWS && since !== null && namespace !== null && key !== null;
  return { matching, nowMs, next: isCut ? { since, namespace, key } : undefined };
}
