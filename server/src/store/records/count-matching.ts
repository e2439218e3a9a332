import type { Runner } from "../pool.ts";
import { cursorBehind, endOf, type RecordCursor, startOf } from "./list-records.ts";

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
  /** Where the next count begins; undefined: there are no more records. */
  readonly next: RecordCursor | undefined;
}

/** Rows that one statement examines: some tens of milliseconds. The text of the statement holds the number. */
export const MAX_EXAMINED_ROWS = 20_000;

const countMatchingRows = {
  name: "count_matching_ambiguous",
  text: `
with examined as materialized (
  select r.namespace, r.key,
         r.state = 1 /* in progress */
           and r.holds_on_lease_expiry
           and r.lease_expires_at <= now()
           and r.expires_at > now()
           and r.lease_expires_at < coalesce(to_timestamp($6::float8 / 1000), 'infinity')
           and ($7::text = '' or r.owner = $7::text)
           and ($8::text = '' or coalesce(r.checkpoint_name, '') = $8::text) as wanted
    from records r
   where r.tenant_id = $1::int
     and (r.namespace, r.key) >= ($2::text, $3::text)
     and (r.namespace, r.key) < ($4::text, $5::text)
   order by r.namespace, r.key
   limit 20000
), last as (
  select namespace, key from examined order by namespace desc, key desc limit 1
)
select (select count(*) from examined)::int as examined,
       (select count(*) from examined where wanted)::int as matching,
       (select namespace from last) as last_namespace,
       (select key from last) as last_key,
       date_part('epoch', now()) * 1000 as now_ms`,
};

interface Row {
  readonly examined: number;
  readonly matching: number;
  readonly last_namespace: string | null;
  readonly last_key: string | null;
  readonly now_ms: number;
}

/** Counts the ambiguous records of a range that match, among MAX_EXAMINED_ROWS rows from a position on. */
export async function countMatching(
  runner: Runner,
  range: AmbiguousRange,
  from: RecordCursor | undefined,
): Promise<AmbiguousCount> {
  const wholeRange = { ...range, keyPrefix: "" };
  const start = from ?? startOf(wholeRange);
  const end = endOf(wholeRange);
  const [row] = await runner.run<Row>(countMatchingRows, [
    range.tenantId,
    start.namespace,
    start.key,
    end.namespace,
    end.key,
    range.leaseExpiredBeforeMs ?? null,
    range.owner,
    range.checkpoint,
  ]);
  if (row === undefined) throw new Error("a count returned no row");
  const { examined, matching, now_ms: nowMs, last_namespace: namespace, last_key: key } = row;
  const isCut = examined === MAX_EXAMINED_ROWS && namespace !== null && key !== null;
  return { matching, nowMs, next: isCut ? cursorBehind({ namespace, key }) : undefined };
}
